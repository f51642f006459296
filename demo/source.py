"""The ClickHouse end, by the foreign client clickhouse-driver over native TLS."""

import clickhouse_driver

import multiset
from flights import COLUMNS, DAY_END, DAY_START, NAMES, TIME, UTC

TABLE = "air.flights"
_DAY = f"time_hour >= toDateTime64('{DAY_START}', 6, 'UTC') AND time_hour < toDateTime64('{DAY_END}', 6, 'UTC')"


class Source:
    def __init__(self, connection):
        self._client = clickhouse_driver.Client(
            host=connection["name"],
            port=connection["port"],
            user=connection["user"],
            password=connection["password"],
            secure=True,
            verify=True,
            ca_certs=connection["ca"],
            compression=False,
        )

    def version(self):
        return self._client.execute("SELECT version()")[0][0]

    def create(self):
        columns = ",\n".join(f"  {column.name} {column.source_type}" for column in COLUMNS)
        self._client.execute("CREATE DATABASE air ENGINE = Atomic")
        self._client.execute(
            f"CREATE TABLE {TABLE} (\n{columns}\n)\n"
            "ENGINE = ReplacingMergeTree(version, is_deleted)\n"
            "PARTITION BY toYYYYMM(time_hour) ORDER BY (time_hour, origin, carrier, flight, sched_dep_time)\n"
            # No part is small enough to be merged, also while merges are allowed for the mutation of a DELETE.
            "SETTINGS max_bytes_to_merge_at_max_space_in_pool = 1"
        )
        self._client.execute(f"SYSTEM STOP MERGES {TABLE}")

    def insert(self, rows):
        columns = [list(values) for values in zip(*rows)]
        columns[TIME] = [value.replace(tzinfo=UTC) for value in columns[TIME]]
        return self._client.execute(
            f"INSERT INTO {TABLE} ({', '.join(NAMES)}) VALUES",
            columns,
            columnar=True,
            types_check=True,
            # Otherwise the engine would already replace versions inside one inserted block.
            settings={"optimize_on_insert": 0},
        )

    def count(self, where="1"):
        return self._client.execute(f"SELECT count() FROM {TABLE} WHERE {where}")[0][0]

    def parts(self):
        return self._client.execute("SELECT count() FROM system.parts WHERE database = 'air' AND table = 'flights' AND active")[0][0]

    def delete(self, flights):
        """Lightweight-deletes every row of some flights of the day; returns how many rows the day lost."""
        before = self.count(_DAY)
        self._client.execute(f"SYSTEM START MERGES {TABLE}")  # a DELETE is a mutation, which waits while they are stopped
        self._client.execute(
            f"DELETE FROM {TABLE} WHERE {_DAY} AND (carrier, flight) IN %(flights)s", {"flights": tuple(flights)}
        )
        self._client.execute(f"SYSTEM STOP MERGES {TABLE}")
        return before - self.count(_DAY)

    def rows(self):
        return self._rows("1")

    def day(self):
        return self._rows(_DAY)

    def _rows(self, where):
        columns = self._client.execute(f"SELECT {', '.join(NAMES)} FROM {TABLE} WHERE {where}", columnar=True)
        return multiset.of_columns(columns or [()] * len(COLUMNS))
