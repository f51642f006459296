"""Checks the HTTPS interface with clickhouse-connect. Arguments: host, port, CA file, user, password, database."""
import datetime
import sys

import clickhouse_connect
from clickhouse_connect.driver.exceptions import DatabaseError

HOST, PORT, CA, USER, PASSWORD, DATABASE = sys.argv[1:7]


def connect(**options):
    return clickhouse_connect.get_client(
        **{**dict(host=HOST, port=int(PORT), username=USER, password=PASSWORD, database=DATABASE, secure=True,
                  ca_cert=CA), **options})


def fails_with(code, call):
    try:
        call()
    except DatabaseError as error:
        assert f"Code: {code}." in str(error) or f"code: {code}," in str(error), error
        return
    raise AssertionError(f"no exception {code}")


client = connect()
assert client.query("SELECT 1, currentDatabase(), currentUser()").result_rows == [(1, DATABASE, "default")]
client.command("CREATE TABLE h (a UInt32, b Nullable(String), d DateTime64(6, 'UTC')) ENGINE = MergeTree ORDER BY a")
utc = datetime.timezone.utc
rows = [(1, "x", datetime.datetime(2020, 1, 1, tzinfo=utc)), (2, None, datetime.datetime(1960, 1, 1, 0, 0, 0, 1, tzinfo=utc))]
# With and without LZ4 on the way in.
client.insert("h", rows[:1], column_names=["a", "b", "d"])
connect(compress=False).insert("h", rows[1:], column_names=["a", "b", "d"])
stored = client.query("SELECT toString(a), b, toString(d) FROM h ORDER BY a").result_rows
assert stored == [("1", "x", "2020-01-01 00:00:00.000000"), ("2", None, "1960-01-01 00:00:00.000001")], stored
fails_with(60, lambda: client.query("SELECT * FROM nowhere"))
fails_with(115, lambda: client.raw_query("SELECT 1", settings={"no_such_setting": 1}))
fails_with(516, lambda: connect(password="wrong"))
# A session keeps its temporary table and settings; a setting of one query ends with it.
client.command("CREATE TEMPORARY TABLE mine (a UInt8)")
assert client.command("SELECT count() FROM mine") == 0
fails_with(60, lambda: connect().command("SELECT count() FROM mine"))
ask = "SELECT getSetting('max_threads')"
before = client.query(ask).result_rows
assert client.query(ask, settings={"max_threads": 7}).result_rows == [(7,)]
assert client.query(ask).result_rows == before
assert client.query("SELECT {x:UInt8} + 1", parameters={"x": 4}).result_rows == [(5,)]
assert client.query("SELECT number FROM numbers(300000)").row_count == 300000
print("clickhouse-connect: all checks passed")
