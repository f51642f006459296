"""The demo between its servers' start and end: load, refresh, change, replace one day, compare. Run by demo/run.sh.

The two transfers go by the operator in a cluster (--cluster), or by the command line.

Each step prints one line with its counts. The first expectation that fails ends the demo with exit code 1.
"""

import argparse
import json
import os
import pathlib
import secrets
import signal
import sys
import time
from collections import Counter

import flights
import multiset
from command_line import CommandLine
from multiset import Difference, equal, same_number, select, size
from operator_road import OperatorRoad
from source import Source
from target import LOADER, STAGING_SCHEMA, STATE_SCHEMA, Target

MANIFESTS = pathlib.Path(__file__).parent / "manifests"
DATABASE = "demo"


class Steps:
    """Numbered lines for a person, each with the seconds that its step took."""

    def __init__(self):
        self._number, self._before = 0, time.monotonic()

    def done(self, text):
        self._number += 1
        now = time.monotonic()
        print(f"{self._number:2}. {text}  [{now - self._before:.1f} s]", flush=True)
        self._before = now


class Demo:
    def __init__(self, state, native_transfer, cluster):
        self._state, self._native_transfer = state, CommandLine(state, native_transfer)
        clickhouse, sqlserver = self._ready("clickhouse"), self._ready("sqlserver")
        # The name that the certificates bear and that everybody connects to: pods cannot reach this machine's localhost.
        name = cluster["host_address"] if cluster else "localhost"
        self.clickhouse = {**clickhouse, "name": name, "user": "demo", "password": self._password("clickhouse")}
        self.sqlserver = {**sqlserver, "name": name, "user": "sa", "password": self._password("sqlserver"), "database": DATABASE}
        self._road = OperatorRoad(cluster, MANIFESTS) if cluster else self._native_transfer
        self._cluster = cluster
        self._steps = Steps()

    def _ready(self, server):
        return json.loads((self._state / f"{server}.ready").read_text())

    def _password(self, server):
        return (self._state / f"{server}.password").read_text().strip()

    def write_env(self):
        """The shell lines of `KEEP=1`: where the servers are and how to log in."""
        ends = {"CH": self.clickhouse, "MSSQL": self.sqlserver}
        lines = []
        for prefix, end in ends.items():
            keys = ["host", "port", "https_port", "user", "password", "database", "ca"]
            lines += [f"{prefix}_{key.upper()}={end[key]}\n" for key in keys if key in end]
        if self._cluster:
            lines.append(f"KUBECONFIG={self._cluster['kubeconfig']}\n")
        file = os.open(self._state / "env", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(file, "w") as out:
            out.writelines(lines)

    def run(self):
        source = Source(self.clickhouse)
        loaded = self._load(source)
        target = Target(self.sqlserver)
        self._prepare_target(target)
        earlier = self._refresh(source, target, loaded)
        changes, plants = self._change(source, target, loaded)
        result = self._replace_day(target, loaded, changes)
        self._compare(source, target, loaded, changes, plants, earlier)
        self._evidence(target, result)
        target.close()

    def _load(self, source):
        version = source.version()
        load = flights.load()
        source.create()
        for month in range(1, 13):
            source.insert([row for row in load.flights if row[flights.INDEX["month"]] == month])
        source.insert(load.later_versions)
        source.insert(load.duplicates)
        rows = load.rows()
        same_number("rows of the source after the load", len(rows), source.count())
        self._steps.done(
            f"ClickHouse {version}: loaded {len(load.flights):,} flights, {len(load.later_versions):,} later versions and "
            f"{len(load.duplicates):,} identical duplicates = {len(rows):,} rows in {source.parts()} parts, merges stopped"
        )
        return rows

    def _prepare_target(self, target):
        password = f"Load-{secrets.token_hex(16)}"
        target.create_table()
        target.create_loader(password)
        script = self._native_transfer.command(
            "target-catalog", "print", "--state-schema", STATE_SCHEMA, "--staging-schema", STAGING_SCHEMA, "--loader", LOADER
        )
        batches = target.run_script(script)
        target.grant_loader()
        loader = {**self.sqlserver, "user": LOADER, "password": password}
        as_loader = Target(loader)
        if as_loader.is_sysadmin():
            raise Difference("the loader is a member of sysadmin; the demo shows what a least-privileged login can do")
        as_loader.close()
        self._road.connect({**self.clickhouse, "database": "air"}, loader)
        self._steps.done(
            f"SQL Server {target.version()} (our test server): created dbo.flights, {batches} batches of the printed catalog, "
            f"and the login {LOADER} with the rights of docs/reference/grants.md"
        )

    def _refresh(self, source, target, loaded):
        result = self._road.transfer("full-refresh", target)
        same_number("rows that the full refresh published", len(loaded), result["rows"])
        self._steps.done(
            f"full_refresh: {result['rows']:,} rows in {result['chunks']} chunks verified inside SQL Server and published once"
            f"{result['remark']}"
        )
        expected = multiset.of_rows(loaded)
        equal("the source against the loaded rows", expected, source.rows())
        found = target.rows()
        equal("the target against the source after the full refresh", expected, found)
        self._steps.done(f"both ends read by foreign clients: {size(found):,} rows, {len(found):,} distinct, the same multiset")
        return found

    def _change(self, source, target, loaded):
        changes = flights.changes(loaded)
        source.insert(changes.inserted)
        deleted = source.delete(changes.deleted_flights)
        same_number("rows that the lightweight DELETE took from the day", sum(map(changes.deletes, loaded)), deleted)
        self._steps.done(
            f"changed the day 2013-07-04 at the source: {len(changes.inserted)} rows inserted, {deleted} lightweight-deleted "
            f"({len(changes.deleted_flights)} flights with their versions)"
        )
        plants = flights.plants(loaded)
        for plant in plants:
            target.plant(plant)
        same_number("rows of the target after planting", len(loaded) + len(plants), target.count())
        inner, outer = (plant[flights.TIME] for plant in plants)
        self._steps.done(f"planted two wrong rows in the target by mssql-python: {inner} (inside the day) and {outer} (outside)")
        return changes, plants

    def _replace_day(self, target, loaded, changes):
        before = sum(map(flights.in_day, loaded))
        after = before + len(changes.inserted) - sum(map(changes.deletes, loaded))
        result = self._road.transfer("one-day", target)
        same_number("rows of the day that the transfer published", after, result["rows"])
        same_number("rows of the day that the transfer replaced", before + 1, result["replaced_rows"])
        same_number("rows of the target after the replacement", len(loaded) - before + after + 1, target.count())
        self._steps.done(
            f"partition_replace of 2013-07-04: expected and found {before + 1:,} rows out ({before:,} and the inner plant), "
            f"{after:,} rows in, {target.count():,} in the table"
        )
        return result

    def _compare(self, source, target, loaded, changes, plants, earlier):
        inner, outer = (next(iter(multiset.of_rows([plant]))) for plant in plants)
        found = target.rows()
        day, rest = select(found, flights.in_day), select(found, lambda row: not flights.in_day(row))
        day_of_source = source.day()
        equal("the day at the target against the source", day_of_source, day)
        kept = [row for row in loaded if flights.in_day(row) and not changes.deletes(row)]
        equal("the day against what the changes should have left", multiset.of_rows(kept + changes.inserted), day)
        same_number("inner plants in the target", 0, found[inner])
        same_number("outer plants in the target", 1, found[outer])
        expected_rest = select(earlier, lambda row: not flights.in_day(row)) + Counter([outer])
        equal("the rows outside the day against their earlier state", expected_rest, rest)
        self._steps.done(
            f"compared by clickhouse-driver and mssql-python: the day equals the source ({size(day):,} rows), the inner plant is "
            f"gone, the outer stays, the other {size(rest) - 1:,} rows are as before"
        )

    def _evidence(self, target, result):
        document = target.evidence(result["receipt_id"])
        if document is None:
            raise Difference("no evidence in the target names the receipt of the last transfer")
        same_number("rows in the evidence", result["rows"], document["rows"])
        same_number("stages left in the target", 0, target.stages())
        same_number("targets in custody", 0, target.custody())
        native = document["native_transfer_v1"]
        self._steps.done("evidence of the last transfer, as SQL Server keeps it; no stage and no custody is left")
        lines = {
            "receipt": document["commit_receipt_id"],
            "committed at": native["committed_at"],
            "rows in / out": f"{native['inserted_rows']:,} / {native['replaced_rows']:,}",
            "chunks": f"{native['chunks']} of {native['encoded_bytes']:,} bytes in all",
            "typed digest": native["typed_digest"],
            "target": native["target_identity"],
            "source query": native["source"]["query_id"],
            "DDL exclusion": native["source"]["ddl_exclusion"],
            "certification": native["certification"],
        }
        for name, value in lines.items():
            print(f"      {name:<14} {value}")
        self._road.show()
        print("demo: passed", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", type=pathlib.Path, required=True)
    parser.add_argument("--native-transfer", type=pathlib.Path, required=True)
    parser.add_argument("--write-env", action="store_true")
    parser.add_argument("--cluster", type=pathlib.Path, help="the line of `testkit cluster up`; without it the command line is used")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    cluster = json.loads(arguments.cluster.read_text()) if arguments.cluster else None
    demo = Demo(arguments.state, arguments.native_transfer, cluster)
    if arguments.write_env:
        demo.write_env()
    try:
        demo.run()
    except Difference as difference:
        print(f"demo: FAILED: {difference}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
