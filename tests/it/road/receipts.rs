//! What a phase leaves for an operator: the receipt of every end, the same facts from `inspect`, and progress on the way
//! (docs/internals/operator.md). The shipped binary runs as a worker pod runs it.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use contract::digest::Digest;
use contract::raw::eof::EofDescriptor;
use contract::worker::{CustodyWord, Exit, FrozenPlan, NoReceipt, Phase, Progress, Receipt, RunTag, Stage, StateWord};
use rustix::process::{Pid, Signal, kill_process};
use servers::sqlserver::control::{Breakpoint, Then, When};

use super::kit::{Ended, FULL_REFRESH, RAW, Road, VISIBLE, binary, manifest};

const RUN: &str = "0b1e-uid/1/1";
const COMMIT: &str = "COMMIT TRANSACTION;";

/// A road with a frozen plan, as an operator makes it of a resource.
struct Worker {
    road: Road,
    plan: FrozenPlan,
    file: PathBuf,
}

impl Worker {
    fn new(name: &str, mode: &str) -> Worker {
        let mut road = Road::new(name);
        // Raw snapshots are of tables that keep row versions.
        road.flights(if mode == RAW { "ReplacingMergeTree" } else { "MergeTree" }, 100);
        road.plant(-1, "2001-01-01");
        let (plan, file) = frozen(&road, &manifest(name, mode, FULL_REFRESH), "plan");
        Worker { road, plan, file }
    }

    fn receipt_file(&self) -> PathBuf {
        self.road.path().join("termination-log")
    }

    fn command(&self, verb: &str) -> Command {
        let mut command = self.road.command(verb, &self.file, RUN);
        command.arg("--plan-sha256").arg(self.plan.sha256().to_string());
        command.arg("--receipt").arg(self.receipt_file());
        command
    }

    fn start(&self, verb: &str) -> Child {
        self.command(verb).spawn().expect("the product starts")
    }

    /// The receipt of an ended process: its exit code is the process's.
    fn receipt(&self, ended: &Ended) -> Receipt {
        let message = fs::read_to_string(self.receipt_file()).expect("a receipt");
        let receipt =
            Receipt::parse(&message, &RunTag::of(RUN)).unwrap_or_else(|no| panic!("{no}: {message} {ended:?}"));
        assert_eq!(Some(i32::from(receipt.exit.code())), ended.code, "{receipt:?} {ended:?}");
        receipt
    }

    fn phase(&self, verb: &str) -> Receipt {
        let ended = Ended::of(self.start(verb));
        self.receipt(&ended)
    }

    /// Runs a command with its last words.
    fn run(&self, mut command: Command) -> (Receipt, Ended) {
        let ended = Ended::of(command.spawn().expect("the product starts"));
        (self.receipt(&ended), ended)
    }

    fn inspect(&self) -> Receipt {
        let mut command = Command::new(binary());
        command.args(["inspect", "--output", "json", "--run-id", RUN, "--journal-root"]).arg(self.road.journal());
        command.arg("--receipt").arg(self.receipt_file()).stdout(Stdio::piped()).stderr(Stdio::piped());
        self.run(command).0
    }

    /// Holds `verb` at a moment of the target.
    fn held(&mut self, verb: &str, breakpoint: Breakpoint) -> (Child, u64) {
        let id = self.road.target.control.set(breakpoint).expect("armed");
        let mut child = self.start(verb);
        if let Err(error) = self.road.target.control.wait(id) {
            let _ = child.kill();
            panic!("the moment did not come: {error}: {:?}", Ended::of(child));
        }
        (child, id)
    }

    fn release(&mut self, id: u64, then: Then) {
        self.road.target.control.release(id, then).expect("it is held");
    }
}

/// The frozen plan of a resource, and the file that a downwardAPI volume makes of it.
fn frozen(road: &Road, text: &str, name: &str) -> (FrozenPlan, PathBuf) {
    let process = contract::manifest::processes(text).expect("a resource").remove(0);
    let plan =
        FrozenPlan::new("analytics", name, &process.manifest, process.interval_end.as_deref()).expect("it travels");
    let file = road.path().join(format!("{name}.json"));
    fs::write(&file, plan.text()).expect("a file");
    (plan, file)
}

fn terminate(child: &Child) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a pid");
    kill_process(pid, Signal::TERM).expect("it runs");
}

