"""Random tables of admitted schemas: duplicates, deletes, patches, extremes. The same seed makes the same table."""

import datetime
import random
import string
import uuid

MICRO = datetime.timedelta(microseconds=1)
_DAY = datetime.timedelta(days=1)
# The range of DateTime64 and Date32.
_FIRST = datetime.datetime(1900, 1, 1)
_LAST = datetime.datetime(2299, 12, 31, 23, 59, 59, 999_999)
# Rows carry times of some days around this, so that a window cuts them.
_NOON = datetime.datetime(2024, 3, 31, 12)
_TEXTS = ["", " ", "a", "NULL", "\\N", "\x00", "a\x00b", "\ufeff", "é", "ж", "\U0001f600", "'\"\t\n", "\uffff", "0"]


class Table:
    """One table: its statements, and how it is to be read."""

    def __init__(self, seed, number, rows_max):
        self.random = random.Random(f"{seed}/{number}")
        self.name = f"t{number}"
        self.rows_max = rows_max
        pick = self.random.choice
        self.raw = pick([True, False])
        self.time_type = pick(["DateTime", "DateTime('UTC')"] + [f"DateTime64({scale}, 'UTC')" for scale in (0, 3, 6)])
        self.columns = [("k", "Int64"), ("ts", self.time_type), ("note", "String")]
        for index in range(self.random.randrange(0, 12)):
            inner = self._type()
            self.columns.append((f"c{index}", f"Nullable({inner})" if self.random.random() < 0.5 else inner))
        # Exactness must not hang on the engine's idea of a version or a deleted row.
        self.engine = "MergeTree"
        if self.raw:
            arguments = pick(["", "version", "version, deleted"])
            self.engine = f"ReplacingMergeTree({arguments})"
            self.columns += [("version", "UInt32"), ("deleted", "UInt8")]
        zone_free = self.time_type == "DateTime"
        keys = ["", "toYYYYMM(ts)", "toYYYYMMDD(ts)", "toDate(ts)"]
        self.partition = pick(keys)
        self.window = None
        if self.partition and pick([True, False]) or not self.raw and pick([True, False]):
            start = _NOON + self.random.randrange(-5, 3) * _DAY + self.random.choice([0, 1, -1]) * MICRO * (not zone_free)
            self.window = (start, start + self.random.choice([MICRO, _DAY, 3 * _DAY]))

    def _type(self):
        pick = self.random.choice
        precision = self.random.randint(1, 38)
        return pick(
            [f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)]
            + ["Float32", "Float64", "String", "String", "UUID", "Date", "Date32", "Bool", "DateTime", "DateTime('UTC')"]
            + [f"Decimal({precision}, {self.random.randint(0, precision)})"] * 3
            + [f"DateTime64({self.random.randint(0, 6)}, 'UTC')"] * 3
        )

    def create(self):
        columns = ", ".join(f"`{name}` {type_text}" for name, type_text in self.columns)
        partition = f"PARTITION BY {self.partition} " if self.partition else ""
        # Patches need block numbers and offsets; no part is small enough to be merged, so the state stays as it was made.
        return (
            f"CREATE TABLE oracle.{self.name} ({columns}) ENGINE = {self.engine} {partition}ORDER BY k SETTINGS "
            "enable_block_number_column = 1, enable_block_offset_column = 1, max_bytes_to_merge_at_max_space_in_pool = 1"
        )

    def inserts(self):
        """Batches of rows as JSON objects; some rows come again, within a batch and in a later one."""
        seen = []
        for _ in range(self.random.randint(0, 5)):
            batch = [self._row() for _ in range(self.random.randint(1, self.rows_max))]
            if seen:
                batch += self.random.choices(seen, k=self.random.randint(1, 20))
            batch += self.random.choices(batch, k=self.random.randint(0, 20))
            seen += batch
            yield batch

    def changes(self):
        """Lightweight deletes and updates, as statements."""
        for _ in range(self.random.randint(0, 2)):
            residue = self.random.randrange(7)
            yield self.random.choice(
                [
                    f"DELETE FROM oracle.{self.name} WHERE k % 7 = {residue}",
                    f"UPDATE oracle.{self.name} SET note = concat(note, '+') WHERE k % 7 = {residue}",
                ]
            )

    def _row(self):
        row = {name: self._value(type_text) for name, type_text in self.columns}
        row["k"] = self.random.choice([self.random.randrange(50), self.random.randrange(-(2**63), 2**63)])
        near = _NOON + datetime.timedelta(seconds=self.random.randrange(-4 * 86_400, 4 * 86_400))
        if "deleted" in row:
            row["deleted"] = self.random.randrange(2)
        row["ts"] = self._time(self.time_type, near)
        return row

    def _value(self, type_text):
        if type_text.startswith("Nullable("):
            return None if self.random.random() < 0.25 else self._value(type_text[len("Nullable(") : -1])
        pick = self.random.choice
        if "Int" in type_text:
            bits = int(type_text.rpartition("Int")[2])
            low, high = (0, 2**bits - 1) if type_text[0] == "U" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
            return pick([low, high, 0, 1, self.random.randint(low, high)])
        if type_text == "Float64":
            return pick([0.0, -0.0, 1.5, -1e308, 5e-324, 2.2250738585072014e-308, 0.1, self.random.uniform(-1e9, 1e9)])
        if type_text == "Float32":
            return pick([0.0, -0.0, 1.5, -3e38, 1e-45, 0.1, self.random.uniform(-1e6, 1e6)])
        if type_text == "String":
            length = self.random.randrange(40)
            return pick([*_TEXTS, "".join(self.random.choices(string.printable + "éж中\U0001f600", k=length))])
        if type_text == "UUID":
            return str(uuid.UUID(int=pick([0, 2**128 - 1, self.random.getrandbits(128)])))
        if type_text == "Date":
            return str(datetime.date(1970, 1, 1) + pick([0, 65_535, self.random.randrange(65_536)]) * _DAY)
        if type_text == "Date32":
            days = (_LAST.date() - _FIRST.date()).days
            return str(_FIRST.date() + pick([0, days, self.random.randint(0, days)]) * _DAY)
        if type_text == "Bool":
            return pick([True, False])
        if type_text.startswith("Decimal"):
            precision, scale = map(int, type_text[len("Decimal(") : -1].split(","))
            digits = pick([0, 10**precision - 1, self.random.randrange(10**precision)])
            text = str(digits).rjust(scale + 1, "0")
            text = f"{text[:-scale]}.{text[-scale:]}" if scale else text
            return f"-{text}" if digits and pick([True, False]) else text
        if type_text.startswith("DateTime64"):
            span = (_LAST - _FIRST) // MICRO
            return self._time(type_text, _FIRST + pick([0, span, self.random.randint(0, span)]) * MICRO)
        return self._time(type_text, datetime.datetime(1970, 1, 1) + MICRO * 10**6 * pick([0, 2**32 - 1, self.random.randrange(2**32)]))

    def _time(self, type_text, time):
        scale = int(type_text[len("DateTime64(")]) if type_text.startswith("DateTime64") else 0
        fraction = f"{self.random.choice([time.microsecond, 0, 999_999]):06}"[:scale]
        return time.strftime("%Y-%m-%d %H:%M:%S") + (f".{fraction}" if scale else "")
