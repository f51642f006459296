//! The receipt: what a worker leaves in its termination message.
//!
//! ```text
//! line 1   strict canonical JSON of 17 keys, at most 900 bytes
//! line 2   the EOF descriptor, only where the run sealed one; its SHA-256 is `eof` of line 1
//! ```
//!
//! A message may be cut at any byte on its way (Kubernetes gives all containers of a pod 12 KiB together). Line 1 is an
//! object, so no prefix of it is one, and line 2 is bound by its digest: what is cut is never taken for whole.

use super::words::{CustodyWord, Exit, Phase, RunTag, StateWord};
use crate::canon::{Json, Object, decode_object, strict};
use crate::digest::Digest;
use crate::raw::eof::EofDescriptor;

/// Kind of line 1.
pub const RECEIPT_KIND: &str = "native-transfer.receipt.v1";

/// Longest line 1, bytes.
pub const LINE_BYTES_MAX: usize = 900;

/// Longest message, bytes: both lines and the line feed between them. Eight containers of a pod may each leave one.
pub const MESSAGE_BYTES_MAX: usize = 1_408;

/// Longest code, bytes; of a longer one the receipt carries the base without the detail.
pub const CODE_BYTES_MAX: usize = 96;

const RECEIPT_ID_BYTES_MAX: usize = 96;
const TIME_BYTES_MAX: usize = 40;

/// What a worker's process came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// What the process was asked to do.
    pub phase: Phase,
    /// Its exit code.
    pub exit: Exit,
    /// The run's state; `None` when the process ended before it knew it: then the run is as it was before.
    pub state: Option<StateWord>,
    /// The failure's code. For an `inspect` that succeeded: the first failure that the journal holds.
    pub code: Option<String>,
    /// The run.
    pub run: RunTag,
    /// Whether this run id is used up: nothing is held under it, and a process that goes on needs the next attempt.
    pub attempt_closed: bool,
    /// Journal epoch of the process; `None` when it did not open the journal.
    pub epoch: Option<u64>,
    /// Rows of the sealed end of source.
    pub rows: Option<u64>,
    /// Who may write to the target.
    pub custody: CustodyWord,
    /// Identity of the target.
    pub target: Option<Digest>,
    /// Digest of the rows, see [`super::workload_digest`]; known once the end of source is sealed.
    pub workload: Option<Digest>,
    /// Id of the receipt row in SQL Server, once the publication is proved.
    pub receipt_id: Option<String>,
    /// When SQL Server committed the publication, RFC 3339.
    pub committed_at: Option<String>,
    /// Digest of the evidence document, once its row stands in the target.
    pub evidence: Option<Digest>,
    /// Digest of the frozen plan that the process was given and read, or that the journal holds.
    pub plan: Option<Digest>,
    /// The EOF descriptor of a raw snapshot, once sealed.
    pub eof: Option<EofDescriptor>,
}

/// Why a message is no receipt. None of these says anything about the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NoReceipt {
    /// There is no message.
    #[error("the container left no message")]
    Missing,
    /// The head of a receipt whose end is gone.
    #[error("the container's message was cut")]
    Cut,
    /// Something else.
    #[error("the container's message is not a receipt of this version")]
    Foreign,
    /// A receipt, of another run.
    #[error("the container's message is the receipt of another run")]
    OtherRun,
}

impl Receipt {
    /// The message. Texts beyond their bounds, which no process of ours produces, are left out rather than cut.
    pub fn encode(&self) -> String {
        let within =
            |text: &Option<String>, most: usize| text.as_deref().filter(|text| is_plain(text, most)).map(Json::from);
        let document = Json::object([
            ("kind", Json::from(RECEIPT_KIND)),
            ("phase", Json::from(self.phase.text())),
            ("exit_code", Json::from(self.exit.code())),
            ("state", Json::from(self.state.map(StateWord::text))),
            ("code", Json::from(self.code.as_deref().map(short_code))),
            ("run", Json::from(self.run.as_str())),
            ("attempt_closed", Json::from(self.attempt_closed)),
            ("epoch", Json::from(self.epoch)),
            ("rows", Json::from(self.rows)),
            ("custody", Json::from(self.custody.text())),
            ("target", Json::from(self.target)),
            ("workload", Json::from(self.workload)),
            ("receipt_id", Json::from(within(&self.receipt_id, RECEIPT_ID_BYTES_MAX))),
            ("committed_at", Json::from(within(&self.committed_at, TIME_BYTES_MAX))),
            ("evidence", Json::from(self.evidence)),
            ("plan", Json::from(self.plan)),
            ("eof", Json::from(self.eof.as_ref().map(EofDescriptor::sha256))),
        ]);
        let mut message = strict(&document);
        if let Some(eof) = &self.eof {
            message.push(b'\n');
            message.extend_from_slice(&strict(&eof.document()));
        }
        String::from_utf8_lossy(&message).into_owned()
    }

