//! Stages: created with their owner mark, proved ours, dropped.

use contract::names::OWNER_PROPERTY;
use contract::port::target::{RunFence, StageColumn, StageDefinition, StageRef, TableName};

use super::ident::{bracket, fence_check, literal, prologue, qualified};

/// A table's quoted name with its columns.
pub(crate) struct StageColumns<'a> {
    /// `[schema].[table]`.
    pub(crate) table: &'a str,
    /// Columns in order.
    pub(crate) columns: &'a [StageColumn],
}

/// Column definitions as in `CREATE TABLE`.
pub(crate) fn column_list(columns: &[StageColumn]) -> String {
    columns
        .iter()
        .map(|c| format!("{} {} {}", bracket(&c.name), c.type_text, if c.nullable { "NULL" } else { "NOT NULL" }))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The heap and its owner mark, without transaction or fence.
pub(crate) fn create_body(definition: &StageDefinition) -> String {
    format!(
        "CREATE TABLE {} ({});\n\
         EXEC sys.sp_addextendedproperty @name = {}, @value = {}, @level0type = N'SCHEMA', @level0name = {}, \
         @level1type = N'TABLE', @level1name = {};\n",
        qualified(&definition.name),
        column_list(&definition.columns),
        literal(OWNER_PROPERTY),
        literal(&definition.owner_binding.to_string()),
        literal(&definition.name.schema),
        literal(&definition.name.table),
    )
}

/// Creates heap and owner mark in one transaction; one row: the object id.
pub(crate) fn create(
    state_schema: &str,
    fence: &RunFence,
    definition: &StageDefinition,
    lock_timeout_ms: u32,
) -> String {
    format!(
        "{}BEGIN TRANSACTION;\n{}{}COMMIT TRANSACTION;\nSELECT {};\n",
        prologue(lock_timeout_ms),
        fence_check(state_schema, fence),
        create_body(definition),
        object_id(&definition.name),
    )
}

/// `OBJECT_ID` of a user table.
pub(crate) fn object_id(name: &TableName) -> String {
    format!("OBJECT_ID({}, N'U')", literal(&qualified(name)))
}

/// The owner mark of the table, NULL if there is none.
pub(crate) fn owner_mark(name: &TableName) -> String {
    format!(
        "(SELECT CONVERT(nvarchar(128), p.value) FROM sys.extended_properties AS p \
         WHERE p.class = 1 AND p.minor_id = 0 AND p.name = {} AND p.major_id = {})",
        literal(OWNER_PROPERTY),
        object_id(name),
    )
}

/// Throws unless the table is the recorded object with our mark.
pub(crate) fn identity_check(stage: &StageRef) -> String {
    let name = &stage.definition.name;
    format!(
        "IF {id} IS NULL OR {id} <> {expected} BEGIN ;THROW 51000, N'mssql_native.stage_identity_mismatch', 1; END;\n\
         IF COALESCE({mark}, N'') <> {owner} BEGIN ;THROW 51000, N'mssql_native.prepared_owner_mismatch', 1; END;\n",
        id = object_id(name),
        expected = stage.object_id,
        mark = owner_mark(name),
        owner = literal(&stage.definition.owner_binding.to_string()),
    )
}

/// Columns of a table as name, type, nullable, in order: compared with the definition before rows are written.
pub(crate) fn columns_query(name: &TableName) -> String {
    format!(
        "SELECT c.name, t.name, CONVERT(int, c.max_length), CONVERT(int, c.precision), CONVERT(int, c.scale), c.is_nullable\n\
         FROM sys.columns AS c JOIN sys.types AS t ON t.user_type_id = c.user_type_id\n\
         WHERE c.object_id = {} ORDER BY c.column_id;\n",
        object_id(name),
    )
}

/// The exact-stage barrier: identity, digest, identity in one transaction that holds the table exclusively.
pub(crate) fn barrier(stage: &StageRef, digest: &str, lock_timeout_ms: u32) -> String {
    let table = qualified(&stage.definition.name);
    let check = identity_check(stage);
    format!(
        "{}BEGIN TRANSACTION;\nDECLARE @held int = (SELECT COUNT(*) FROM (SELECT TOP (1) 1 AS one FROM {table} \
         WITH (TABLOCKX, HOLDLOCK)) AS h);\n{check}{digest}{check}COMMIT TRANSACTION;\n",
        prologue(lock_timeout_ms),
    )
}

/// Drops a table of ours; one row: `dropped`, `absent` or `foreign`. `object_id` is compared when it was recorded.
pub(crate) fn retire(
    state_schema: &str,
    fence: &RunFence,
    definition: &StageDefinition,
    recorded: Option<i32>,
    lock_timeout_ms: u32,
) -> String {
    let name = &definition.name;
    let same_object = recorded.map_or(String::new(), |id| format!(" AND {} = {id}", object_id(name)));
    format!(
        "{prologue}DECLARE @verdict nvarchar(16) = N'absent';\nBEGIN TRANSACTION;\n{fence}\
         IF {id} IS NOT NULL\nBEGIN\n\
         IF COALESCE({mark}, N'') = {owner}{same_object}\nBEGIN\n\
         DECLARE @held int = (SELECT COUNT(*) FROM (SELECT TOP (1) 1 AS one FROM {table} WITH (TABLOCKX, HOLDLOCK)) AS h);\n\
         DROP TABLE {table};\nSET @verdict = N'dropped';\nEND\n\
         ELSE SET @verdict = N'foreign';\nEND;\nCOMMIT TRANSACTION;\n\
         SELECT @verdict, CONVERT(int, CASE WHEN {id} IS NULL THEN 1 ELSE 0 END), {visible};\n",
        prologue = prologue(lock_timeout_ms),
        fence = fence_check(state_schema, fence),
        id = object_id(name),
        mark = owner_mark(name),
        owner = literal(&definition.owner_binding.to_string()),
        table = qualified(name),
        visible = schema_visibility(&name.schema),
    )
}

/// 1 if the principal sees every object of the schema: only then does "no such object" prove absence (contract.md 6.5).
pub(crate) fn schema_visibility(schema: &str) -> String {
    format!(
        "CONVERT(int, CASE WHEN HAS_PERMS_BY_NAME({}, N'SCHEMA', N'CONTROL') = 1 OR IS_MEMBER(N'db_owner') = 1 \
         OR IS_SRVROLEMEMBER(N'sysadmin') = 1 THEN 1 ELSE 0 END)",
        literal(&bracket(schema)),
    )
}
