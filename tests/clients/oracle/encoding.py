"""Native rows and their digests, written from Microsoft's and the contract's documents alone.

A second implementation: nothing of the product is imported, called or translated here. Values are the texts that ClickHouse
prints as JSON; a row is the concatenation of its fields, its hash is SHA-256, and a table's digest folds the sum of the hashes.
"""

import datetime
import decimal
import hashlib
import re
import struct
import uuid

_TICKS_A_SECOND = 10_000_000
_INTEGERS = {"smallint": 2, "int": 4, "bigint": 8}


def target(clickhouse_type):
    """The SQL Server type of a ClickHouse type, and whether it may be NULL."""
    inner = re.fullmatch(r"Nullable\((.*)\)", clickhouse_type)
    name = inner.group(1) if inner else clickhouse_type
    plain = {
        "Int8": "smallint", "Int16": "smallint", "Int32": "int", "Int64": "bigint",
        "UInt8": "tinyint", "UInt16": "int", "UInt32": "bigint", "UInt64": "decimal(20,0)",
        "Float32": "real", "Float64": "float", "String": "nvarchar(max)", "UUID": "uniqueidentifier",
        "Date": "date", "Date32": "date", "Bool": "bit",
        "DateTime": "datetime2(0)", "DateTime('UTC')": "datetime2(0)",
    }  # fmt: skip
    if name in plain:
        return plain[name], inner is not None
    if found := re.fullmatch(r"Decimal\((\d+), (\d+)\)", name):
        return f"decimal({found[1]},{found[2]})", inner is not None
    if found := re.fullmatch(r"DateTime64\((\d)(?:, 'UTC')?\)", name):
        return f"datetime2({found[1]})", inner is not None
    raise ValueError(f"no target type for {clickhouse_type}")


def field(sql_type, nullable, value):
    """The bytes of one field; `value` is None or the text of the value."""
    family = sql_type.partition("(")[0]
    if family == "nvarchar":
        if value is None:
            return b"\xff" * 8
        text = value.encode("utf-16-le")
        return struct.pack("<q", len(text)) + text
    always_prefixed = family in ("bit", "uniqueidentifier", "decimal")
    if value is None:
        return b"\xff"
    payload = _fixed(family, sql_type, value)
    return (bytes([len(payload)]) if nullable or always_prefixed else b"") + payload


def _fixed(family, sql_type, value):
    if family in _INTEGERS:
        return int(value).to_bytes(_INTEGERS[family], "little", signed=True)
    if family == "tinyint":
        return int(value).to_bytes(1, "little")
    if family == "bit":
        return b"\x01" if value == "true" else b"\x00"
    if family == "float":
        return struct.pack("<d", float(value))
    if family == "real":
        return struct.pack("<f", float(value))
    if family == "uniqueidentifier":
        return uuid.UUID(value).bytes_le
    if family == "decimal":
        precision, scale = map(int, sql_type[len("decimal(") : -1].split(","))
        with decimal.localcontext(prec=80):
            magnitude = int(decimal.Decimal(value).scaleb(scale))
        return bytes([precision, scale, int(magnitude >= 0)]) + abs(magnitude).to_bytes(16, "little")
    if family == "date":
        return (datetime.date.fromisoformat(value).toordinal() - 1).to_bytes(3, "little")
    if family == "datetime2":
        day, _, clock = value.partition(" ")
        hours, minutes, rest = clock.split(":")
        seconds, _, fraction = rest.partition(".")
        ticks = (int(hours) * 3600 + int(minutes) * 60 + int(seconds)) * _TICKS_A_SECOND + int(fraction.ljust(7, "0") or 0)
        days = datetime.date.fromisoformat(day).toordinal() - 1
        return ticks.to_bytes(5, "little") + days.to_bytes(3, "little")
    raise ValueError(f"no encoding for {sql_type}")


def row(columns, values):
    """The native bytes of one row; `columns` are pairs of SQL type and nullability."""
    return b"".join(field(sql_type, nullable, value) for (sql_type, nullable), value in zip(columns, values, strict=True))


def split(columns, data):
    """Cuts the bytes of sealed files into rows, by the lengths that the fields themselves tell."""
    fixed = {"smallint": 2, "int": 4, "bigint": 8, "tinyint": 1, "float": 8, "real": 4, "date": 3, "datetime2": 8}
    rows, at = [], 0
    while at < len(data):
        start = at
        for sql_type, nullable in columns:
            family = sql_type.partition("(")[0]
            if family == "nvarchar":
                (length,) = struct.unpack_from("<q", data, at)
                at += 8 + max(length, 0)
            elif nullable or family not in fixed:
                at += 1 + (0 if data[at] == 0xFF else data[at])
            else:
                at += fixed[family]
        if at > len(data):
            raise ValueError("the sealed files end within a row")
        rows.append(data[start:at])
    return rows


def workload_digest(rows, total):
    """Digest of a multiset: how many rows, and the sum of their hashes modulo 2^256."""
    return hashlib.sha256(f'["mssql-native-sha256-sum-v1", {rows}, {total % 2**256}]'.encode()).hexdigest()


def digest(rows):
    """Digest of rows given as bytes."""
    return workload_digest(len(rows), sum(int.from_bytes(hashlib.sha256(row).digest(), "big") for row in rows))


