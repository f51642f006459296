//! The file of `--receipt`.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use contract::error::Refusal;
use contract::worker::Receipt;

/// Where the receipt goes, opened before anything is done: a process that could not say what it did does nothing.
///
/// The file is written in place, never replaced: a pod's termination log is a file that is mounted over itself.
#[derive(Debug)]
pub(crate) struct ReceiptFile(Option<File>);

impl ReceiptFile {
    /// Opens and empties the file, so that an earlier receipt is never taken for this process's.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, Refusal> {
        let open = |path| OpenOptions::new().write(true).create(true).truncate(true).open(path);
        path.map(open).transpose().map(ReceiptFile).map_err(|_| unwritable())
    }

    /// Writes the receipt. A failure is printed; the exit code stays, because it says what was done.
    pub(crate) fn write(self, receipt: &Receipt) {
        if let Some(mut file) = self.0
            && file.write_all(receipt.encode().as_bytes()).is_err()
        {
            eprintln!("{}", unwritable());
        }
    }
}

fn unwritable() -> Refusal {
    Refusal::new(
        "native_transfer.receipt_unwritable",
        "the file of --receipt cannot be written: check its path and permissions",
    )
}
