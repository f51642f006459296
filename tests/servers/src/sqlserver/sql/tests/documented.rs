//! Scripts with rows and error numbers as Microsoft documents them.

use super::harness::{Server, check, run};

#[test]
fn definitions_and_constraints() {
    let server = Server::new();
    let mut session = server.session();
    check(
        &mut session,
        &[
            ("CREATE SCHEMA s", ""),
            (
                "CREATE TABLE s.p (id int IDENTITY(1,1) CONSTRAINT pk_p PRIMARY KEY, code varchar(5) NOT NULL CONSTRAINT uq_p UNIQUE, \
                 qty int CONSTRAINT ck_p CHECK (qty BETWEEN 0 AND 10), twice AS qty * 2, rv rowversion)",
                "",
            ),
            (
                "INSERT s.p (code, qty) VALUES ('a', 5); SELECT SCOPE_IDENTITY(), @@IDENTITY, IDENT_CURRENT('s.p')",
                "=1;1|1|1",
            ),
            ("INSERT s.p (code, qty) VALUES ('b', 11)", "!547"),
            ("INSERT s.p (code, qty) VALUES ('a', 1)", "!2627"),
            ("INSERT s.p (code, qty) VALUES ('toolong', 1)", "!2628"),
            ("INSERT s.p (qty) VALUES (1)", "!515"),
            ("INSERT s.p (id, code) VALUES (9, 'x')", "!544"),
            ("INSERT s.p (twice, code) VALUES (9, 'x')", "!271"),
            ("SELECT code, qty, twice, DATALENGTH(rv) FROM s.p", "a|5|10|8"),
            ("SELECT definition FROM sys.check_constraints", "([qty]>=(0) AND [qty]<=(10))"),
            ("CREATE TABLE s.c (id int PRIMARY KEY, pid int NOT NULL CONSTRAINT fk_c REFERENCES s.p(id))", ""),
            ("INSERT s.c VALUES (1, 99)", "!547"),
            ("INSERT s.c VALUES (1, 1); DELETE s.p", "=1;!547"),
            ("TRUNCATE TABLE s.p", "!4712"),
            ("DROP TABLE s.p", "!3726"),
            ("ALTER TABLE s.c DROP COLUMN pid", "!5074"),
            ("ALTER TABLE s.c DROP CONSTRAINT fk_c; DELETE s.p; SELECT COUNT(*) FROM s.p", "=1;0"),
            ("DROP TABLE nosuch", "!3701"),
            ("CREATE TABLE s.c (a int)", "!2714"),
            ("CREATE TABLE q (a int, a int)", "!2705"),
            ("BEGIN TRAN; CREATE TABLE r (a int); ROLLBACK; SELECT OBJECT_ID('r')", "NULL"),
        ],
    );
}

#[test]
fn errors_in_try_blocks() {
    let server = Server::new();
    let mut session = server.session();
    check(
        &mut session,
        &[
            (
                "BEGIN TRY SELECT 1/0 END TRY BEGIN CATCH SELECT ERROR_NUMBER(), ERROR_SEVERITY(), ERROR_STATE() END CATCH",
                "8134|16|1",
            ),
            ("BEGIN TRY EXEC('SELECT * FROM nosuch') END TRY BEGIN CATCH SELECT ERROR_NUMBER() END CATCH", "208"),
            ("BEGIN TRY SELECT * FROM nosuch END TRY BEGIN CATCH SELECT 'caught' END CATCH", "!208"),
            ("SELECT CAST('x' AS int); SELECT 'not reached'", "!245"),
            (
                "BEGIN TRAN; BEGIN TRY SELECT CAST('x' AS int) END TRY BEGIN CATCH SELECT XACT_STATE() END CATCH",
                "-1;!3998",
            ),
            ("SELECT @@TRANCOUNT", "0"),
            ("BEGIN TRY THROW 50001, 'mine', 3 END TRY BEGIN CATCH SELECT ERROR_STATE(); THROW END CATCH", "3;!50001"),
            ("THROW 50000, 'x', 1; SELECT 'not reached'", "!50000"),
            ("RAISERROR('n %d', 16, 2, 7); SELECT @@ERROR", "!50000;50000"),
            ("SELECT @nope", "!137"),
        ],
    );
}

#[test]
fn triggers() {
    let server = Server::new();
    let mut session = server.session();
    check(
        &mut session,
        &[
            ("CREATE TABLE t (id int PRIMARY KEY, v varchar(9)); INSERT t VALUES (1,'a'),(2,'b')", "=2"),
            (
                "CREATE TRIGGER tr ON t AFTER UPDATE AS IF UPDATE(v) SELECT d.v, i.v FROM inserted i JOIN deleted d ON d.id = i.id",
                "",
            ),
            ("UPDATE t SET v = 'c' WHERE id = 1", "a|c;=1"),
            ("DROP TRIGGER tr", ""),
            ("CREATE TRIGGER tr ON t AFTER DELETE AS THROW 51000, 'IMMUTABLE', 1", ""),
            ("DELETE t; SELECT 'not reached'", "!51000"),
            (
                "BEGIN TRY BEGIN TRAN DELETE t END TRY BEGIN CATCH SELECT ERROR_NUMBER(), XACT_STATE(); ROLLBACK END CATCH",
                "51000|-1",
            ),
            ("DISABLE TRIGGER tr ON t; DELETE t WHERE id = 2; ENABLE TRIGGER tr ON t; SELECT COUNT(*) FROM t", "=1;1"),
            ("DROP TRIGGER tr", ""),
            ("CREATE TRIGGER tr ON t AFTER INSERT AS ROLLBACK", ""),
            ("INSERT t VALUES (7, 'x'); SELECT 'not reached'", "!3609"),
            ("SELECT COUNT(*), @@TRANCOUNT FROM t", "1|0"),
        ],
    );
}

