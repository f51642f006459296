//! The source changes at a named moment of a read: each change at each moment has the outcome of the specification.
//!
//! A change that the acquired query sees is in its rows, whole; one that breaks the proof of where rows come from, or the
//! authority under which they are read, fails with a code before anything is sealed; one of parts alone is recorded as
//! `endpoint_authority_agreement = false` and harms nothing. Roles and row policies cannot be changed by statement in the
//! embedded engine: their drift is judged in `contract::raw` and on the scripted server.

use std::sync::Arc;

use contract::canon::{Json, decode_object};
use contract::port::source::{Source as _, SourceMode};

use crate::kit::*;

/// More rows than the server's and the socket's buffers hold, so that the query still runs while one block is read: the two
/// columns of random bytes alone are 16 MB that no compression makes smaller.
const MANY_ROWS: i64 = 500_000;
/// Enough for the other moments.
const FEW_ROWS: i64 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    /// After the admission, before the read is opened.
    Admitted,
    /// After the last acquisition, when the SELECT has arrived and does not yet run.
    Acquired,
    /// After the first block.
    Reading,
    /// After the end of the stream, before it is sealed.
    Read,
}

const MOMENTS: [Moment; 4] = [Moment::Admitted, Moment::Acquired, Moment::Reading, Moment::Read];

/// What must come of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// Sealed; how many rows more than were there, and how much more the sum of column `v`; whether the parts before and
    /// after agree (raw mode).
    Sealed { rows: i64, v: i64, agreement: bool },
    /// Refused with this code; never sealed.
    Refused(&'static str),
}

/// The rows that were there; every one has `v` = 1.
const UNTOUCHED: (i64, i64) = (0, 0);

const PROFILE: Outcome = Outcome::Refused("mssql_native.source_snapshot_profile_changed");
const PROVENANCE: Outcome = Outcome::Refused("mssql_native.source_provenance_incomplete");
const SCHEMA: Outcome = Outcome::Refused("mssql_native.source_schema_changed");
const IDENTITY: Outcome = Outcome::Refused("mssql_native.source_identity_changed");

fn sealed((rows, v): (i64, i64), agreement: bool) -> Outcome {
    Outcome::Sealed { rows, v, agreement }
}

/// Makes table `name` with two parts, reads it, and does `change` at `moment`.
async fn race(mode: SourceMode, name: &str, moment: Moment, change: &'static [&'static str]) -> Outcome {
    let kit = kit();
    let engine = if mode == RAW { "ReplacingMergeTree" } else { "MergeTree" };
    let create = format!(
        "CREATE TABLE d.{name} (k Int64, v Int64, a UUID, b UUID) ENGINE = {engine} ORDER BY k SETTINGS enable_block_number_column = 1, \
         enable_block_offset_column = 1, max_bytes_to_merge_at_max_space_in_pool = 1"
    );
    let fill = |from: i64, rows: i64| {
        format!(
            "INSERT INTO d.{name} SELECT number + {from}, 1, generateUUIDv4(1), generateUUIDv4(2) FROM numbers({rows})"
        )
    };
    let half = if moment == Moment::Reading { MANY_ROWS } else { FEW_ROWS } / 2;
    kit.run(&[&create, &fill(0, half), &fill(half, half)]);
    let other = create.replace(&format!("d.{name} "), &format!("d.{name}_other "));
    let (name_text, create) = (name.to_owned(), create.clone());
    let act = move |kit: &Kit| {
        kit.run(&[&other]);
        for statement in change {
            kit.run(&[&statement.replace("{create}", &create).replace("{t}", &format!("d.{name_text}"))]);
        }
    };
    let outcome = read_with(&kit, mode, name, moment, 2 * half, act).await;
    kit.run(&[&format!("DROP TABLE IF EXISTS d.{name} SYNC"), &format!("DROP TABLE IF EXISTS d.{name}_other SYNC")]);
    outcome
}

async fn read_with(
    kit: &Arc<Kit>,
    mode: SourceMode,
    name: &str,
    moment: Moment,
    rows_before: i64,
    act: impl Fn(&Kit) + Send + Sync + 'static,
) -> Outcome {
    let act = Arc::new(act);
    let at = |now: Moment| {
        if now == moment {
            act(kit);
        }
    };
    let read = async {
        let mut source = kit.source().await;
        let admission = source.admit(&request(name, mode)).await?;
        at(Moment::Admitted);
        if moment == Moment::Acquired {
            let (from, kit, act) = (format!("FROM `d`.`{name}`"), Arc::clone(kit), Arc::clone(&act));
            let server = Arc::clone(&kit);
            server
                .server
                .once_before(move |query| query.starts_with("SELECT") && query.contains(&from), move || act(&kit));
        }
        source.open(&admission, QUERY_ID).await?;
        let (mut rows, mut v) = (0, 0);
        while let Some(block) = source.next_block().await? {
            if rows == 0 && moment == Moment::Reading {
                let running =
                    format!("SELECT count() FROM system.processes WHERE query LIKE 'SELECT%FROM `d`.`{name}`'");
                assert_eq!(kit.value(&running), "1", "the query has ended too early to be raced");
                at(Moment::Reading);
            }
            rows += block.rows as i64;
            let contract::block::Values::Int64(values) = &block.columns[1].values else { panic!("Int64") };
            v += values.iter().sum::<i64>();
        }
        at(Moment::Read);
        let eof = source.finish().await?;
        assert_eq!(eof.rows as i64, rows);
        let agreement = eof.descriptor.map(|text| {
            let descriptor = decode_object(&text).expect("JSON");
            descriptor.get("endpoint_authority_agreement").and_then(Json::as_bool).expect("a field")
        });
        Ok::<_, contract::error::PortError>(sealed((rows - rows_before, v - rows_before), agreement.unwrap_or(false)))
    };
    read.await.unwrap_or_else(|error| Outcome::Refused(Box::leak(error.code.as_str().to_owned().into_boxed_str())))
}

