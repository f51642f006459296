//! CREATE and ALTER of views, procedures, functions and triggers.

use std::sync::Arc;

use super::super::super::ast::Name;
use super::super::super::bind::{Binder, same_name};
use super::super::super::error::{self, Result};
use super::super::super::state::{Cx, now_micros};
use super::super::super::stmt::{CreateModule, ModuleBody, ModuleKind, TriggerEvent};
use super::super::super::{lookup, permission};
use super::super::{Flow, done_plain};
use super::{check_free, find_locked, new_object, place, put};
use crate::sqlserver::store::catalog::{Module, Object, ObjectBody, TriggerDef};

fn body_of(cx: &mut Cx<'_>, create: &CreateModule, module: Module, place: &super::Place) -> Result<ObjectBody> {
    Ok(match &create.body {
        ModuleBody::View { .. } => ObjectBody::View(module),
        ModuleBody::Procedure(_) => ObjectBody::Procedure(module),
        ModuleBody::ScalarFunction { .. } => ObjectBody::ScalarFunction(module),
        ModuleBody::InlineFunction(_) => ObjectBody::InlineFunction(module),
        ModuleBody::TableFunction { .. } => ObjectBody::TableFunction(module),
        ModuleBody::Trigger { table, instead, events, .. } => {
            let mut name = table.clone();
            if name.schema().is_none()
                && let Some(schema) = lookup::schema(cx, place.database, place.schema)
            {
                name = Name { parts: vec![schema.name.clone(), name.base().to_owned()] };
            }
            let parent = find_locked(cx, &name)?;
            let parent = parent.filter(|o| matches!(o.body, ObjectBody::Table(_) | ObjectBody::View(_)));
            let Some(parent) = parent else {
                return Err(error::new(
                    8197,
                    16,
                    4,
                    &format!("The object '{}' does not exist or is invalid for this operation.", table.display()),
                ));
            };
            if matches!(parent.body, ObjectBody::View(_)) {
                return Err(error::unsupported("trigger on a view"));
            }
            permission::check_alter(cx, &parent)?;
            if *instead {
                check_single_instead(cx, &parent, events, create)?;
            }
            ObjectBody::Trigger(TriggerDef {
                parent: parent.id,
                on_insert: events.contains(&TriggerEvent::Insert),
                on_update: events.contains(&TriggerEvent::Update),
                on_delete: events.contains(&TriggerEvent::Delete),
                instead_of: *instead,
                disabled: false,
                module,
            })
        }
    })
}

fn check_single_instead(
    cx: &mut Cx<'_>,
    parent: &Object,
    events: &[TriggerEvent],
    create: &CreateModule,
) -> Result<()> {
    let txn = cx.st.txn();
    for object in txn.objects(parent.database) {
        let ObjectBody::Trigger(other) = &object.body else { continue };
        let clash = other.parent == parent.id
            && other.instead_of
            && !same_name(&object.name, create.name.base())
            && events.iter().any(|e| match e {
                TriggerEvent::Insert => other.on_insert,
                TriggerEvent::Update => other.on_update,
                TriggerEvent::Delete => other.on_delete,
            });
        if clash {
            return Err(error::new(
                2111,
                16,
                1,
                &format!(
                    "Cannot create trigger '{}' on table '{}' because an INSTEAD OF trigger on this object already exists for that action.",
                    create.name.display(),
                    parent.name
                ),
            ));
        }
    }
    Ok(())
}

fn kind_matches(body: &ObjectBody, kind: ModuleKind) -> bool {
    matches!(
        (body, kind),
        (ObjectBody::View(_), ModuleKind::View)
            | (ObjectBody::Procedure(_), ModuleKind::Procedure)
            | (
                ObjectBody::ScalarFunction(_) | ObjectBody::InlineFunction(_) | ObjectBody::TableFunction(_),
                ModuleKind::Function
            )
            | (ObjectBody::Trigger(_), ModuleKind::Trigger)
    )
}

