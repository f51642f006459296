//! What operator and worker say to each other (docs/internals/operator.md): the frozen plan that goes in, the receipt that
//! comes out of a termination message, and the progress document in between.
//!
//! Every form is closed, bounded and read strictly: a message that was cut on its way, written by someone else, or left by
//! another run is no receipt, and nothing is read out of it.

mod plan;
mod progress;
mod receipt;
mod words;

pub use plan::{FrozenPlan, MANIFEST_BYTES_MAX};
pub use progress::{PROGRESS_BYTES_MAX, PROGRESS_KIND, Progress};
pub use receipt::{CODE_BYTES_MAX, LINE_BYTES_MAX, MESSAGE_BYTES_MAX, NoReceipt, RECEIPT_KIND, Receipt};
pub use words::{CustodyWord, Exit, Phase, RunTag, Stage, StateWord};

use crate::completion::{ChunkReceipt, workload};
use crate::digest::{Digest, native_multiset_digest};

/// Digest of the rows that a run moves, `None` when a receipt carries no sum: the multiset digest over the rows and typed
/// sums of all chunks (contract.md 3.3). It depends on the rows and the target's types alone, so that the same manifest
/// gives the same digest wherever and however often it runs.
pub fn workload_digest(receipts: &[ChunkReceipt]) -> Option<Digest> {
    workload(receipts).map(|(rows, sum)| native_multiset_digest(rows, &sum))
}
