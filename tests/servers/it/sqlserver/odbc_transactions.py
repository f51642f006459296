from odbc_common import check, connect, error, rows

watcher = connect().cursor()
watcher.execute("CREATE TABLE t (id int NOT NULL PRIMARY KEY, v int NULL)")
watcher.execute("SET LOCK_TIMEOUT 0")

# Transactions of the driver: transaction manager requests.
connection = connect(autocommit=False)
cursor = connection.cursor()
cursor.execute("INSERT INTO t VALUES (1, 10)")
check("inside", rows(cursor, "SELECT @@TRANCOUNT"), [(1,)])
connection.rollback()
check("rolled back", rows(watcher, "SELECT COUNT(*) FROM t"), [(0,)])
cursor.execute("INSERT INTO t VALUES (1, 10)")
assert "Lock request time out" in error(watcher, "SELECT COUNT(*) FROM t"), "an uncommitted row is locked"
connection.commit()
check("committed", rows(watcher, "SELECT id, v FROM t"), [(1, 10)])
connection.close()

# Transactions of T-SQL, with a savepoint; the driver follows them by ENVCHANGE.
connection = connect()
cursor = connection.cursor()
cursor.execute("BEGIN TRANSACTION")
cursor.execute("INSERT INTO t VALUES (2, 20)")
cursor.execute("SAVE TRANSACTION s")
cursor.execute("INSERT INTO t VALUES (3, 30)")
cursor.execute("ROLLBACK TRANSACTION s")
cursor.execute("COMMIT")
check("savepoint", rows(watcher, "SELECT id FROM t ORDER BY id"), [(1,), (2,)])

# A connection that closes inside a transaction undoes it.
cursor.execute("BEGIN TRANSACTION; UPDATE t SET v = 0")
connection.close()
watcher.execute("SET LOCK_TIMEOUT 5000")
check("undone by close", rows(watcher, "SELECT v FROM t ORDER BY id"), [(10,), (20,)])

# Row counts and several results of one batch.
cursor = connect().cursor()
cursor.execute("UPDATE t SET v = v + 1")
check("updated", cursor.rowcount, 2)
cursor.execute("DELETE FROM t WHERE id = 99")
check("deleted", cursor.rowcount, 0)
cursor.execute("SELECT 1 AS a; UPDATE t SET v = v; SELECT 2 AS b, N'x' AS c")
check("first result", [tuple(row) for row in cursor.fetchall()], [(1,)])
cursor.nextset()
check("a count, no rows, between", cursor.description, None)
cursor.nextset()
check("last result", [tuple(row) for row in cursor.fetchall()], [(2, "x")])
check("no more", bool(cursor.nextset()), False)

# Errors and what is left after them.
for sql, part in [
    ("SELECT * FROM missing", "Invalid object name 'missing'"),
    ("SELECT missing FROM t", "Invalid column name 'missing'"),
    ("SELEC 1", "Could not find stored procedure 'SELEC'"),
    ("SELECT FROM t", "Incorrect syntax near the keyword 'FROM'"),
    ("INSERT INTO t VALUES (1, 1)", "Violation of PRIMARY KEY constraint"),
    ("INSERT INTO t VALUES (NULL, 1)", "Cannot insert the value NULL into column 'id'"),
    ("EXEC missing_procedure", "Could not find stored procedure 'missing_procedure'"),
    ("SELECT 1/0", "Divide by zero error encountered"),
    ("THROW 51000, N'own text', 7", "own text"),
    ("RAISERROR(N'raised %d', 16, 1, 5)", "raised 5"),
]:
    message = error(cursor, sql)
    assert part in message, f"{sql}: {message}"
check("still usable", rows(cursor, "SELECT @@TRANCOUNT, XACT_STATE()"), [(0, 0)])
caught = "BEGIN TRY SELECT 1/0 END TRY BEGIN CATCH SELECT ERROR_NUMBER(), ERROR_SEVERITY(), ERROR_STATE() END CATCH"
cursor.execute(caught)
while cursor.description is None or cursor.description[0][0] is None or len(cursor.description) != 3:
    assert cursor.nextset(), "the CATCH block has a result"
check("caught", [tuple(row) for row in cursor.fetchall()], [(8134, 16, 1)])
