//! CREATE TABLE and its parts, table variables, SELECT INTO.

use super::super::super::ast::{Expr, Name};
use super::super::super::bind::{facets, same_name};
use super::super::super::error::{self, Result};
use super::super::super::plan::OutCol;
use super::super::super::state::Cx;
use super::super::super::stmt::{ColumnDef, Constraint, ConstraintKind, CreateIndex, CreateTable, TableElement};
use super::super::super::{deparse, permission, storage, types};
use super::super::dml::bind_text;
use super::{Place, check_free, new_object, note_temporary, place, put};
use crate::sqlserver::store::catalog::{
    Column, Computed, DBO_SCHEMA, DefaultConstraint, Identity, Object, ObjectBody, ObjectId, TEMPDB, TableDef,
};
use crate::sqlserver::value::SqlType;

mod constraint;

pub(super) use self::constraint::check_key_type;

/// Builds a table definition element by element.
pub(super) struct Builder {
    pub(super) object: Object,
    pub(super) def: TableDef,
    /// Constraints whose columns may come later in the list.
    pending: Vec<(Option<i32>, Constraint)>,
    indexes: Vec<CreateIndex>,
}

impl Builder {
    pub(super) fn new(object: Object) -> Self {
        let def = object.table().cloned().unwrap_or_default();
        Self { object, def, pending: Vec::new(), indexes: Vec::new() }
    }

    /// A name as SQL Server makes them up: `PK__table__` and eight bytes in hexadecimal.
    fn generated(cx: &mut Cx<'_>, prefix: &str, table: &str, column: &str, id: ObjectId) -> String {
        let short = |s: &str, n: usize| s.chars().take(n).collect::<String>();
        let number = cx.st.internal_number();
        let suffix = format!("{:08X}{:08X}", id.0, number.wrapping_mul(0x9E37_79B9) & 0xFFFF_FFFF);
        match prefix {
            "PK" | "UQ" => format!("{prefix}__{}__{suffix}", short(table, 8)),
            _ => format!("{prefix}__{}__{}__{:08X}", short(table, 9), short(column, 5), id.0),
        }
    }

    pub(super) fn add(&mut self, cx: &mut Cx<'_>, element: &TableElement) -> Result<()> {
        match element {
            TableElement::Column(column) => self.add_column(cx, column),
            TableElement::Constraint(constraint) => {
                self.pending.push((None, constraint.clone()));
                Ok(())
            }
            TableElement::Index(index) => {
                self.indexes.push(index.clone());
                Ok(())
            }
        }
    }

    fn add_column(&mut self, cx: &mut Cx<'_>, column: &ColumnDef) -> Result<()> {
        if self.def.columns.iter().any(|c| same_name(&c.name, &column.name)) {
            return Err(error::new(
                2705,
                16,
                3,
                &format!(
                    "Column names in each table must be unique. Column name '{}' in table '{}' is specified more than once.",
                    column.name, self.object.name
                ),
            ));
        }
        if self.def.columns.len() >= 1024 {
            return Err(error::plain(
                1702,
                &format!(
                    "CREATE TABLE failed because column '{}' in table '{}' exceeds the maximum of 1024 columns.",
                    column.name, self.object.name
                ),
            ));
        }
        let (mut ty, declared_type) = match (&column.ty, &column.computed) {
            (Some(ty), _) => types::resolve(cx, self.object.database, ty, 1)
                .map_err(|e| renumber(e, &ty.name, &column.name, self.def.columns.len()))?,
            (None, Some((expr, text, _))) => {
                let text = deparse::definition(expr, text);
                let cols = columns_of(&self.def);
                (bind_text(cx, &self.object, &text, &cols)?.1, None)
            }
            (None, None) => return Err(error::syntax(&column.name, 0)),
        };
        if let Some(name) = &column.collation {
            ty = ty.with_collation(types::collation(cx, name)?);
        }
        let primary = column.constraints.iter().any(|c| matches!(c.kind, ConstraintKind::Key { primary: true, .. }));
        if primary && column.nullable == Some(true) {
            return Err(error::plain(
                8111,
                &format!("Cannot define PRIMARY KEY constraint on nullable column in table '{}'.", self.object.name),
            ));
        }
        self.check_identity(column, &ty)?;
        if ty == SqlType::RowVersion && self.def.columns.iter().any(|c| c.ty == SqlType::RowVersion) {
            return Err(error::plain(
                2738,
                &format!(
                    "A table can only have one timestamp column. Because table '{}' already has one, the column '{}' cannot be added.",
                    self.object.name, column.name
                ),
            ));
        }
        self.def.max_column_id += 1;
        let id = self.def.max_column_id;
        let not_null = primary || column.identity.is_some() || ty == SqlType::RowVersion && column.nullable.is_none();
        let nullable = column.nullable.unwrap_or(!not_null);
        let default = match &column.default {
            Some((name, expr, text)) => Some(self.default(cx, name.as_ref(), expr, text, &column.name)?),
            None => None,
        };
        let computed = column.computed.as_ref().map(|(expr, text, persisted)| Computed {
            definition: deparse::definition(expr, text),
            persisted: *persisted,
        });
        self.def.columns.push(Column {
            id,
            name: column.name.clone(),
            ty,
            declared_type,
            nullable,
            default,
            identity: column.identity.map(|(seed, increment)| Identity {
                seed: i128::from(seed),
                increment: i128::from(increment),
                not_for_replication: false,
            }),
            computed,
            rowguidcol: column.rowguidcol,
        });
        self.pending.extend(column.constraints.iter().map(|c| (Some(id), c.clone())));
        self.indexes.extend(column.indexes.iter().cloned());
        Ok(())
    }

