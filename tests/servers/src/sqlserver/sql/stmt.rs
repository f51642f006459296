//! Syntax trees of statements.

use super::ast::{BinOp, Expr, Hints, Item, Name, Query, TableRef, Top, TypeName};

/// A statement with its place in the batch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stmt {
    pub(crate) kind: Kind,
    /// Line from 1.
    pub(crate) line: u32,
    /// Byte range within the batch text.
    pub(crate) span: (usize, usize),
}

/// Statement kinds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Query(Box<Query>),
    Insert(Box<Insert>),
    Update(Box<Update>),
    Delete(Box<Delete>),
    Merge(Box<Merge>),
    Truncate(Name),
    InsertBulk(Box<InsertBulk>),
    Declare(Vec<Declare>),
    SetVar { name: String, op: Option<BinOp>, value: Expr },
    SetOption(SetOption),
    If { condition: Expr, then: Box<Stmt>, otherwise: Option<Box<Stmt>> },
    While { condition: Expr, body: Box<Stmt> },
    Block(Vec<Stmt>),
    TryCatch { body: Vec<Stmt>, handler: Vec<Stmt> },
    Break,
    Continue,
    Return(Option<Expr>),
    Goto(String),
    Label(String),
    Print(Expr),
    RaiseError { message: Expr, severity: Expr, state: Expr, args: Vec<Expr>, options: Vec<String> },
    Throw(Option<(Expr, Expr, Expr)>),
    WaitDelay(Expr),
    WaitTime(Expr),
    Exec(Box<Exec>),
    ExecText { parts: Vec<Expr>, login: Option<String> },
    Begin { name: Option<NameOrVar> },
    Commit,
    Rollback { name: Option<NameOrVar> },
    Save { name: NameOrVar },
    Use(String),
    CreateTable(Box<CreateTable>),
    AlterTable(Box<AlterTable>),
    Drop { kind: ObjectKind, if_exists: bool, names: Vec<Name> },
    DropIndex { if_exists: bool, items: Vec<(String, Name)> },
    CreateIndex(Box<CreateIndex>),
    AlterIndex { index: Option<String>, table: Name, action: String },
    CreateSchema { name: String, owner: Option<String> },
    AlterSchema { schema: String, object: Name },
    CreateModule(Box<CreateModule>),
    Trigger { enable: bool, names: Vec<Name>, table: Option<Name> },
    CreateSequence { name: Name, ty: Option<TypeName>, options: SequenceOptions },
    CreateType { name: Name, base: TypeName, nullable: bool },
    CreateSynonym { name: Name, target: Name },
    Permission(Box<Permission>),
    Principal(Box<Principal>),
    CreateDatabase(String),
    DropDatabase { if_exists: bool, names: Vec<String> },
    AlterDatabase { name: String, text: String },
    UpdateStatistics,
    ExecuteAs { user: Expr, login: bool },
    Revert,
    DeclareCursor { name: String, query: Box<Query> },
    Cursor { action: CursorAction, name: String },
    Fetch { name: String, direction: FetchFrom, into: Vec<String> },
    Kill(Expr),
    Checkpoint,
    Dbcc { name: String, args: Vec<Expr> },
}

/// OPEN, CLOSE, DEALLOCATE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CursorAction {
    Open,
    Close,
    Deallocate,
}

/// Which row FETCH takes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FetchFrom {
    Next,
    Prior,
    First,
    Last,
    Absolute(Expr),
    Relative(Expr),
}

/// A name, or a variable that holds one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NameOrVar {
    Name(String),
    Var(String),
}

/// Target of a data change.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Target {
    Table(Name, Hints),
    Var(String),
}

/// OUTPUT clause.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Output {
    pub(crate) items: Vec<Item>,
    pub(crate) into: Option<(Target, Vec<String>)>,
}

/// INSERT.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Insert {
    pub(crate) ctes: Vec<super::ast::Cte>,
    pub(crate) top: Option<Top>,
    pub(crate) target: Target,
    pub(crate) columns: Vec<String>,
    pub(crate) output: Vec<Output>,
    pub(crate) source: InsertSource,
}

/// Where inserted rows come from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum InsertSource {
    Values(Vec<Vec<Expr>>),
    Query(Box<Query>),
    Default,
    Exec(Box<Stmt>),
}

