"""Runs the statements of a script through Microsoft's ODBC driver and prints what differs."""
import datetime
import decimal
import json
import sys
import uuid

import mssql_python

from odbc_common import connect


def text(value):
    """A value as the script writes it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, (bytes, bytearray)):
        return "0x" + value.hex().upper()
    if isinstance(value, (datetime.datetime, datetime.time, datetime.date)):
        return str(value)
    if isinstance(value, uuid.UUID):
        return str(value).upper()
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, (int, float)):
        return str(value)
    raise SystemExit(f"no text for {value!r}")


def answer(connection, sql):
    """Column names and rows of each result set, and the error that ended the batch."""
    results = []
    cursor = connection.cursor()
    try:
        cursor.execute(sql)
        while True:
            if cursor.description:
                columns = [column[0] for column in cursor.description]
                results.append((columns, [[text(value) for value in row] for row in cursor.fetchall()]))
            if not cursor.nextset():
                return results, None
    except mssql_python.exceptions.Error as failure:
        return results, str(failure)
    finally:
        cursor.close()


def differences(statement, results, error):
    expected = statement["results"]
    if "error" in statement:
        # The driver reports an error in place of what follows it, so only results before it can be compared.
        if error is None:
            yield f"no error, expected {statement['error']}"
        elif statement["text"] not in error:
            yield f"error {error!r}, expected {statement['text']!r}"
        expected = expected[: len(results)]
    elif error is not None:
        yield f"unexpected error {error!r}"
    if len(results) != len(expected):
        yield f"{len(results)} result sets, expected {len(expected)}"
    for (columns, rows), wanted in zip(results, expected):
        if rows != wanted["rows"]:
            yield f"rows {rows}, expected {wanted['rows']}"
        if "columns" in wanted and columns != wanted["columns"]:
            yield f"columns {columns}, expected {wanted['columns']}"


with open(sys.argv[1], encoding="utf-8") as file:
    statements = json.load(file)["statements"]
connection = connect()
failures = 0
for statement in statements:
    found = list(differences(statement, *answer(connection, statement["sql"])))
    if found:
        failures += 1
        print(statement["sql"], *found, sep="\n    ")
connection.close()
if failures:
    raise SystemExit(f"{failures} statements differ")
