"""The bench between its servers' start and end. Run by tools/bench.sh, which builds what is measured.

CPU seconds and peak RSS are those of the measured process alone; unlike the wall time they say the same on a busy machine.
Exit code 1 means that a transfer failed or left the RSS bound of design.md 6.
"""

import argparse
import json
import os
import pathlib
import re
import secrets
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import clickhouse_driver
import mssql_python

NAME = "localhost"  # as the servers' certificates say
DATABASE = "bench"
LOADER = "bench_loader"
RSS_BASE = 96 << 20
NATIVE_ROW, WIRE_ROW = 75, 84  # bytes of a P1 row with a value in each column
PARALLELISM, MAX_PENDING, MAX_ROWS, MAX_BYTES = 2, 2, 65_536, 16 << 20
WARM_UP_ROWS = 50_000
SERVER_END_SECONDS = 60

MANIFEST = """\
apiVersion: transfer.dpone.io/v1alpha1
kind: NativeTransfer
metadata: {{name: bench}}
spec:
  connections:
    source: {{secretRef: {{name: clickhouse}}}}
    target: {{secretRef: {{name: sqlserver}}}}
  manifest:
    source:
      type: clickhouse
      table: {{schema: bench, name: {table}}}
      options:
        native_transfer:
          source_snapshot: {{mode: query_visible}}
          wire: {{mode: typed_binary, binary_format: mssql_native}}
          execution:
            import_backend: mssql_sqlclient
            verification_backend: target_local
            chunking: {{mode: bounded_stream, parallelism: {parallelism}}}
            native_chunks:
              max_rows: {max_rows}
              max_bytes: {max_bytes}
              max_pending: {max_pending}
              max_total_encoded_bytes: {total_bytes}
              stage_allocated_bytes_stop_threshold: {stage_bytes}
    sink:
      type: mssql
      table: {{schema: dbo, name: {table}}}
      options: {{state_schema: dpone, staging_schema: dpone_stage}}
      strategy: {{mode: full_refresh}}
  journal: {{size: 1Gi}}
  run: {{token: "1"}}
"""


class Failure(Exception):
    """What was to be measured did not happen."""


class Server:
    """One `testkit` server with a fresh data folder."""

    def __init__(self, binaries, folder, kind, *arguments):
        self.password = f"Bench-{secrets.token_hex(16)}"
        self.password_file = folder / f"{kind}.password"
        self.password_file.write_text(self.password)
        self._errors = folder / f"{kind}.err"
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                [binaries / "testkit", kind, "--data", folder / kind, "--password-file", self.password_file, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,  # Ctrl-C is for the bench, which ends its servers itself
            )
        try:
            line = self._process.stdout.readline()
            if not line:
                raise Failure(f"testkit {kind} did not start: {self._errors.read_text()[-500:]}")
            ready = json.loads(line)
        except BaseException:
            self.stop()
            raise
        self.port, self.ca = ready["port"], ready["ca"]

    def stop(self):
        self._process.terminate()
        try:
            self._process.wait(SERVER_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Usage:
    """What a finished process used."""

    def __init__(self, wall, cpu, peak_rss, output):
        self.wall, self.cpu, self.peak_rss, self.output = wall, cpu, peak_rss, output


def measured(command, folder):
    """Runs a command to its end. The peak is VmHWM, which only rises; ru_maxrss would begin with our own size."""
    with tempfile.TemporaryFile(dir=folder) as output, tempfile.TemporaryFile(dir=folder) as errors:
        started = time.monotonic()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors)
        peak, ended = [0], threading.Event()

        def watch():
            while not ended.wait(0.02):
                try:
                    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
                except OSError:
                    return
                if found := re.search(r"^VmHWM:\s+(\d+) kB", status, re.M):
                    peak[0] = max(peak[0], int(found[1]) * 1024)

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            _, status, used = os.wait4(process.pid, 0)
        except BaseException:
            process.terminate()  # it settles what it has begun
            process.wait()
            raise
        finally:
            ended.set()
            watcher.join()
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.monotonic() - started
        output.seek(0)
        text = output.read().decode()
        if process.returncode != 0:
            errors.seek(0)
            raise Failure(f"{command[0]} ended with {process.returncode}: {text[-2000:]}{errors.read().decode()[-2000:]}")
        return Usage(wall, used.ru_utime + used.ru_stime, peak[0], text)


