from odbc_common import check, connect, rows
import os

connection = connect()
cursor = connection.cursor()
check("database", rows(cursor, "SELECT DB_NAME()"), [(os.environ["MSSQL_DATABASE"],)])
check("login", rows(cursor, "SELECT SUSER_SNAME()"), [(os.environ["MSSQL_USER"],)])
connection.close()
try:
    connect(PWD="wrong")
except Exception as failure:
    assert "Login failed for user" in str(failure), failure
else:
    raise SystemExit("a wrong password was accepted")
