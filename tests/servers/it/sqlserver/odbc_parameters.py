import datetime
import uuid
from decimal import Decimal

from odbc_common import check, connect, error, rows

cursor = connect().cursor()
cursor.execute("""CREATE TABLE p (id int IDENTITY(1,1) PRIMARY KEY, i bigint NULL, f float NULL, d decimal(38,10) NULL,
    s nvarchar(max) NULL, b varbinary(max) NULL, t datetime2(6) NULL, o datetimeoffset(6) NULL, a date NULL, h time(6) NULL,
    u uniqueidentifier NULL, y bit NULL)""")
columns = ["i", "f", "d", "s", "b", "t", "o", "a", "h", "u", "y"]
zone = datetime.timezone(datetime.timedelta(hours=-7))
values = [
    (0, 0.0, Decimal("0"), "", b"", datetime.datetime(1753, 1, 1), datetime.datetime(2020, 2, 29, 1, 2, 3, 4, zone),
     datetime.date(1753, 1, 1), datetime.time(0), uuid.UUID(int=0), False),
    (2**63 - 1, 1.7976931348623157e308, Decimal("9999999999999999999999999999.9999999999"), "é漢😀'\"\r\n", bytes(range(256)),
     datetime.datetime(9999, 12, 31, 23, 59, 59, 999999), datetime.datetime(2020, 2, 29, 23, 59, 59, 999999, zone),
     datetime.date(9999, 12, 31), datetime.time(23, 59, 59, 999999), uuid.UUID("0E984725-C51C-4BF4-9960-E1C80E27ABA0"), True),
    (-(2**63), -0.0, Decimal("-0.0000000001"), "x" * 5000, b"\x00" * 9000, datetime.datetime(1970, 1, 1, 0, 0, 0, 1),
     datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc), datetime.date(1970, 1, 1), datetime.time(1, 2, 3, 4),
     uuid.UUID(int=2**128 - 1), True),
    (None,) * 11,
]
for row in values:
    cursor.execute(f"INSERT INTO p ({','.join(columns)}) VALUES ({','.join('?' * len(columns))})", *row)
    check("rows inserted", cursor.rowcount, 1)
actual = rows(cursor, f"SELECT {','.join(columns)} FROM p ORDER BY id")
check("number of rows", len(actual), len(values))
for number, (got, expected) in enumerate(zip(actual, values)):
    for name, one, other in zip(columns, got, expected):
        check(f"row {number} column {name}", one, other)

# One statement for many rows (prepared once, run for each).
cursor.execute("CREATE TABLE m (id int NOT NULL, s nvarchar(50) NULL)")
cursor.executemany("INSERT INTO m VALUES (?, ?)", [(i, None if i % 5 == 0 else f"s{i}") for i in range(300)])
check("executemany", rows(cursor, "SELECT COUNT(*), COUNT(s), MAX(id) FROM m"), [(300, 240, 299)])

# The same prepared statement with other values.
for i in (1, 2, 3):
    check("prepared", rows(cursor, "SELECT s FROM m WHERE id = ?", i), [(f"s{i}",)])

# Parameters where the server must find their types.
check("in a predicate", rows(cursor, "SELECT COUNT(*) FROM m WHERE id BETWEEN ? AND ? AND s LIKE ?", 10, 19, "s1%"), [(8,)])

message = error(cursor, "SELECT 1 / ?", 0)
assert "Divide by zero" in message, message
message = error(cursor, "INSERT INTO p (f) VALUES (?)", float("nan"))
assert "not a valid instance of data type float" in message, message
check("still usable", rows(cursor, "SELECT ?", 7), [(7,)])