    fn check_identity(&self, column: &ColumnDef, ty: &SqlType) -> Result<()> {
        if column.identity.is_none() {
            return Ok(());
        }
        if self.def.columns.iter().any(|c| c.identity.is_some()) {
            return Err(error::new(
                2744,
                16,
                2,
                &format!(
                    "Multiple identity columns specified for table '{}'. Only one identity column per table is allowed.",
                    self.object.name
                ),
            ));
        }
        if !(ty.is_integer() && *ty != SqlType::Bit || matches!(ty, SqlType::Decimal { scale: 0, .. })) {
            return Err(error::new(
                2749,
                16,
                2,
                &format!(
                    "Identity column '{}' must be of data type int, bigint, smallint, tinyint, or decimal or numeric with a scale of 0, unencrypted, and constrained to be nonnullable.",
                    column.name
                ),
            ));
        }
        if column.nullable == Some(true) {
            return Err(error::new(
                8147,
                16,
                1,
                &format!(
                    "Could not create IDENTITY attribute on nullable column '{}', table '{}'.",
                    column.name, self.object.name
                ),
            ));
        }
        if column.default.is_some() {
            return Err(error::plain(
                1754,
                &format!(
                    "Defaults cannot be created on columns with an IDENTITY attribute. Table '{}', column '{}'.",
                    self.object.name, column.name
                ),
            ));
        }
        if column.identity.is_some_and(|(_, increment)| increment == 0) {
            return Err(error::plain(
                2748,
                &format!("Cannot specify 0 increment for identity column '{}'.", column.name),
            ));
        }
        Ok(())
    }

    fn default(
        &mut self,
        cx: &mut Cx<'_>,
        name: Option<&String>,
        expr: &Expr,
        text: &str,
        column: &str,
    ) -> Result<DefaultConstraint> {
        let object_id = cx.st.engine.store.allocate_object_id();
        let definition = deparse::definition(expr, text);
        let bound = bind_text(cx, &self.object, &definition, &[]);
        if let Err(e) = bound {
            if e.number == 207 || e.number == 4104 {
                return Err(error::new(
                    128,
                    15,
                    1,
                    &format!(
                        "The name \"{column}\" is not permitted in this context. Valid expressions are constants, constant expressions, and (in some contexts) variables. Column names are not permitted."
                    ),
                ));
            }
            return Err(e);
        }
        let (name, system_named) = match name {
            Some(name) => (name.clone(), false),
            None => (Self::generated(cx, "DF", &self.object.name, column, object_id), true),
        };
        self.check_name(cx, &name)?;
        Ok(DefaultConstraint { object_id, name, system_named, definition })
    }

    fn check_name(&self, cx: &mut Cx<'_>, name: &str) -> Result<()> {
        let place = Place { database: self.object.database, schema: self.object.schema, session: self.object.session };
        if self.object.session.is_some() {
            return Ok(());
        }
        check_free(cx, &place, name).map_err(|e| e.at_line(cx.st.line))
    }

    /// Adds what waited for all columns.
    pub(super) fn finish_elements(&mut self, cx: &mut Cx<'_>, check: Option<bool>) -> Result<()> {
        for (column, constraint) in std::mem::take(&mut self.pending) {
            self.add_constraint(cx, column, &constraint, check)?;
        }
        for index in std::mem::take(&mut self.indexes) {
            super::index::add(&mut self.def, &self.object.name, &index)?;
        }
        Ok(())
    }
}

/// Errors of types name the column by its number.
fn renumber(
    mut e: super::super::super::api::SqlError,
    ty: &str,
    column: &str,
    at: usize,
) -> super::super::super::api::SqlError {
    if e.number == 243 || e.number == 2715 {
        e = error::new(
            2715,
            16,
            6,
            &format!("Column, parameter, or variable #{}: Cannot find data type {ty}.", at + 1),
        );
    }
    if e.number == 2716 || e.number == 2750 || e.number == 2751 {
        e.message = e.message.replace("#1", &format!("#{}", at + 1));
    }
    let _ = column;
    e
}

