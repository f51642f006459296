//! The forms between operator and worker: what is written is read back, and nothing else is read.

use contract::canon::Json;
use contract::digest::Digest;
use contract::error::Refusal;
use contract::manifest;
use contract::raw::eof::EofDescriptor;
use contract::worker::{
    CustodyWord, Exit, FrozenPlan, LINE_BYTES_MAX, MANIFEST_BYTES_MAX, MESSAGE_BYTES_MAX, NoReceipt,
    PROGRESS_BYTES_MAX, Phase, Progress, Receipt, RunTag, Stage, StateWord,
};
use proptest::prelude::*;

fn digest() -> impl Strategy<Value = Digest> {
    any::<[u8; 32]>().prop_map(Digest::from_bytes)
}

fn eof() -> impl Strategy<Value = EofDescriptor> {
    (".{1,40}", any::<u64>(), digest(), digest(), digest())
        .prop_map(|(id, rows, coverage, before, after)| EofDescriptor::seal(&id, rows, coverage, before, after))
}

fn word<W: Copy + std::fmt::Debug + 'static>(all: &'static [W]) -> impl Strategy<Value = W> {
    prop::sample::select(all)
}

/// Any receipt whose parts agree.
fn receipt() -> impl Strategy<Value = Receipt> {
    let head = (
        word(Phase::ALL),
        prop::sample::select(Exit::ALL.to_vec()),
        prop::option::of(word(StateWord::ALL)),
        prop::option::of("[a-z_]{1,20}\\.[a-z_]{1,40}(:[a-zA-Z_.]{1,30})?"),
        "\\PC{1,60}",
        any::<bool>(),
        prop::option::of(any::<u64>()),
        prop::option::of(any::<u64>()),
        word(CustodyWord::ALL),
    );
    let tail = (
        prop::option::of(digest()),
        prop::option::of(digest()),
        prop::option::of("mssql-generic-v1:[0-9a-f]{64}"),
        prop::option::of("2026-[0-9]{2}-[0-9]{2}T12:00:00\\.[0-9]{7}Z"),
        prop::option::of(digest()),
        prop::option::of(digest()),
        prop::option::of(eof()),
    );
    (head, tail)
        .prop_map(|(head, tail)| {
            let (phase, exit, state, code, run, attempt_closed, epoch, rows, custody) = head;
            let (target, workload, receipt_id, committed_at, evidence, plan, eof) = tail;
            let run = RunTag::of(&run);
            Receipt {
                phase,
                exit,
                state,
                code,
                run,
                attempt_closed,
                epoch,
                rows,
                custody,
                target,
                workload,
                receipt_id,
                committed_at,
                evidence,
                plan,
                eof,
            }
        })
        .prop_filter("its parts agree", Receipt::agrees_with_itself)
}

/// The longest receipt there can be.
fn longest() -> Receipt {
    let digest = Digest::of(b"x");
    Receipt {
        phase: Phase::Publish,
        exit: Exit::Kept,
        state: Some(StateWord::OutcomeUnknown),
        code: Some("c".repeat(96)),
        run: RunTag::of("run"),
        attempt_closed: false,
        epoch: Some(u64::MAX),
        rows: Some(u64::MAX),
        custody: CustodyWord::Released,
        target: Some(digest),
        workload: Some(digest),
        receipt_id: Some("r".repeat(96)),
        committed_at: Some("t".repeat(40)),
        evidence: Some(digest),
        plan: Some(digest),
        eof: Some(EofDescriptor::seal("q", u64::MAX, digest, digest, Digest::of(b"y"))),
    }
}

#[test]
fn the_longest_receipt_keeps_its_bounds() {
    let message = longest().encode();
    assert!(message.lines().next().unwrap().len() <= LINE_BYTES_MAX, "{}", message.lines().next().unwrap().len());
    assert!(message.len() <= MESSAGE_BYTES_MAX, "{}", message.len());
    assert_eq!(Receipt::parse(&message, &RunTag::of("run")), Ok(longest()));
}