pub(super) fn create(cx: &mut Cx<'_>, create: &CreateModule) -> Result<()> {
    if create.name.database().is_some() {
        let word = match create.kind {
            ModuleKind::View => "CREATE VIEW",
            ModuleKind::Trigger => "CREATE TRIGGER",
            ModuleKind::Function => "CREATE FUNCTION",
            ModuleKind::Procedure => "CREATE/ALTER PROCEDURE",
        };
        return Err(error::new(
            166,
            15,
            1,
            &format!("'{word}' does not allow specifying the database name as a prefix to the object name."),
        ));
    }
    let mut place = place(cx, &create.name)?;
    // A trigger lives in the schema of its table.
    if let ModuleBody::Trigger { table, .. } = &create.body
        && create.name.schema().is_none()
        && let Some(parent) = lookup::find(cx, table)
    {
        place.schema = parent.schema;
    }
    let action = match create.kind {
        ModuleKind::View => Some("CREATE VIEW"),
        ModuleKind::Procedure => Some("CREATE PROCEDURE"),
        ModuleKind::Function => Some("CREATE FUNCTION"),
        ModuleKind::Trigger => None,
    };
    let existing = find_locked(cx, &create.name)?;
    let replaces = create.alter || create.or_alter && existing.is_some();
    if replaces {
        let Some(existing) = existing.filter(|o| kind_matches(&o.body, create.kind)) else {
            return Err(error::plain(208, &format!("Invalid object name '{}'.", create.name.display())));
        };
        permission::check_alter(cx, &existing)?;
        let module = module_record(cx, create);
        let body = body_of(cx, create, module, &place)?;
        check_body(cx, create)?;
        let mut object = (*existing).clone();
        object.body = body;
        object.modify_date = now_micros();
        return put(cx, object);
    }
    if let Some(action) = action {
        permission::check_create(cx, place.database, place.schema, action)?;
    }
    check_free(cx, &place, create.name.base())?;
    let module = module_record(cx, create);
    let body = body_of(cx, create, module, &place)?;
    check_body(cx, create)?;
    let object = new_object(cx, &place, create.name.base(), body);
    put(cx, object)
}

fn module_record(cx: &mut Cx<'_>, create: &CreateModule) -> Module {
    let execute_as = create.execute_as.as_ref().map(|_| super::super::super::principal::DBO);
    Module {
        definition: create.text.clone(),
        uses_quoted_identifier: cx.st.settings.quoted_identifier,
        uses_ansi_nulls: cx.st.settings.ansi_nulls,
        schema_bound: create.schema_binding,
        execute_as,
    }
}

/// A view's query is bound when it is created; other bodies when they run.
fn check_body(cx: &mut Cx<'_>, create: &CreateModule) -> Result<()> {
    let ModuleBody::View { query, check_option } = &create.body else { return Ok(()) };
    if *check_option {
        return Err(error::unsupported("WITH CHECK OPTION"));
    }
    if !query.order.is_empty() {
        let limited = query.offset.is_some()
            || matches!(&query.body, super::super::super::ast::Body::Select(s) if s.top.is_some());
        if !limited {
            return Err(error::new(
                1033,
                15,
                1,
                "The ORDER BY clause is invalid in views, inline functions, derived tables, subqueries, and common table expressions, unless TOP, OFFSET or FOR XML is also specified.",
            ));
        }
    }
    let plan = Binder::new(cx).bind_query(query, None)?;
    if create.columns.is_empty() {
        if let Some(at) = plan.cols.iter().position(|c| c.name.is_empty()) {
            return Err(error::new(
                4511,
                16,
                1,
                &format!("Create View or Function failed because no column name was specified for column {}.", at + 1),
            ));
        }
        for (at, col) in plan.cols.iter().enumerate() {
            if plan.cols[..at].iter().any(|c| same_name(&c.name, &col.name)) {
                return Err(error::plain(
                    4506,
                    &format!(
                        "Column names in each view or function must be unique. Column name '{}' in view or function '{}' is specified more than once.",
                        col.name,
                        create.name.base()
                    ),
                ));
            }
        }
    } else if create.columns.len() != plan.cols.len() {
        return Err(error::plain(
            4502,
            &format!("View or function '{}' has more column names specified than columns defined.", create.name.base()),
        ));
    }
    Ok(())
}

fn set_disabled(cx: &mut Cx<'_>, object: &Object, disabled: bool) -> Result<()> {
    let mut object = object.clone();
    if let ObjectBody::Trigger(trigger) = &mut object.body {
        trigger.disabled = disabled;
    }
    put(cx, object)
}

/// ALTER TABLE ... ENABLE or DISABLE TRIGGER.
pub(super) fn set_triggers(cx: &mut Cx<'_>, table: &Arc<Object>, enable: bool, names: &[String]) -> Result<()> {
    let txn = cx.st.txn();
    let triggers: Vec<_> = txn.objects(table.database).into_iter().filter(|o| o.parent() == Some(table.id)).collect();
    for name in names {
        if !triggers.iter().any(|t| same_name(&t.name, name)) {
            return Err(error::plain(
                4920,
                &format!("ALTER TABLE failed because trigger '{name}' on table '{}' does not exist.", table.name),
            ));
        }
    }
    for trigger in triggers {
        if names.is_empty() || names.iter().any(|n| same_name(n, &trigger.name)) {
            set_disabled(cx, &trigger, !enable)?;
        }
    }
    Ok(())
}

/// ENABLE TRIGGER and DISABLE TRIGGER.
pub(crate) fn enable_triggers(cx: &mut Cx<'_>, enable: bool, names: &[Name], table: Option<&Name>) -> Result<Flow> {
    let Some(table) = table else { return Err(error::syntax("TRIGGER", 0)) };
    let object = super::table_of(cx, table, 1088)?;
    let names: Vec<String> = names.iter().map(|n| n.base().to_owned()).collect();
    set_triggers(cx, &object, enable, &names)?;
    done_plain(cx)
}
