//! No text or document from outside makes a parser of the contract panic.

use contract::canon::{Json, decode_object};
use contract::completion::ChunkReceipt;
use contract::custody::CustodyRecord;
use contract::digest::Digest;
use contract::identity::VerificationIdentity;
use contract::names::{is_qualified_stage, qualified_stage};
use contract::port::source::ReplicaScope;
use contract::raw::eof::EofDescriptor;
use contract::raw::marker::SourceBinding;
use contract::raw::parts::PartRow;
use contract::raw::profile::RawProfile;
use contract::raw::{bounds, engine, extension, selector};
use contract::recovery::plan::{PlanWindow, RecoveryPlan};
use contract::transfer::TransferEvent;
use contract::transfer::run::RunState;
use proptest::prelude::*;

/// Documents of the shapes that records have, with keys that the readers look for.
fn any_document() -> impl Strategy<Value = Json> {
    let key = prop::sample::select(vec![
        "kind",
        "schema_version",
        "event",
        "window",
        "start",
        "end",
        "column",
        "rows",
        "profile",
        "source_eof",
        "state",
        "epoch",
        "facts",
        "schema",
        "read_settings",
        "ordered_schema",
        "name",
        "mode",
        "source_snapshot",
        "replica_scope",
    ]);
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<u128>().prop_map(Json::from),
        "[a-f0-9]{64}".prop_map(Json::from),
        "\\PC{0,20}".prop_map(Json::from),
        prop::sample::select(vec!["held", "clear", "exact_raw_rows", "2026-09-30T00:00:00Z"]).prop_map(Json::from),
    ];
    leaf.prop_recursive(4, 48, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Json::Array),
            prop::collection::btree_map(key.clone().prop_map(str::to_owned), inner, 0..8).prop_map(Json::Object),
        ]
    })
}

proptest! {
    #[test]
    fn documents(document in any_document(), completed in any_document()) {
        let _ = bounds::check(&document);
        let _ = RawProfile::from_document(&document);
        let _ = EofDescriptor::from_document(&document);
        let _ = extension::restore(&document, "clickhouse.raw-query.v1:", &completed);
        let _ = selector::select(Some(&document));
        let _ = PartRow::from_document(&document);
        let _ = CustodyRecord::from_document(&document);
        let _ = ChunkReceipt::from_document(&document);
        let _ = VerificationIdentity::from_document(&document);
        let _ = PlanWindow::from_document(&document);
        let _ = TransferEvent::from_document(&document);
    }

    #[test]
    fn texts(text in "\\PC{0,60}") {
        let _ = SourceBinding::parse(&text);
        let _ = is_qualified_stage(&text);
        for payload in [text.as_bytes(), b"{}"] {
            let _ = RecoveryPlan::decode(payload, Digest::of(payload));
            let _ = CustodyRecord::decode(payload);
            let _ = decode_object(payload);
        }
        for kind in ["identity", "recovery_plan", "transfer_event", "writer_event", "completion", &text] {
            let _ = RunState::default().apply(kind, &text);
        }
    }

    #[test]
    fn engine_texts(arguments in r"[()'`, \\a-z0-9\n]{0,40}") {
        let full = format!("ReplicatedReplacingMergeTree{arguments}");
        let _ = engine::signature("ReplicatedReplacingMergeTree", &full, ReplicaScope::ConnectedReplica);
    }

    #[test]
    fn any_table_name_can_be_quoted(database in "[^\\x00-\\x1f]{1,10}", table in "[^\\x00-\\x1f]{1,10}") {
        prop_assert!(is_qualified_stage(&qualified_stage(Some(&database), &table, &table)));
        prop_assert!(is_qualified_stage(&qualified_stage(None, &database, &table)));
    }

    #[test]
    fn times_of_stored_windows(start in r"[0-9TZ:+\-., ]{0,32}", end in "\\PC{0,32}") {
        let window = Json::object([("column", "a".into()), ("start", start.into()), ("end", end.into())]);
        let _ = PlanWindow::from_document(&window);
    }
}