/// Runs `change` at every moment in both modes. Plain mode has no parts to agree on: its `agreement` is always false.
async fn table(label: &str, change: &'static [&'static str], raw: [Outcome; 4], plain: [Outcome; 4]) {
    for (mode, mode_name, outcomes) in [(RAW, "raw", raw), (SourceMode::QueryVisible, "plain", plain)] {
        for (moment, expected) in MOMENTS.into_iter().zip(outcomes) {
            let name = format!("race_{label}_{mode_name}_{moment:?}");
            let found = race(mode, &name, moment, change).await;
            assert_eq!(found, expected, "{label} in {mode_name} mode when {moment:?}");
        }
    }
}

#[tokio::test]
async fn an_insert_is_whole_or_absent() {
    let more = (1, 5);
    table(
        "insert",
        &["INSERT INTO {t} (k, v) VALUES (-1, 5)"],
        // A part that came after the manifest has no provenance.
        [sealed(more, true), PROVENANCE, sealed(UNTOUCHED, false), sealed(UNTOUCHED, false)],
        [sealed(more, false), sealed(more, false), sealed(UNTOUCHED, false), sealed(UNTOUCHED, false)],
    )
    .await;
}

#[tokio::test]
async fn a_merge_changes_no_row() {
    table(
        "merge",
        &["OPTIMIZE TABLE {t} FINAL SETTINGS optimize_throw_if_noop = 1"],
        [sealed(UNTOUCHED, true), PROVENANCE, sealed(UNTOUCHED, false), sealed(UNTOUCHED, false)],
        [sealed(UNTOUCHED, false); 4],
    )
    .await;
}

#[tokio::test]
async fn a_lightweight_update_is_applied_or_after_the_query() {
    let patched = (0, 6);
    table(
        "update",
        &["UPDATE {t} SET v = 7 WHERE k = 3 SETTINGS enable_lightweight_update = 1"],
        // The rows come from parts of the manifest, with the patch that the query saw.
        [sealed(patched, true), sealed(patched, false), sealed(UNTOUCHED, false), sealed(UNTOUCHED, false)],
        [sealed(patched, false), sealed(patched, false), sealed(UNTOUCHED, false), sealed(UNTOUCHED, false)],
    )
    .await;
}

#[tokio::test]
async fn a_lightweight_delete_is_applied_or_after_the_query() {
    let fewer = (-1, -1);
    table(
        "delete",
        &["DELETE FROM {t} WHERE k = 3 SETTINGS lightweight_deletes_sync = 2"],
        // A mask is a new version of its part, which the manifest does not name.
        [sealed(fewer, true), PROVENANCE, sealed(UNTOUCHED, false), sealed(UNTOUCHED, false)],
        [sealed(fewer, false), sealed(fewer, false), sealed(UNTOUCHED, false), sealed(UNTOUCHED, false)],
    )
    .await;
}

#[tokio::test]
async fn an_added_column_fails_the_read_wherever_it_comes() {
    table("add_column", &["ALTER TABLE {t} ADD COLUMN w Int64"], [PROFILE; 4], [SCHEMA; 4]).await;
}

#[tokio::test]
async fn a_changed_type_fails_the_read_wherever_it_comes() {
    table(
        "modify_column",
        &["ALTER TABLE {t} MODIFY COLUMN v Int32 SETTINGS mutations_sync = 2"],
        [PROFILE, SCHEMA, PROFILE, PROFILE],
        [SCHEMA; 4],
    )
    .await;
}

#[tokio::test]
async fn a_table_dropped_and_made_again_is_another_table() {
    table(
        "recreate",
        &["DROP TABLE {t}", "{create}", "INSERT INTO {t} (k, v) VALUES (1, 1)"],
        [PROFILE; 4],
        [IDENTITY; 4],
    )
    .await;
}

#[tokio::test]
async fn an_exchanged_table_is_another_table() {
    table("exchange", &["EXCHANGE TABLES {t} AND {t}_other"], [PROFILE; 4], [IDENTITY; 4]).await;
}
