//! DBCC CHECKIDENT and the few others that clients send.

use super::super::ast::Expr;
use super::super::error::{self, Result};
use super::super::parse;
use super::super::state::Cx;
use super::control::evaluate;
use super::{Flow, done_plain, lookup_table, placed};
use crate::sqlserver::store::CounterKey;
use crate::sqlserver::value::Value;

pub(super) fn run(cx: &mut Cx<'_>, name: &str, args: &[Expr]) -> Result<Flow> {
    match name {
        "checkident" => check_identity(cx, args)?,
        "useroptions" => return super::super::procs::user_options(cx),
        "freeproccache" | "dropcleanbuffers" | "traceon" | "traceoff" => {
            super::super::permission::check_server(cx, "ALTER SERVER STATE")?;
        }
        _ => {
            return Err(error::plain(
                2526,
                "Incorrect DBCC statement. Check the documentation for the correct DBCC syntax and options.",
            ));
        }
    }
    cx.out.info(&placed(
        cx,
        error::new(
            2528,
            0,
            1,
            "DBCC execution completed. If DBCC printed error messages, contact your system administrator.",
        ),
    ));
    done_plain(cx)
}

fn check_identity(cx: &mut Cx<'_>, args: &[Expr]) -> Result<()> {
    let mut texts = Vec::new();
    for arg in args {
        texts.push(evaluate(cx, arg)?.0);
    }
    let Some(Value::String(table)) = texts.first() else {
        return Err(error::plain(2583, "An incorrect number of parameters was given to the DBCC statement."));
    };
    let name = parse::parse_name(&table.to_string())?;
    let object = lookup_table(cx, &name)?;
    super::super::permission::check_alter(cx, &object)?;
    let identity = object.table().and_then(|t| t.columns.iter().find_map(|c| c.identity));
    let Some(identity) = identity else {
        return Err(error::plain(7997, &format!("'{}' does not contain an identity column.", object.name)));
    };
    let key = CounterKey::Identity(object.id);
    let current = cx.st.engine.store.counter(key);
    let shown = current.map_or_else(|| "NULL".to_owned(), |n| n.to_string());
    let word = match texts.get(1) {
        Some(Value::String(word)) => word.to_string().to_ascii_lowercase(),
        _ => String::new(),
    };
    if word == "reseed"
        && let Some(value) = texts.get(2)
    {
        let new = super::dml::integer_of(value).unwrap_or(0);
        let txn = cx.st.txn();
        // In a table that never had a row the new value is the first one, else the last one used.
        let last = if current.is_none() { new - identity.increment } else { new };
        txn.set_counter(key, Some(last));
    }
    let message = format!("Checking identity information: current identity value '{shown}'.");
    cx.out.info(&placed(cx, error::new(7998, 0, 1, &message)));
    Ok(())
}
