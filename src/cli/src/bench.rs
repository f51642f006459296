//! `bench --qualify`: the source read several times, compared and timed.

use std::path::{Path, PathBuf};

use contract::error::{Code, PortError};
use contract::qualification::{Reading, Spread, Verdict};
use contract::worker::Exit;
use runtime::CancellationToken;
use runtime::qualify::{Qualified, QualifyRequest, qualify};
use serde_json::{Value, json};
use sink_sqlserver::SqlServerTarget;
use source_clickhouse::ClickHouseSourceFactory;

use crate::arguments::{BenchArguments, Output};
use crate::run::{stop_on_signal, threads};
use crate::world::{SystemWorld, random_bytes};
use crate::{connections, manifest, output};

/// Reads, judges, prints. Returns the exit code: 0 only for a qualified source.
pub(crate) fn bench(arguments: &BenchArguments) -> u8 {
    match measured(arguments) {
        Ok(qualified) => {
            let error = unqualified(qualified.judged.verdict);
            match arguments.output {
                Output::Json => output::print(&document(&qualified, error.as_ref()).to_string()),
                Output::Text => output::print(&text(&qualified)),
            };
            error.map_or(Exit::Done.code(), |error| output::refused(&error))
        }
        Err(error) => {
            if arguments.output == Output::Json {
                output::print(&json!({"verdict": null, "error": output::failure(&error)}).to_string());
            }
            output::refused(&error)
        }
    }
}

fn measured(arguments: &BenchArguments) -> Result<Qualified, PortError> {
    let plan = manifest::load(&arguments.manifest, None)?;
    plan.require_runnable()?;
    let directory = arguments.connections.as_deref();
    let source = ClickHouseSourceFactory::new(connections::source(directory)?);
    let target = SqlServerTarget::new(connections::target(directory)?, &plan.state_schema);
    let threads = threads()?;
    let stop = CancellationToken::new();
    stop_on_signal(&threads, stop.clone());
    let scratch = Scratch::new(&arguments.scratch)?;
    let request = QualifyRequest { plan, trials: arguments.trials, scratch: scratch.0.clone(), stop };
    let mut reads = 0_u32;
    threads.block_on(qualify(request, source, target, SystemWorld, |read| {
        let name = if reads == 0 { "warm-up".to_owned() } else { format!("trial {reads}") };
        eprintln!("{name}: {}", line(read));
        reads += 1;
    }))
}

/// A folder of ours that goes with its value.
struct Scratch(PathBuf);

