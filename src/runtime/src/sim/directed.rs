//! Cases that a single fault does not reach: phases, strangers, copies, signals, panics, a full disk.

use std::sync::Arc;

use contract::code;
use contract::digest::Digest;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::database::{Custody, FOREIGN_OWNER};
use super::faults::{Fault, INJECTED, Site};
use super::process::{Ended, Simulation};
use super::transfer::{Reads, Replaces, Transfer};
use crate::driver::Scope;
use crate::report::End;

fn window() -> Transfer {
    Transfer::new(Replaces::Window, Reads::Raw, &[3, 2])
}

fn site(call: &str, occurrence: u32) -> Site {
    Site { call: call.to_owned(), occurrence }
}

#[track_caller]
fn check(ended: &Ended, exit_code: u8, code: Option<&str>) {
    assert_eq!((ended.exit_code(), ended.code().as_deref()), (Some(exit_code), code), "{ended:#?}");
}

#[test]
fn the_phases_are_processes_of_their_own() {
    let simulation = Simulation::new(&window());
    check(&simulation.process(Scope::Publish), 1, Some(code::SOURCE_EOF_REQUIRED));
    check(&simulation.process(Scope::Admit), 0, None);
    check(&simulation.process(Scope::Admit), 0, None);
    check(&simulation.process(Scope::Extract), 0, None);
    check(&simulation.process(Scope::Extract), 0, None);
    assert_eq!(simulation.store.holders().len(), 1, "custody waits for the publication");
    check(&simulation.process(Scope::Publish), 0, None);
    for scope in [Scope::Publish, Scope::Run, Scope::Extract, Scope::Admit] {
        let again = simulation.process(scope);
        assert!(matches!(again, Ended::With(End::Succeeded { rows: 5, chunks: 3, .. })), "{again:#?}");
    }
}

#[test]
fn another_run_is_refused_while_custody_is_held() {
    let simulation = Simulation::new(&window());
    check(&simulation.process(Scope::Extract), 0, None);
    let stranger = simulation.stranger();
    check(&stranger.process(Scope::Run), 1, Some(code::CUSTODY_HELD));
    assert_eq!(stranger.store.holders(), Vec::<Digest>::new());
    // The same journal refuses a second run before it asks the target.
    let second = Simulation { run_id: "run-2".to_owned(), alone: false, ..simulation.copy() };
    check(&second.process(Scope::Run), 1, Some(code::CUSTODY_HELD));
    check(&simulation.process(Scope::Publish), 0, None);
}

const CANCELLED: Option<&str> = Some("native_transfer.cancelled");

#[test]
fn a_stop_before_the_claim_changes_nothing() {
    let mut simulation = Simulation::new(&window());
    simulation.stop.cancel();
    check(&simulation.process(Scope::Extract), 1, CANCELLED);
    assert_eq!(simulation.store.records(&simulation.run_key()), []);
    // The same run id may go on.
    simulation.stop = CancellationToken::new();
    check(&simulation.process(Scope::Run), 0, None);
}

#[test]
fn a_stop_before_the_publication_keeps_what_is_sealed() {
    let mut simulation = Simulation::new(&window());
    check(&simulation.process(Scope::Extract), 0, None);
    simulation.stop.cancel();
    let stopped = simulation.process(Scope::Publish);
    check(&stopped, 3, CANCELLED);
    assert!(matches!(stopped, Ended::With(End::Held(_))), "{stopped:#?}");
    assert!(!simulation.faults.trace().iter().any(|site| site.call == "publish"));
    simulation.stop = CancellationToken::new();
    check(&simulation.process(Scope::Publish), 0, None);
}

