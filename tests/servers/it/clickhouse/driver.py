"""Checks the server with clickhouse-driver. Arguments: host, port, CA file, user, password, database."""
import datetime
import sys
import uuid
from decimal import Decimal, getcontext

from clickhouse_driver import Client
from clickhouse_driver.errors import ServerException

HOST, PORT, CA, USER, PASSWORD, DATABASE = sys.argv[1:7]


def connect(**options):
    defaults = dict(port=int(PORT), user=USER, password=PASSWORD, database=DATABASE, secure=True, ca_certs=CA)
    return Client(HOST, **{**defaults, **options})


def fails_with(code, name, call):
    try:
        call()
    except ServerException as error:
        assert error.code == code, (name, error)
        return str(error)
    raise AssertionError(f"{name}: no exception")


def check_identity():
    client = connect()
    rows, columns = client.execute("SELECT 1, currentUser(), currentDatabase()", with_column_types=True)
    assert rows == [(1, "default", DATABASE)], rows
    assert [type_name for _, type_name in columns] == ["UInt8", "String", "String"], columns
    server = client.connection.server_info
    assert server.name == "ClickHouse" and server.used_revision == 54453, server
    fails_with(516, "wrong password", lambda: connect(password=PASSWORD + "x").execute("SELECT 1"))
    fails_with(516, "unknown user", lambda: connect(user="nobody").execute("SELECT 1"))
    fails_with(81, "unknown database", lambda: connect(database="nowhere").execute("SELECT 1"))


def check_sessions():
    one, two = connect(), connect()
    one.execute("SET max_threads = 7")
    one.execute("CREATE TEMPORARY TABLE mine (a UInt8)")
    ask = "SELECT getSetting('max_threads')"
    assert one.execute(ask) == [(7,)]
    assert two.execute(ask) != [(7,)]
    assert one.execute("SELECT count() FROM mine") == [(0,)]
    fails_with(60, "temporary table of another session", lambda: two.execute("SELECT count() FROM mine"))


def check_settings_of_one_query():
    client = connect()
    client.execute("SET max_block_size = 1234")
    both = "SELECT getSetting('max_threads'), getSetting('max_block_size')"
    before = client.execute(both)
    assert client.execute(both, settings={"max_threads": 3, "max_block_size": 55}) == [(3, 55)]
    assert client.execute(both) == before
    changed = "SELECT name FROM system.settings WHERE changed ORDER BY name"
    names = client.execute(changed)
    # Settings that no SET could put back leave nothing behind either. (The driver reconnects after an exception, so what a
    # failing query leaves is checked elsewhere.)
    strict = {"readonly": 1, "compatibility": "23.3"}
    assert client.execute("SELECT getSetting('max_block_size')", settings=strict) == [(1234,)]
    assert client.execute(both) == before
    assert client.execute(changed) == names
    fails_with(164, "readonly", lambda: client.execute("CREATE TABLE ro (a UInt8) ENGINE = Memory", settings=strict))
    # Unknown settings: important ones are errors, others are left out.
    unimportant = connect(settings_is_important=False)
    assert unimportant.execute("SELECT 1", settings={"no_such_setting": 1}) == [(1,)]
    important = connect(settings_is_important=True)
    error = fails_with(115, "important", lambda: important.execute("SELECT 1", settings={"no_such_setting": 1}))
    assert "no_such_setting" in error, error
    assert important.execute("SELECT 2") == [(2,)]


# The driver computes with the context's precision and with floats of seconds: far dates are checked by another client.
getcontext().prec = 76

