"""Rows as typed multisets, and what tells two of them apart.

Foreign clients hand out Python values. `1 == 1.0 == True`, `-0.0 == 0.0` and `nan != nan` there; so each column is first
brought to a form in which only equal values are equal.
"""

import datetime
from collections import Counter

from flights import COLUMNS

_SHOWN = 3


class Difference(Exception):
    """What was expected and what was found instead, for a person."""


def _instant(value):
    if value.tzinfo is None:
        return value
    if value.utcoffset() != datetime.timedelta(0):
        raise Difference(f"an instant has the offset {value.utcoffset()} instead of UTC")
    return value.replace(tzinfo=None)


# Doubles become their exact hexadecimal text, which keeps the sign of zero and every bit of a fraction.
_FORMS = {int: None, str: None, float: float.hex, datetime.datetime: _instant}


def _typed(column, values):
    found = set(map(type, values))
    allowed = {column.kind, type(None)} if column.nullable else {column.kind}
    if not found <= allowed:
        names = ", ".join(sorted(kind.__name__ for kind in found - allowed))
        raise Difference(f"column {column.name} has values of type {names}")
    form = _FORMS[column.kind]
    # One object per value: a few hundred thousand rows then cost little more than their references.
    known = {value: value if form is None or value is None else form(value) for value in set(values)}
    if column.kind is float:
        # A dictionary cannot tell -0.0 from 0.0.
        return [None if value is None else form(value) if value == 0.0 else known[value] for value in values]
    return [known[value] for value in values]


def of_columns(columns):
    """The multiset of rows given as columns, in the order of `COLUMNS`."""
    if len(columns) != len(COLUMNS):
        raise Difference(f"{len(columns)} columns instead of {len(COLUMNS)}")
    return Counter(zip(*(_typed(column, values) for column, values in zip(COLUMNS, columns))))


def of_rows(rows):
    """The multiset of rows given as tuples."""
    return of_columns(list(zip(*rows)) if rows else [()] * len(COLUMNS))


def size(rows):
    return sum(rows.values())


def select(rows, predicate):
    """The part of a multiset whose rows satisfy a predicate."""
    return Counter({row: count for row, count in rows.items() if predicate(row)})


def equal(what, expected, found):
    """Raises `Difference` unless both multisets are the same."""
    if expected == found:
        return
    missing, extra = expected - found, found - expected
    lines = [f"{what}: {size(missing)} rows are missing and {size(extra)} are too many"]
    for name, rows in (("missing", missing), ("too many", extra)):
        lines += [f"  {name}: {row} x {count}" for row, count in sorted(rows.items(), key=repr)[:_SHOWN]]
    raise Difference("\n".join(lines))


def same_number(what, expected, found):
    """Raises `Difference` unless both numbers are the same."""
    if expected != found:
        raise Difference(f"{what}: expected {expected:,}, found {found:,}")
