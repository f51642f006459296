//! What admission sees, and what it names when something is missing.

use contract::port::target::Target as _;

use super::kit::{Kit, assert_refused, columns, request};

#[tokio::test(flavor = "multi_thread")]
async fn a_complete_target_has_no_faults() {
    let kit = Kit::start().await;
    let seen = kit.target.observe(&request()).await.expect("an observation");
    assert_eq!((seen.catalog_faults, seen.missing_grants), (Vec::<String>::new(), Vec::<String>::new()));
    assert_eq!(seen.database, super::kit::DATABASE);
    assert!(!seen.server_names[0].is_empty() && seen.registry_binding.is_none());
    let table = seen.table.expect("a table");
    let shown: Vec<_> = table.columns.iter().map(|c| (c.name.clone(), c.type_text.clone(), c.nullable)).collect();
    let wanted: Vec<_> = columns().into_iter().map(|c| (c.name, c.type_text, c.nullable)).collect();
    assert_eq!(shown, wanted);
    let room = kit.target.capacity(&request()).await.expect("an observation");
    assert!(room.log_headroom_bytes > 0 && room.data_volume_headroom_bytes.iter().all(|bytes| *bytes > 0), "{room:?}");
    assert_eq!((room.stage_tables, room.stage_allocated_bytes), (0, 0));
    kit.claim().await;
    kit.stage("s", &[super::kit::row(1, "a")]).await;
    let room = kit.target.capacity(&request()).await.expect("an observation");
    assert!(room.stage_tables == 1 && room.stage_allocated_bytes >= 8192, "{room:?}");
    let bound = kit.target.observe(&request()).await.expect("an observation").registry_binding;
    assert_eq!(bound, Some(super::kit::digest("binding")));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_missing_right_table_and_trigger_is_named() {
    let mut kit = Kit::start().await;
    for (right, on) in [
        ("SELECT", "[dpone].[dpone_target_identity]"),
        ("UPDATE", "[dpone].[dpone_target_fence]"),
        ("INSERT", "[dpone].[dpone_load_attempt]"),
        ("UPDATE", "[dpone].[dpone_load_operation]"),
        ("INSERT", "[dpone].[dpone_load_receipt]"),
        ("UPDATE", "[dpone].[native_transfer_custody]"),
        ("SELECT", "[dpone].[native_transfer_run_fence]"),
        ("INSERT", "[dpone].[native_transfer_evidence]"),
        ("INSERT", "[dbo].[t]"),
        ("DELETE", "[dbo].[t]"),
        ("ALTER", "[dbo].[t]"),
        ("CONTROL", "SCHEMA::[stage]"),
    ] {
        kit.run(&format!("REVOKE {right} ON {on} FROM loader")).await;
        let seen = kit.target.observe(&request()).await.map(|seen| seen.missing_grants);
        assert_eq!(seen.expect("an observation"), [format!("{right} ON {on}")]);
        kit.run(&format!("GRANT {right} ON {on} TO loader")).await;
    }
    for right in ["CREATE TABLE", "VIEW DATABASE STATE"] {
        kit.run(&format!("REVOKE {right} FROM loader")).await;
        let seen = kit.target.observe(&request()).await.expect("an observation").missing_grants;
        assert_eq!(seen, [right]);
        kit.run(&format!("GRANT {right} TO loader")).await;
    }
    let catalog = "SELECT t.name, g.name FROM sys.triggers AS g JOIN sys.tables AS t ON t.object_id = g.parent_id";
    let triggers = kit.run(catalog).await;
    assert_eq!(triggers.len(), 8);
    for trigger in triggers {
        let (table, name) = (&trigger[0], &trigger[1]);
        kit.run(&format!("DISABLE TRIGGER dpone.{name} ON dpone.{table}")).await;
        let seen = kit.target.observe(&request()).await.expect("an observation").catalog_faults;
        assert_eq!(seen, [format!("trigger {name}")]);
        kit.run(&format!("ENABLE TRIGGER dpone.{name} ON dpone.{table}")).await;
    }
    kit.run("DROP TABLE dpone.native_transfer_run_fence").await;
    let seen = kit.target.observe(&request()).await.expect("an observation").catalog_faults;
    assert_eq!(seen, ["table native_transfer_run_fence", "trigger trg_native_transfer_run_fence_monotonic"]);
    kit.run("DROP TABLE dbo.t").await;
    assert!(kit.target.observe(&request()).await.expect("an observation").table.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn space_that_cannot_be_seen_is_a_refusal() {
    let mut kit = Kit::start().await;
    kit.run("USE master; REVOKE VIEW SERVER STATE FROM loader; USE sales").await;
    let seen = kit.target.observe(&request()).await.expect("an observation").missing_grants;
    assert_eq!(seen, ["VIEW SERVER STATE"]);
    assert_refused(kit.target.capacity(&request()).await, "mssql_native.target_capacity_unavailable");
}
