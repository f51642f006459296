//! SET options and USE.

use super::super::api::EnvChange;
use super::super::error::{self, Result};
use super::super::state::{Cx, Isolation};
use super::super::stmt::SetOption;
use super::control::evaluate_as;
use super::{Flow, done_plain, lookup_table};
use crate::sqlserver::value::{DateFormat, SqlType};

pub(super) fn set_option(cx: &mut Cx<'_>, option: &SetOption) -> Result<Flow> {
    match option {
        SetOption::Switch { names, on } => {
            for name in names {
                switch(cx, name, *on)?;
            }
        }
        SetOption::Value { name, value } => {
            if name == "context_info" {
                cx.st.context_info = evaluate_as(cx, value, &SqlType::varbinary(128))?;
                return done_plain(cx);
            }
            let number = evaluate_as(cx, value, &SqlType::BigInt)?.as_i64().unwrap_or(0);
            number_option(cx, name, number)?;
        }
        SetOption::Word { name, word } => word_option(cx, name, word)?,
        SetOption::Isolation(level) => {
            cx.st.settings.isolation = match level.as_str() {
                "read uncommitted" => Isolation::ReadUncommitted,
                "repeatable read" => Isolation::RepeatableRead,
                "serializable" => Isolation::Serializable,
                "snapshot" => Isolation::Snapshot,
                _ => Isolation::ReadCommitted,
            };
        }
        SetOption::IdentityInsert { table, on } => identity_insert(cx, table, *on)?,
    }
    done_plain(cx)
}

fn switch(cx: &mut Cx<'_>, name: &str, on: bool) -> Result<()> {
    let settings = &mut cx.st.settings;
    match name {
        "nocount" => settings.nocount = on,
        "xact_abort" => settings.xact_abort = on,
        "implicit_transactions" => settings.implicit_transactions = on,
        "quoted_identifier" => settings.quoted_identifier = on,
        "ansi_nulls" => {
            if !on {
                return Err(error::unsupported("SET ANSI_NULLS OFF"));
            }
        }
        "ansi_warnings" => settings.ansi_warnings = on,
        "ansi_padding" => settings.ansi_padding = on,
        "ansi_null_dflt_on" => settings.ansi_null_dflt_on = on,
        "ansi_null_dflt_off" => settings.ansi_null_dflt_on = !on,
        "concat_null_yields_null" => {
            if !on {
                return Err(error::unsupported("SET CONCAT_NULL_YIELDS_NULL OFF"));
            }
        }
        "arithabort" => settings.arithabort = on,
        "ansi_defaults" => {
            settings.quoted_identifier = on;
            settings.implicit_transactions = on;
            settings.ansi_warnings = on;
        }
        "fmtonly" => settings.fmtonly = on,
        "noexec" => settings.noexec = on,
        "parseonly" => settings.parseonly = on,
        "showplan_all" | "showplan_text" | "showplan_xml" if on => return Err(error::unsupported("SHOWPLAN")),
        // These change what a plan costs or how a client is told about it, not what a statement answers.
        "arithignore"
        | "numeric_roundabort"
        | "cursor_close_on_commit"
        | "forceplan"
        | "remote_proc_transactions"
        | "no_browsetable"
        | "statistics"
        | "disable_def_cnst_chk"
        | "fips_flagger"
        | "showplan_all"
        | "showplan_text"
        | "showplan_xml" => {}
        other => return Err(error::syntax(other, 0)),
    }
    Ok(())
}

fn number_option(cx: &mut Cx<'_>, name: &str, number: i64) -> Result<()> {
    match name {
        "lock_timeout" => {
            cx.st.settings.lock_timeout_ms = number.max(-1);
            cx.st.store_session.set_lock_timeout_ms(number.max(-1));
        }
        "rowcount" => {
            cx.st.settings.rowcount = u64::try_from(number)
                .map_err(|_| error::new(1014, 15, 1, "A TOP or FETCH clause contains an invalid value."))?;
        }
        "textsize" => {
            let size = i32::try_from(number).unwrap_or(i32::MAX);
            cx.st.settings.textsize = match size {
                -1 => i32::MAX,
                0 => 4096,
                size => size,
            };
        }
        "datefirst" => {
            cx.st.settings.date_first = u8::try_from(number)
                .ok()
                .filter(|n| (1..=7).contains(n))
                .ok_or_else(|| error::plain(2742, &format!("SET DATEFIRST {number} is out of range.")))?;
        }
        "deadlock_priority" => set_priority(cx, number)?,
        "query_governor_cost_limit" => {}
        other => return Err(error::syntax(other, 0)),
    }
    Ok(())
}