#[test]
fn a_detail_that_does_not_fit_is_left_out_and_the_code_stays() {
    for detail in ["x".repeat(97), "näme".to_owned(), "a\"b".to_owned(), "a\nb".to_owned()] {
        let given = Receipt { code: Some(format!("native_transfer.unknown_key:{detail}")), ..longest() };
        let read = Receipt::parse(&given.encode(), &given.run).unwrap();
        assert_eq!(read.code.as_deref(), Some("native_transfer.unknown_key"));
    }
}

#[test]
fn what_is_no_receipt_is_named() {
    let run = RunTag::of("run");
    let message = longest().encode();
    let (first, second) = message.split_once('\n').unwrap();
    let cases: [(String, NoReceipt); 14] = [
        (String::new(), NoReceipt::Missing),
        ("\n".into(), NoReceipt::Foreign),
        ("panicked at src/main.rs".into(), NoReceipt::Foreign),
        ("{}".into(), NoReceipt::Foreign),
        ("{".into(), NoReceipt::Cut),
        (first.into(), NoReceipt::Cut),
        (format!("{first}\n"), NoReceipt::Cut),
        (format!("{message}\n"), NoReceipt::Foreign),
        (format!("{first}\n{{}}"), NoReceipt::Foreign),
        (format!("{first} \n{second}"), NoReceipt::Foreign),
        (message.replace("receipt.v1", "receipt.v2"), NoReceipt::Foreign),
        (message.replacen('{', "{\"a\":1,", 1), NoReceipt::Foreign),
        (message.replace("\"exit_code\":3", "\"exit_code\":2"), NoReceipt::Foreign),
        (format!("{message}{}", " ".repeat(MESSAGE_BYTES_MAX)), NoReceipt::Foreign),
    ];
    for (message, expected) in cases {
        assert_eq!(Receipt::parse(&message, &run), Err(expected), "{message}");
    }
    assert_eq!(Receipt::parse(&message, &RunTag::of("other")), Err(NoReceipt::OtherRun));
}

#[test]
fn exit_state_and_code_must_agree() {
    let done = Receipt { exit: Exit::Done, state: Some(StateWord::Succeeded), code: None, ..longest() };
    assert!(done.agrees_with_itself());
    let cases = [
        Receipt { state: Some(StateWord::Failed), ..done.clone() },
        Receipt { state: Some(StateWord::StageComplete), ..done.clone() },
        Receipt { state: None, ..done.clone() },
        Receipt { code: Some("native_transfer.x".into()), ..done.clone() },
        Receipt { exit: Exit::Kept, ..done.clone() },
        Receipt { exit: Exit::Refused, code: Some("c".into()), ..done.clone() },
        Receipt { exit: Exit::Reextract, code: Some("c".into()), ..done },
    ];
    for receipt in cases {
        assert_eq!(Receipt::parse(&receipt.encode(), &receipt.run), Err(NoReceipt::Foreign), "{receipt:?}");
    }
}

const MANIFEST: &str = r#"{"source":{"type":"clickhouse","table":{"schema":"air","name":"flights"},"options":{
  "native_transfer":{"wire":{"mode":"typed_binary","binary_format":"mssql_native"},"execution":{
  "import_backend":"mssql_sqlclient","verification_backend":"target_local","chunking":{"mode":"bounded_stream"},
  "native_chunks":{"max_total_encoded_bytes":1073741824,"stage_allocated_bytes_stop_threshold":10737418240}}}}},
  "sink":{"type":"mssql","table":{"schema":"dbo","name":"flights"},"strategy":{"mode":"full_refresh"}}}"#;

fn manifest() -> Json {
    Json::try_from(&serde_json::from_str::<serde_json::Value>(MANIFEST).unwrap()).unwrap()
}

fn code<T: std::fmt::Debug>(result: Result<T, Refusal>) -> String {
    result.unwrap_err().code.as_str().to_owned()
}