/// The parts of a receipt that a phase does not change.
fn facts(receipt: &Receipt) -> impl PartialEq + std::fmt::Debug + use<> {
    let text = (receipt.receipt_id.clone(), receipt.committed_at.clone());
    (receipt.rows, receipt.target, receipt.workload, receipt.plan, receipt.eof.clone(), text, receipt.evidence)
}

fn told(receipt: &Receipt) -> (Phase, u8, Option<StateWord>, CustodyWord, bool) {
    (receipt.phase, receipt.exit.code(), receipt.state, receipt.custody, receipt.attempt_closed)
}

#[test]
fn each_phase_leaves_its_receipt_and_inspect_says_the_same() {
    use {CustodyWord as C, Phase as P, StateWord as S};
    let mut worker = Worker::new("receipts", RAW);
    let admitted = worker.phase("admit");
    assert_eq!(told(&admitted), (P::Admit, 0, Some(S::Planned), C::None, false));
    assert_eq!((admitted.epoch, admitted.rows, admitted.plan), (Some(1), None, Some(worker.plan.sha256())));
    let looked = worker.inspect();
    assert_eq!(told(&looked), (P::Inspect, 0, Some(S::Planned), C::None, false));
    assert_eq!((facts(&looked), looked.epoch), (facts(&admitted), Some(1)), "inspect raises nothing");

    let sealed = worker.phase("extract");
    assert_eq!(told(&sealed), (P::Extract, 0, Some(S::StageComplete), C::Held, false));
    assert_eq!((sealed.rows, sealed.target, sealed.epoch), (Some(100), admitted.target, Some(2)));
    assert_eq!(sealed.eof.as_ref().map(|eof: &EofDescriptor| eof.rows.to_string()).as_deref(), Some("100"));
    assert!(sealed.workload.is_some() && sealed.receipt_id.is_none() && sealed.evidence.is_none(), "{sealed:?}");
    let again = worker.phase("extract");
    assert_eq!((told(&again), facts(&again), again.epoch), (told(&sealed), facts(&sealed), Some(3)));
    let looked = worker.inspect();
    assert_eq!(told(&looked), (P::Inspect, 0, Some(S::StageComplete), C::Held, false));
    assert_eq!((facts(&looked), looked.epoch), (facts(&sealed), Some(3)));

    let published = worker.phase("publish");
    assert_eq!(told(&published), (P::Publish, 0, Some(S::Succeeded), C::Released, true));
    assert_eq!((published.rows, published.workload, &published.eof), (sealed.rows, sealed.workload, &sealed.eof));
    let row = worker.road.target.value("SELECT receipt_id FROM dpone.dpone_load_receipt");
    assert_eq!(published.receipt_id.as_deref(), Some(row.as_str()));
    let evidence = worker.road.target.value("SELECT document FROM dpone.native_transfer_evidence");
    assert_eq!(published.evidence, Some(Digest::of(evidence.as_bytes())), "the row that stands in the target");
    let evidence: serde_json::Value = serde_json::from_str(&evidence).expect("a document");
    let native = &evidence["native_transfer_v1"];
    assert_eq!(native["typed_digest"].as_str(), published.workload.map(|digest| digest.to_string()).as_deref());
    assert_eq!(native["committed_at"].as_str(), published.committed_at.as_deref());
    for verb in ["publish", "extract"] {
        let again = worker.phase(verb);
        assert_eq!(
            (again.exit, again.state, facts(&again)),
            (Exit::Done, Some(S::Succeeded), facts(&published)),
            "{verb}"
        );
    }
    let looked = worker.inspect();
    assert_eq!(told(&looked), (P::Inspect, 0, Some(S::Succeeded), C::Released, true));
    assert_eq!((facts(&looked), looked.code), (facts(&published), None));
    assert_eq!(worker.road.target_content(), worker.road.source_content());
}

