//! What a person or a program reads: summaries, refusals, states.

use std::io::Write;

use contract::canon::{Json, strict};
use contract::error::{Fate, PortError};
use contract::worker::Exit;
use runtime::{End, Inspection, Outcome, PhaseSummary};
use serde_json::{Value, json};

use crate::arguments::Output;

/// Prints a text and says that it was done; a closed pipe is not an error of ours.
pub(crate) fn print(text: &str) -> u8 {
    let mut out = std::io::stdout().lock();
    let written =
        out.write_all(text.as_bytes()).and_then(|()| if text.ends_with('\n') { Ok(()) } else { out.write_all(b"\n") });
    // Why ignored: the reader has closed the pipe, as `| head` does.
    let _ = written.and_then(|()| out.flush());
    0
}

/// Prints a refusal on standard error; exit code 1.
pub(crate) fn refused(error: &PortError) -> u8 {
    failed(error, Exit::Refused)
}

/// Prints on standard error why there is no outcome, and returns the exit code.
pub(crate) fn failed(error: &PortError, exit: Exit) -> u8 {
    eprintln!("{error}");
    exit.code()
}

/// Prints why a run ended before it had an outcome: as a line on standard error, and as the outcome where that is JSON. Its
/// state is null where it is not known. Returns the exit code.
pub(crate) fn ended_early(error: &PortError, exit: Exit, run_id: &str, form: Output) -> u8 {
    let code = failed(error, exit);
    if form == Output::Json {
        let state = (exit == Exit::Refused).then_some("Failed");
        print(&json!({"run_id": run_id, "state": state, "exit_code": code, "error": failure(error)}).to_string());
    }
    code
}

/// Prints the outcome of a run and returns its exit code.
pub(crate) fn outcome(outcome: &Outcome, form: Output) -> u8 {
    let code = outcome.end.exit_code();
    match form {
        Output::Json => print(&document(outcome).to_string()),
        Output::Text => text(outcome),
    };
    code
}

fn document(outcome: &Outcome) -> Value {
    let error = outcome.end.error().map(failure);
    let mut document = json!({
        "run_id": outcome.run_id,
        "state": outcome.end.state().text(),
        "exit_code": outcome.end.exit_code(),
        "rows_read": outcome.progress.rows_read,
        "encoded_bytes": outcome.progress.bytes_encoded,
        "chunks_verified": outcome.progress.chunks_verified,
        "error": error,
        "measured": {
            "read": phase(&outcome.read),
            "encode": phase(&outcome.encode),
            "import_verify": phase(&outcome.import),
        },
    });
    match &outcome.end {
        End::Succeeded { rows, chunks, receipt } => {
            document["rows"] = json!(rows);
            document["chunks"] = json!(chunks);
            document["replaced_rows"] = json!(receipt.replaced_rows);
            document["committed_at"] = json!(receipt.committed_at);
            document["receipt_id"] = json!(receipt.receipt_id);
        }
        End::Unfinished { receipt, .. } => {
            document["committed_at"] = json!(receipt.committed_at);
            document["receipt_id"] = json!(receipt.receipt_id);
        }
        End::Extracted { rows } => document["rows"] = json!(rows),
        End::CustodyUnknown { cleanup: Some(cleanup), .. } => {
            document["cleanup_error"] = json!({"code": cleanup.code.as_str(), "message": cleanup.message});
        }
        _ => {}
    }
    document
}

pub(crate) fn failure(error: &PortError) -> Value {
    json!({
        "code": error.code.as_str(),
        "message": error.message,
        "fate": if error.fate == Fate::Unknown { "unknown" } else { "not_done" },
    })
}

fn phase(summary: &PhaseSummary) -> Value {
    json!({
        "operations": summary.operations,
        "wall_seconds": round(summary.wall_seconds),
        "active_seconds": round(summary.active_seconds),
        "peak_workers": summary.peak_workers,
        "effective_parallelism": summary.effective_parallelism().map(round),
    })
}