VALUES = [
    (
        None, "", 0, datetime.datetime(1970, 1, 1, 0, 0, 0, 1), Decimal("-0.0000000001"),
        uuid.UUID(int=1), -(2**63), 0.1, datetime.date(1970, 1, 1), False, [], "b", ("", 0),
    ),
    (
        -1, "a\0b\u00e4", 2**64 - 1, datetime.datetime(2020, 2, 29, 3, 4, 5, 123456), Decimal(10**27) + Decimal("0.0000000001"),
        uuid.UUID("01234567-89ab-cdef-fedc-ba9876543210"), 2**63 - 1, -1.5e300, datetime.date(2149, 6, 6), True,
        [None, "x"], "a'(", ("t", 5),
    ),
]
COLUMNS = (
    "n Nullable(Int32), s String, u UInt64, d DateTime64(6, 'UTC'), x Decimal(38, 10), g UUID, i Int64, f Float64, "
    "t Date, b Bool, r Array(Nullable(String)), e Enum8('a''(' = 1, 'b' = 2), p Tuple(String, UInt8)"
)


def check_values(compression):
    client = connect(compression=compression)
    client.execute("DROP TABLE IF EXISTS exact")
    client.execute(f"CREATE TABLE exact ({COLUMNS}) ENGINE = MergeTree ORDER BY s")
    assert client.execute("INSERT INTO exact VALUES", VALUES) == 2
    utc = datetime.timezone.utc
    expected = [row[:3] + (row[3].replace(tzinfo=utc),) + row[4:] for row in VALUES]
    assert client.execute("SELECT * FROM exact ORDER BY s") == expected, client.execute("SELECT * FROM exact")
    # What arrived is what the engine reads itself, not only what comes back the same way.
    text = client.execute("SELECT toString(n), hex(s), toString(u), toString(d), toString(x) FROM exact ORDER BY s")
    assert text == [
        (None, "", "0", "1970-01-01 00:00:00.000001", "-0.0000000001"),
        ("-1", "610062C3A4", "18446744073709551615", "2020-02-29 03:04:05.123456", "1000000000000000000000000000.0000000001"),
    ], text
    # Columns by name, defaults for the rest, rows written by SELECT and in the text.
    client.execute("DROP TABLE IF EXISTS few")
    client.execute("CREATE TABLE few (a UInt32, b String DEFAULT concat('d', toString(a)), c UInt32 MATERIALIZED a + 1) "
                   "ENGINE = MergeTree ORDER BY a")
    client.execute("INSERT INTO few (b, a) VALUES", [("x", 1)])
    client.execute("INSERT INTO few (a) VALUES", [(2,)])
    client.execute("INSERT INTO few VALUES", [(3, "y")])
    client.execute("INSERT INTO few (a) SELECT 4")
    client.execute("INSERT INTO few (a) VALUES (5), (6)")
    assert client.execute("SELECT a, b, c FROM few ORDER BY a") == [
        (1, "x", 2), (2, "d2", 3), (3, "y", 4), (4, "d4", 5), (5, "d5", 6), (6, "d6", 7)]


def check_failing_inserts():
    client = connect()
    client.execute("DROP TABLE IF EXISTS strict")
    client.execute("CREATE TABLE strict (a UInt8, CONSTRAINT small CHECK a < 10) ENGINE = MergeTree ORDER BY a")
    fails_with(60, "insert without table", lambda: client.execute("INSERT INTO nowhere VALUES", [(1,)]))
    fails_with(16, "insert without column", lambda: client.execute("INSERT INTO strict (z) VALUES", [(1,)]))
    fails_with(469, "constraint", lambda: client.execute("INSERT INTO strict VALUES", [(11,)]))
    client.execute("INSERT INTO strict VALUES", [(1,)])
    assert client.execute("SELECT * FROM strict") == [(1,)]


def check_exceptions():
    client = connect()
    fails_with(60, "unknown table", lambda: client.execute("SELECT * FROM nowhere"))
    fails_with(62, "syntax", lambda: client.execute("SELEC 1"))
    fails_with(62, "two statements", lambda: client.execute("SELECT 1; SELECT 2"))
    fails_with(48, "format", lambda: client.execute("SELECT 1 FORMAT TSV"))
    seen = []

    def read():
        for block in client.execute_iter("SELECT throwIf(number = 1000000) FROM numbers(3000000)", chunk_size=1000):
            seen.append(len(block))

    error = fails_with(395, "exception during data", read)
    assert "FUNCTION_THROW_IF" not in error and seen, (error, seen)
    assert client.execute("SELECT 3") == [(3,)]