/// A stop at every call of the two phases: extraction settles, publication is finished or not begun, and whoever comes next
/// finishes the run.
#[test]
fn a_stop_at_any_call_leaves_a_known_outcome() {
    let sites = Simulation::calls(&window());
    let mut codes = std::collections::BTreeSet::new();
    for site in sites {
        let mut simulation = Simulation::new(&window());
        simulation.faults.stop_at(site.clone(), simulation.stop.clone());
        for scope in [Scope::Extract, Scope::Publish] {
            let ended = simulation.process(scope);
            let Some(code) = ended.exit_code() else { panic!("{site:?}: {ended:#?}") };
            let stopped = simulation.stop.is_cancelled();
            let known = match (scope, code) {
                (_, 0) => true,
                (Scope::Extract, 1 | 4) | (_, 3) => stopped && ended.code().as_deref() == CANCELLED,
                _ => false,
            };
            assert!(known, "{site:?}: {ended:#?}");
            assert!(matches!(ended, Ended::With(End::Held(_))) || code != 3, "{site:?}: {ended:#?}");
            codes.insert(code);
            if stopped {
                break;
            }
        }
        simulation.stop = CancellationToken::new();
        let last = simulation.settle();
        let last = last.last().and_then(Ended::exit_code);
        assert!(matches!(last, Some(0 | 4)), "{site:?}");
    }
    assert_eq!(Vec::from_iter(codes), [0, 1, 3, 4], "every kind of end was reached");
}

#[test]
fn a_stop_while_chunks_are_still_loaded_is_a_stop() {
    let gate = Arc::new(Semaphore::new(0));
    let simulation = Simulation { gate: Some(Arc::clone(&gate)), ..Simulation::new(&window()) };
    let (faults, stop) = (simulation.faults.clone(), simulation.stop.clone());
    let signal = std::thread::spawn(move || {
        // The source has ended; the chunks wait at the gate.
        while !faults.trace().contains(&site("source finish", 0)) {
            std::thread::yield_now();
        }
        stop.cancel();
        gate.add_permits(100);
    });
    check(&simulation.process(Scope::Run), 4, Some("native_transfer.cancelled"));
    signal.join().unwrap();
}

#[test]
fn a_panic_of_a_worker_is_a_failure_like_another() {
    let simulation = Simulation { panics: true, ..Simulation::new(&window()) };
    check(&simulation.process(Scope::Run), 4, Some("native_transfer.worker_panicked"));
}

#[test]
fn a_full_disk_at_any_append_is_survived() {
    let transfer = Transfer::new(Replaces::Window, Reads::Raw, &[3]);
    let calls = Simulation::calls(&transfer);
    for full_at in calls.iter().filter(|site| site.call.starts_with("append ")) {
        let simulation = Simulation::new(&transfer);
        simulation.faults.fill_disk_at(full_at.clone());
        let first = simulation.process(Scope::Run);
        assert_eq!(simulation.faults.hits(), [(full_at.clone(), Fault::RefusedTold)]);
        assert_eq!(first.code().as_deref(), Some(INJECTED), "{full_at:?} {first:#?}");
        assert!(matches!(first.exit_code(), Some(1 | 3)), "{full_at:?} {first:#?}");
        simulation.settle();
    }
}

#[test]
fn a_chunk_file_that_is_there_already_is_not_overwritten() {
    let simulation = Simulation::new(&window());
    let folder = simulation.root.path().join("chunks").join(&simulation.run_key()[..32]);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("0.native"), "foreign").unwrap();
    check(&simulation.process(Scope::Run), 4, Some("native_transfer.spool_unavailable"));
}

#[test]
fn a_table_that_is_not_ours_is_never_dropped() {
    let simulation = Simulation::new(&window());
    simulation.inject(&site("create_stage", 0), Fault::DiesAfter);
    assert!(matches!(simulation.process(Scope::Run), Ended::Died));
    for table in simulation.db.lock().tables.values_mut() {
        table.owner = Digest::of(b"somebody");
    }
    let held = simulation.process(Scope::Run);
    let Ended::With(End::CustodyUnknown { cleanup: Some(cleanup), .. }) = &held else { panic!("{held:#?}") };
    assert_eq!((cleanup.code.as_str(), held.exit_code()), (FOREIGN_OWNER, Some(3)));
    assert_eq!(simulation.db.lock().tables.len(), 1);
    check(&simulation.stranger().process(Scope::Run), 1, Some(code::CUSTODY_HELD));
    // A person removes it; the run is settled by the next process.
    simulation.db.lock().tables.clear();
    check(&simulation.process(Scope::Run), 4, Some(code::PRE_EOF_REEXTRACT_REQUIRED));
}

