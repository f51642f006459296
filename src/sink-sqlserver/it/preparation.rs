//! The prepared table: many stages in groups, and the lineage columns of every preset.

use contract::encode::Value;
use contract::lineage::LineagePreset;
use contract::port::target::{
    LineageColumn, LineageValue, PrepareRequest, PreparedRef, StageColumn, StageDefinition, StageRef, Target as _,
};

use super::kit::{Kit, assert_digest, assert_refused, columns, fence, row, stage};

/// A request that fills `name` from `stages` with the lineage of a preset.
pub(crate) fn prepare(name: &str, preset: LineagePreset, stages: Vec<StageRef>, rows: u64) -> PrepareRequest {
    let lineage: Vec<LineageColumn> = preset
        .columns()
        .iter()
        .map(|column| LineageColumn {
            name: column.name.into(),
            type_text: column.type_text.into(),
            nullable: column.nullable,
            value: match column.name {
                "__dpone__load_id" | "__dpone__run_id" => LineageValue::Text("0123456789ABCDEFGHJKMNPQRS".into()),
                "__dpone__loaded_at" => LineageValue::LoadedAt,
                "__dpone__extracted_at" => LineageValue::ExtractedAt,
                "__dpone__row_id" => LineageValue::RowId {
                    identity: "v1|clickhouse|air|t;".into(),
                    key_columns: vec!["id".into(), "t".into()],
                },
                _ => LineageValue::Null,
            },
        })
        .collect();
    let framework = lineage.iter().map(|c| StageColumn {
        name: c.name.clone(),
        type_text: c.type_text.clone(),
        nullable: c.nullable,
    });
    PrepareRequest {
        prepared: StageDefinition { columns: columns().into_iter().chain(framework).collect(), ..stage(name) },
        business_columns: columns(),
        lineage: lineage.clone(),
        stages,
        lock_resource: format!("prepare:{name}"),
        expected_rows: rows,
        fence: fence("run", 1),
    }
}

pub(crate) fn reference(request: &PrepareRequest, object_id: i32) -> PreparedRef {
    PreparedRef {
        stage: StageRef { definition: request.prepared.clone(), object_id },
        business_columns: request.business_columns.clone(),
        expected_rows: request.expected_rows,
        lock_resource: request.lock_resource.clone(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn forty_stages_become_one_table_with_the_lineage_of_each_preset() {
    let mut kit = Kit::start().await;
    kit.claim().await;
    let (mut stages, mut rows) = (Vec::new(), Vec::new());
    for number in 0..40 {
        let own: Vec<Vec<Value<'static>>> = vec![row(number, "a"), row(number, "a"), row(1000 + number, "")];
        stages.push(kit.stage(&format!("s{number}"), &own).await);
        rows.extend(own);
    }
    for (name, preset, clocks) in [
        ("off", LineagePreset::Off, 0),
        ("minimal", LineagePreset::Minimal, 1),
        ("standard", LineagePreset::Standard, 2),
        ("bulk", LineagePreset::BulkStandard, 2),
        ("debug", LineagePreset::Debug, 2),
    ] {
        let request = prepare(name, preset, stages.clone(), 120);
        let seen = kit.target.prepare(&request).await.expect("prepared");
        assert_digest(&seen.business, &rows);
        assert_eq!(seen.full == seen.business, preset == LineagePreset::Off, "{name}");
        let again = kit.target.verify_prepared(&reference(&request, seen.object_id)).await.expect("an answer");
        assert_eq!(again, seen, "{name}");
        let table = format!("stage.dpone_native_{name}");
        let has = |column: &str| request.prepared.columns.iter().any(|c| c.name == column);
        assert_eq!(i32::from(has("__dpone__loaded_at")) + i32::from(has("__dpone__extracted_at")), clocks, "{name}");
        if has("__dpone__row_id") {
            // The same key twice has the same id; the hash is that of the text that the contract writes.
            let distinct = format!("SELECT COUNT(DISTINCT __dpone__row_id) FROM {table}");
            assert_eq!(kit.number(&distinct).await, 80, "{name}");
            let id = kit.run(&format!("SELECT TOP (1) __dpone__row_id FROM {table} WHERE id = 1")).await[0][0].clone();
            let text = "v1|clickhouse|air|t;bigint:V8:0000000000000001;nvarchar(max):N;";
            assert_eq!(id.to_lowercase(), super::kit::digest(text).to_string(), "{name}");
        }
    }
    let missing =
        prepare("again", LineagePreset::Off, vec![StageRef { definition: stage("nowhere"), object_id: 1 }], 1);
    assert_refused(kit.target.prepare(&missing).await, "native_transfer.target_catalog_missing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prepared_table_that_was_altered_is_seen() {
    let mut kit = Kit::start().await;
    kit.claim().await;
    let rows = vec![row(1, "a"), row(2, "b")];
    let stage = kit.stage("s", &rows).await;
    let request = prepare("p", LineagePreset::Debug, vec![stage], 2);
    let seen = kit.target.prepare(&request).await.expect("prepared");
    let reference = reference(&request, seen.object_id);
    kit.run("UPDATE stage.dpone_native_p SET __dpone__op = 'x' WHERE id = 1").await;
    let changed = kit.target.verify_prepared(&reference).await.expect("an answer");
    assert!(changed.business == seen.business && changed.full != seen.full);
    kit.run("UPDATE stage.dpone_native_p SET __dpone__meta = N'{}' WHERE id = 1").await;
    assert_refused(kit.target.verify_prepared(&reference).await, "mssql_native.unbounded_metadata_changed");
    kit.run("DROP TABLE stage.dpone_native_p; CREATE TABLE stage.dpone_native_p (id int)").await;
    assert_refused(kit.target.verify_prepared(&reference).await, "mssql_native.stage_identity_mismatch");
}
