//! Batches with parameters, at once or kept under a handle: `sp_executesql`, `sp_prepare` and their kin.

use super::super::error::{self, Result};
use super::super::exec::{self, Argument, Returned};
use super::super::parse;
use super::super::state::{Cx, Prepared};
use super::super::stmt::Param;
use super::{Args, plain, positional_text};
use crate::sqlserver::value::{SqlType, Value};

/// Statement, parameter declarations and the arguments after them.
pub(super) fn executesql(cx: &mut Cx<'_>, args: &[Argument]) -> Result<Returned> {
    let named = Args { args, names: &["stmt", "params"] };
    let text = named.text(0)?;
    let Some(first) = args.first() else {
        return Err(error::new(
            201,
            16,
            10,
            "Procedure or function 'sp_executesql' expects parameter '@statement', which was not supplied.",
        ));
    };
    if first.value.as_ref().is_some_and(|(_, ty)| !ty.is_unicode() && *ty != SqlType::Null) {
        return Err(error::new(214, 16, 2, "Procedure expects parameter '@statement' of type 'ntext/nchar/nvarchar'."));
    }
    let Some(text) = text.or(positional_text(args, 0)?) else { return Ok(plain(0)) };
    let declared = match args.get(1) {
        Some(_) => positional_text(args, 1)?.unwrap_or_default(),
        None => String::new(),
    };
    let params = parse::parse_parameters(&declared)?;
    let rest = args.get(2..).unwrap_or(&[]);
    run_prepared(cx, &text, &params, rest, 2)
}

/// Runs text with arguments; `offset` is the place of the first argument in the call.
fn run_prepared(cx: &mut Cx<'_>, text: &str, params: &[Param], args: &[Argument], offset: usize) -> Result<Returned> {
    let mut returned = exec::execute_text(cx, text, params, args)?;
    for output in &mut returned.outputs {
        output.0 += offset;
    }
    Ok(returned)
}

fn keep(cx: &mut Cx<'_>, args: &[Argument]) -> Result<(i32, Prepared)> {
    let declared = positional_text(args, 1)?.unwrap_or_default();
    let text = positional_text(args, 2)?.unwrap_or_default();
    // A statement that cannot be compiled is refused now.
    parse::parse_batch(&text, cx.st.settings.quoted_identifier)?;
    let prepared = Prepared { text: text.into(), params: parse::parse_parameters(&declared)? };
    cx.st.next_handle += 1;
    let handle = cx.st.next_handle;
    cx.st.prepared.insert(handle, prepared.clone());
    Ok((handle, prepared))
}

pub(super) fn prepare(cx: &mut Cx<'_>, args: &[Argument]) -> Result<Returned> {
    let (handle, _) = keep(cx, args)?;
    Ok(Returned { status: 0, outputs: vec![(0, handle_name(args), SqlType::Int, Value::Int(handle))] })
}

fn handle_name(args: &[Argument]) -> String {
    args.first().map_or_else(String::new, |a| a.name.clone())
}

pub(super) fn prepexec(cx: &mut Cx<'_>, args: &[Argument]) -> Result<Returned> {
    // A handle that comes in is given up for the new one.
    if let Some(old) = args.first().and_then(|a| a.value.as_ref()).and_then(|(v, _)| v.as_i64()) {
        cx.st.prepared.remove(&i32::try_from(old).unwrap_or(0));
    }
    let (handle, prepared) = keep(cx, args)?;
    let rest = args.get(3..).unwrap_or(&[]);
    let mut returned = run_prepared(cx, &prepared.text, &prepared.params, rest, 3)?;
    returned.outputs.insert(0, (0, handle_name(args), SqlType::Int, Value::Int(handle)));
    Ok(returned)
}

pub(super) fn execute(cx: &mut Cx<'_>, args: &[Argument]) -> Result<Returned> {
    let handle = args.first().and_then(|a| a.value.as_ref()).and_then(|(v, _)| v.as_i64()).unwrap_or(0);
    let handle = i32::try_from(handle).unwrap_or(0);
    let Some(prepared) = cx.st.prepared.get(&handle).cloned() else {
        return Err(error::new(8179, 16, 2, &format!("Could not find prepared statement with handle {handle}.")));
    };
    run_prepared(cx, &prepared.text, &prepared.params, args.get(1..).unwrap_or(&[]), 1)
}

pub(super) fn unprepare(cx: &mut Cx<'_>, args: &[Argument]) -> Result<Returned> {
    let handle = args.first().and_then(|a| a.value.as_ref()).and_then(|(v, _)| v.as_i64()).unwrap_or(0);
    let handle = i32::try_from(handle).unwrap_or(0);
    if cx.st.prepared.remove(&handle).is_none() {
        return Err(error::new(8179, 16, 2, &format!("Could not find prepared statement with handle {handle}.")));
    }
    Ok(plain(0))
}