/// One assignment of UPDATE.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Assign {
    /// `@v = ` before the column, or alone.
    pub(crate) var: Option<String>,
    pub(crate) column: Option<Name>,
    pub(crate) op: Option<BinOp>,
    pub(crate) value: Expr,
}

/// UPDATE.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Update {
    pub(crate) ctes: Vec<super::ast::Cte>,
    pub(crate) top: Option<Top>,
    pub(crate) target: Target,
    pub(crate) set: Vec<Assign>,
    pub(crate) output: Vec<Output>,
    pub(crate) from: Vec<TableRef>,
    pub(crate) filter: Option<Expr>,
    /// `WHERE CURRENT OF cursor`.
    pub(crate) current_of: Option<String>,
}

/// DELETE.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Delete {
    pub(crate) ctes: Vec<super::ast::Cte>,
    pub(crate) top: Option<Top>,
    pub(crate) target: Target,
    pub(crate) output: Vec<Output>,
    pub(crate) from: Vec<TableRef>,
    pub(crate) filter: Option<Expr>,
    /// `WHERE CURRENT OF cursor`.
    pub(crate) current_of: Option<String>,
}

/// MERGE.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Merge {
    pub(crate) ctes: Vec<super::ast::Cte>,
    pub(crate) top: Option<Top>,
    pub(crate) target: Target,
    pub(crate) alias: Option<String>,
    pub(crate) source: TableRef,
    pub(crate) on: Expr,
    pub(crate) clauses: Vec<MergeClause>,
    pub(crate) output: Vec<Output>,
}

/// Which rows a MERGE clause takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MergeMatch {
    Matched,
    NotMatchedByTarget,
    NotMatchedBySource,
}

/// One WHEN clause of MERGE.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MergeClause {
    pub(crate) matched: MergeMatch,
    pub(crate) condition: Option<Expr>,
    pub(crate) action: MergeAction,
}

/// What a MERGE clause does.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum MergeAction {
    Update(Vec<Assign>),
    Delete,
    Insert { columns: Vec<String>, values: Option<Vec<Expr>> },
}

/// INSERT BULK.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct InsertBulk {
    pub(crate) table: Name,
    pub(crate) columns: Vec<(String, TypeName)>,
    pub(crate) options: Vec<String>,
}

/// One item of DECLARE.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Declare {
    Scalar { name: String, ty: TypeName, value: Option<Expr> },
    Table { name: String, elements: Vec<TableElement> },
}

/// SET of an option.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SetOption {
    Switch { names: Vec<String>, on: bool },
    Value { name: String, value: Expr },
    Word { name: String, word: String },
    Isolation(String),
    IdentityInsert { table: Name, on: bool },
}

/// EXEC of a procedure.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Exec {
    pub(crate) status: Option<String>,
    pub(crate) name: Name,
    /// `EXEC @var`.
    pub(crate) name_var: Option<String>,
    pub(crate) args: Vec<ExecArg>,
}

/// One argument of EXEC.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ExecArg {
    pub(crate) name: Option<String>,
    /// None is `DEFAULT`.
    pub(crate) value: Option<Expr>,
    pub(crate) output: bool,
}

/// One element of a table definition.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TableElement {
    Column(Box<ColumnDef>),
    Constraint(Constraint),
    Index(CreateIndex),
}

/// A column as written.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ColumnDef {
    pub(crate) name: String,
    pub(crate) ty: Option<TypeName>,
    pub(crate) nullable: Option<bool>,
    pub(crate) collation: Option<String>,
    pub(crate) identity: Option<(i64, i64)>,
    pub(crate) default: Option<(Option<String>, Expr, String)>,
    pub(crate) computed: Option<(Expr, String, bool)>,
    pub(crate) rowguidcol: bool,
    pub(crate) constraints: Vec<Constraint>,
    pub(crate) indexes: Vec<CreateIndex>,
}

/// Referential actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum FkAction {
    #[default]
    NoAction,
    Cascade,
    SetNull,
    SetDefault,
}

/// A constraint as written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Constraint {
    pub(crate) name: Option<String>,
    pub(crate) kind: ConstraintKind,
}

/// Constraint kinds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ConstraintKind {
    Key { primary: bool, clustered: Option<bool>, columns: Vec<(String, bool)> },
    Foreign { columns: Vec<String>, table: Name, referenced: Vec<String>, on_delete: FkAction, on_update: FkAction },
    Check { condition: Expr, text: String },
    Default { value: Expr, text: String, column: String },
}