/// Two resources that name one table get one target identity, before and after its registry row exists; and the same
/// manifest from the command line gives the same workload.
#[test]
fn target_and_workload_do_not_depend_on_who_asks() {
    let name = "receipt_identity";
    let mut worker = Worker::new(name, VISIBLE);
    let before = worker.phase("admit").target.expect("an identity");
    let first = worker.phase("extract");
    assert_eq!((worker.phase("publish").state, first.target), (Some(StateWord::Succeeded), Some(before)));
    let text = manifest(name, VISIBLE, FULL_REFRESH).replace("schema: dbo", "schema: DBO");
    (worker.plan, worker.file) = frozen(&worker.road, &text, "another");
    fs::remove_dir_all(worker.road.journal()).expect("another volume");
    assert_eq!(worker.phase("admit").target, Some(before));

    let manifest = worker.road.manifest(&manifest(name, VISIBLE, FULL_REFRESH));
    let cli = worker.road.run(&manifest, "cli");
    assert_eq!(cli.code, Some(0), "{cli:?}");
    let mut look = Command::new(binary());
    look.args(["inspect", "--run-id", "cli", "--journal-root"]).arg(worker.road.journal());
    look.arg("--receipt").arg(worker.receipt_file()).stdout(Stdio::null());
    assert!(look.status().expect("the product starts").success());
    let message = fs::read_to_string(worker.receipt_file()).expect("a receipt");
    let cli = Receipt::parse(&message, &RunTag::of("cli")).expect("a receipt");
    assert_eq!((cli.workload, cli.rows, cli.plan), (first.workload, first.rows, None));
}

#[test]
fn a_terminated_extraction_is_settled_and_says_so() {
    let mut worker = Worker::new("receipt_term", VISIBLE);
    let old = worker.road.target_content();
    let (child, id) = worker.held("extract", Breakpoint::hold("", When::Rows(10)).on_bulk().nth(2));
    terminate(&child);
    worker.release(id, Then::GoOn);
    let ended = Ended::of(child);
    let receipt = worker.receipt(&ended);
    let settled = (Phase::Extract, 4, Some(StateWord::ReextractRequired), CustodyWord::Released, true);
    assert_eq!((told(&receipt), receipt.code.as_deref()), (settled, Some("native_transfer.cancelled")));
    assert_eq!(worker.road.target_content(), old);
    let looked = worker.inspect();
    assert_eq!((looked.state, looked.code, looked.attempt_closed), (receipt.state, receipt.code, true));
    assert_eq!(told(&worker.phase("extract")), settled, "and says it again");
}

/// A process that was killed leaves no receipt; the journal tells what it would have told, and the next try settles.
#[test]
fn a_killed_extraction_is_told_by_inspect_and_settled_by_the_next_try() {
    let mut worker = Worker::new("receipt_kill", VISIBLE);
    let (mut child, id) = worker.held("extract", Breakpoint::hold("", When::Rows(10)).on_bulk().nth(2));
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let message = fs::read_to_string(worker.receipt_file()).expect("the file is there");
    assert_eq!(Receipt::parse(&message, &RunTag::of(RUN)), Err(NoReceipt::Missing));
    worker.release(id, Then::DropConnection);
    let looked = worker.inspect();
    assert_eq!(told(&looked), (Phase::Inspect, 0, Some(StateWord::Extracting), CustodyWord::Held, false));
    assert_eq!((looked.rows, looked.workload, looked.plan), (None, None, Some(worker.plan.sha256())));
    let settled = worker.phase("extract");
    assert_eq!((settled.exit, settled.target), (Exit::Reextract, looked.target));
    assert_eq!(settled.code.as_deref(), Some("mssql_native.pre_eof_reextract_required"));
    let looked = worker.inspect();
    assert_eq!((looked.state, looked.attempt_closed), (Some(StateWord::ReextractRequired), true));
}

#[test]
fn an_admission_that_is_asked_to_stop_does_not_wait_for_a_silent_server() {
    let mut worker = Worker::new("receipt_admit", VISIBLE);
    let (child, id) = worker.held("extract", Breakpoint::hold("", When::Before).of("native-transfer observe"));
    terminate(&child);
    let ended = Ended::of(child);
    let receipt = worker.receipt(&ended);
    assert_eq!(told(&receipt), (Phase::Extract, 1, Some(StateWord::Failed), CustodyWord::None, false));
    assert_eq!(receipt.code.as_deref(), Some("native_transfer.cancelled"));
    worker.release(id, Then::DropConnection);
    assert_eq!(worker.phase("extract").state, Some(StateWord::StageComplete), "the same run goes on");
}

