//! Sessions that stop at the breakpoints of a [`Control`]; the wire serves them like any others.

use std::sync::Arc;

use super::super::control::{Control, Place, Unit, When};
use super::super::sql::{
    BatchEnd, BatchSink, CancelHandle, ColumnMeta, LoginRequest, RpcCall, SqlError, TransactionRequest,
};
use super::super::value::Value;
use super::backend::{Backend, BulkRows, SqlSession};
use super::{errors, session};

/// An engine whose sessions stop at breakpoints.
pub(crate) struct ControlledBackend {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) control: Arc<Control>,
}

impl Backend for ControlledBackend {
    fn login(&self, request: &LoginRequest) -> Result<Box<dyn SqlSession>, SqlError> {
        let inner = self.backend.login(request)?;
        let gate = Gate {
            control: Arc::clone(&self.control),
            session: inner.id(),
            program: request.app_name.clone(),
            text: String::new(),
            cut: false,
        };
        Ok(Box::new(ControlledSession { inner, gate }))
    }
}

struct ControlledSession {
    inner: Box<dyn SqlSession>,
    gate: Gate,
}

/// A session's view of the breakpoints.
struct Gate {
    control: Arc<Control>,
    session: u16,
    program: String,
    /// What runs, or ran last.
    text: String,
    /// The connection ends without another byte.
    cut: bool,
}

impl Gate {
    /// True: the connection ends here.
    fn reach(&mut self, on: Unit, when: When) -> bool {
        let place = Place { session: self.session, program: &self.program, text: &self.text, on, when };
        self.cut |= self.control.reach(&place);
        self.cut
    }
}

impl ControlledSession {
    fn run(&mut self, text: String, run: impl FnOnce(&mut dyn SqlSession) -> BatchEnd) -> BatchEnd {
        self.gate.text = text;
        if self.gate.reach(Unit::Statement, When::Before) {
            return BatchEnd::ConnectionBroken;
        }
        let end = run(&mut *self.inner);
        if self.gate.reach(Unit::Statement, When::After) { BatchEnd::ConnectionBroken } else { end }
    }
}

impl SqlSession for ControlledSession {
    fn id(&self) -> u16 {
        self.inner.id()
    }

    fn cancel_handle(&self) -> CancelHandle {
        self.inner.cancel_handle()
    }

    fn database(&self) -> &str {
        self.inner.database()
    }

    fn run_batch(&mut self, sql: &str, out: &mut dyn BatchSink) -> BatchEnd {
        self.run(sql.to_owned(), |session| session.run_batch(sql, out))
    }

    fn run_rpc(&mut self, call: RpcCall, out: &mut dyn BatchSink) -> BatchEnd {
        self.run(session::call_text(&call), |session| session.run_rpc(call, out))
    }

    fn transaction(&mut self, request: TransactionRequest, out: &mut dyn BatchSink) -> BatchEnd {
        let text = session::transaction_text(&request).to_owned();
        self.run(text, |session| session.transaction(request, out))
    }

    fn bulk_columns(&mut self, columns: &[ColumnMeta]) -> Result<Box<dyn BulkRows + '_>, SqlError> {
        if self.gate.reach(Unit::Bulk, When::Before) {
            return Err(errors::protocol_stream());
        }
        let rows = self.inner.bulk_columns(columns)?;
        Ok(Box::new(ControlledRows { rows, gate: &mut self.gate, taken: 0 }))
    }

    fn reset_connection(&mut self) {
        self.inner.reset_connection();
    }

    fn is_cut(&self) -> bool {
        self.gate.cut
    }
}

struct ControlledRows<'a> {
    rows: Box<dyn BulkRows + 'a>,
    gate: &'a mut Gate,
    taken: u64,
}

impl BulkRows for ControlledRows<'_> {
    fn row(&mut self, values: Vec<Value>) -> Result<(), SqlError> {
        self.rows.row(values)?;
        self.taken += 1;
        if self.gate.reach(Unit::Bulk, When::Rows(self.taken)) { Err(errors::protocol_stream()) } else { Ok(()) }
    }

    fn finish(self: Box<Self>) -> Result<u64, SqlError> {
        let count = self.rows.finish()?;
        if self.gate.reach(Unit::Bulk, When::After) { Err(errors::protocol_stream()) } else { Ok(count) }
    }

    fn abort(self: Box<Self>) {
        self.rows.abort();
    }
}