/// CREATE TABLE.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CreateTable {
    pub(crate) name: Name,
    pub(crate) elements: Vec<TableElement>,
}

/// ALTER TABLE.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AlterTable {
    pub(crate) name: Name,
    pub(crate) action: AlterAction,
}

/// What ALTER TABLE does.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AlterAction {
    Add { elements: Vec<TableElement>, check: Option<bool> },
    DropItems { columns: Vec<(String, bool)>, constraints: Vec<(String, bool)> },
    AlterColumn { name: String, ty: TypeName, nullable: Option<bool>, collation: Option<String> },
    Check { enable: bool, trust: bool, names: Vec<String> },
    Trigger { enable: bool, names: Vec<String> },
    Rebuild,
    SetLockEscalation,
    Switch { target: Name },
}

/// Kinds of objects that DROP knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObjectKind {
    Table,
    View,
    Procedure,
    Function,
    Trigger,
    Schema,
    Sequence,
    Synonym,
    Type,
    Login,
    User,
    Role,
    ServerRole,
}

/// CREATE INDEX.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CreateIndex {
    pub(crate) name: String,
    pub(crate) table: Name,
    pub(crate) unique: bool,
    pub(crate) clustered: bool,
    pub(crate) columns: Vec<(String, bool)>,
    pub(crate) include: Vec<String>,
    pub(crate) filter: Option<(Expr, String)>,
    pub(crate) ignore_dup_key: bool,
    pub(crate) drop_existing: bool,
}

/// Module kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModuleKind {
    View,
    Procedure,
    Function,
    Trigger,
}

/// One parameter of a module.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Param {
    pub(crate) name: String,
    pub(crate) ty: TypeName,
    pub(crate) default: Option<Expr>,
    pub(crate) output: bool,
}

/// CREATE or ALTER of a view, procedure, function or trigger.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CreateModule {
    pub(crate) kind: ModuleKind,
    pub(crate) alter: bool,
    pub(crate) or_alter: bool,
    pub(crate) name: Name,
    pub(crate) params: Vec<Param>,
    pub(crate) columns: Vec<String>,
    pub(crate) body: ModuleBody,
    /// Text of the whole statement.
    pub(crate) text: String,
    pub(crate) schema_binding: bool,
    pub(crate) execute_as: Option<String>,
}

/// What a module contains.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ModuleBody {
    View { query: Box<Query>, check_option: bool },
    Procedure(Vec<Stmt>),
    ScalarFunction { returns: TypeName, body: Vec<Stmt> },
    InlineFunction(Box<Query>),
    TableFunction { var: String, elements: Vec<TableElement>, body: Vec<Stmt> },
    Trigger { table: Name, instead: bool, events: Vec<TriggerEvent>, body: Vec<Stmt> },
}

/// Events of a DML trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TriggerEvent {
    Insert,
    Update,
    Delete,
}

/// Options of CREATE SEQUENCE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SequenceOptions {
    pub(crate) start: Option<i64>,
    pub(crate) increment: Option<i64>,
    pub(crate) min: Option<i64>,
    pub(crate) max: Option<i64>,
    pub(crate) cycle: bool,
}

/// GRANT, DENY, REVOKE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PermissionVerb {
    Grant,
    Deny,
    Revoke,
}

/// What a permission is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Securable {
    Schema(String),
    Object(Name),
    Principal(String),
    Login(String),
    DatabaseNamed(String),
    Type(Name),
}

/// A permission statement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Permission {
    pub(crate) verb: PermissionVerb,
    /// Names with their column lists.
    pub(crate) permissions: Vec<(String, Vec<String>)>,
    pub(crate) on: Option<Securable>,
    pub(crate) principals: Vec<String>,
    pub(crate) with_grant: bool,
    pub(crate) cascade: bool,
}

/// CREATE and ALTER of principals.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Principal {
    CreateLogin { name: String, password: Option<String>, default_database: Option<String> },
    AlterLogin { name: String, password: Option<String>, enable: Option<bool>, default_database: Option<String> },
    CreateUser { name: String, login: Option<String>, without_login: bool, default_schema: Option<String> },
    AlterUser { name: String, default_schema: Option<String>, new_name: Option<String>, login: Option<String> },
    CreateRole { name: String, owner: Option<String>, server: bool },
    AlterRole { name: String, member: String, add: bool, server: bool },
}