#[test]
fn a_frozen_plan_is_the_plan_of_the_command_line() {
    let end = Some("2013-07-05T00:00:00Z");
    let frozen = FrozenPlan::new("analytics", "flights", &manifest(), end).unwrap();
    assert!(
        frozen.text().starts_with(r#"{"apiVersion":"transfer.dpone.io/v1alpha1","kind":"NativeTransfer","metadata":{"#)
    );
    assert_eq!(frozen.sha256(), Digest::of(frozen.text().as_bytes()));
    assert_eq!(FrozenPlan::parse(frozen.text().as_bytes()), Ok(frozen.clone()));
    assert_eq!((frozen.namespace(), frozen.name(), frozen.interval_end()), ("analytics", "flights", end));
    let yaml = format!(
        "apiVersion: transfer.dpone.io/v1alpha1\nkind: NativeTransfer\nmetadata: {{name: flights, namespace: analytics}}\n\
         spec:\n  interval: {{end: \"2013-07-05T00:00:00Z\"}}\n  run: {{token: \"1\"}}\n  manifest: {MANIFEST}\n"
    );
    let (ours, theirs) = (frozen.plan().unwrap(), manifest::parse(&yaml, None, None).unwrap());
    assert_eq!(ours.route_fingerprint(), theirs.route_fingerprint());
}

#[test]
fn a_frozen_plan_refuses_what_does_not_travel() {
    let text = |bytes: usize| Json::object([("source", Json::from("x".repeat(bytes)))]);
    let frame = "{\"source\":\"\"}".len();
    assert!(FrozenPlan::new("n", "t", &text(MANIFEST_BYTES_MAX - frame), None).is_ok());
    let too_large = FrozenPlan::new("n", "t", &text(MANIFEST_BYTES_MAX - frame + 1), None);
    assert_eq!(code(too_large), "native_transfer.frozen_plan_too_large");
    let one = |value: Json| Json::object([("source", value)]);
    let invalid = [
        FrozenPlan::new("n", "t", &Json::Null, None),
        FrozenPlan::new("n", "t", &Json::array(["a"]), None),
        FrozenPlan::new("", "t", &manifest(), None),
        FrozenPlan::new("n", "", &manifest(), None),
        FrozenPlan::new(&"n".repeat(254), "t", &manifest(), None),
        FrozenPlan::new("n", "t", &manifest(), Some(&"9".repeat(65))),
        FrozenPlan::new("n", "t", &one(Json::from(u128::MAX)), None),
        FrozenPlan::new("n", "t", &one(Json::from("a\u{7f}b")), None),
    ];
    for plan in invalid {
        assert_eq!(code(plan), "native_transfer.frozen_plan_invalid");
    }
}

#[test]
fn a_changed_frozen_plan_is_not_read() {
    let frozen = FrozenPlan::new("n", "t", &manifest(), None).unwrap();
    let text = frozen.text();
    let changed = [
        format!(" {text}"),
        format!("{text}\n"),
        text.replace("\"spec\":{", "\"spec\":{\"suspend\":true,"),
        text.replace("v1alpha1", "v1"),
        text.replace("\"namespace\":\"n\"", "\"namespace\":null"),
        text[..text.len() - 1].to_owned(),
        String::new(),
    ];
    for text in changed {
        assert_eq!(code(FrozenPlan::parse(text.as_bytes())), "native_transfer.frozen_plan_invalid", "{text}");
    }
}

fn progress() -> impl Strategy<Value = Progress> {
    let counters = (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>());
    ("[0-9a-f-]{1,64}", "\\PC{1,60}", prop::option::of(any::<u64>()), any::<u64>(), word(Stage::ALL), counters)
        .prop_map(
            |(pod_uid, run, attempt, epoch, stage, (rows_read, bytes_encoded, chunks_sealed, chunks_verified))| {
                Progress {
                    pod_uid,
                    run: RunTag::of(&run),
                    attempt,
                    epoch,
                    stage,
                    rows_read,
                    bytes_encoded,
                    chunks_sealed,
                    chunks_verified,
                }
            },
        )
}

#[test]
fn foreign_answers_are_no_progress() {
    let run = RunTag::of("run");
    let ours = Progress {
        pod_uid: "uid".into(),
        run: run.clone(),
        attempt: Some(1),
        epoch: 3,
        stage: Stage::Extracting,
        rows_read: 1,
        bytes_encoded: 2,
        chunks_sealed: 3,
        chunks_verified: 4,
    };
    let text = ours.encode();
    assert_eq!(Progress::parse(text.as_bytes(), "uid", &run), Some(ours));
    let others = [
        (text.clone(), "other", run.clone()),
        (text.clone(), "uid", RunTag::of("other")),
        (text.replace("progress.v1", "progress.v2"), "uid", run.clone()),
        (text.replace("\"epoch\":3", "\"epoch\":-3"), "uid", run.clone()),
        (text.replace("\"attempt\":1", "\"attempt\":\"1\""), "uid", run.clone()),
        (text.replace("extracting", "extracted"), "uid", run.clone()),
        (format!("{text}{}", " ".repeat(PROGRESS_BYTES_MAX)), "uid", run.clone()),
        ("<html>".into(), "uid", run),
    ];
    for (text, pod, run) in others {
        assert_eq!(Progress::parse(text.as_bytes(), pod, &run), None, "{text}");
    }
}

proptest! {
    #[test]
    fn a_receipt_is_read_back(receipt in receipt()) {
        let message = receipt.encode();
        prop_assert!(message.len() <= MESSAGE_BYTES_MAX);
        prop_assert!(message.lines().all(|line| line.len() <= LINE_BYTES_MAX));
        prop_assert_eq!(Receipt::parse(&message, &receipt.run), Ok(receipt));
    }

    #[test]
    fn a_receipt_cut_at_any_length_is_none(receipt in receipt()) {
        let message = receipt.encode();
        for length in 1..message.len() {
            prop_assert_eq!(Receipt::parse(&message[..length], &receipt.run), Err(NoReceipt::Cut), "{}", length);
        }
    }

    #[test]
    fn a_receipt_with_a_changed_byte_is_none_or_another_one(receipt in receipt(), at in any::<prop::sample::Index>(), byte in b' '..=b'~') {
        let message = receipt.encode();
        let mut bytes = message.clone().into_bytes();
        let at = at.index(bytes.len());
        prop_assume!(bytes[at] != byte);
        bytes[at] = byte;
        let changed = String::from_utf8(bytes).unwrap();
        if let Ok(read) = Receipt::parse(&changed, &receipt.run) {
            prop_assert_eq!(read.encode(), changed);
            prop_assert_ne!(read, receipt);
        }
    }

    #[test]
    fn no_message_makes_a_parser_panic(text in "\\PC{0,200}", bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let run = RunTag::of("run");
        prop_assert!(Receipt::parse(&text, &run).is_err());
        prop_assert!(FrozenPlan::parse(&bytes).is_err());
        prop_assert_eq!(Progress::parse(&bytes, "uid", &run), None);
    }

    #[test]
    fn progress_is_read_back_and_never_cut(progress in progress()) {
        let text = progress.encode();
        prop_assert!(text.len() <= PROGRESS_BYTES_MAX / 4);
        for length in 0..text.len() {
            prop_assert_eq!(Progress::parse(&text.as_bytes()[..length], &progress.pod_uid, &progress.run), None);
        }
        prop_assert_eq!(Progress::parse(text.as_bytes(), &progress.pod_uid, &progress.run), Some(progress));
    }

    #[test]
    fn any_manifest_travels_unchanged_or_is_refused(text in "\\PC{0,40}", raw in any::<String>(), number in any::<f64>(), integer in any::<i64>()) {
        let number = contract::canon::Finite::new(number).map_or(Json::Null, Json::Float);
        let manifest = Json::object([
            ("source", Json::object([("a", Json::from(&text)), ("b", Json::from(&raw)), (raw.as_str(), Json::from(integer))])),
            ("sink", Json::Array(vec![number, Json::Null, Json::from(true)])),
        ]);
        match FrozenPlan::new("n", "t", &manifest, None) {
            Ok(plan) => {
                let read = contract::manifest::processes(plan.text()).unwrap();
                prop_assert_eq!(&read[0].manifest, &manifest);
                prop_assert_eq!(FrozenPlan::parse(plan.text().as_bytes()), Ok(plan));
            }
            Err(refusal) => prop_assert_eq!(refusal.code.as_str(), "native_transfer.frozen_plan_invalid"),
        }
    }
}