fn set_priority(cx: &mut Cx<'_>, number: i64) -> Result<()> {
    let priority = i32::try_from(number).ok().filter(|p| (-10..=10).contains(p));
    let Some(priority) = priority else {
        return Err(error::new(102, 15, 1, &format!("Incorrect syntax near '{number}'.")));
    };
    cx.st.settings.deadlock_priority = priority;
    cx.st.store_session.set_deadlock_priority(priority);
    Ok(())
}

fn word_option(cx: &mut Cx<'_>, name: &str, word: &str) -> Result<()> {
    let lower = word.to_ascii_lowercase();
    match name {
        "deadlock_priority" => match lower.as_str() {
            "low" => set_priority(cx, -5),
            "normal" => set_priority(cx, 0),
            "high" => set_priority(cx, 5),
            _ => Err(error::syntax(word, 0)),
        },
        "dateformat" => {
            cx.st.settings.date_format = match lower.as_str() {
                "mdy" => DateFormat::Mdy,
                "dmy" => DateFormat::Dmy,
                "ymd" => DateFormat::Ymd,
                "ydm" => DateFormat::Ydm,
                "myd" => DateFormat::Myd,
                "dym" => DateFormat::Dym,
                _ => return Err(error::plain(2741, &format!("SET DATEFORMAT date order '{word}' is invalid."))),
            };
            Ok(())
        }
        "language" => {
            if lower != "us_english" && lower != "english" {
                return Err(error::plain(
                    2743,
                    &format!("'{word}' is not an official language name or a language alias on this SQL Server."),
                ));
            }
            let old = std::mem::replace(&mut cx.st.settings.language, "us_english".into());
            cx.out.env_change(EnvChange::Language("us_english".into(), old.clone()));
            let info = error::new(5703, 0, 1, "Changed language setting to us_english.");
            cx.out.info(&super::placed(cx, info));
            Ok(())
        }
        _ => Err(error::syntax(word, 0)),
    }
}

fn identity_insert(cx: &mut Cx<'_>, name: &super::super::ast::Name, on: bool) -> Result<()> {
    let object = lookup_table(cx, name)?;
    let shown = name.display();
    let has_identity = object.table().is_some_and(|t| t.columns.iter().any(|c| c.identity.is_some()));
    if !has_identity {
        return Err(error::plain(
            8106,
            &format!("Table '{shown}' does not have the identity property. Cannot perform SET operation."),
        ));
    }
    if !on {
        if cx.st.settings.identity_insert == Some(object.id) {
            cx.st.settings.identity_insert = None;
        }
        return Ok(());
    }
    if let Some(other) = cx.st.settings.identity_insert.filter(|o| *o != object.id) {
        let txn = cx.st.txn();
        if let Some(other) = txn.object(other) {
            let database = super::super::lookup::database_name(cx, other.database);
            let schema = super::super::lookup::schema_name(cx, &other);
            return Err(error::plain(
                8107,
                &format!(
                    "IDENTITY_INSERT is already ON for table '{database}.{schema}.{}'. Cannot perform SET operation for table '{shown}'.",
                    other.name
                ),
            ));
        }
    }
    cx.st.settings.identity_insert = Some(object.id);
    Ok(())
}

/// Changes the database and tells the client.
pub(super) fn use_database(cx: &mut Cx<'_>, name: &str) -> Result<Flow> {
    let txn = cx.st.txn();
    let Some(database) = txn.find_database(name) else {
        return Err(error::plain(
            911,
            &format!("Database '{name}' does not exist. Make sure that the name is entered correctly."),
        ));
    };
    if super::super::principal::user_in(cx, database.id).is_none() {
        let login = cx.st.identity.login.clone();
        return Err(error::new(
            916,
            14,
            2,
            &format!(
                "The server principal \"{login}\" is not able to access the database \"{name}\" under the current security context."
            ),
        ));
    }
    let old = std::mem::replace(&mut cx.st.database_name, database.name.clone());
    cx.st.database = database.id;
    cx.out.env_change(EnvChange::Database(database.name.clone(), old));
    let info = error::new(5701, 0, 1, &format!("Changed database context to '{}'.", database.name));
    cx.out.info(&super::placed(cx, info));
    done_plain(cx)
}