    /// Reads a termination message as the receipt of the run `expected`.
    ///
    /// # Errors
    /// [`NoReceipt`]: the message is to be treated as if there were none.
    pub fn parse(message: &str, expected: &RunTag) -> Result<Self, NoReceipt> {
        if message.is_empty() {
            return Err(NoReceipt::Missing);
        }
        if message.len() > MESSAGE_BYTES_MAX {
            return Err(NoReceipt::Foreign);
        }
        let (line, eof) = match message.split_once('\n') {
            Some((line, eof)) => (line, Some(eof)),
            None => (message, None),
        };
        let members = decode_object(line.as_bytes()).map_err(|_| broken(line))?;
        let receipt = read(members, eof)?;
        // One comparison for kind, unknown keys, ill-typed nulls and the canonical form.
        if receipt.encode() != message || line.len() > LINE_BYTES_MAX || !receipt.agrees_with_itself() {
            return Err(NoReceipt::Foreign);
        }
        if receipt.run == *expected { Ok(receipt) } else { Err(NoReceipt::OtherRun) }
    }

    /// Whether exit code, state and code say one thing. What a process of ours writes does; the parser insists.
    pub fn agrees_with_itself(&self) -> bool {
        use StateWord as S;
        let state = match (self.phase, self.exit) {
            (Phase::Inspect, Exit::Done) => self.state.is_some(),
            (Phase::Admit, Exit::Done) => matches!(self.state, Some(S::Planned | S::StageComplete | S::Succeeded)),
            (Phase::Extract, Exit::Done) => matches!(self.state, Some(S::StageComplete | S::Succeeded)),
            (Phase::Publish, Exit::Done) => self.state == Some(S::Succeeded),
            (Phase::Inspect, Exit::Refused) => self.state.is_none(),
            (_, Exit::Refused) => matches!(self.state, None | Some(S::Failed)),
            (_, Exit::Kept) => matches!(
                self.state,
                None | Some(S::CustodyUnknown | S::OutcomeUnknown | S::StageComplete | S::Published)
            ),
            (_, Exit::Reextract) => self.state == Some(S::ReextractRequired),
        };
        let code = match (self.phase, self.exit) {
            (Phase::Inspect, Exit::Done) => true,
            (_, exit) => self.code.is_some() == (exit != Exit::Done),
        };
        state && code
    }
}

/// A line that is not a JSON object: the head of a receipt, or something else.
fn broken(line: &str) -> NoReceipt {
    const HEAD: &str = "{\"attempt_closed\":";
    let shared = line.len().min(HEAD.len());
    if shared > 0 && line.as_bytes()[..shared] == HEAD.as_bytes()[..shared] {
        NoReceipt::Cut
    } else {
        NoReceipt::Foreign
    }
}

fn read(members: Object, second: Option<&str>) -> Result<Receipt, NoReceipt> {
    let document = Json::Object(members);
    let text = |key: &str| document.get(key).and_then(Json::as_str);
    let number = |key: &str| document.get(key).and_then(Json::as_u64);
    let digest = |key: &str| text(key).and_then(|text| text.parse::<Digest>().ok());
    let plain = |key: &str, most: usize| text(key).filter(|text| is_plain(text, most)).map(str::to_owned);
    let fixed = || {
        Some((
            Phase::from_text(text("phase")?)?,
            Exit::from_code(number("exit_code")?)?,
            text("run")?.parse::<RunTag>().ok()?,
            document.get("attempt_closed")?.as_bool()?,
            CustodyWord::from_text(text("custody")?)?,
        ))
    };
    let (phase, exit, run, attempt_closed, custody) = fixed().ok_or(NoReceipt::Foreign)?;
    Ok(Receipt {
        phase,
        exit,
        state: text("state").and_then(StateWord::from_text),
        code: plain("code", CODE_BYTES_MAX),
        run,
        attempt_closed,
        epoch: number("epoch"),
        rows: number("rows"),
        custody,
        target: digest("target"),
        workload: digest("workload"),
        receipt_id: plain("receipt_id", RECEIPT_ID_BYTES_MAX),
        committed_at: plain("committed_at", TIME_BYTES_MAX),
        evidence: digest("evidence"),
        plan: digest("plan"),
        eof: match (digest("eof"), second) {
            (None, None) => None,
            (None, Some(_)) => return Err(NoReceipt::Foreign),
            (Some(_), None) => return Err(NoReceipt::Cut),
            (Some(expected), Some(line)) => Some(read_eof(expected, line)?),
        },
    })
}

fn read_eof(expected: Digest, line: &str) -> Result<EofDescriptor, NoReceipt> {
    if Digest::of(line.as_bytes()) != expected {
        let whole = decode_object(line.as_bytes()).is_ok();
        return Err(if whole { NoReceipt::Foreign } else { NoReceipt::Cut });
    }
    let document = decode_object(line.as_bytes()).map_err(|_| NoReceipt::Foreign)?;
    EofDescriptor::from_document(&Json::Object(document)).map_err(|_| NoReceipt::Foreign)
}

/// The whole code, or its base where the detail is too long or not plain: a cut detail would name another thing.
fn short_code(code: &str) -> &str {
    if is_plain(code, CODE_BYTES_MAX) { code } else { code.split(':').next().unwrap_or_default() }
}

/// Printable ASCII that JSON writes as it stands, so that the length of a text is its length in the message.
fn is_plain(text: &str, most: usize) -> bool {
    let plain = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'"' && byte != b'\\';
    !text.is_empty() && text.len() <= most && text.bytes().all(plain)
}
