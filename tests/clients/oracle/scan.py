"""One large table whose digest ClickHouse itself computes in SQL: no row comes to this program."""

import encoding

# Int64 8, Float64 8, String 20, DateTime64 8 and four NULL flags, as the engine counts them: what a row is in a decoded block.
_ROW_BYTES = 52
_TYPES = ["Nullable(Int64)", "Nullable(Float64)", "Nullable(String)", "Nullable(DateTime64(6, 'UTC'))"]
# How many seconds lie between 0001-01-01 and 1970-01-01, in ticks of a microsecond, and a day.
_DAYS = 719_162
_DAY_MICROS = 86_400_000_000


def compare(client, scan_bytes, ask):
    """Makes the table, lets it be read, and compares with the server's own sums."""
    rows = scan_bytes // _ROW_BYTES
    columns = ", ".join(f"{name} {type_text}" for name, type_text in zip("abcd", _TYPES, strict=True))
    client.command("DROP TABLE IF EXISTS oracle.scan SYNC")
    client.command(f"CREATE TABLE oracle.scan ({columns}) ENGINE = MergeTree ORDER BY tuple()")
    client.command(
        "INSERT INTO oracle.scan SELECT if(number % 11 = 0, NULL, toInt64(cityHash64(number))), "
        "if(number % 13 = 0, NULL, toInt64(number) / 7), "
        "if(number % 17 = 0, NULL, leftPad(toString(number), 20, 'x')), "
        "if(number % 19 = 0, NULL, fromUnixTimestamp64Micro(toInt64(cityHash64(number) % 4000000000000000) - 2000000000000000, "
        f"'UTC')) FROM numbers({rows})"
    )
    answer = ask("scan", "query_visible", None)
    limbs = [int(text) for text in client.raw_query(_SQL, fmt="TSV").decode().split()]
    expected = encoding.workload_digest(limbs[0], sum(limb << 32 * (7 - word) for word, limb in enumerate(limbs[1:])))
    client.command("DROP TABLE oracle.scan SYNC")
    if answer["rows"] != limbs[0] or limbs[0] != rows or answer["digest"] != expected:
        raise AssertionError(f"{answer['rows']} rows were delivered, {limbs[0]} are there, or the digests differ")
    return rows


_NULL = "unhex('FF')"
_MICROS = f"(toUnixTimestamp64Micro(assumeNotNull(d)) + {_DAYS * _DAY_MICROS})"
_FIELDS = [
    f"if(isNull(a), {_NULL}, concat(unhex('08'), reinterpretAsFixedString(assumeNotNull(a))))",
    f"if(isNull(b), {_NULL}, concat(unhex('08'), reinterpretAsFixedString(assumeNotNull(b))))",
    "if(isNull(c), unhex('FFFFFFFFFFFFFFFF'), concat(reinterpretAsFixedString(toUInt64(2 * lengthUTF8(assumeNotNull(c)))), "
    "convertCharset(assumeNotNull(c), 'UTF-8', 'UTF-16LE')))",
    f"if(isNull(d), {_NULL}, concat(unhex('08'), substring(reinterpretAsFixedString(toUInt64({_MICROS} % {_DAY_MICROS} * 10)), 1, 5), "
    f"substring(reinterpretAsFixedString(toUInt64(intDiv({_MICROS}, {_DAY_MICROS}))), 1, 3)))",
]
_LIMBS = ", ".join(f"sum(toUInt64(reinterpretAsUInt32(reverse(substring(h, {1 + 4 * word}, 4)))))" for word in range(8))
_SQL = f"SELECT count(), {_LIMBS} FROM (SELECT SHA256(concat({', '.join(_FIELDS)})) AS h FROM oracle.scan)"