impl Scratch {
    fn new(root: &Path) -> Result<Self, PortError> {
        let name: String = random_bytes()?.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let folder = root.join(format!("native-transfer-bench-{name}"));
        std::fs::create_dir(&folder).map_err(|error| {
            PortError::not_done(
                "native_transfer.spool_unavailable",
                "the scratch folder cannot be written: choose another with --scratch",
            )
            .caused_by(error)
        })?;
        Ok(Scratch(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if std::fs::remove_dir_all(&self.0).is_err() {
            eprintln!("the scratch folder native-transfer-bench-* could not be removed");
        }
    }
}

/// The refusal of a source that is not qualified.
fn unqualified(verdict: Verdict) -> Option<PortError> {
    match verdict {
        Verdict::Qualified => None,
        Verdict::TooFewTrials => Some(PortError::not_done(
            "native_transfer.qualification_drifted",
            "fewer than three trials count: qualify while nobody writes and merges are done, or raise --trials",
        )),
        Verdict::DigestsDiffer => Some(PortError::not_done(
            "native_transfer.qualification_digests_differ",
            "two reads of the same parts gave different rows: do not move this table, and report it",
        )),
    }
}

fn line(read: &Result<Reading, Code>) -> String {
    match read {
        Ok(reading) => format!("{} rows in {:.3} s", reading.rows, reading.wall.as_secs_f64()),
        Err(code) => format!("excluded, {code}"),
    }
}

fn text(qualified: &Qualified) -> String {
    let judged = &qualified.judged;
    let mut lines = vec![format!("verdict          {}", judged.verdict.text())];
    for (index, (trial, exclusion)) in qualified.trials.iter().zip(&judged.exclusions).enumerate() {
        let name = format!("trial {}", index + 1);
        let said = match (trial, exclusion) {
            (Ok(reading), None) => format!("{}, {}", line(trial), reading.workload),
            (Ok(_), Some(why)) => format!("{}, excluded, {}", line(trial), why.text()),
            (Err(_), _) => line(trial),
        };
        lines.push(format!("  {name:<14} {said}"));
    }
    let spread = |spread: Option<Spread>| {
        spread.map_or_else(
            || "-".to_owned(),
            |of| format!("{:.3} (median), {:.3} (median deviation)", of.median, of.deviation),
        )
    };
    lines.push(format!("seconds          {}", spread(judged.wall_seconds)));
    lines.push(format!("rows per second  {}", spread(judged.rows_per_second)));
    lines.push("equal digests are probabilistic evidence of an equal multiset of rows".to_owned());
    lines.join("\n") + "\n"
}

fn document(qualified: &Qualified, error: Option<&PortError>) -> Value {
    let judged = &qualified.judged;
    let spread = |spread: Option<Spread>| {
        spread.map(
            |of| json!({"median": output::round(of.median), "median_absolute_deviation": output::round(of.deviation)}),
        )
    };
    let trials = qualified.trials.iter().zip(&judged.exclusions).map(|(trial, exclusion)| {
        let mut document = reading(trial);
        document["excluded"] = json!(exclusion.as_ref().map(|why| why.text()));
        document
    });
    json!({
        "kind": "native-transfer.source-qualification.v1",
        "verdict": judged.verdict.text(),
        "warm_up": reading(&qualified.warm_up),
        "trials": trials.collect::<Vec<_>>(),
        "wall_seconds": spread(judged.wall_seconds),
        "rows_per_second": spread(judged.rows_per_second),
        "error": error.map(output::failure),
    })
}

fn reading(read: &Result<Reading, Code>) -> Value {
    match read {
        Err(code) => json!({"failed": code.as_str()}),
        Ok(reading) => json!({
            "rows": reading.rows,
            "encoded_bytes": reading.encoded_bytes,
            "typed_digest": reading.workload.to_string(),
            "source_snapshot_profile_sha256": reading.profile.to_string(),
            "before_physical_profile_sha256": reading.before.to_string(),
            "after_physical_profile_sha256": reading.after.to_string(),
            "endpoint_authority_agreement": reading.before == reading.after,
            "wall_seconds": output::round(reading.wall.as_secs_f64()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use contract::digest::Digest;
    use contract::qualification::judge;

    use super::*;

    fn read(workload: &[u8]) -> Result<Reading, Code> {
        let state = Digest::of(b"state");
        Ok(Reading {
            rows: 10,
            encoded_bytes: 100,
            workload: Digest::of(workload),
            profile: state,
            before: state,
            after: state,
            wall: Duration::from_millis(250),
        })
    }

    fn ended(trials: Vec<Result<Reading, Code>>) -> Qualified {
        Qualified { warm_up: read(b"w"), judged: judge(&trials), trials }
    }

    /// No engine that we can have gives other rows of the same parts, so the trials are made here.
    #[test]
    fn other_rows_of_the_same_parts_are_a_failure_with_a_code() {
        let ended = ended(vec![read(b"w"), read(b"w"), read(b"x"), read(b"w")]);
        let error = unqualified(ended.judged.verdict).expect("a failure");
        assert_eq!(error.code.as_str(), "native_transfer.qualification_digests_differ");
        assert_eq!(document(&ended, Some(&error))["error"]["code"], error.code.as_str());
        assert!(text(&ended).starts_with("verdict          digests_differ\n"), "{}", text(&ended));
    }

    #[test]
    fn a_person_reads_the_middle_and_why_trials_do_not_count() {
        let drifted = Err(Code::new("mssql_native.source_schema_changed"));
        let ended = ended(vec![read(b"w"), drifted, read(b"w"), read(b"w")]);
        assert!(unqualified(ended.judged.verdict).is_none());
        let text = text(&ended);
        for line in [
            "trial 2        excluded, mssql_native.source_schema_changed",
            "seconds          0.250 (median), 0.000 (median deviation)",
            "rows per second  40.000 (median), 0.000 (median deviation)",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }
}
