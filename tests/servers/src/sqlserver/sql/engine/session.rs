//! One session: what a client asks and what it is answered.

use super::super::api::{
    BatchEnd, BatchSink, CancelHandle, ColumnMeta, IsolationRequest, RpcCall, SqlError, TransactionRequest,
};
use super::super::bulk::Load;
use super::super::error::{self, BATCH_ABORTED, CANCELLED, CLOSED, Result};
use super::super::exec::{self, Argument, ProcedureCall};
use super::super::state::{Cx, Frame, Isolation, Settings, State};
use super::super::stmt::NameOrVar;
use super::{BulkLoad, Discard};
use crate::sqlserver::store::catalog::Scope;
use crate::sqlserver::value::{SqlType, Value};
use std::sync::Arc;

/// One connection's session. Dropping it rolls back, releases its locks and drops its temporary tables.
pub struct Session {
    pub(super) state: State,
    pub(super) cancel: CancelHandle,
}

impl Session {
    /// `@@SPID`.
    pub fn id(&self) -> u16 {
        self.state.id
    }

    /// The handle that stops what runs here.
    pub fn cancel_handle(&self) -> CancelHandle {
        self.cancel.clone()
    }

    /// Name of the current database.
    pub fn database(&self) -> &str {
        &self.state.database_name
    }

    pub(crate) fn context<'a>(&'a mut self, out: &'a mut dyn BatchSink) -> Cx<'a> {
        Cx { st: &mut self.state, out, outer: Vec::new(), in_proc: false }
    }

    /// Runs a request and settles what is left of it.
    fn request(&mut self, out: &mut dyn BatchSink, body: impl FnOnce(&mut Cx<'_>) -> Result<()>) -> BatchEnd {
        let engine = Arc::clone(&self.state.engine);
        let id = self.state.id;
        engine.set_running(id, true);
        // Variables live as long as their batch; temporary tables live on.
        let temporary: Vec<_> = self.state.frames.drain(..).flat_map(|f| f.tables.into_values()).collect();
        self.state.frames.push(Frame::default());
        self.state.nest_level = 0;
        self.state.trigger_depth = 0;
        self.state.hold = 0;
        self.state.tries.clear();
        self.state.caught.clear();
        self.state.uncatchable = None;
        self.state.scope_identity.truncate(1);
        let mut cx = self.context(out);
        exec::ddl::drop_temporary(&mut cx, &temporary);
        cx.st.tick();
        let result = body(&mut cx);
        let end = settle(&mut cx, result);
        engine.note(cx.st);
        engine.set_running(id, false);
        self.cancel.clear();
        end
    }

    /// Runs a batch of statements.
    pub fn run_batch(&mut self, sql: &str, out: &mut dyn BatchSink) -> BatchEnd {
        self.request(out, |cx| exec::run_text(cx, sql).map(|_| ()))
    }

    /// Runs a procedure call.
    pub fn run_rpc(&mut self, call: RpcCall, out: &mut dyn BatchSink) -> BatchEnd {
        self.request(out, |cx| run_rpc(cx, call))
    }

    /// Runs a transaction manager request.
    pub fn transaction(&mut self, request: TransactionRequest, out: &mut dyn BatchSink) -> BatchEnd {
        self.request(out, |cx| run_transaction(cx, &request).map_err(|e| report(cx, e)))
    }

    /// Starts the bulk load that the last `INSERT BULK` announced, with the columns of the client's COLMETADATA.
    ///
    /// # Errors
    /// No bulk load was announced, or the columns do not fit it.
    pub fn bulk_columns(&mut self, columns: &[ColumnMeta]) -> std::result::Result<BulkLoad<'_>, SqlError> {
        let mark = self.state.txn.as_ref().map(|t| t.mark());
        let mut sink = Discard;
        let mut cx = self.context(&mut sink);
        cx.st.tick();
        match Load::open(&mut cx, columns) {
            Ok(load) => Ok(BulkLoad { session: self, load: Some(load), mark }),
            Err(e) => {
                let e = exec::placed(&cx, e);
                exec::discard_idle(&mut cx);
                Err(e)
            }
        }
    }

