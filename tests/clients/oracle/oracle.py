"""An independent opinion on what was read: a foreign client over HTTP and a second implementation of rows and digests.

For each table this program makes it, prints one JSON line {"table", "mode", "window": null or [start, end] in microseconds, of column `ts`}, and waits for one line
{"rows", "digest", "columns": [[name, type]], "files": [path]}: what the product's source delivered and sealed. Then it reads
the table itself (clickhouse-connect over HTTPS, JSON text), encodes and sums with its own code, and compares as multisets. The
first difference ends it with exit code 1, the seed and the table; else the last line is {"compared": N, "rows": N}.
"""

import argparse
import datetime
import json
import pathlib
import sys
from collections import Counter

import clickhouse_connect
import encoding
import scan
import tables

# A reader of its own: neither the product's settings nor its literals.
_READ = {"final": 0, "use_query_cache": 0, "output_format_json_quote_64bit_integers": 1, "output_format_json_quote_decimals": 1}

_EPOCH = datetime.datetime(1970, 1, 1)


def main():
    arguments = _arguments()
    client = clickhouse_connect.get_client(
        host="localhost", port=arguments.port, username=arguments.user, password=sys.stdin.readline().rstrip("\n"),
        secure=True, ca_cert=arguments.ca, autogenerate_session_id=False,
    )  # fmt: skip
    client.command("CREATE DATABASE IF NOT EXISTS oracle ENGINE = Atomic")
    total = 0
    for number in range(arguments.tables):
        table = tables.Table(arguments.seed, number, arguments.rows)
        try:
            total += _compare_table(client, table)
        except Exception as difference:
            sys.exit(f"seed {arguments.seed}, {table.name} ({table.create()}): {difference!r}")
        client.command(f"DROP TABLE oracle.{table.name} SYNC")
    if arguments.scan_bytes:
        total += scan.compare(client, arguments.scan_bytes, ask)
    print(json.dumps({"compared": arguments.tables + bool(arguments.scan_bytes), "rows": total}), flush=True)


def ask(table, mode, window):
    """Lets the product read a table; returns its answer."""
    print(json.dumps({"table": table, "mode": mode, "window": window}), flush=True)
    answer = sys.stdin.readline()
    if not answer:
        raise EOFError("the other side has ended")
    return json.loads(answer)


def _compare_table(client, table):
    client.command(table.create())
    for batch in table.inserts():
        lines = "\n".join(json.dumps(row) for row in batch)
        client.raw_insert(f"oracle.{table.name}", insert_block=lines, fmt="JSONEachRow")
    for statement in table.changes():
        client.command(statement, settings={"lightweight_deletes_sync": 2, "allow_experimental_lightweight_update": 1})
    window = table.window and [(time - _EPOCH) // tables.MICRO for time in table.window]
    answer = ask(table.name, "exact_raw_rows" if table.raw else "query_visible", window)

    expected_columns = [(name, *encoding.target(type_text)) for name, type_text in table.columns]
    declared = [[name, sql_type + (" nullable" if nullable else "")] for name, sql_type, nullable in expected_columns]
    if answer["columns"] != declared:
        raise AssertionError(f"columns {answer['columns']} instead of {declared}")
    columns = [(sql_type, nullable) for _, sql_type, nullable in expected_columns]
    expected = [encoding.row(columns, values) for values in _rows(client, table)]
    data = b"".join(pathlib.Path(file).read_bytes() for file in answer["files"])
    delivered = Counter(encoding.split(columns, data))
    missing, extra = Counter(expected) - delivered, delivered - Counter(expected)
    if missing or extra:
        show = [row.hex() for rows in (missing, extra) for row in list(rows)[:2]]
        raise AssertionError(f"{missing.total()} rows are missing, {extra.total()} are not in the table: {show}")
    if answer["rows"] != len(expected) or answer["digest"] != encoding.digest(expected):
        raise AssertionError("the rows agree, their count or digest does not")
    return len(expected)


def _rows(client, table):
    names = ", ".join(f"`{name}`" for name, _ in table.columns)
    sql = f"SELECT {names} FROM oracle.{table.name}"
    if table.window:
        start, end = ((time - _EPOCH) // tables.MICRO for time in table.window)
        sql += f" WHERE toUnixTimestamp64Micro(toDateTime64(ts, 6, 'UTC')) BETWEEN {start} AND {end - 1}"
    lines = client.raw_query(sql, fmt="JSONCompactEachRow", settings=_READ).decode().splitlines()
    # Numbers stay the texts that the server printed.
    return [[_text(value) for value in json.loads(line, parse_int=str, parse_float=str)] for line in lines]


def _text(value):
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else value


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True, help="port of HTTPS")
    parser.add_argument("--ca", required=True)
    parser.add_argument("--user", required=True, help="its password is the first line of standard input")
    parser.add_argument("--seed", required=True)
    parser.add_argument("--tables", type=int, required=True)
    parser.add_argument("--rows", type=int, default=400, help="most rows of one insert")
    parser.add_argument("--scan-bytes", type=int, default=0, help="also scan one table of about so many decoded bytes")
    return parser.parse_args()


if __name__ == "__main__":
    main()
