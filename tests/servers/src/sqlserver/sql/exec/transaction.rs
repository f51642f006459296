//! BEGIN, COMMIT, ROLLBACK, SAVE.

use super::super::api::EnvChange;
use super::super::error::{self, Result};
use super::super::state::Cx;
use super::super::stmt::NameOrVar;
use super::super::storage;
use super::{Flow, done_plain};
use crate::sqlserver::value::Value;

fn name_text(cx: &Cx<'_>, name: &NameOrVar) -> Result<String> {
    match name {
        NameOrVar::Name(name) => Ok(name.clone()),
        NameOrVar::Var(var) => {
            let Some(at) = cx.st.frame().find(var) else { return Err(error::undeclared(var)) };
            match &cx.st.frame().vars[at].value {
                Value::String(text) => Ok(text.to_string()),
                _ => Ok(String::new()),
            }
        }
    }
}

/// Starts an explicit transaction if none is open.
pub(crate) fn start(cx: &mut Cx<'_>, name: &str) {
    if cx.st.trancount == 0 {
        let txn = cx.st.txn();
        cx.st.trancount = 1;
        cx.st.doomed = false;
        name.clone_into(&mut cx.st.txn_name);
        cx.out.env_change(EnvChange::BeginTransaction(txn.id().0));
    } else {
        cx.st.trancount += 1;
    }
}

pub(super) fn begin(cx: &mut Cx<'_>, name: Option<&NameOrVar>) -> Result<Flow> {
    let name = match name {
        Some(name) => name_text(cx, name)?,
        None => String::new(),
    };
    check_name(&name)?;
    start(cx, &name);
    done_plain(cx)
}

fn check_name(name: &str) -> Result<()> {
    if name.chars().count() > 32 {
        let message = format!(
            "The identifier that starts with '{}' is too long. Maximum length is 32.",
            name.chars().take(32).collect::<String>()
        );
        return Err(error::new(103, 15, 2, &message));
    }
    Ok(())
}

fn doomed() -> super::super::api::SqlError {
    error::plain(
        3930,
        "The current transaction cannot be committed and cannot support operations that write to the log file. Roll back the transaction.",
    )
}

/// Refuses a write in a transaction that can only be rolled back.
pub(crate) fn check_writable(cx: &Cx<'_>) -> Result<()> {
    if cx.st.doomed && cx.st.trancount > 0 { Err(doomed()) } else { Ok(()) }
}

/// Begins a transaction before a data statement with IMPLICIT_TRANSACTIONS ON.
pub(crate) fn implicit(cx: &mut Cx<'_>) {
    if cx.st.settings.implicit_transactions && cx.st.trancount == 0 && cx.st.hold == 0 {
        start(cx, "");
    }
}

pub(crate) fn commit(cx: &mut Cx<'_>) -> Result<Flow> {
    match cx.st.trancount {
        0 => {
            return Err(error::plain(3902, "The COMMIT TRANSACTION request has no corresponding BEGIN TRANSACTION."));
        }
        1 => {
            if cx.st.doomed {
                return Err(doomed());
            }
            cx.st.trancount = 0;
            if let Some(txn) = cx.st.txn.take() {
                let id = txn.id().0;
                txn.commit().map_err(|e| storage::error(cx, e))?;
                cx.out.env_change(EnvChange::CommitTransaction(id));
            }
        }
        _ => cx.st.trancount -= 1,
    }
    done_plain(cx)
}

pub(crate) fn rollback(cx: &mut Cx<'_>, name: Option<&NameOrVar>) -> Result<Flow> {
    let name = match name {
        Some(name) => name_text(cx, name)?,
        None => String::new(),
    };
    if cx.st.trancount == 0 {
        return Err(error::plain(3903, "The ROLLBACK TRANSACTION request has no corresponding BEGIN TRANSACTION."));
    }
    if !name.is_empty() && name != cx.st.txn_name {
        let unknown = || {
            error::plain(6401, &format!("Cannot roll back {name}. No transaction or savepoint of that name was found."))
        };
        if cx.st.doomed {
            return Err(error::new(
                3931,
                16,
                1,
                "The current transaction cannot be committed and cannot be rolled back to a savepoint. Roll back the entire transaction.",
            ));
        }
        let txn = cx.st.txn();
        txn.rollback_to(&name).map_err(|_| unknown())?;
        return done_plain(cx);
    }
    abort(cx);
    done_plain(cx)
}

/// Rolls the whole transaction back.
pub(crate) fn abort(cx: &mut Cx<'_>) {
    let explicit = cx.st.trancount > 0;
    cx.st.trancount = 0;
    cx.st.doomed = false;
    if let Some(txn) = cx.st.txn.take() {
        let id = txn.id().0;
        txn.rollback();
        if explicit {
            cx.out.env_change(EnvChange::RollbackTransaction(id));
        }
    }
}

pub(crate) fn save(cx: &mut Cx<'_>, name: &NameOrVar) -> Result<Flow> {
    let name = name_text(cx, name)?;
    check_name(&name)?;
    if cx.st.trancount == 0 {
        return Err(error::plain(628, "Cannot issue SAVE TRANSACTION when there is no active transaction."));
    }
    check_writable(cx)?;
    cx.st.txn().savepoint(&name);
    done_plain(cx)
}