#[test]
fn a_stage_that_was_cut_in_the_middle_is_proved_partial() {
    for (fault, rows) in [(Fault::DiesBefore, 0), (Fault::DiesAfter, 2)] {
        let simulation = Simulation::new(&window());
        simulation.inject(&site("write", 0), fault);
        assert!(matches!(simulation.process(Scope::Run), Ended::Died));
        assert!(simulation.db.lock().tables.values().any(|table| table.rows.len() == rows));
        check(&simulation.process(Scope::Run), 4, Some(code::PRE_EOF_REEXTRACT_REQUIRED));
        let proved = |record: &contract::port::journal::Record| record.payload.contains("PARTIAL_PROVED");
        assert!(simulation.store.has(&simulation.run_key(), proved), "{fault:?}");
    }
}

#[test]
fn a_release_that_was_not_answered_is_known_even_after_another_claim() {
    let simulation = Simulation::new(&window());
    simulation.inject(&site("release_custody", 0), Fault::LostAnswer);
    check(&simulation.process(Scope::Run), 3, Some(INJECTED));
    // Another run takes the target before this one is repeated.
    simulation.db.lock().custody = Some(Custody { holder: Digest::of(b"another"), epoch: 2, held: true });
    check(&simulation.process(Scope::Run), 0, None);
}

#[test]
fn the_opener_of_a_copied_journal_is_fenced() {
    let simulation = Simulation::new(&window());
    check(&simulation.process(Scope::Extract), 0, None);
    let copy = simulation.copy();
    check(&copy.process(Scope::Publish), 0, None);
    check(&simulation.process(Scope::Publish), 3, Some("native_transfer.run_fenced"));
}

#[test]
fn a_publication_in_doubt_is_decided_by_the_receipt() {
    for (fault, exit_code, code) in [
        (Fault::LostAnswer, 0, None),
        (Fault::LostRequest, 4, Some("mssql_native.publication_absence_proved")),
        (Fault::Late, 4, Some("mssql_native.publication_absence_proved")),
    ] {
        let simulation = Simulation::new(&window());
        simulation.inject(&site("publish", 0), fault);
        let doubt = simulation.process(Scope::Run);
        assert!(matches!(doubt, Ended::With(End::OutcomeUnknown(_))), "{doubt:#?}");
        check(&simulation.stranger().process(Scope::Run), 1, Some(code::CUSTODY_HELD));
        check(&simulation.process(Scope::Publish), exit_code, code);
    }
}

#[test]
fn a_source_that_counts_other_rows_is_not_believed() {
    let transfer = Transfer { counted: Some(6), ..window() };
    let simulation = Simulation::new(&transfer);
    check(&simulation.process(Scope::Run), 4, Some(code::SOURCE_SNAPSHOT_ROW_COUNT_MISMATCH));
}

#[test]
fn space_that_cannot_be_seen_is_no_space() {
    let simulation = Simulation::new(&window());
    simulation.db.lock().capacity_hidden = true;
    check(&simulation.process(Scope::Run), 1, Some(code::TARGET_CAPACITY_UNAVAILABLE));
    simulation.db.lock().capacity_hidden = false;
    simulation.db.lock().allocated = 1 << 40;
    check(&simulation.process(Scope::Run), 1, Some("mssql_native.stage_allocation_threshold_exceeded:1099511627776"));
    assert!(simulation.store.records(&simulation.run_key()).is_empty());
}

#[test]
fn a_run_id_belongs_to_one_plan() {
    let simulation = Simulation::new(&window());
    check(&simulation.process(Scope::Extract), 0, None);
    let other = Transfer { new: simulation.transfer.new.clone(), ..Transfer::new(Replaces::All, Reads::Raw, &[3, 2]) };
    let changed = Simulation { transfer: Arc::new(other), ..simulation };
    check(&changed.process(Scope::Run), 3, Some("mssql_native.configuration_changed"));
    let original = Simulation { transfer: Arc::new(window()), ..changed };
    check(&original.process(Scope::Publish), 0, None);
}
