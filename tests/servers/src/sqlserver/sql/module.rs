//! Stored modules: their parsed text.

use std::sync::Arc;

use super::error::{self, Result};
use super::parse;
use super::state::Cx;
use super::stmt::Stmt;
use crate::sqlserver::store::catalog::{Module, Object, ObjectBody};

/// The module part of an object.
pub(crate) fn module_of(object: &Object) -> Option<&Module> {
    match &object.body {
        ObjectBody::View(m)
        | ObjectBody::Procedure(m)
        | ObjectBody::ScalarFunction(m)
        | ObjectBody::InlineFunction(m)
        | ObjectBody::TableFunction(m) => Some(m),
        ObjectBody::Trigger(t) => Some(&t.module),
        _ => None,
    }
}

/// The CREATE statement of a module, parsed once per session and version.
pub(crate) fn parsed(cx: &mut Cx<'_>, object: &Object) -> Result<Arc<Stmt>> {
    let key = (object.id.0, object.modify_date);
    if let Some(found) = cx.st.modules.get(&key) {
        return Ok(Arc::clone(found));
    }
    let Some(module) = module_of(object) else { return Err(error::unknown_object(&object.name)) };
    let mut statements = parse::parse_batch(&module.definition, module.uses_quoted_identifier)?;
    if statements.len() != 1 {
        return Err(error::unsupported("module text"));
    }
    let statement = Arc::new(statements.remove(0));
    cx.st.modules.insert(key, Arc::clone(&statement));
    Ok(statement)
}