pub(crate) fn round(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

fn text(outcome: &Outcome) -> u8 {
    let mut lines = Vec::new();
    match &outcome.end {
        End::Admitted { columns, .. } => lines.push(format!("admitted: {columns} columns, nothing was changed")),
        End::Extracted { rows } => lines.push(format!("extracted: {rows} rows in verified stages; next: publish")),
        End::Succeeded { rows, chunks, receipt } => {
            lines.push(format!(
                "succeeded: {rows} rows in {chunks} chunks, verified inside SQL Server and published once"
            ));
            if let Some(replaced) = receipt.replaced_rows {
                lines.push(format!("  replaced rows   {replaced}"));
            }
            lines.push(format!("  committed at    {}", receipt.committed_at));
            lines.push(format!("  receipt         {}", receipt.receipt_id));
            lines.extend(measured(outcome));
        }
        end => {
            if let Some(error) = end.error() {
                lines.push(format!("{}: {error}", end.state()));
            }
            lines.push(format!("  {}", advice(end)));
            if let End::CustodyUnknown { cleanup: Some(cleanup), .. } = end {
                lines.push(format!("  settlement stopped at: {cleanup}"));
            }
        }
    }
    lines.push(format!("  run id          {}", outcome.run_id));
    let text = lines.join("\n") + "\n";
    if outcome.end.error().is_some() {
        eprint!("{text}");
        0
    } else {
        print(&text)
    }
}

fn measured(outcome: &Outcome) -> Vec<String> {
    [("read", &outcome.read), ("encode", &outcome.encode), ("import", &outcome.import)]
        .into_iter()
        .filter(|(_, summary)| summary.operations > 0)
        .map(|(name, summary)| {
            let overlap = summary.effective_parallelism().unwrap_or_default();
            format!(
                "  {name:<15} {} operations, {:.2} s wall, {:.2} s of work, measured overlap {overlap:.2}",
                summary.operations, summary.wall_seconds, summary.active_seconds
            )
        })
        .collect()
}

/// What a person does next.
fn advice(end: &End) -> &'static str {
    match end {
        End::Refused(_) => "nothing was changed; correct the cause and run again",
        End::ReextractRequired(_) => "nothing was published and nothing is left behind; start a new run with a new id",
        End::Unfinished { .. } => {
            "the rows are published; repeat `publish` with this run id to finish evidence and clean-up"
        }
        End::Held(_) => "nothing was published; the verified stages are kept: repeat `publish` with this run id",
        End::OutcomeUnknown(_) => {
            "whether the rows are published is not known; everything is kept: repeat `publish` with this run id to read the receipt"
        }
        End::CustodyUnknown { .. } => {
            "what is left at the target could not be proved settled; it is kept: repeat `run` with this run id, or inspect it"
        }
        End::Admitted { .. } | End::Extracted { .. } | End::Succeeded { .. } => "",
    }
}

/// Prints a document in its canonical form, whose digest other documents may name.
pub(crate) fn canonical(document: &Json) -> u8 {
    print(&String::from_utf8_lossy(&strict(document)))
}

/// Prints what a journal says about a run.
pub(crate) fn inspection(inspection: &Inspection, form: Output) -> u8 {
    if form == Output::Json {
        return canonical(&inspection.document);
    }
    let mut lines = vec![
        format!("state            {} ({})", inspection.state, inspection.recovery_state),
        format!("custody          {}", if inspection.custody_held { "held" } else { "not held" }),
        format!("permitted        {}", inspection.actions.join(", ")),
    ];
    if let Some(rows) = inspection.rows {
        lines.push(format!("sealed rows      {rows}"));
    }
    if let Some(failure) = &inspection.failure {
        lines.push(format!("first failure    {failure}"));
    }
    print(&(lines.join("\n") + "\n"))
}