/// Columns of a definition as a source.
pub(super) fn columns_of(def: &TableDef) -> Vec<OutCol> {
    def.columns
        .iter()
        .map(|c| OutCol {
            name: c.name.clone(),
            ty: c.ty,
            nullable: c.nullable,
            identity: c.identity.is_some(),
            computed: c.computed.is_some(),
            coercibility: crate::sqlserver::value::Coercibility::Implicit,
        })
        .collect()
}

pub(super) fn create(cx: &mut Cx<'_>, create: &CreateTable) -> Result<()> {
    let place = place(cx, &create.name)?;
    if place.session.is_none() {
        permission::check_create(cx, place.database, place.schema, "CREATE TABLE")?;
    }
    check_free(cx, &place, create.name.base())?;
    let object = new_object(cx, &place, create.name.base(), ObjectBody::Table(TableDef::default()));
    let id = object.id;
    let mut builder = Builder::new(object);
    for element in &create.elements {
        builder.add(cx, element)?;
    }
    builder.finish_elements(cx, None)?;
    if builder.def.columns.is_empty() {
        return Err(error::syntax(")", 0));
    }
    let mut object = builder.object;
    object.body = ObjectBody::Table(builder.def);
    put(cx, object)?;
    note_temporary(cx, &place, id);
    Ok(())
}

/// DECLARE @t TABLE: a temporary table outside the session's transaction.
pub(crate) fn declare_table_variable(cx: &mut Cx<'_>, name: &str, elements: &[TableElement]) -> Result<()> {
    let key = name.to_lowercase();
    if cx.st.frame().tables.contains_key(&key) {
        return Ok(());
    }
    let number = cx.st.internal_number();
    let place = Place { database: TEMPDB, schema: DBO_SCHEMA, session: Some(i32::from(cx.st.id)) };
    let mut object = new_object(cx, &place, &format!("#{name}_{number:08X}"), ObjectBody::Table(TableDef::default()));
    object.name = format!("#{name}_{number:08X}");
    let id = object.id;
    let mut builder = Builder::new(object);
    for element in elements {
        builder.add(cx, element)?;
    }
    builder.finish_elements(cx, None)?;
    let mut object = builder.object;
    object.body = ObjectBody::Table(builder.def);
    let txn = cx.st.variable_txn();
    txn.put(object).map_err(|e| storage::error(cx, e))?;
    cx.st.frame_mut().tables.insert(key, id);
    Ok(())
}

/// The table of SELECT INTO.
pub(crate) fn create_from_columns(cx: &mut Cx<'_>, name: &Name, cols: &[OutCol]) -> Result<ObjectId> {
    let place = place(cx, name)?;
    if place.session.is_none() {
        permission::check_create(cx, place.database, place.schema, "CREATE TABLE")?;
    }
    check_free(cx, &place, name.base())?;
    let mut def = TableDef::default();
    for (at, col) in cols.iter().enumerate() {
        if col.name.is_empty() {
            return Err(error::new(
                1038,
                15,
                5,
                "An object or column name is missing or empty. For SELECT INTO statements, verify each column has a name. For other statements, look for empty alias names. Aliases defined as \"\" or [] are not allowed. Change the alias to a valid name.",
            ));
        }
        if cols[..at].iter().any(|c| same_name(&c.name, &col.name)) {
            return Err(error::new(
                2705,
                16,
                3,
                &format!(
                    "Column names in each table must be unique. Column name '{}' in table '{}' is specified more than once.",
                    col.name,
                    name.base()
                ),
            ));
        }
        def.max_column_id += 1;
        let ty = if col.ty == SqlType::Null { SqlType::Int } else { col.ty };
        def.columns.push(Column {
            id: def.max_column_id,
            name: col.name.clone(),
            ty,
            declared_type: None,
            nullable: col.nullable,
            default: None,
            identity: col.identity.then_some(Identity { seed: 1, increment: 1, not_for_replication: false }),
            computed: None,
            rowguidcol: false,
        });
    }
    let object = new_object(cx, &place, name.base(), ObjectBody::Table(def));
    let id = object.id;
    put(cx, object)?;
    note_temporary(cx, &place, id);
    Ok(id)
}

/// Facets of a type as written, for alias types.
pub(super) fn written(ty: &super::super::super::ast::TypeName) -> String {
    let facets: Vec<String> =
        facets(ty).iter().map(|f| if *f < 0 { "max".to_owned() } else { f.to_string() }).collect();
    if facets.is_empty() { ty.name.clone() } else { format!("{}({})", ty.name, facets.join(",")) }
}
