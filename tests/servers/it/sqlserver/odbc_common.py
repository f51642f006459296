"""Connection and comparison shared by the scripts that speak to the TDS server through Microsoft's ODBC driver."""
import math
import os
import struct

import mssql_python

# A pool would keep sessions and their locks alive behind close().
mssql_python.pooling(enabled=False)


def connect(autocommit=True, **changes):
    keys = {
        "Server": f"localhost,{os.environ['MSSQL_PORT']}",
        "Database": os.environ["MSSQL_DATABASE"],
        "UID": os.environ["MSSQL_USER"],
        "PWD": "{" + os.environ["MSSQL_PASSWORD"].replace("}", "}}") + "}",
        "Encrypt": os.environ["MSSQL_ENCRYPT"],
        **changes,
    }
    return mssql_python.connect("".join(f"{key}={value};" for key, value in keys.items()), autocommit=autocommit)


def same(actual, expected):
    """Equality that also tells types and the signs of zeros apart."""
    if type(actual) is not type(expected):
        return False
    if isinstance(expected, float):
        return struct.pack("<d", actual) == struct.pack("<d", expected)
    return actual == expected


def check(what, actual, expected):
    if not same(actual, expected):
        raise SystemExit(f"{what}: got {actual!r}, expected {expected!r}")


def rows(cursor, sql, *parameters):
    return [tuple(row) for row in cursor.execute(sql, *parameters).fetchall()]


def error(cursor, sql, *parameters):
    """The text of the error that a statement raises."""
    try:
        cursor.execute(sql, *parameters)
        while cursor.nextset():
            pass
    except mssql_python.exceptions.Error as failure:
        return str(failure)
    raise SystemExit(f"{sql}: no error")
