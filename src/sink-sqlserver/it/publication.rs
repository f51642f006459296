//! The publication transaction: what it replaces, that it happens once, and what a lost COMMIT means.

use contract::error::Fate;
use contract::lineage::LineagePreset;
use contract::port::target::{Mutation, PublishRequest, ReceiptFacts, ReceiptProbe, Target as _};
use servers::sqlserver::control::{Breakpoint, When};

use super::kit::{Kit, assert_refused, columns, digest, fence, operation, request, row};
use super::preparation::{prepare, reference};

/// A run whose two rows are prepared; what it publishes is `mutation`.
async fn prepared(kit: &Kit, mutation: Mutation) -> PublishRequest {
    let (generation, operation_epoch, custody_epoch) = kit.claim().await;
    let stage = kit.stage("s", &[row(1, "a"), row(2, "b")]).await;
    let prepare = prepare("p", LineagePreset::Off, vec![stage], 2);
    let seen = kit.target.prepare(&prepare).await.expect("prepared");
    let table = kit.target.observe(&request()).await.expect("an observation").table.expect("a table");
    let instant = "2013-07-04T12:00:00.123456Z".to_owned();
    PublishRequest {
        request: request(),
        operation: operation("run"),
        generation,
        operation_epoch,
        holder: digest("run holder"),
        custody_epoch,
        fence: fence("run", 1),
        prepared: reference(&prepare, seen.object_id),
        prepared_full: seen.full,
        columns: columns(),
        loaded_at_column: None,
        mutation,
        target_fingerprint: table.fingerprint,
        receipt: ReceiptFacts {
            receipt_id: format!("mssql-generic-v1:{}", digest("run operation")),
            payload_manifest_sha256: digest("manifest"),
            rows: 2,
            native_contract_sha256: digest("contract"),
            mutation_plan_sha256: digest("plan"),
            extraction_started_at: instant.clone(),
            extraction_completed_at: instant.clone(),
            extraction_clock_authority: "native-transfer.worker".into(),
            snapshot_acquired_at: instant,
            snapshot_authority: "clickhouse.query-snapshot.v1".into(),
            source_token_sha256: digest("token"),
        },
        lock_timeout_ms: 10_000,
    }
}

async fn plant(kit: &mut Kit, id: i64, day: &str) {
    kit.run(&format!("INSERT INTO dbo.t (id, f, s, d) VALUES ({id}, 1, N'old', '{day}')")).await;
}

async fn ids(kit: &mut Kit) -> Vec<String> {
    kit.run("SELECT id FROM dbo.t ORDER BY id").await.into_iter().map(|mut row| row.remove(0)).collect()
}

