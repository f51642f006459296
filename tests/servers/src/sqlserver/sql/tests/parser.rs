//! Whatever comes as a batch, parsing ends with statements or an error.

use proptest::prelude::*;

use crate::sqlserver::sql::lexer::tokenize;
use crate::sqlserver::sql::parse::{parse_batch, parse_expression};

/// Batches to mutate: most of the grammar.
const SEEDS: &[&str] = &[
    "SELECT TOP (5) a.[x y], COUNT(*) OVER (PARTITION BY b ORDER BY c DESC) FROM t AS a WITH (NOLOCK) LEFT JOIN s ON a.i = s.i WHERE a.x LIKE N'%z' ESCAPE '!' GROUP BY a ORDER BY 1 OFFSET 1 ROWS FETCH NEXT 2 ROWS ONLY OPTION (RECOMPILE)",
    "WITH c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 9) INSERT INTO t WITH (TABLOCK) (a, b) OUTPUT inserted.a SELECT n, 0x0A FROM c",
    "CREATE TABLE dbo.t (id int IDENTITY(1,1) NOT NULL CONSTRAINT pk PRIMARY KEY CLUSTERED, v decimal(10,2) DEFAULT ((0)), c AS (id * 2) PERSISTED, CHECK (v > 0), FOREIGN KEY (id) REFERENCES s.o (id) ON DELETE CASCADE)",
    "MERGE t AS d USING (VALUES (1, 'a')) AS s (i, x) ON d.i = s.i WHEN MATCHED AND s.i > 0 THEN UPDATE SET x = s.x WHEN NOT MATCHED THEN INSERT (i, x) VALUES (s.i, s.x) WHEN NOT MATCHED BY SOURCE THEN DELETE;",
    "BEGIN TRY DECLARE @a int = 1, @t TABLE (i int); WHILE @a < 3 BEGIN SET @a += 1; IF @a = 2 CONTINUE ELSE PRINT 'x' END EXEC sp_executesql N'SELECT @p', N'@p int', @p = 1 END TRY BEGIN CATCH THROW 50000, 'm', 1; END CATCH",
    "CREATE PROCEDURE p @a int = 1 OUTPUT AS BEGIN SET NOCOUNT ON; RETURN CASE WHEN @a IS NULL THEN 1 ELSE -2 END END",
    "SELECT CAST('1' AS decimal(38,0)), CONVERT(varbinary(max), 0x, 1), x.y.value, -1.5e-3, $2.5 FROM sys.tables CROSS APPLY (VALUES (1), (2)) AS g(p) /* /* nested */ */ -- end",
    "GRANT SELECT, INSERT ON SCHEMA::dbo TO u WITH GRANT OPTION; ALTER TABLE t ADD c int NULL; DROP TABLE IF EXISTS #t; TRUNCATE TABLE t; BEGIN TRAN a; SAVE TRAN b; ROLLBACK; USE master; INSERT BULK t (a int) WITH (TABLOCK)",
];

/// A seed with pieces cut out, doubled, exchanged or replaced.
fn mutated() -> impl Strategy<Value = String> {
    let edit = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0u8..4, "[\\PC\\n\0]{0,4}");
    (prop::sample::select(SEEDS), prop::collection::vec(edit, 1..6)).prop_map(|(seed, edits)| {
        let mut text: Vec<char> = seed.chars().collect();
        for (from, to, kind, inserted) in edits {
            if text.is_empty() {
                break;
            }
            let (from, to) = (from.index(text.len()), to.index(text.len()));
            let (from, to) = (from.min(to), from.max(to));
            match kind {
                0 => drop(text.drain(from..to)),
                1 => {
                    let piece: Vec<char> = text[from..to].to_vec();
                    text.splice(to..to, piece);
                }
                2 => text.swap(from, to),
                _ => drop(text.splice(from..to, inserted.chars())),
            }
        }
        text.into_iter().collect()
    })
}

fn parse_all(text: &str) {
    for quoted in [true, false] {
        let _tokens_or_error = tokenize(text, quoted);
        let _statements_or_error = parse_batch(text, quoted);
    }
    let _expression_or_error = parse_expression(text);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_text_never_panics(text in "[\\PC\\n\0]{0,80}") {
        parse_all(&text);
    }

    #[test]
    fn random_tokens_never_panic(words in prop::collection::vec(prop::sample::select(vec![
        "SELECT", "FROM", "(", ")", ",", "*", "CASE", "WHEN", "THEN", "END", "BEGIN", "TRY", "CATCH", "@a", "N'x'", "'",
        "[", "]", "\"", "0x", "1.", ".5e", "$", "::", ".", ";", "=", "<", "!", "--", "/*", "*/", "\n", "CREATE", "TABLE",
        "PROCEDURE", "AS", "INSERT", "INTO", "VALUES", "MERGE", "USING", "ON", "OVER", "ORDER", "BY", "TOP", "WITH",
        "EXEC", "DECLARE", "CURSOR", "FOR", "ALTER", "DROP", "GRANT", "OPTION", "UNION", "ALL", "NOT", "NULL", "LIKE",
    ]), 0..40)) {
        parse_all(&words.join(" "));
        parse_all(&words.concat());
    }

    #[test]
    fn mutated_batches_never_panic(text in mutated()) {
        parse_all(&text);
    }
}

#[test]
fn the_seeds_are_batches() {
    for seed in SEEDS {
        if let Err(error) = parse_batch(seed, true) {
            panic!("{seed}: {}", error.message);
        }
    }
}

/// On a stack as sessions have it.
#[test]
fn deep_nesting_is_an_error() {
    let work = || {
        for (open, close) in [("(", ")"), ("NOT (", ")"), ("-", ""), ("CASE WHEN 1=1 THEN ", " END"), ("(SELECT ", ")")]
        {
            let text = format!("SELECT {}1{}", open.repeat(20_000), close.repeat(20_000));
            assert!(parse_batch(&text, true).is_err(), "{open}");
        }
        for text in [
            "BEGIN ".repeat(20_000),
            format!("SELECT 1 {}", "UNION ALL SELECT 1 ".repeat(20_000)),
            format!("SELECT 1{}", " + 1".repeat(20_000)),
            format!("SELECT 1 FROM t{}", " CROSS JOIN t".repeat(20_000)),
            format!("SELECT 1 WHERE 1 = 1{}", " OR 1 = 1".repeat(20_000)),
        ] {
            assert!(parse_batch(&text, true).is_err_and(|error| matches!(error.number, 102 | 191)), "{}", &text[..60]);
        }
    };
    let thread = std::thread::Builder::new().stack_size(16 << 20).spawn(work).unwrap();
    assert!(thread.join().is_ok());
}
