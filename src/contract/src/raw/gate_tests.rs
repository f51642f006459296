//! The gate over a sealed raw run and its variations.

use super::*;
use crate::canon::Object;
use crate::completion::seal;
use crate::port::source::ReplicaScope;
use crate::raw::eof::EofDescriptor;
use crate::raw::settings::profile_settings;

const RAW: SourceMode = SourceMode::ExactRawRows(ReplicaScope::SingleServer);
const UUID: &str = "11111111-1111-4111-8111-111111111111";

fn profile(window: Option<&FrozenWindow>) -> RawProfile {
    let digest = Digest::of(b"x");
    let texts = window.map(|window| {
        let (start, end) = super::super::query::window_bounds(window).expect("bounds");
        [window.column.clone(), start.isoformat(), end.isoformat()]
    });
    RawProfile {
        engine_signature: "ReplacingMergeTree:sha256:x".into(),
        relation_uuid: UUID.into(),
        database_engine: "Atomic".into(),
        ordered_schema: vec![["id".into(), "Int64".into(), String::new()]],
        partition_key_sha256: digest,
        sorting_key_sha256: digest,
        primary_key_sha256: digest,
        window: texts,
        read_settings: profile_settings(60),
        server_revision: "54480".into(),
        endpoint_authority_sha256: digest,
        replica_scope: ReplicaScope::SingleServer,
        replica_identity_sha256: None,
        principal_authority_sha256: digest,
        row_policy_sha256: digest,
        policy_filtered: false,
        query_shape_sha256: digest,
        projection_sha256: digest,
        typed_parameters_sha256: digest,
    }
}

struct Run {
    plan: ChunkPlan,
    window: Option<FrozenWindow>,
    completion: Completion,
    metadata: Json,
}

/// A sealed run of zero rows.
fn run(window: Option<FrozenWindow>) -> Run {
    let profile = profile(window.as_ref());
    let legacy = marker::legacy_binding(UUID, "route", window.as_ref()).expect("binding");
    let marker = marker::marker(legacy, profile.sha256());
    let fingerprint = marker::window_fingerprint(window.as_ref()).expect("fingerprint");
    let digest = Digest::of(b"x");
    // The endpoints disagree: that must not block recovery.
    let eof = EofDescriptor::seal("dpone-native-q", 0, digest, digest, Digest::of(b"y"));
    let extension = extension::build(&marker, &profile, &eof).expect("extension");
    let metadata = Json::object([("source_relation_uuid", Json::from(UUID)), (EXTENSION_KEY, extension)]);
    let text = |value: &str| value.to_owned();
    Run {
        plan: ChunkPlan {
            run_id: text("run"),
            target_id: text("target"),
            source_query_id: marker,
            window_fingerprint: fingerprint.to_string(),
            schema_fingerprint: schema_fingerprint([("id", "Int64")]).to_string(),
            wire_fingerprint: text("wire"),
        },
        window,
        completion: seal(&[], &metadata).expect("seal"),
        metadata,
    }
}

impl Run {
    fn check(&self, mode: SourceMode, action: Action, sealed: bool) -> Result<(), String> {
        let selected = Selected { mode, plan: &self.plan, window: self.window.as_ref(), route_fingerprint: "route" };
        let completed = Completed { completion: &self.completion, receipts: &[], metadata: &self.metadata };
        check(&selected, action, sealed.then_some(completed)).map_err(|refusal| refusal.code.to_string())
    }

    fn without_extension(mut self) -> Self {
        self.metadata = Json::Object(Object::new());
        self.completion = seal(&[], &self.metadata).expect("seal");
        self
    }
}

fn refused(code: &str) -> Result<(), String> {
    Err(code.to_owned())
}

#[test]
fn a_sealed_raw_run_passes_every_action() {
    let day = FrozenWindow { column: "at".into(), start_micros: 0, end_micros: 86_400_000_000 };
    for run in [run(None), run(Some(day))] {
        for action in [Action::Inspect, Action::Reconcile, Action::Resume, Action::Retire] {
            assert_eq!(run.check(RAW, action, true), Ok(()));
        }
    }
}

#[test]
fn an_unsealed_raw_run_settles_but_does_not_resume() {
    let run = run(None);
    assert_eq!(run.check(RAW, Action::Resume, false), refused(code::SOURCE_SNAPSHOT_EOF_REQUIRED));
    for action in [Action::Inspect, Action::Reconcile, Action::Retire] {
        assert_eq!(run.check(RAW, action, false), Ok(()));
    }
}

#[test]
fn the_selected_mode_must_be_that_of_the_marker() {
    let mut run = run(None);
    let other = SourceMode::ExactRawRows(ReplicaScope::ConnectedReplica);
    for mode in [SourceMode::QueryVisible, other] {
        assert_eq!(run.check(mode, Action::Resume, true), refused(code::SOURCE_SNAPSHOT_BINDING_INVALID));
    }
    run.plan.source_query_id = Digest::of(b"legacy").to_string();
    for mode in [SourceMode::QueryVisible, RAW] {
        assert_eq!(run.check(mode, Action::Resume, true), refused(code::SOURCE_SNAPSHOT_BINDING_INVALID));
    }
    let run = run.without_extension();
    assert_eq!(run.check(SourceMode::QueryVisible, Action::Resume, true), Ok(()));
}

#[test]
fn what_was_sealed_must_still_agree() {
    let missing = run(None).without_extension();
    assert_eq!(missing.check(RAW, Action::Resume, true), refused(code::SOURCE_SNAPSHOT_EXTENSION_INVALID));
    let mut rows = run(None);
    rows.completion.rows = 1;
    assert_eq!(rows.check(RAW, Action::Resume, true), refused(code::SOURCE_SNAPSHOT_COMPLETION_CHANGED));
    let mut window = run(None);
    window.window = Some(FrozenWindow { column: "at".into(), start_micros: 0, end_micros: 1 });
    assert_eq!(window.check(RAW, Action::Resume, true), refused(code::SOURCE_SNAPSHOT_BINDING_INVALID));
    let mut fingerprint = run(None);
    fingerprint.plan.window_fingerprint = "other".into();
    assert_eq!(fingerprint.check(RAW, Action::Resume, true), refused(code::SOURCE_SNAPSHOT_BINDING_INVALID));
    let mut schema = run(None);
    schema.plan.schema_fingerprint = "other".into();
    assert_eq!(schema.check(RAW, Action::Resume, true), refused(code::SOURCE_SNAPSHOT_SCHEMA_CHANGED));
}