#[test]
fn permissions() {
    let server = Server::new();
    let mut owner = server.session();
    check(
        &mut owner,
        &[
            ("CREATE TABLE t (a int); INSERT t VALUES (1)", "=1"),
            (
                "CREATE LOGIN lim WITH PASSWORD = 'pw', CHECK_POLICY = OFF; CREATE USER lim FOR LOGIN lim; GRANT SELECT ON t TO lim",
                "",
            ),
        ],
    );
    assert_eq!(server.login("lim", "wrong").err().map(|e| e.number), Some(18456));
    let mut limited = server.login("lim", "pw").unwrap();
    check(
        &mut limited,
        &[
            ("SELECT a FROM t", "1"),
            ("INSERT t VALUES (2)", "!229"),
            ("CREATE TABLE x (a int)", "!262"),
            ("SELECT * FROM sys.dm_tran_locks", "!300"),
            (
                "SELECT HAS_PERMS_BY_NAME('dbo.t','OBJECT','SELECT'), HAS_PERMS_BY_NAME('dbo.t','OBJECT','INSERT')",
                "1|0",
            ),
        ],
    );
    check(&mut owner, &[("DENY SELECT ON t TO lim", "")]);
    check(&mut limited, &[("SELECT a FROM t", "!229")]);
}

#[test]
fn locks_between_sessions() {
    let server = Server::new();
    let (mut a, mut b) = (server.session(), server.session());
    check(&mut a, &[("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT t VALUES (1, 1), (2, 2)", "=2")]);
    check(&mut a, &[("BEGIN TRAN; UPDATE t SET v = 9 WHERE id = 1", "=1")]);
    check(
        &mut b,
        &[
            ("SET LOCK_TIMEOUT 0; SELECT v FROM t WHERE id = 1", "!1222"),
            ("SELECT v FROM t WHERE id = 2", "2"),
            ("SELECT v FROM t WITH (NOLOCK) WHERE id = 1", "9"),
            ("SELECT id FROM t WITH (READPAST)", "2"),
        ],
    );
    check(&mut a, &[("ROLLBACK; BEGIN TRAN; SELECT TOP (1) 1 FROM t WITH (TABLOCKX, HOLDLOCK)", "1")]);
    check(&mut b, &[("SELECT v FROM t WHERE id = 2", "!1222")]);
    check(
        &mut a,
        &[("DECLARE @r int; EXEC @r = sp_getapplock 'x', 'Exclusive', 'Session', 0; SELECT @r; COMMIT", "0")],
    );
    check(&mut b, &[("DECLARE @r int; EXEC @r = sp_getapplock 'x', 'Exclusive', 'Session', 0; SELECT @r", "-1")]);
    drop(a);
    check(&mut b, &[("DECLARE @r int; EXEC @r = sp_getapplock 'x', 'Exclusive', 'Session', 0; SELECT @r", "0")]);
    assert!(run(&mut b, "SELECT 1").errors.is_empty());
}

#[test]
fn queries() {
    let server = Server::new();
    let mut session = server.session();
    check(
        &mut session,
        &[
            ("WITH c AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM c WHERE n < 3) SELECT n FROM c", "1;2;3"),
            ("WITH c AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM c) SELECT COUNT(*) FROM c", "!530"),
            (
                "SELECT x, GROUPING(x), COUNT(*) FROM (VALUES ('a'),('a'),('b')) v(x) GROUP BY ROLLUP(x)",
                "a|0|2;b|0|1;NULL|1|3",
            ),
            (
                "SELECT n, SUM(n) OVER (ORDER BY n), LAG(n) OVER (ORDER BY n) FROM (VALUES (1),(2)) v(n) ORDER BY n",
                "1|1|NULL;2|3|1",
            ),
            ("SELECT STRING_AGG(x, ',') WITHIN GROUP (ORDER BY x DESC) FROM (VALUES ('a'),('b')) v(x)", "b,a"),
            ("SELECT TOP (1) WITH TIES n FROM (VALUES (2),(2),(1)) v(n) ORDER BY n DESC", "2;2"),
            ("SELECT n FROM (VALUES (1),(2),(3)) v(n) ORDER BY n OFFSET 1 ROWS FETCH NEXT 1 ROWS ONLY", "2"),
            (
                "SELECT a.n, b.n FROM (VALUES (1),(2)) a(n) FULL JOIN (VALUES (2),(3)) b(n) ON a.n = b.n",
                "1|NULL;2|2;NULL|3",
            ),
            (
                "DECLARE @s nvarchar(9); SELECT @s = COALESCE(@s + ',', '') + x FROM (VALUES ('a'),('b')) v(x); SELECT @s",
                "a,b",
            ),
            (
                "DECLARE @r int; EXEC sp_executesql N'SET @o = @i * 2', N'@i int, @o int OUTPUT', 21, @r OUTPUT; SELECT @r",
                "42",
            ),
            (
                "CREATE TABLE m (id int, g int); INSERT m VALUES (1,1),(2,1); WITH d AS (SELECT ROW_NUMBER() OVER (PARTITION BY g ORDER BY id) r FROM m) DELETE d WHERE r > 1; SELECT id FROM m",
                "=2;=1;1",
            ),
            (
                "MERGE m AS t USING (VALUES (1, 7), (5, 5)) AS s(id, g) ON t.id = s.id WHEN MATCHED THEN UPDATE SET g = s.g WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.g) OUTPUT $action, inserted.id;",
                "UPDATE|1;INSERT|5;=2",
            ),
        ],
    );
}