fn day() -> Mutation {
    Mutation::PartitionReplace {
        column: "d".into(),
        start: "2013-07-04 00:00:00.000000".into(),
        end: "2013-07-05 00:00:00.000000".into(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_mutation_replaces_its_scope_and_a_replay_returns_the_same_receipt() {
    for (mutation, left, replaced) in [
        (Mutation::FullRefresh { delete: false }, &["1", "2"][..], 3),
        (Mutation::FullRefresh { delete: true }, &["1", "2"][..], 3),
        (day(), &["-3", "-1", "1", "2"][..], 1),
    ] {
        let mut kit = Kit::start().await;
        plant(&mut kit, -1, "2013-07-03T23:59:59.999999").await;
        plant(&mut kit, -2, "2013-07-04T00:00:00").await;
        plant(&mut kit, -3, "2013-07-05T00:00:00").await;
        let publish = prepared(&kit, mutation).await;
        let absent = kit.target.probe_receipt(&publish.request, &publish.operation, 10_000).await.expect("an answer");
        assert_eq!(absent, ReceiptProbe::AbsentUnderLock);
        let receipt = kit.target.publish(&publish).await.expect("published");
        assert_eq!((receipt.inserted_rows, receipt.replaced_rows), (2, Some(replaced)));
        assert_eq!(ids(&mut kit).await, left);
        kit.run("INSERT INTO dbo.t (id, f, s, d) VALUES (99, 1, N'later', '2013-07-04')").await;
        assert_eq!(kit.target.publish(&publish).await.expect("the receipt"), receipt);
        let probe = kit.target.probe_receipt(&publish.request, &publish.operation, 10_000).await.expect("an answer");
        assert_eq!(probe, ReceiptProbe::Present(receipt));
        assert_eq!(kit.number("SELECT COUNT(*) FROM dbo.t WHERE id = 99").await, 1, "nothing was published again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_receipt_decides_what_a_lost_commit_did() {
    for (when, published) in [(When::Before, false), (When::After, true)] {
        let mut kit = Kit::start().await;
        plant(&mut kit, -1, "2013-07-04").await;
        let publish = prepared(&kit, Mutation::FullRefresh { delete: false }).await;
        let commit = Breakpoint::cut("COMMIT TRANSACTION;", when).whole().of("native-transfer publish");
        let id = kit.cut(commit);
        let outcome = kit.target.publish(&publish).await;
        kit.reached(id).await;
        if published {
            assert_eq!(outcome.expect("the receipt is read back").inserted_rows, 2);
            assert_eq!(ids(&mut kit).await, ["1", "2"]);
        } else {
            let error = outcome.expect_err("no receipt");
            assert_eq!(error.fate, Fate::NotDone, "{error}");
            assert_eq!(ids(&mut kit).await, ["-1"]);
            assert_eq!(kit.target.publish(&publish).await.expect("published").inserted_rows, 2);
            assert_eq!(ids(&mut kit).await, ["1", "2"]);
        }
        assert_eq!(kit.number("SELECT COUNT(*) FROM dpone.dpone_load_receipt").await, 1);
    }
}

/// When the probe is lost too nothing is known, and nothing is claimed.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_commit_with_a_lost_probe_is_unknown() {
    let mut kit = Kit::start().await;
    let publish = prepared(&kit, Mutation::FullRefresh { delete: false }).await;
    kit.cut(Breakpoint::cut("COMMIT TRANSACTION;", When::After).whole().of("native-transfer publish"));
    let probe = kit.cut(Breakpoint::cut("dpone_load_receipt", When::After).of("native-transfer probe"));
    let error = kit.target.publish(&publish).await.expect_err("unknown");
    assert_eq!((error.code.as_str(), error.fate), ("mssql_transaction.commit_outcome_unknown", Fate::Unknown));
    kit.reached(probe).await;
    assert_eq!(kit.target.publish(&publish).await.expect("the receipt").inserted_rows, 2);
    assert_eq!(ids(&mut kit).await, ["1", "2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_changed_since_admission_stops_the_publication() {
    let mut kit = Kit::start().await;
    plant(&mut kit, -1, "2013-07-04").await;
    let publish = prepared(&kit, Mutation::FullRefresh { delete: true }).await;
    let digest_of_other = PublishRequest { custody_epoch: publish.custody_epoch + 1, ..publish.clone() };
    assert_refused(kit.target.publish(&digest_of_other).await, "native_transfer.custody_lost");
    let fenced = PublishRequest { fence: fence("run", 0), ..publish.clone() };
    assert_refused(kit.target.publish(&fenced).await, "native_transfer.run_fenced");
    for (change, back, code) in [
        (
            "ALTER TABLE dbo.t ADD CONSTRAINT c CHECK (id <> 5)",
            "ALTER TABLE dbo.t DROP CONSTRAINT c",
            "native_transfer.target_schema_changed",
        ),
        (
            "UPDATE stage.dpone_native_p SET n = 5 WHERE id = 1",
            "UPDATE stage.dpone_native_p SET n = NULL WHERE id = 1",
            "mssql_native.prepared_content_changed",
        ),
        (
            "EXEC sys.sp_updateextendedproperty @name = N'dpone_native_owner', @value = N'x', @level0type = N'SCHEMA', \
             @level0name = N'stage', @level1type = N'TABLE', @level1name = N'dpone_native_p'",
            "",
            "mssql_native.prepared_owner_mismatch",
        ),
    ] {
        kit.run(change).await;
        assert_refused(kit.target.publish(&publish).await, code);
        if !back.is_empty() {
            kit.run(back).await;
        }
    }
    assert_eq!(ids(&mut kit).await, ["-1"]);
    assert_eq!(kit.number("SELECT COUNT(*) FROM dpone.dpone_load_receipt").await, 0);
}
