//! The first statements of everyday work.

use super::harness::{Server, check};

#[test]
fn queries_and_changes() {
    let server = Server::new();
    let mut session = server.session();
    check(
        &mut session,
        &[
            ("SELECT 1 AS a, 'x' AS b, NULL, 1.50, 0x0102", "1|x|NULL|1.50|0x0102"),
            (
                "CREATE TABLE t (id int NOT NULL PRIMARY KEY, name nvarchar(20) NULL, amount decimal(10,2) DEFAULT 0)",
                "",
            ),
            ("INSERT INTO t (id, name) VALUES (1, N'one'), (2, N'two'), (3, NULL)", "=3"),
            ("SELECT * FROM t WHERE id >= 2 ORDER BY id DESC", "3|NULL|0.00;2|two|0.00"),
            ("INSERT INTO t (id) VALUES (1); SELECT 'goes on'", "!2627;goes on"),
            ("SELECT COUNT(*), SUM(id), AVG(id), MIN(name), MAX(name) FROM t", "3|6|2|one|two"),
            ("SELECT a.id, b.id FROM t a JOIN t b ON a.id = b.id + 1 ORDER BY 1", "2|1;3|2"),
            ("SELECT * FROM nosuch; SELECT 'not reached'", "!208"),
            ("SELECT 'not reached'; SELECT nosuch FROM t", "!207"),
            ("SELEC 1", "!2812"),
            ("SELECT 1 FROM WHERE", "!156"),
            ("CREATE TABLE b (id int, bytes varbinary(4) NULL, day date NULL)", ""),
            ("INSERT INTO b (bytes) VALUES (CAST(NULL AS nvarchar(1)))", "!257"),
            ("DECLARE @none int; INSERT INTO b (day) SELECT @none WHERE 1 = 0", "!206"),
            ("INSERT INTO b (bytes, day) VALUES (NULL, NULL); INSERT INTO b (bytes, day) SELECT NULL, NULL", "=1;=1"),
            ("INSERT INTO b (bytes, day) VALUES (NULL, '2020-01-02'), (0x01, NULL), (NULL, NULL)", "=3"),
        ],
    );
}

#[test]
fn transactions() {
    let server = Server::new();
    let mut session = server.session();
    check(
        &mut session,
        &[
            ("CREATE TABLE t (id int PRIMARY KEY)", ""),
            ("BEGIN TRAN; INSERT t VALUES (1); SELECT @@TRANCOUNT; ROLLBACK; SELECT COUNT(*) FROM t", "=1;1;0"),
            ("COMMIT", "!3902"),
            ("ROLLBACK", "!3903"),
            (
                "BEGIN TRAN; INSERT t VALUES (1); SAVE TRAN s; INSERT t VALUES (2); ROLLBACK TRAN s; COMMIT; SELECT id FROM t",
                "=1;=1;1",
            ),
            (
                "SET XACT_ABORT ON; BEGIN TRAN; INSERT t VALUES (5); INSERT t VALUES (1); SELECT 'not reached'",
                "=1;!2627",
            ),
            ("SELECT @@TRANCOUNT, COUNT(*) FROM t", "0|1"),
            (
                "BEGIN TRY BEGIN TRAN; INSERT t VALUES (1); END TRY BEGIN CATCH SELECT XACT_STATE(), ERROR_NUMBER(); ROLLBACK END CATCH",
                "-1|2627",
            ),
        ],
    );
}

#[test]
fn concatenations_of_binaries() {
    let server = Server::new();
    let mut session = server.session();
    check(
        &mut session,
        &[
            ("CREATE TABLE b (id int, n bigint NULL, f float NULL, d varbinary(40) NULL)", ""),
            (
                "INSERT INTO b VALUES (1, 258, 1.5, 0x0102030405060708090A0B0C0D0E0F101112131415161718), (2, NULL, NULL, NULL)",
                "=2",
            ),
            (
                "SELECT CONVERT(binary(8), n) + CONVERT(binary(8), f) FROM b ORDER BY id",
                "0x00000000000001023FF8000000000000;NULL",
            ),
            (
                "SELECT SUBSTRING(CONVERT(binary(8), n), 8, 1) + SUBSTRING(CONVERT(binary(8), n), 7, 1) FROM b ORDER BY id",
                "0x0201;NULL",
            ),
            (
                "SELECT 0xFF + SUBSTRING(d, 23, 9) + SUBSTRING(d, 30, 2) + SUBSTRING(d, 1, 0) FROM b ORDER BY id",
                "0xFF1718;NULL",
            ),
            (
                "SELECT SUBSTRING(d, 24, 100), SUBSTRING(d, 0, 2), SUBSTRING(d + d, 24, 2) FROM b WHERE id = 1",
                "0x18|0x01|0x1801",
            ),
            (
                "SELECT 0x01 + CASE WHEN n IS NULL THEN 0xFF ELSE 0x08 + CONVERT(binary(2), n) END FROM b ORDER BY id",
                "0x01080102;0x01FF",
            ),
            (
                "SELECT CONVERT(binary(3), 0x01) + CONVERT(varbinary(2), 0x020304) + CONVERT(binary(2), CONVERT(smallint, 5))",
                "0x01000002030005",
            ),
            (
                "SELECT DATALENGTH(CONVERT(varbinary(8000), REPLICATE('a', 8000)) + 0x01), DATALENGTH(CONVERT(varbinary(max), REPLICATE('a', 8000)) + 0x01)",
                "8000|8001",
            ),
            (
                "SELECT CONVERT(bigint, 2147483647) * 2, CONVERT(tinyint, 255) + 1, CONVERT(bit, 1) + 1",
                "4294967294|256|2",
            ),
            ("SELECT 2147483647 + 1", "!8115"),
            ("SELECT 0x01 + CONVERT(varbinary(4), 1 / 0)", "!8134"),
        ],
    );
}
