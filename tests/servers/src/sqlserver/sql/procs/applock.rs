//! Locks of applications: `sp_getapplock`, `sp_releaseapplock`.

use super::super::error::{self, Result};
use super::super::exec::{Argument, Returned};
use super::super::state::Cx;
use super::super::sysfn;
use super::{Args, plain};
use crate::sqlserver::store::lock::AppLockMode;

pub(super) fn getapplock(cx: &mut Cx<'_>, args: &[Argument]) -> Result<Returned> {
    let a = Args { args, names: &["Resource", "LockMode", "LockOwner", "LockTimeout", "DbPrincipal"] };
    let Some(resource) = a.text(0)? else {
        return Err(error::new(
            201,
            16,
            4,
            "Procedure or function 'sp_getapplock' expects parameter '@Resource', which was not supplied.",
        ));
    };
    let Some(mode) = a.text(1)? else {
        return Err(error::new(
            201,
            16,
            4,
            "Procedure or function 'sp_getapplock' expects parameter '@LockMode', which was not supplied.",
        ));
    };
    let owner = a.text(2)?.unwrap_or_else(|| "Transaction".into());
    let timeout = a.number(3)?.unwrap_or(cx.st.settings.lock_timeout_ms);
    let who = a.text(4)?.unwrap_or_else(|| "public".into());
    let Some(mode) = AppLockMode::from_name(&mode) else { return applock_parameter("@LockMode") };
    if !owner.eq_ignore_ascii_case("session") && !owner.eq_ignore_ascii_case("transaction") {
        return applock_parameter("@LockOwner");
    }
    let Some(owner) = sysfn::applock_owner(cx, &owner) else {
        // The procedure reports a parameter error by its status and does not raise.
        return Ok(plain(-999));
    };
    let Some(name) = sysfn::applock_name(cx, &who, &resource) else { return applock_parameter("@DbPrincipal") };
    let timeout = u64::try_from(timeout).ok().map(std::time::Duration::from_millis);
    let engine = std::sync::Arc::clone(&cx.st.engine);
    let status = engine.store.locks().get_applock(&cx.st.store_session, owner, &name, mode, timeout);
    if status == -2 && cx.st.cancel.is_cancelled() {
        return Err(error::cancelled());
    }
    Ok(plain(status))
}

fn applock_parameter(name: &str) -> Result<Returned> {
    Err(error::new(8116, 16, 1, &format!("Argument data type or value of {name} is invalid for sp_getapplock.")))
}

pub(super) fn releaseapplock(cx: &mut Cx<'_>, args: &[Argument]) -> Result<Returned> {
    let a = Args { args, names: &["Resource", "LockOwner", "DbPrincipal"] };
    let Some(resource) = a.text(0)? else {
        return Err(error::new(
            201,
            16,
            4,
            "Procedure or function 'sp_releaseapplock' expects parameter '@Resource', which was not supplied.",
        ));
    };
    let owner = a.text(1)?.unwrap_or_else(|| "Transaction".into());
    let who = a.text(2)?.unwrap_or_else(|| "public".into());
    let not_held = || {
        error::plain(
            1223,
            &format!(
                "Cannot release the application lock (Database Principal: '{who}', Resource: '{resource}') because it is not currently held."
            ),
        )
    };
    let (Some(owner), Some(name)) = (sysfn::applock_owner(cx, &owner), sysfn::applock_name(cx, &who, &resource)) else {
        return Err(not_held());
    };
    match cx.st.engine.store.locks().release_applock(&cx.st.store_session, owner, &name) {
        0 => Ok(plain(0)),
        _ => Err(not_held()),
    }
}
