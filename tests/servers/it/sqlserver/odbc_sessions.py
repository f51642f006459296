"""Sessions beside each other: locks that block, time-outs that cancel, clients that die."""
import os
import subprocess
import sys
import threading
import time

from odbc_common import check, connect, error, rows

GET_LOCK = "DECLARE @r int; EXEC @r = sp_getapplock @Resource = N'r', @LockMode = 'Exclusive', @LockOwner = 'Session', @LockTimeout = {}; SELECT @r"


def granted(what, cursor, milliseconds):
    """The lock is given within this time: 0 at once, 1 after a wait, for an end of a session is seen a moment later than it is sent."""
    answer = rows(cursor, GET_LOCK.format(milliseconds))
    if answer not in ([(0,)], [(1,)]):
        raise SystemExit(f"{what}: got {answer!r}, expected 0 or 1")


if len(sys.argv) > 1:
    # The client that will be killed: holds an applock and an open transaction, says so, waits for its end.
    held = connect().cursor()
    check("the lock is free", rows(held, GET_LOCK.format(0)), [(0,)])
    held.execute("BEGIN TRANSACTION; INSERT INTO s VALUES (99)")
    print("held", flush=True)
    sys.stdin.read()
    sys.exit()

cursor = connect().cursor()
cursor.execute("CREATE TABLE s (id int NOT NULL)")
cursor.execute("INSERT INTO s VALUES (1)")

# A query time-out sends an attention; the session stays usable and keeps nothing of the statement.
impatient = connect()
impatient.timeout = 1
slow = impatient.cursor()
started = time.monotonic()
message = error(slow, "WAITFOR DELAY '00:01:00'")
assert "timeout" in message.lower(), message
assert time.monotonic() - started < 20, "the statement was not cancelled"
check("usable after a time-out", rows(slow, "SELECT 1"), [(1,)])

# The same while it waits for a lock.
holder = connect(autocommit=False)
holder.cursor().execute("UPDATE s SET id = 2")
message = error(slow, "UPDATE s SET id = 3")
assert "timeout" in message.lower(), message
check("usable after a time-out in a lock wait", rows(slow, "SELECT 1"), [(1,)])
slow.execute("SET LOCK_TIMEOUT 100")
message = error(slow, "UPDATE s SET id = 3")
assert "Lock request time out period exceeded" in message, message

# A waiting statement goes on when the holder commits.
waiting = connect().cursor()
done = []
thread = threading.Thread(target=lambda: done.append(rows(waiting, "SELECT id FROM s")))
thread.start()
holder.commit()
thread.join(20)
check("the waiter", done, [[(2,)]])

# An applock is the session's; close() gives it back.
first = connect()
check("taken", rows(first.cursor(), GET_LOCK.format(0)), [(0,)])
check("not free", rows(cursor, GET_LOCK.format(50)), [(-1,)])
first.close()
granted("free after close", cursor, 20000)
cursor.execute("EXEC sp_releaseapplock @Resource = N'r', @LockOwner = 'Session'")

# kill -9 of a client: its lock and its transaction are gone.
child = subprocess.Popen([sys.executable, os.path.abspath(__file__), "hold"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
check("the child", child.stdout.readline(), b"held\n")
check("its lock", rows(cursor, GET_LOCK.format(0)), [(-1,)])
child.kill()
child.wait()
granted("free after its death", cursor, 20000)
check("its transaction", rows(cursor, "SELECT id FROM s"), [(2,)])

# Two sessions that wait for each other: one is chosen, error 1205, and its transaction is gone.
cursor.execute("CREATE TABLE d1 (id int NOT NULL); CREATE TABLE d2 (id int NOT NULL); INSERT INTO d1 VALUES (1); INSERT INTO d2 VALUES (1)")
one, two = connect(autocommit=False), connect(autocommit=False)
one.cursor().execute("UPDATE d1 SET id = 2")
two.cursor().execute("UPDATE d2 SET id = 2")
outcomes = {}


def cross(name, connection, table):
    try:
        connection.cursor().execute(f"UPDATE {table} SET id = 3")
        connection.commit()
        outcomes[name] = "committed"
    except Exception as failure:
        outcomes[name] = str(failure)


threads = [threading.Thread(target=cross, args=("one", one, "d2")), threading.Thread(target=cross, args=("two", two, "d1"))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(20)
victims = [text for text in outcomes.values() if "deadlock" in text.lower()]
check("one victim", (len(victims), list(outcomes.values()).count("committed")), (1, 1))
