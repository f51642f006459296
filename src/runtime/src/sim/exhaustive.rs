//! Every fault at every call of a small transfer, once each.

use super::faults::{Fault, INJECTED, Site};
use super::process::{Ended, Simulation};
use super::transfer::{Reads, Replaces, Transfer};
use crate::driver::Scope;
use crate::report::End;

/// Whether a fault at a call stays without consequence by design: the session that is closed has done its work.
fn is_tolerated(site: &Site) -> bool {
    matches!(site.call.as_str(), "close" | "source cancel")
}

fn one_fault(transfer: &Transfer, site: &Site, fault: Fault) {
    let simulation = Simulation::new(transfer);
    simulation.inject(site, fault);
    let rounds = simulation.settle();
    let hits = simulation.faults.hits();
    assert_eq!(hits, [(site.clone(), fault)], "the run failed at the chosen call");
    let first = &rounds[0];
    let told = format!("{hits:?}: {rounds:#?}");
    match (first, fault) {
        (Ended::Died, Fault::DiesBefore | Fault::DiesAfter | Fault::DiesLate) => {}
        (Ended::With(_), Fault::DiesBefore | Fault::DiesAfter | Fault::DiesLate) => panic!("lived on: {told}"),
        (Ended::Died, _) => panic!("died: {told}"),
        (Ended::With(_), _) if is_tolerated(site) => {}
        // A refused group of appends is tried again one by one.
        (Ended::With(End::Succeeded { .. }), Fault::RefusedTold) if site.call.starts_with("append ") => {}
        // The first failure is the one that is reported, whatever the clean-up met.
        (Ended::With(_), _) => assert_eq!(first.code().as_deref(), Some(INJECTED), "{told}"),
    }
    // What is finished stays as it is.
    let last = rounds.last().and_then(Ended::exit_code);
    assert_eq!(simulation.process(Scope::Run).exit_code(), last, "{told}");
}

fn every_fault(transfer: &Transfer) {
    let sites = Simulation::calls(transfer);
    assert!(sites.len() > 40, "{sites:#?}");
    let mut failed = Vec::new();
    for site in &sites {
        for fault in Fault::of(site) {
            if std::panic::catch_unwind(|| one_fault(transfer, site, fault)).is_err() {
                failed.push((site, fault));
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn a_window_is_replaced_or_untouched() {
    every_fault(&Transfer::new(Replaces::Window, Reads::Raw, &[3, 2]));
}

#[test]
fn a_whole_table_is_replaced_or_untouched() {
    every_fault(&Transfer::new(Replaces::All, Reads::Visible, &[3]));
}

#[test]
fn an_empty_source_empties_the_window_or_nothing() {
    every_fault(&Transfer::new(Replaces::Window, Reads::Raw, &[]));
}

#[test]
fn an_empty_source_empties_the_table_or_nothing() {
    every_fault(&Transfer::new(Replaces::All, Reads::Visible, &[0]));
}
