//! Written types: system types, and alias types of the database.

use super::ast::TypeName;
use super::bind::facets;
use super::error::{self, Result};
use super::parse;
use super::state::Cx;
use crate::sqlserver::store::catalog::{DatabaseId, Scope};
use crate::sqlserver::value::{Collation, SqlType};

/// Key of the setting that keeps an alias type.
pub(crate) fn alias_key(schema: &str, name: &str) -> String {
    format!("type:{}.{}", schema.to_lowercase(), name.to_lowercase())
}

/// A type and, for alias types and synonyms such as `sysname`, how it was written.
pub(crate) fn resolve(
    cx: &mut Cx<'_>,
    database: DatabaseId,
    ty: &TypeName,
    default_length: u16,
) -> Result<(SqlType, Option<String>)> {
    let facets = facets(ty);
    match SqlType::from_name(&ty.name, &facets, default_length, Collation::DEFAULT) {
        Ok(found) => {
            let lower = ty.name.to_ascii_lowercase();
            let declared = matches!(lower.as_str(), "sysname" | "numeric").then_some(lower);
            Ok((found, declared))
        }
        Err(e) if e.number == 243 => {
            let (schema, name) = match ty.name.rsplit_once('.') {
                Some((schema, name)) => (schema.to_owned(), name.to_owned()),
                None => ("dbo".to_owned(), ty.name.clone()),
            };
            let txn = cx.st.txn();
            let Some(text) = txn.setting(Scope::Database(database), &alias_key(&schema, &name)) else {
                return Err(error::new(
                    2715,
                    16,
                    6,
                    &format!("Column, parameter, or variable #1: Cannot find data type {}.", ty.name),
                ));
            };
            let base = parse::parse_type(&text)?;
            let (found, _) = resolve(cx, database, &base, 1)?;
            Ok((found, Some(name)))
        }
        Err(e) => Err(e.into()),
    }
}

/// A collation by name; `database_default` is the database's.
pub(crate) fn collation(_cx: &mut Cx<'_>, name: &str) -> Result<Collation> {
    if name.eq_ignore_ascii_case("database_default") || name.eq_ignore_ascii_case("catalog_default") {
        return Ok(Collation::DEFAULT);
    }
    Ok(Collation::from_name(name)?)
}