    /// Brings the session back to its state after login (the reset bit of a TDS packet).
    pub fn reset_connection(&mut self) {
        let mut sink = Discard;
        let mut cx = self.context(&mut sink);
        exec::transaction::abort(&mut cx);
        exec::discard_idle(&mut cx);
        let state = &mut self.state;
        // Temporary tables and session locks end; the login's database and settings return.
        let closed = state.engine.store.close_session(&state.store_session);
        debug_assert!(closed.is_ok(), "dropping temporary tables writes nothing to disk");
        state.settings = Settings::default();
        state.store_session.set_lock_timeout_ms(-1);
        state.store_session.set_deadlock_priority(0);
        state.prepared.clear();
        state.cursors.clear();
        state.session_context.clear();
        state.context_info = Value::Null;
        state.identity_value = None;
        state.scope_identity = vec![None];
        state.frames = vec![Frame::default()];
        if let Some(first) = state.impersonation.first().cloned() {
            state.identity = first;
            state.impersonation.clear();
        }
        let wanted = state.login.database.clone().filter(|d| !d.is_empty());
        let mut cx = self.context(&mut sink);
        let txn = cx.st.txn();
        let login = cx.st.identity.login_id;
        let default =
            txn.principals(Scope::Server).into_iter().find(|p| p.id == login).and_then(|p| p.default_database.clone());
        let home = wanted.or(default).and_then(|name| txn.find_database(&name));
        if let Some(home) = home {
            cx.st.database = home.id;
            cx.st.database_name.clone_from(&home.name);
        }
        exec::discard_idle(&mut cx);
        self.cancel.clear();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let mut sink = Discard;
        let mut cx = self.context(&mut sink);
        exec::transaction::abort(&mut cx);
        exec::discard_idle(&mut cx);
        let state = &self.state;
        let closed = state.engine.store.close_session(&state.store_session);
        debug_assert!(closed.is_ok(), "dropping temporary tables writes nothing to disk");
        state.engine.registry().remove(&state.id);
    }
}

/// Ends a request: what is doomed is rolled back, what was cancelled is told.
fn settle(cx: &mut Cx<'_>, result: Result<()>) -> BatchEnd {
    cx.st.hold = 0;
    exec::discard_idle(cx);
    let end = match result {
        Ok(()) => BatchEnd::Finished,
        Err(e) => match e.number {
            CANCELLED => {
                if cx.st.settings.xact_abort {
                    exec::transaction::abort(cx);
                }
                BatchEnd::Cancelled
            }
            CLOSED => BatchEnd::ConnectionBroken,
            BATCH_ABORTED | error::SCOPE_ABORTED => BatchEnd::Finished,
            _ => {
                cx.out.error(&e);
                BatchEnd::Finished
            }
        },
    };
    if cx.st.doomed && cx.st.trancount > 0 {
        let e = exec::placed(
            cx,
            error::new(
                3998,
                16,
                1,
                "Uncommittable transaction is detected at the end of the batch. The transaction is rolled back.",
            ),
        );
        cx.out.error(&e);
        exec::transaction::abort(cx);
    }
    end
}

/// Reports an error of a request that is no statement.
fn report(cx: &mut Cx<'_>, e: SqlError) -> SqlError {
    if error::is_marker(&e) {
        return e;
    }
    let e = exec::placed(cx, e);
    cx.out.error(&e);
    error::marker(BATCH_ABORTED)
}

fn run_rpc(cx: &mut Cx<'_>, call: RpcCall) -> Result<()> {
    let name = super::super::parse::parse_name(&call.procedure).map_err(|e| report(cx, e))?;
    let mut args = Vec::new();
    for param in &call.params {
        let value = if param.default { None } else { Some((param.value.clone(), param.ty)) };
        args.push(Argument { name: param.name.clone(), value, output: param.output, target: None });
    }
    cx.in_proc = true;
    let result =
        exec::call_procedure(cx, ProcedureCall { name, args }).and_then(|r| exec::finish_statement(cx).map(|()| r));
    match result {
        Ok(returned) => {
            cx.out.return_status(returned.status);
            for (_, name, ty, value) in &returned.outputs {
                let meta = ColumnMeta {
                    name: name.clone(),
                    ty: if *ty == SqlType::Null { SqlType::Int } else { *ty },
                    nullable: true,
                    identity: false,
                    computed: false,
                    collation: ty.collation(),
                };
                cx.out.return_value(name, &meta, value);
            }
            Ok(())
        }
        Err(e) => {
            let e = report(cx, e);
            if e.number == error::SCOPE_ABORTED { Ok(()) } else { Err(e) }
        }
    }
}

fn run_transaction(cx: &mut Cx<'_>, request: &TransactionRequest) -> Result<()> {
    match request {
        TransactionRequest::Begin { isolation, name } => {
            cx.st.settings.isolation = match isolation {
                IsolationRequest::Current => cx.st.settings.isolation,
                IsolationRequest::ReadUncommitted => Isolation::ReadUncommitted,
                IsolationRequest::ReadCommitted => Isolation::ReadCommitted,
                IsolationRequest::RepeatableRead => Isolation::RepeatableRead,
                IsolationRequest::Serializable => Isolation::Serializable,
                IsolationRequest::Snapshot => Isolation::Snapshot,
            };
            exec::transaction::start(cx, name);
        }
        TransactionRequest::Commit { begin } => {
            exec::transaction::commit(cx)?;
            if *begin {
                exec::transaction::start(cx, "");
            }
        }
        TransactionRequest::Rollback { name, begin } => {
            let name = Some(NameOrVar::Name(name.clone())).filter(|_| !name.is_empty());
            exec::transaction::rollback(cx, name.as_ref())?;
            if *begin {
                exec::transaction::start(cx, "");
            }
        }
        TransactionRequest::Save { name } => {
            exec::transaction::save(cx, &NameOrVar::Name(name.clone()))?;
        }
    }
    Ok(())
}