class Table:
    """The result, one line a stage."""

    _HEAD = ("stage", "rows", "M rows/s", "MB/s", "CPU s/M rows", "overlap", "peak RSS MiB", "bound MiB")

    def __init__(self):
        self._lines = [self._HEAD]

    def add(self, stage, rows, rate, bytes_per_second, cpu, overlap=None, peak=None, bound=None):
        mib = lambda size: "" if size is None else f"{size / (1 << 20):.0f}"
        line = (stage, f"{rows:,}", f"{rate / 1e6:.4f}", f"{bytes_per_second / 1e6:.1f}", f"{cpu:.3f}")
        self._lines.append((*line, "" if overlap is None else f"{overlap:.2f}", mib(peak), mib(bound)))
        print("  " + ", ".join(f"{name} {cell}" for name, cell in zip(self._HEAD, self._lines[-1]) if cell), flush=True)

    def print(self):
        widths = [max(len(line[column]) for line in self._lines) for column in range(len(self._HEAD))]
        for line in self._lines:
            print("  ".join(cell.rjust(width) if at else cell.ljust(width) for at, (cell, width) in enumerate(zip(line, widths))))


class Bench:
    def __init__(self, arguments, folder):
        self._binaries, self._folder = arguments.binaries, folder
        self._rows, self._read_rows, self._repeat = arguments.rows, arguments.read_rows, arguments.repeat
        self._table, self._verdicts, self.failed = Table(), [], False

    def run(self):
        self._encoders()
        clickhouse = Server(self._binaries, self._folder, "clickhouse", "--user", "bench")
        try:
            self._source = self._connect_source(clickhouse)
            self._read(clickhouse)
            sqlserver = Server(self._binaries, self._folder, "sqlserver", "--database", DATABASE)
            try:
                self._road(clickhouse, sqlserver)
            finally:
                sqlserver.stop()
        finally:
            clickhouse.stop()
        print()
        self._table.print()
        print("\n".join(["", *self._verdicts]))

    def _verdict(self, name, value, limit, form, at_least=False):
        met = value >= limit if at_least else value <= limit
        sign = ">=" if at_least else "<="
        self._verdicts.append(f"{'met   ' if met else 'MISSED'} {name}: {form(value)} ({sign} {form(limit)})")
        return met

    def _within_bound(self, name, peak, bound):
        if not self._verdict(f"peak RSS of {name}", peak, bound, lambda size: f"{size / (1 << 20):.0f} MiB"):
            self.failed = True

    # --- the stages alone ---

    def _example(self, name, *arguments):
        print(f"{name} {' '.join(map(str, arguments))}".rstrip(), flush=True)
        usage = measured([self._binaries / "examples" / name, *map(str, arguments)], self._folder)
        print("".join(f"  {line}\n" for line in usage.output.splitlines() if not line.startswith("{")), end="", flush=True)
        return usage

    def _encoders(self):
        """One thread without I/O: its wall time on an undisturbed core is its CPU time."""
        text = self._example("encode_bench").output
        rate = float(re.search(r"encode \+ SHA-256 \+ sum\s+([\d.]+) M rows/s", text)[1]) * 1e6
        self._table.add("encode + digest, one core", 65_536, rate, rate * NATIVE_ROW, 1e6 / rate)
        wire_rows = min(self._rows, 5_000_000)
        rate = float(re.search(r"([\d.]+) M rows/s", self._example("wire_bench", wire_rows).output)[1]) * 1e6
        self._table.add("sealed file -> TDS wire, one core", wire_rows, rate, rate * WIRE_ROW, 1e6 / rate)
        self._verdict("sealed file -> TDS wire, M rows/s/core", rate / 1e6, 5, "{:.2f}".format, at_least=True)
        self._example("store_bench", self._rows, self._folder / "store")

    # --- ClickHouse ---

    def _connect_source(self, server):
        client = clickhouse_driver.Client(
            host=NAME, port=server.port, user="bench", password=server.password, secure=True, verify=True, ca_certs=server.ca
        )
        client.execute("CREATE DATABASE bench ENGINE = Atomic")
        return client

    def _fill(self, table, rows):
        self._source.execute(
            f"CREATE TABLE bench.{table} (id Nullable(Int64), amount Nullable(Float64), text Nullable(String), "
            "at Nullable(DateTime64(6, 'UTC'))) ENGINE = MergeTree ORDER BY tuple()"
        )
        self._source.execute(
            f"INSERT INTO bench.{table} SELECT number, number * 0.25, concat('row ', leftPad(toString(number), 16, '0')), "
            f"fromUnixTimestamp64Micro(toInt64(1600000000000000 + number * 1000003), 'UTC') FROM numbers({rows})"
        )

    def _read(self, server):
        rows = self._read_rows
        self._fill("read", rows)
        reach = ("--port", server.port, "--ca", server.ca, "--user", "bench", "--password-file", server.password_file)
        reach += ("--database", "bench", "--table", "read")
        text = self._example("read_bench", *reach).output
        number = lambda unit: float(re.search(rf"([\d.]+) {unit}", text)[1])
        rate, peak = number("M rows/s") * 1e6, float(re.search(r"peak RSS (\d+) MiB", text)[1]) * (1 << 20)
        self._table.add("read + decode", rows, rate, number("MB/s decoded") * 1e6, number("CPU s per M rows"), peak=peak)
        limits = ("--parallelism", PARALLELISM, "--max-pending", MAX_PENDING, "--max-rows", MAX_ROWS, "--max-bytes", MAX_BYTES)
        usage = self._example("seal_bench", *reach, "--spool", self._folder / "spool", *limits)
        sealed = json.loads(usage.output.splitlines()[-1])
        if sealed["rows"] != rows:
            raise Failure(f"sealed {sealed['rows']} rows of {rows}")
        cpu = sealed["cpu_seconds"] / rows * 1e6
        self._table.add(
            "read + encode + seal",
            rows,
            rows / sealed["wall_seconds"],
            sealed["encoded_bytes"] / sealed["wall_seconds"],
            cpu,
            sealed["encode"]["effective_parallelism"],
            sealed["peak_rss_bytes"],
            sealed["rss_bound_bytes"],
        )
        self._verdict("read + encode + digest + seal, M rows per CPU s", 1 / cpu, 2, "{:.2f}".format, at_least=True)
        self._within_bound("read + encode + seal", sealed["peak_rss_bytes"], sealed["rss_bound_bytes"])
        self._source.execute("DROP TABLE bench.read SYNC")

    # --- the whole road ---

    def _prepare_target(self, server):
        os.environ["SSL_CERT_FILE"] = server.ca  # the driver has no option for it
        connection = mssql_python.connect(
            f"Server=tcp:{NAME},{server.port};Database={DATABASE};UID=sa;PWD={{{server.password}}};Encrypt=yes;"
            "TrustServerCertificate=no;",
            autocommit=True,
        )

        def execute(sql):
            with connection.cursor() as cursor:
                cursor.execute(sql)
                while cursor.nextset():  # an error of a later statement is only seen by going on
                    pass

        password = f"Load-{secrets.token_hex(16)}"
        execute(f"CREATE LOGIN [{LOADER}] WITH PASSWORD = N'{password}'")
        execute(f"CREATE USER [{LOADER}] FOR LOGIN [{LOADER}]")
        command = ("target-catalog", "print", "--staging-schema", "dpone_stage", "--loader", LOADER)
        script = measured([self._binaries / "native-transfer", *command], self._folder).output
        for batch in re.split(r"(?m)^GO\s*$", script):
            if batch.strip():
                execute(batch)
        execute("USE [master]")
        execute(f"GRANT VIEW SERVER STATE TO [{LOADER}]")
        execute(f"USE [{DATABASE}]")
        return execute, password

    def _connection(self, role, server, user, password):
        folder = self._folder / "connections" / role
        folder.mkdir(parents=True)
        values = {"host": NAME, "port": server.port, "user": user, "password": password, "database": DATABASE}
        values |= {"transfer.dpone.io.role": role, "ca.crt": pathlib.Path(server.ca).read_text()}
        for key, value in values.items():
            (folder / key).write_text(str(value))

    def _road(self, clickhouse, sqlserver):
        execute, password = self._prepare_target(sqlserver)
        self._connection("source", clickhouse, "bench", clickhouse.password)
        self._connection("target", sqlserver, LOADER, password)
        bound = (PARALLELISM + MAX_PENDING + 1) * MAX_BYTES + RSS_BASE
        medians = {}
        for rows in (WARM_UP_ROWS, self._rows // 10, self._rows):
            table = f"p1_{rows}"
            if rows in medians:
                continue
            self._fill(table, rows)
            runs = []
            for number in range(1 if rows == WARM_UP_ROWS else self._repeat):
                execute(
                    f"CREATE TABLE dbo.{table} (id bigint NULL, amount float(53) NULL, text nvarchar(max) NULL, at datetime2(6) NULL)"
                )
                execute(f"GRANT SELECT, INSERT, DELETE, ALTER ON dbo.{table} TO [{LOADER}]")
                runs.append(self._transfer(table, rows, number, bound))
                execute(f"DROP TABLE dbo.{table}")
            medians[rows] = [statistics.median(values) for values in zip(*runs)]
            self._source.execute(f"DROP TABLE bench.{table} SYNC")
        (short_wall, short_cpu), (long_wall, long_cpu) = medians[self._rows // 10], medians[self._rows]
        self._verdict("wall time of ten times the rows", long_wall / short_wall, 10.5, "{:.2f} x".format)
        self._verdict("client CPU time of ten times the rows", long_cpu / short_cpu, 10.5, "{:.2f} x".format)

    def _transfer(self, table, rows, number, bound):
        name = f"{table}-{number + 1}"
        manifest = self._folder / f"{name}.yaml"
        limits = {"parallelism": PARALLELISM, "max_rows": MAX_ROWS, "max_bytes": MAX_BYTES, "max_pending": MAX_PENDING}
        # The target must have room for both before anything starts, so they are no larger than needed.
        totals = {"total_bytes": NATIVE_ROW * rows, "stage_bytes": (4 * WIRE_ROW * rows) + (1 << 30)}
        manifest.write_text(MANIFEST.format(table=table, **limits, **totals))
        print(f"native-transfer run of {rows:,} rows", flush=True)
        reach = ["--connections", self._folder / "connections", "--journal-root", self._folder / "journal", "--run-id", name]
        command = [self._binaries / "native-transfer", "run", "-f", manifest, "--output", "json", *reach]
        usage = measured(command, self._folder)
        outcome = json.loads(usage.output)
        if outcome.get("rows") != rows:
            raise Failure(f"published {outcome.get('rows')} rows of {rows}")
        overlap = outcome["measured"]["import_verify"]["effective_parallelism"]
        rate, cpu = rows / usage.wall, usage.cpu / rows * 1e6
        self._table.add("whole road (import overlap)", rows, rate, rate * NATIVE_ROW, cpu, overlap, usage.peak_rss, bound)
        self._within_bound(f"the whole road, {rows:,} rows", usage.peak_rss, bound)
        return usage.wall, usage.cpu


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binaries", type=pathlib.Path, required=True, help="folder of the release build")
    parser.add_argument("--rows", type=int, required=True, help="rows of the whole road")
    parser.add_argument("--read-rows", type=int, required=True, help="rows of the read-encode-seal part")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each transfer; the median counts")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="native-transfer-bench-") as folder:
        bench = Bench(arguments, pathlib.Path(folder))
        try:
            bench.run()
        except Failure as failure:
            print(f"bench: {failure}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            return 130
    return 1 if bench.failed else 0


if __name__ == "__main__":
    sys.exit(main())
