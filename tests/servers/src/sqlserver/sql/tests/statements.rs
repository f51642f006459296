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