/// Before the transaction a stop ends the process at once, with the stages kept.
#[test]
fn a_publication_that_is_asked_to_stop_while_it_prepares_keeps_what_is_sealed() {
    let mut worker = Worker::new("receipt_prepare", VISIBLE);
    let old = worker.road.target_content();
    let sealed = worker.phase("extract");
    let prepare = Breakpoint::hold("INSERT INTO", When::After).of("native-transfer prepare");
    let (child, id) = worker.held("publish", prepare);
    terminate(&child);
    let ended = Ended::of(child);
    let receipt = worker.receipt(&ended);
    assert_eq!(told(&receipt), (Phase::Publish, 3, Some(StateWord::StageComplete), CustodyWord::Held, false));
    assert_eq!((receipt.code.as_deref(), facts(&receipt)), (Some("native_transfer.cancelled"), facts(&sealed)));
    worker.release(id, Then::DropConnection);
    assert_eq!(worker.road.target_content(), old);
    assert_eq!(worker.phase("publish").state, Some(StateWord::Succeeded));
    assert_eq!(worker.road.target_content(), worker.road.source_content());
}

/// Inside the transaction a stop is not heard: the outcome becomes known.
#[test]
fn a_publication_that_is_asked_to_stop_in_its_transaction_is_finished() {
    let mut worker = Worker::new("receipt_commit", VISIBLE);
    worker.phase("extract");
    let commit = Breakpoint::hold(COMMIT, When::Before).whole().of("native-transfer publish");
    let (child, id) = worker.held("publish", commit);
    terminate(&child);
    worker.release(id, Then::GoOn);
    let ended = Ended::of(child);
    let receipt = worker.receipt(&ended);
    assert_eq!(told(&receipt), (Phase::Publish, 0, Some(StateWord::Succeeded), CustodyWord::Released, true));
    assert_eq!(worker.road.target.value("SELECT COUNT(*) FROM dpone.dpone_load_receipt"), "1");
    assert_eq!(worker.road.target_content(), worker.road.source_content());
}

#[test]
fn an_epoch_floor_is_kept_and_an_absurd_one_refused() {
    let worker = Worker::new("receipt_epoch", VISIBLE);
    let admit = |floor: &str| {
        let mut command = worker.command("admit");
        command.args(["--epoch-floor", floor]);
        worker.run(command).0
    };
    assert_eq!(admit("40").epoch, Some(41));
    assert_eq!(admit("7").epoch, Some(42));
    assert_eq!(worker.inspect().epoch, Some(42));
    let refused = admit("18446744073709551615");
    assert_eq!(refused.code.as_deref(), Some("native_transfer.epoch_floor_invalid"));
    assert_eq!(worker.phase("admit").epoch, Some(43), "the refused one raised nothing");
}

/// Ends before there is a journal to look at: exit 1, a code, and nothing said about the run.
#[test]
fn a_process_that_may_not_begin_leaves_a_receipt_too() {
    let worker = Worker::new("receipt_early", VISIBLE);
    let early = |command: Command, code: &str| {
        let (receipt, ended) = worker.run(command);
        assert_eq!(told(&receipt), (Phase::Extract, 1, None, CustodyWord::Unknown, false), "{ended:?}");
        assert_eq!((receipt.code.as_deref(), receipt.epoch), (Some(code), None), "{ended:?}");
        assert_eq!(ended.refusal(), code);
        receipt
    };
    let mut command = worker.road.command("extract", &worker.file, RUN);
    command.arg("--plan-sha256").arg("0".repeat(64)).arg("--receipt").arg(worker.receipt_file());
    let mismatch = early(command, "native_transfer.plan_digest_mismatch");
    assert_eq!(mismatch.plan, None, "an unchecked digest is not repeated");

    let on = |journal: &Path| {
        let mut command = worker.road.command_with("extract", &worker.file, RUN, journal);
        command.arg("--receipt").arg(worker.receipt_file());
        command
    };
    early(on(&worker.file.join("below-a-file")), "native_transfer.journal_unavailable");
    let foreign = worker.road.path().join("foreign");
    fs::create_dir(&foreign).expect("a folder");
    fs::write(foreign.join("journal.sqlite"), "a text of a person, and long enough to be looked at").expect("a file");
    early(on(&foreign), "native_transfer.journal_unavailable");

    worker.road.set("target", "port", b"none");
    let refused = early(worker.command("extract"), "native_transfer.connection_invalid:target.port");
    assert_eq!(refused.plan, Some(worker.plan.sha256()));
    assert!(!worker.road.journal().exists(), "nothing was begun");

    let looked = worker.inspect();
    assert_eq!((looked.exit, looked.state), (Exit::Refused, None));
    assert_eq!(looked.code.as_deref(), Some("mssql_native.recovery_journal_unavailable"));

    let mut command = worker.road.command("extract", &worker.file, RUN);
    command.arg("--receipt").arg(worker.file.join("below-a-file"));
    let ended = Ended::of(command.spawn().expect("the product starts"));
    assert_eq!((ended.code, ended.refusal().as_str()), (Some(1), "native_transfer.receipt_unwritable"));
}

