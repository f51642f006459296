//! The operator on a real cluster, one binary: the cluster is brought up once and ends after the last case.
//!
//! `KEEP_CLUSTER=1` leaves it for the next run; `E2E_CLUSTER_DIR` names its folder.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod apply;
mod deaths;
mod deletion;
mod kubelet;
mod moves;
mod operator;
mod pods;
mod spec;
mod targets;
mod waiting;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// Cases at a time where the caller does not say: each has a SQL Server and some pods of its own.
const THREADS: usize = 4;

/// Trials named after the functions of a module.
macro_rules! cases {
    ($($module:ident: $($name:ident)*;)*) => {
        vec![$($(Trial::test(concat!(stringify!($module), "::", stringify!($name)), || { $module::$name(); Ok(()) }),)*)*]
    };
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(THREADS);
    let trials = cases! {
        moves: a_full_refresh_succeeds_with_the_digest_of_the_command_line
            a_window_replaces_its_day_and_nothing_else
            a_new_token_runs_again
            twenty_transfers_applied_at_once_all_succeed
            idle_transfers_cause_no_writes;
        spec: an_unknown_key_is_named
            a_wrong_type_is_refused_by_the_api_server
            what_is_immutable_stays_and_what_is_mutable_changes;
        apply: neither_way_to_apply_drifts_after_completion;
        pods: a_worker_has_no_token_no_capability_and_no_secret_in_sight;
        deletion: before_the_start
            during_extraction
            during_publication_waits_until_it_is_known
            after_success
            in_the_foreground_while_custody_is_held
            of_the_namespace_while_custody_is_held
            of_the_namespace_when_a_pod_is_needed_is_settled_from_another_one
            of_sealed_rows_waits_for_a_word_and_publishes_on_it
            of_an_unknown_outcome_waits_until_the_target_has_answered
            and_creation_under_the_same_name;
        deaths: killed_by_a_signal_during_extraction
            killed_by_a_signal_during_publication
            killed_for_its_memory
            evicted
            deleted_without_grace
            suspended_during_extraction;
        waiting: for_an_image
            for_a_node
            for_a_volume
            for_a_secret;
        targets: one_target_is_used_in_turn
            two_targets_are_used_at_once;
        operator: killed_at_each_phase
            absent_while_the_worker_finishes;
        kubelet: stopped_while_the_worker_dies;
    };
    let conclusion = libtest_mimic::run(&arguments, trials);
    e2e::cluster::down();
    conclusion.exit_code()
}
