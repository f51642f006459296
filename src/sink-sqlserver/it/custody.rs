//! Claim, fence, release, evidence and the retirement of stages.

use contract::port::target::{
    ClaimOutcome, CustodyRelease, RunFence, StageDefinition, StageRetirement, StageWriter as _, Target as _,
    WriterGrant,
};

use super::kit::{Kit, assert_refused, claim, digest, fence, grant, operation, request, row, stage};

fn release(run: &str, custody_epoch: i64) -> CustodyRelease {
    CustodyRelease {
        request: request(),
        target_identity: operation(run).target_identity,
        holder: digest(&format!("{run} holder")),
        custody_epoch,
        reason: "nonpublication_all_stages_retired",
        fence: fence(run, 1),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn custody_is_one_holders_until_it_releases_it() {
    let mut kit = Kit::start().await;
    let first = kit.claim().await;
    assert_eq!(first, (1, 1, 1));
    assert_eq!(kit.claim().await, first, "the same claim again changes nothing");
    assert_eq!(
        kit.target.claim(&claim("other", 1)).await.expect("an answer"),
        ClaimOutcome::Held { holder: digest("run holder") }
    );
    assert_eq!(kit.number("SELECT COUNT(*) FROM dpone.dpone_load_attempt").await, 1, "a refused claim leaves nothing");
    assert_refused(kit.target.release_custody(&release("other", 1)).await, "native_transfer.run_fenced");
    assert_refused(kit.target.release_custody(&release("run", 2)).await, "mssql_native.custody_release_unproved");
    kit.target.release_custody(&release("run", 1)).await.expect("released");
    kit.target.release_custody(&release("run", 1)).await.expect("released already");
    match kit.target.claim(&claim("other", 1)).await.expect("an answer") {
        ClaimOutcome::Claimed { generation: 2, operation_epoch: 1, custody_epoch: 2, claimed_at } => {
            assert!(claimed_at.ends_with('Z'), "{claimed_at}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_opener_fences_an_earlier_one() {
    let mut kit = Kit::start().await;
    kit.claim().await;
    let mut writer = kit.target.open_writer(&grant("late")).await.expect("a writer");
    assert!(kit.target.raise_fence(&request(), &fence("run", 2)).await.expect("an answer"));
    assert!(kit.target.raise_fence(&request(), &fence("run", 2)).await.expect("an answer"), "repeating is harmless");
    assert!(!kit.target.raise_fence(&request(), &fence("run", 1)).await.expect("an answer"));
    let copy = RunFence { opener_nonce: digest("a copy of the journal"), ..fence("run", 2) };
    assert!(!kit.target.raise_fence(&request(), &copy).await.expect("an answer"));
    assert_eq!(kit.target.claim(&claim("run", 1)).await.expect("an answer"), ClaimOutcome::Fenced);
    assert_refused(writer.create_stage(&stage("late")).await, "native_transfer.run_fenced");
    assert_refused(kit.target.release_custody(&release("run", 1)).await, "native_transfer.run_fenced");
    assert_refused(kit.target.retire_stage(&grant("late-2"), &stage("late"), None).await, "native_transfer.run_fenced");
    assert_eq!(kit.number("SELECT COUNT(*) FROM sys.tables WHERE schema_id = SCHEMA_ID(N'stage')").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_our_own_stage_is_dropped_and_only_when_its_writer_is_gone() {
    let mut kit = Kit::start().await;
    kit.claim().await;
    let written = kit.stage("mine", &[row(1, "a")]).await;
    let impatient = WriterGrant { lock_timeout_ms: 50, ..grant("mine") };
    let writer = kit.target.open_writer(&grant("mine")).await.expect("a writer");
    let living = kit.target.retire_stage(&impatient, &written.definition, Some(written.object_id)).await;
    assert_refused(living, "mssql_native.sqlclient_writer_not_settled");
    writer.close().await.expect("closed");
    let foreign = StageDefinition { owner_binding: digest("someone"), ..written.definition.clone() };
    let other_object = Some(written.object_id + 1);
    for (definition, object_id) in [(&foreign, None), (&written.definition, other_object)] {
        let refused = kit.target.retire_stage(&grant("mine"), definition, object_id).await;
        assert_refused(refused, "mssql_native.prepared_owner_mismatch");
    }
    assert_eq!(kit.number("SELECT COUNT(*) FROM stage.dpone_native_mine").await, 1);
    for expected in [StageRetirement::Dropped, StageRetirement::AlreadyAbsent] {
        let gone = kit.target.retire_stage(&grant("mine"), &written.definition, Some(written.object_id)).await;
        assert_eq!(gone.expect("an answer"), expected);
    }
    // Who does not see every table of the schema cannot prove that one is absent.
    kit.run("REVOKE CONTROL ON SCHEMA::stage FROM loader").await;
    let blind = kit.target.retire_stage(&grant("mine"), &written.definition, None).await;
    assert_refused(blind, "mssql_native.stage_absence_visibility_unproved");
}

#[tokio::test(flavor = "multi_thread")]
async fn evidence_is_saved_once() {
    let mut kit = Kit::start().await;
    kit.claim().await;
    let (request, operation, fence) = (request(), operation("run"), fence("run", 1));
    for _ in 0..2 {
        kit.target.save_evidence(&request, &operation, "{\"é\":'1'}", &digest("one"), &fence).await.expect("saved");
    }
    assert_eq!(kit.run("SELECT document FROM dpone.native_transfer_evidence").await, [["{\"é\":'1'}"]]);
    let other = kit.target.save_evidence(&request, &operation, "{}", &digest("two"), &fence).await;
    assert_refused(other, "mssql_native.operational_evidence_changed");
}