/// The volume of the journal is full in the middle of extraction: nothing can be settled, so everything is kept, and a
/// later try with room settles.
#[test]
fn a_full_journal_volume_is_told_and_kept() {
    let worker = Worker::new("receipt_full", VISIBLE);
    assert_eq!(worker.phase("admit").state, Some(StateWord::Planned));
    let size = fs::metadata(worker.road.journal().join("journal.sqlite")).expect("a journal").len();
    // A limit on file sizes is a full volume for the one file that grows; its signal is ignored, as on a volume.
    let mut command = Command::new("prlimit");
    command.arg(format!("--fsize={}", size + 24 * 1024)).args(["sh", "-c", "trap '' XFSZ; exec \"$@\"", "sh"]);
    let worker_command = worker.command("extract");
    command.arg(worker_command.get_program()).args(worker_command.get_args());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let (receipt, ended) = worker.run(command);
    assert_eq!(receipt.code.as_deref(), Some("native_transfer.journal_unavailable"), "{ended:?}");
    assert!(!receipt.attempt_closed, "{receipt:?}");
    let looked = worker.inspect();
    assert_eq!((looked.custody, looked.attempt_closed), (receipt.custody, false), "{receipt:?}");
    let settled = worker.phase("extract");
    assert!(settled.attempt_closed || settled.exit == Exit::Done, "{settled:?}");
}

/// Progress is served while the run is held up; it answers what was asked for and nothing else.
#[test]
fn progress_is_read_while_extraction_is_held() {
    let mut worker = Worker::new("receipt_progress", VISIBLE);
    let uid = worker.road.path().join("uid");
    fs::write(&uid, "pod-uid-1").expect("a file");
    let id = worker.road.target.control.set(Breakpoint::hold("", When::Rows(10)).on_bulk().nth(2)).expect("armed");
    let mut command = worker.command("extract");
    command.args(["--progress-listen", "127.0.0.1:0", "--progress-identity-file"]).arg(&uid);
    let mut child = command.spawn().expect("the product starts");
    let address = progress_address(&mut child);
    worker.road.target.control.wait(id).expect("the moment comes");
    let (status, body) = get(&address, "/progress");
    assert_eq!(status, "HTTP/1.1 200 OK");
    let progress = Progress::parse(body.as_bytes(), "pod-uid-1", &RunTag::of(RUN)).expect("progress of this run");
    assert_eq!((progress.stage, progress.attempt, progress.epoch), (Stage::Extracting, Some(1), 1));
    assert!(progress.rows_read > 0 && progress.chunks_verified < 3, "{progress:?}");
    assert_eq!(get(&address, "/").0, "HTTP/1.1 404 Not Found");
    worker.release(id, Then::GoOn);
    let ended = Ended::of(child);
    assert_eq!(worker.receipt(&ended).state, Some(StateWord::StageComplete));
    assert!(TcpStream::connect(&address).is_err(), "it ends with the process");
}

/// The address that the process prints.
fn progress_address(child: &mut Child) -> String {
    let stderr = child.stderr.take().expect("piped");
    let mut lines = BufReader::new(stderr).lines();
    let line = lines.find_map(|line| Some(line.ok()?.strip_prefix("progress at http://")?.to_owned()));
    let address = line.expect("an address is printed");
    // The pipe stays open, so that the process may go on writing.
    std::thread::spawn(move || lines.for_each(drop));
    address.trim_end_matches("/progress").to_owned()
}

fn get(address: &str, path: &str) -> (String, String) {
    let mut socket = TcpStream::connect(address).expect("it listens");
    socket.write_all(format!("GET {path} HTTP/1.1\r\nHost: worker\r\n\r\n").as_bytes()).expect("asked");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("answered");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    (head.lines().next().unwrap_or_default().to_owned(), body.to_owned())
}
