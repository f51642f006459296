import datetime
import uuid
from decimal import Decimal

from odbc_common import check, connect, rows

cursor = connect().cursor()
long_text = "é漢😀" * 25_000
cases = [
    ("CAST(1 AS bit)", True),
    ("CAST(255 AS tinyint)", 255),
    ("CAST(-32768 AS smallint)", -32768),
    ("CAST(-2147483648 AS int)", -2147483648),
    ("CAST(-9223372036854775808 AS bigint)", -9223372036854775808),
    ("CAST('99999999999999999999999999999999999999' AS decimal(38,0))", Decimal("99999999999999999999999999999999999999")),
    ("CAST('-0.0000000001' AS decimal(38,10))", Decimal("-0.0000000001")),
    ("CAST(123.45 AS numeric(9,2))", Decimal("123.45")),
    ("CAST(-922337203685477.5808 AS money)", Decimal("-922337203685477.5808")),
    ("CAST(214748.3647 AS smallmoney)", Decimal("214748.3647")),
    ("CAST(0.5 AS real)", 0.5),
    ("CAST(5e-324 AS float)", 5e-324),
    ("CAST(1.7976931348623157e308 AS float)", 1.7976931348623157e308),
    ("CAST(-0.0e0 AS float)", -0.0),
    ("CAST('ab' AS char(5))", "ab   "),
    ("CAST(N'é€' AS varchar(10))", "é€"),
    ("CAST(N'ab' AS nchar(4))", "ab  "),
    ("N'é漢😀'", "é漢😀"),
    ("N''", ""),
    ("REPLICATE(CAST(N'é漢😀' AS nvarchar(max)), 25000)", long_text),
    ("REPLICATE(CAST('x' AS varchar(max)), 100000)", "x" * 100_000),
    ("CAST(0x0102 AS binary(4))", b"\x01\x02\x00\x00"),
    ("0xFF00", b"\xff\x00"),
    ("CAST(REPLICATE(CAST('x' AS varchar(max)), 100000) AS varbinary(max))", b"x" * 100_000),
    ("CAST('0001-01-01' AS date)", datetime.date(1, 1, 1)),
    ("CAST('9999-12-31' AS date)", datetime.date(9999, 12, 31)),
    ("CAST('23:59:59.999999' AS time(6))", datetime.time(23, 59, 59, 999999)),
    ("CAST('2023-11-14 22:13:20.123456' AS datetime2(6))", datetime.datetime(2023, 11, 14, 22, 13, 20, 123456)),
    ("CAST('0001-01-01' AS datetime2(7))", datetime.datetime(1, 1, 1)),
    ("CAST('9999-12-31 23:59:59.999999' AS datetime2(6))", datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)),
    ("CAST('2023-11-14T22:13:20.997' AS datetime)", datetime.datetime(2023, 11, 14, 22, 13, 20, 997000)),
    ("CAST('2023-11-14 22:13' AS smalldatetime)", datetime.datetime(2023, 11, 14, 22, 13)),
    (
        "CAST('2023-11-14 22:13:20.1 +05:30' AS datetimeoffset(1))",
        datetime.datetime(2023, 11, 14, 22, 13, 20, 100000, datetime.timezone(datetime.timedelta(hours=5, minutes=30))),
    ),
    ("CAST('0E984725-C51C-4BF4-9960-E1C80E27ABA0' AS uniqueidentifier)", uuid.UUID("0E984725-C51C-4BF4-9960-E1C80E27ABA0")),
]
for expression, expected in cases:
    ((actual,),) = rows(cursor, f"SELECT {expression}")
    check(expression, actual, expected)

# The same in columns of a table, NOT NULL and nullable: both wire forms, and NULL in each.
types = """bit tinyint smallint int bigint decimal(38,10) money smallmoney real float char(3) varchar(3) nchar(3)
    nvarchar(3) varchar(max) nvarchar(max) binary(2) varbinary(2) varbinary(max) date time(3) datetime2(6) datetime
    smalldatetime datetimeoffset(7) uniqueidentifier""".split()
for index, name in enumerate(types):
    value = {"uniqueidentifier": "NEWID()"}.get(name, "'2020-01-02'" if "date" in name or "time" in name else "0x01" if "binary" in name else "1")
    cursor.execute(f"CREATE TABLE t{index} (a {name} NOT NULL, b {name} NULL)")
    cursor.execute(f"INSERT INTO t{index} VALUES (CAST({value} AS {name}), CAST({value} AS {name})), (CAST({value} AS {name}), NULL)")
    (first, second) = rows(cursor, f"SELECT a, b FROM t{index} ORDER BY CASE WHEN b IS NULL THEN 1 ELSE 0 END")
    check(f"NULL of {name}", second[1], None)
    check(f"NOT NULL {name}", second[0] is not None, True)
    if name != "uniqueidentifier":
        check(f"nullable {name}", first[1], first[0])

# Many rows and columns over many packets; every row must be where it belongs.
cursor.execute("CREATE TABLE many (id int NOT NULL PRIMARY KEY, text nvarchar(max) NULL, number bigint NULL)")
for start in range(0, 2000, 500):
    values = ",".join(f"({i}, REPLICATE(CAST(N'{i}-' AS nvarchar(max)), {i % 97}), {'NULL' if i % 3 else i * 10**12})" for i in range(start, start + 500))
    cursor.execute(f"INSERT INTO many VALUES {values}")
expected = [(i, f"{i}-" * (i % 97), None if i % 3 else i * 10**12) for i in range(2000)]
check("many rows", rows(cursor, "SELECT id, text, number FROM many ORDER BY id"), expected)

check("columns", [(column[0], column[6]) for column in cursor.execute("SELECT id, number AS n FROM many WHERE 1 = 0").description], [("id", False), ("n", True)])