def check_progress_and_profile(compression):
    client = connect(compression=compression)
    client.execute("DROP TABLE IF EXISTS counted")
    client.execute("CREATE TABLE counted (a UInt64) ENGINE = MergeTree ORDER BY a AS SELECT number FROM numbers(200000)")
    progress = client.execute_with_progress("SELECT a FROM counted WHERE a % 2 = 0")
    steps = list(progress)
    assert steps and steps[-1][0] == 200000, steps
    assert len(progress.get_result()) == 100000
    assert client.last_query.profile_info.rows == 100000, client.last_query.profile_info.rows
    rows = client.execute("SELECT a FROM counted WHERE 0", with_column_types=True)
    assert rows == ([], [("a", "UInt64")]), rows


def check_cancel():
    client = connect()
    rows = client.execute_iter("SELECT number FROM system.numbers")
    assert next(rows) == (0,)
    client.cancel()
    assert client.execute("SELECT 5") == [(5,)]


def check_totals():
    client = connect()
    query = "SELECT number % 2 AS k, toString(k) AS s, count() AS n FROM numbers(5) GROUP BY k WITH TOTALS ORDER BY k"
    result = client.execute(query)
    # The driver gives totals behind the rows.
    assert result == [(0, "0", 3), (1, "1", 2), (0, "0", 5)], result
    # A column without its dictionary, for a client that wants none.
    query = "SELECT toLowCardinality(toString(number)) AS l FROM numbers(2)"
    plain = client.execute(query, settings={"low_cardinality_allow_in_native_format": 0}, with_column_types=True)
    assert plain == ([("0",), ("1",)], [("l", "String")]), plain
    assert client.execute(query, with_column_types=True)[1] == [("l", "LowCardinality(String)")]
    assert client.execute("SHOW TABLES LIKE 'none'", with_column_types=True) == ([], [("name", "String")])
    extremes = client.execute("SELECT number FROM numbers(3, 4)", settings={"extremes": 1})
    assert extremes == [(3,), (4,), (5,), (6,), (3,), (6,)], extremes


def check_replacing_merge_tree():
    client = connect()
    client.execute("DROP TABLE IF EXISTS versions")
    client.execute("CREATE TABLE versions (id Int64, v String, version Int64, is_deleted UInt8) "
                   "ENGINE = ReplacingMergeTree(version, is_deleted) ORDER BY id "
                   "SETTINGS max_bytes_to_merge_at_max_space_in_pool = 1, max_bytes_to_merge_at_min_space_in_pool = 1")
    client.execute("INSERT INTO versions VALUES", [(1, "a", 1, 0), (2, "b", 1, 0)])
    client.execute("INSERT INTO versions VALUES", [(1, "c", 2, 0), (2, "b", 2, 1)])
    raw = "SELECT _part, _part_offset, id, v, version, is_deleted FROM versions ORDER BY _part, _part_offset"
    assert client.execute(raw) == [
        ("all_1_1_1", 0, 1, "a", 1, 0), ("all_1_1_1", 1, 2, "b", 1, 0),
        ("all_2_2_1", 0, 1, "c", 2, 0), ("all_2_2_1", 1, 2, "b", 2, 1)], client.execute(raw)
    assert client.execute("SELECT id, v FROM versions FINAL") == [(1, "c")]
    client.execute("DELETE FROM versions WHERE id = 1 AND version = 1")
    rows = client.execute(raw)
    assert [row[1:4] for row in rows] == [(1, 2, "b"), (0, 1, "c"), (1, 2, "b")], rows
    assert client.execute("SELECT max(has_lightweight_delete) FROM system.parts WHERE active AND table = 'versions' "
                          "AND database = currentDatabase()") == [(1,)]


check_identity()
check_sessions()
check_settings_of_one_query()
for method in (False, "lz4"):
    check_values(method)
    check_progress_and_profile(method)
check_failing_inserts()
check_exceptions()
check_cancel()
check_totals()
check_replacing_merge_tree()
print("clickhouse-driver: all checks passed")
