use proptest::prelude::*;

use super::{Insert, Statement, judge};

fn insert(text: &str) -> (String, String, Vec<String>, String, bool) {
    match judge(text) {
        Statement::Insert(Insert { head_end, target, columns, format, data_start }) => {
            let inline =
                Insert { head_end, target: String::new(), columns: Vec::new(), format: String::new(), data_start }
                    .has_inline_rows(text);
            (text[..head_end].trim_end().to_owned(), target, columns, format, inline)
        }
        Statement::Other(_) => panic!("{text} awaits rows"),
    }
}

#[test]
fn inserts_are_cut_before_their_rows() {
    for (text, head, target, columns, format, inline) in [
        ("INSERT INTO t VALUES", "INSERT INTO t", "t", &[][..], "Values", false),
        ("insert into d.t (a, `b c`) values ;", "insert into d.t (a, `b c`)", "d.t", &["a", "b c"], "Values", false),
        ("INSERT INTO t (a) FORMAT Native", "INSERT INTO t (a)", "t", &["a"], "Native", false),
        ("INSERT INTO TABLE t (n.x) FORMAT TSV\n1\n", "INSERT INTO TABLE t (n.x)", "t", &["n.x"], "TSV", true),
        (
            "INSERT INTO `va lues` SETTINGS async_insert=0 VALUES (1)",
            "INSERT INTO `va lues` SETTINGS async_insert=0",
            "`va lues`",
            &[],
            "Values",
            true,
        ),
        (
            "/* a */ INSERT INTO FUNCTION file('x)', 'TSV', 'a UInt8') VALUES",
            "/* a */ INSERT INTO FUNCTION file('x)', 'TSV', 'a UInt8')",
            "FUNCTION file('x)', 'TSV', 'a UInt8')",
            &[],
            "Values",
            false,
        ),
        ("INSERT INTO t (a)", "INSERT INTO t (a)", "t", &["a"], "Values", false),
        ("INSERT INTO t (*) VALUES", "INSERT INTO t (*)", "t", &[], "Values", false),
        ("INSERT INTO t", "INSERT INTO t", "t", &[], "Values", false),
    ] {
        let columns = columns.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(insert(text), (head.to_owned(), target.to_owned(), columns, format.to_owned(), inline), "{text}");
    }
}

#[test]
fn other_statements_show_their_clauses() {
    for (text, format, outfile, totals) in [
        ("SELECT 1", false, false, false),
        ("SELECT 'FORMAT TSV' -- FORMAT TSV", false, false, false),
        ("SELECT (SELECT format FROM t) FORMAT TSV;", true, false, false),
        ("SELECT 1 INTO OUTFILE 'x' FORMAT CSV", true, true, false),
        ("SELECT a, count() FROM t GROUP BY a WITH TOTALS", false, false, true),
        ("INSERT INTO t SELECT 1", false, false, false),
        ("INSERT INTO t (SELECT 1)", false, false, false),
        ("INSERT INTO t (a) SELECT 1", false, false, false),
        ("INSERT INTO t WITH x AS (SELECT 1) SELECT * FROM x", false, false, false),
        ("SELECT $a$ FORMAT TSV $a$", false, false, false),
        ("SELECT formatRow('TSV', 1)", false, false, false),
    ] {
        let Statement::Other(clauses) = judge(text) else { panic!("{text} awaits no rows") };
        assert_eq!(
            (clauses.format.is_some(), clauses.into_outfile, clauses.totals),
            (format, outfile, totals),
            "{text}"
        );
    }
    let Statement::Other(clauses) = judge("SELECT 1 ; -- end") else { panic!() };
    assert_eq!(clauses.end, 8);
}

proptest! {
    #[test]
    fn random_text_never_panics(text in ".{0,80}", glue in "(INSERT INTO |SELECT |/\\*|'|\\$a\\$|`|\\(|VALUES|FORMAT ){0,6}") {
        let _ = judge(&text);
        let _ = judge(&format!("{glue}{text}"));
        if let Statement::Insert(insert) = judge(&format!("INSERT INTO {text}")) {
            let _ = insert.has_inline_rows(&format!("INSERT INTO {text}"));
        }
    }
}
