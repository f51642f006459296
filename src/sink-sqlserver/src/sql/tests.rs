//! Shapes that must hold for every statement text.

use contract::digest::Digest;
use contract::port::target::{StageColumn, StageDefinition, StageRef, TableName};

use super::{catalog, digest, ident, stage};

fn columns() -> Vec<StageColumn> {
    ["bigint", "float(53)", "nvarchar(max)", "datetime2(6)"]
        .iter()
        .enumerate()
        .map(|(i, t)| StageColumn { name: format!("c{i}"), type_text: (*t).into(), nullable: i % 2 == 0 })
        .collect()
}

#[test]
fn identifiers_and_literals_cannot_break_out() {
    assert_eq!(ident::bracket("a]b"), "[a]]b]");
    assert_eq!(ident::literal("it's"), "N'it''s'");
}

#[test]
fn the_digest_statement_has_eight_words_per_hash_and_refuses_other_types() {
    let text = digest::single("[s].[t]", &columns(), 10).unwrap();
    assert_eq!(text.matches("COALESCE(SUM(").count(), 8);
    assert!(text.contains("TOP (11)") && text.contains("COUNT_BIG(*) > 10"));
    let double = digest::double("[s].[t]", &columns()[..2], &columns(), 10).unwrap();
    assert_eq!(double.matches("COALESCE(SUM(").count(), 16);
    let foreign = [StageColumn { name: "x".into(), type_text: "decimal(10,2)".into(), nullable: false }];
    assert_eq!(
        digest::single("[s].[t]", &foreign, 1).unwrap_err().code.as_str(),
        "mssql_native.target_digest_unsupported_type"
    );
    assert!(digest::single("[s].[t]", &columns(), i64::MAX as u64).is_err());
}

#[test]
fn the_catalog_script_creates_every_table_and_trigger_that_admission_asks_for() {
    let script = catalog::script("dpone", "stage", "loader");
    for (table, columns) in catalog::TABLES {
        assert!(script.contains(&format!("[dpone].[{table}] (")), "{table}");
        for column in *columns {
            assert!(script.contains(&format!("[{column}] ")), "{table}.{column}");
        }
    }
    for trigger in catalog::TRIGGERS {
        assert!(script.contains(&format!("CREATE TRIGGER [dpone].[{trigger}]")), "{trigger}");
    }
}

#[test]
fn every_changing_batch_is_one_transaction_under_xact_abort() {
    let stage = StageRef {
        definition: StageDefinition {
            name: TableName { schema: "s".into(), table: "t".into() },
            owner_binding: Digest::of(b"owner"),
            columns: columns(),
        },
        object_id: 7,
    };
    let barrier = stage::barrier(&stage, "SELECT 1;\n", 5);
    assert!(barrier.contains("SET XACT_ABORT ON") && barrier.contains("SET LOCK_TIMEOUT 5"));
    assert_eq!(barrier.matches("stage_identity_mismatch").count(), 2, "identity before and after the digest");
}
