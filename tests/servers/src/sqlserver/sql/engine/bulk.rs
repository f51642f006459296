//! A bulk load of a session.

use super::super::api::SqlError;
use super::super::bulk::Load;
use super::super::{error, exec};
use super::{Discard, Session};
use crate::sqlserver::store;
use crate::sqlserver::value::Value;

/// A bulk load under way. Dropping it without [`BulkLoad::finish`] undoes its rows.
pub struct BulkLoad<'a> {
    pub(super) session: &'a mut Session,
    pub(super) load: Option<Load>,
    pub(super) mark: Option<store::Mark>,
}

impl BulkLoad<'_> {
    /// Adds one row, a value for each column of COLMETADATA.
    ///
    /// # Errors
    /// The row breaks a rule; the load is over.
    pub fn row(&mut self, values: Vec<Value>) -> std::result::Result<(), SqlError> {
        let Some(load) = &mut self.load else {
            return Err(error::plain(4022, "Bulk load data was expected but not sent. The batch will be terminated."));
        };
        let mut sink = Discard;
        let mut cx = self.session.context(&mut sink);
        let result = cx.check_cancel().and_then(|()| load.row(&mut cx, &values)).map_err(|e| exec::placed(&cx, e));
        if result.is_err() {
            self.undo();
        }
        result
    }

    /// Ends the load; the number of rows.
    ///
    /// # Errors
    /// A rule of the table is broken; nothing stays.
    pub fn finish(mut self) -> std::result::Result<u64, SqlError> {
        let Some(load) = self.load.take() else {
            return Err(error::plain(4022, "Bulk load data was expected but not sent. The batch will be terminated."));
        };
        let mut sink = Discard;
        let mut cx = self.session.context(&mut sink);
        let result = load.finish(&mut cx).and_then(|rows| exec::finish_statement(&mut cx).map(|()| rows));
        let result = result.map_err(|e| exec::placed(&cx, e));
        if result.is_err() {
            self.undo();
        }
        result
    }

    /// Undoes the load.
    pub fn abort(mut self) {
        self.undo();
    }

    fn undo(&mut self) {
        self.load = None;
        let mut sink = Discard;
        let mut cx = self.session.context(&mut sink);
        let strict = cx.st.settings.xact_abort;
        match (self.mark, cx.st.txn.clone()) {
            (Some(mark), Some(txn)) if cx.st.trancount > 0 && !strict => {
                txn.rollback_to_mark(mark);
                txn.end_statement();
            }
            _ => exec::transaction::abort(&mut cx),
        }
    }
}

impl Drop for BulkLoad<'_> {
    fn drop(&mut self) {
        if self.load.is_some() {
            self.undo();
        }
    }
}
