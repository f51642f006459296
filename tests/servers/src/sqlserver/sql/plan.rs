//! Bound expressions and relations: names are slots, types are settled.
//!
//! A relation pushes its rows into a continuation. All sources of one FROM clause write into one row, each at its
//! own range of slots, so that joins copy nothing that they do not have to.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::ast::{BinOp, JoinKind, SetOp};
use super::error::Result;
use super::state::Cx;
use super::sysfn::SysFn;
use super::typed::{BytesX, IntX};
use crate::sqlserver::store::catalog::ObjectId;
use crate::sqlserver::store::{ReadMode, RowId};
use crate::sqlserver::value::{
    BinaryOperation, CastOptions, Coercibility, Comparison, ScalarFunction, SqlType, UnaryOperator, Value,
};

pub(crate) type Row = Vec<Value>;

/// Whether a producer goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    More,
    Stop,
}

/// A consumer of rows.
pub(crate) type Sink<'f> = dyn FnMut(&mut Cx<'_>, &mut Row) -> Result<Step> + 'f;

/// A bound expression.
#[derive(Debug, Clone)]
pub(crate) enum X {
    Const(Value),
    Slot(usize),
    Outer {
        scope: usize,
        slot: usize,
    },
    Var(usize),
    Binary(Box<(BinaryOperation, X, X)>),
    Unary(UnaryOperator, SqlType, Box<X>),
    Compare(BinOp, Box<CompareX>),
    And(Box<(X, X)>),
    Or(Box<(X, X)>),
    Not(Box<X>),
    IsNull(Box<X>, bool),
    Like(Box<LikeX>),
    InList(Box<InListX>),
    Exists(Rc<Sub>),
    InQuery(Box<InQueryX>),
    Quantified(Box<QuantifiedX>),
    Scalar(Rc<Sub>),
    Case(Box<CaseX>),
    Cast(Box<CastX>),
    Func(Rc<FuncX>, Vec<X>),
    Sys(SysFn, Vec<X>),
    UserFunc(Box<UserFuncX>),
    NextValue(ObjectId),
    /// Sets a variable to the value, converted to its type, and has that value.
    Assign(usize, Box<X>),
    /// An integer, or a `decimal` that holds every `bigint`, evaluated by type.
    Int(Rc<IntX>, SqlType),
    /// Bytes, evaluated by type.
    Bytes(Rc<BytesX>),
}

#[derive(Debug, Clone)]
pub(crate) struct CompareX {
    pub(crate) comparison: Comparison,
    pub(crate) left: X,
    pub(crate) left_type: SqlType,
    pub(crate) right: X,
    pub(crate) right_type: SqlType,
}

/// A built-in function with the bare words among its arguments.
#[derive(Debug)]
pub(crate) struct FuncX {
    pub(crate) function: ScalarFunction,
    #[allow(dead_code, reason = "read by Debug, which tells group keys apart")]
    pub(crate) keywords: String,
}

#[derive(Debug, Clone)]
pub(crate) struct LikeX {
    pub(crate) expr: X,
    pub(crate) pattern: X,
    pub(crate) escape: Option<X>,
    /// Type of the text; its collation decides.
    pub(crate) ty: SqlType,
    pub(crate) negated: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct InListX {
    pub(crate) expr: X,
    pub(crate) list: Vec<(Comparison, X)>,
    pub(crate) negated: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct InQueryX {
    pub(crate) expr: X,
    pub(crate) from: SqlType,
    pub(crate) common: SqlType,
    pub(crate) sub: Rc<Sub>,
    pub(crate) negated: bool,
    /// Keys of an uncorrelated subquery and whether it has a NULL.
    pub(crate) set: Rc<RefCell<Option<KeySet>>>,
}

/// Keys of a set and whether NULL is among them.
pub(crate) type KeySet = (std::collections::HashSet<Vec<u8>>, bool);

#[derive(Debug, Clone)]
pub(crate) struct QuantifiedX {
    pub(crate) expr: X,
    pub(crate) op: BinOp,
    pub(crate) all: bool,
    pub(crate) comparison: Comparison,
    pub(crate) sub: Rc<Sub>,
}

#[derive(Debug, Clone)]
pub(crate) struct CaseX {
    pub(crate) whens: Vec<(X, X)>,
    pub(crate) otherwise: X,
}

#[derive(Debug, Clone)]
pub(crate) struct CastX {
    pub(crate) expr: X,
    pub(crate) from: SqlType,
    pub(crate) to: SqlType,
    pub(crate) options: CastOptions,
    pub(crate) style: Option<X>,
    pub(crate) attempt: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct UserFuncX {
    pub(crate) object: ObjectId,
    pub(crate) args: Vec<Option<X>>,
    pub(crate) arg_types: Vec<SqlType>,
}

/// A subquery with what it reads of the row around it.
#[derive(Debug)]
pub(crate) struct Sub {
    pub(crate) plan: Plan,
    /// Scope around it.
    pub(crate) scope: usize,
    /// Slots of that scope that it reads.
    pub(crate) uses: Vec<usize>,
    /// It reads any scope around it.
    pub(crate) correlated: bool,
    /// Value of an uncorrelated scalar or EXISTS subquery.
    pub(crate) cached: RefCell<Option<Value>>,
}

/// A bound expression with its type.
#[derive(Debug, Clone)]
pub(crate) struct Typed {
    pub(crate) x: X,
    pub(crate) ty: SqlType,
    pub(crate) nullable: bool,
    pub(crate) coercibility: Coercibility,
    /// A condition, not a value.
    pub(crate) boolean: bool,
}

impl Typed {
    pub(crate) fn new(x: X, ty: SqlType, nullable: bool) -> Self {
        Self { x, ty, nullable, coercibility: Coercibility::CoercibleDefault, boolean: false }
    }

    /// The value of a literal.
    pub(crate) fn constant(&self) -> Option<&Value> {
        if let X::Const(value) = &self.x { Some(value) } else { None }
    }

    pub(crate) fn condition(x: X) -> Self {
        Self { boolean: true, ..Self::new(x, SqlType::Bit, true) }
    }
}

/// A column of a relation's result.
#[derive(Debug, Clone)]
pub(crate) struct OutCol {
    pub(crate) name: String,
    pub(crate) ty: SqlType,
    pub(crate) nullable: bool,
    pub(crate) identity: bool,
    pub(crate) computed: bool,
    pub(crate) coercibility: Coercibility,
}

/// A query.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) cols: Vec<OutCol>,
    pub(crate) rel: Rel,
}

/// Where rows of a query come from.
#[derive(Debug)]
pub(crate) enum Rel {
    Select(Box<SelectPlan>),
    Values(Vec<Vec<X>>),
    Set {
        op: SetOp,
        left: Box<Plan>,
        right: Box<Plan>,
        types: Vec<SqlType>,
    },
    /// Converts columns of a branch of a set operation to the common types.
    Convert {
        input: Box<Plan>,
        casts: Vec<Option<(SqlType, SqlType)>>,
    },
    Tail(Box<TailPlan>),
    Recursive(Box<RecursivePlan>),
    /// Rows of the last round of a recursive query.
    Work(Rc<RefCell<Rc<Vec<Row>>>>),
}

/// ORDER BY, OFFSET and FETCH over the columns of a set operation.
#[derive(Debug)]
pub(crate) struct TailPlan {
    pub(crate) input: Plan,
    pub(crate) order: Vec<OrderX>,
    pub(crate) offset: Option<X>,
    pub(crate) fetch: Option<X>,
}

/// A recursive common table expression.
#[derive(Debug)]
pub(crate) struct RecursivePlan {
    pub(crate) anchor: Plan,
    pub(crate) step: Plan,
    pub(crate) work: Rc<RefCell<Rc<Vec<Row>>>>,
    pub(crate) limit: u32,
}

#[derive(Debug, Clone)]
pub(crate) struct OrderX {
    pub(crate) x: X,
    pub(crate) ty: SqlType,
    pub(crate) descending: bool,
}

#[derive(Debug)]
pub(crate) struct TopX {
    pub(crate) count: X,
    pub(crate) percent: bool,
    pub(crate) with_ties: bool,
}

/// One SELECT.
#[derive(Debug)]
pub(crate) struct SelectPlan {
    pub(crate) from: Node,
    /// Slots of the FROM row.
    pub(crate) width: usize,
    pub(crate) startup: Vec<X>,
    pub(crate) group: Option<GroupPlan>,
    pub(crate) having: Option<X>,
    pub(crate) windows: Vec<WindowX>,
    pub(crate) project: Vec<X>,
    pub(crate) types: Vec<SqlType>,
    pub(crate) distinct: bool,
    /// The select list sets variables, so it is evaluated in the final order.
    pub(crate) assigns: bool,
    pub(crate) order: Vec<OrderX>,
    pub(crate) top: Option<TopX>,
    pub(crate) offset: Option<X>,
    pub(crate) fetch: Option<X>,
}

/// Grouping: the group row is the keys followed by the aggregates.
#[derive(Debug)]
pub(crate) struct GroupPlan {
    pub(crate) keys: Vec<(X, SqlType)>,
    /// Grouping sets as masks of keys that are kept.
    pub(crate) sets: Vec<Vec<bool>>,
    pub(crate) aggregates: Vec<AggregateX>,
    /// No GROUP BY: one group even without rows.
    pub(crate) scalar: bool,
}

/// Aggregate functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aggregate {
    Count,
    CountBig,
    Sum,
    Avg,
    Min,
    Max,
    Stdev,
    StdevP,
    Var,
    VarP,
    StringAgg,
    ChecksumAgg,
    Grouping,
    ApproxCount,
}

#[derive(Debug, Clone)]
pub(crate) struct AggregateX {
    pub(crate) kind: Aggregate,
    /// None is `*`.
    pub(crate) arg: Option<X>,
    pub(crate) arg_type: SqlType,
    pub(crate) result: SqlType,
    pub(crate) distinct: bool,
    /// STRING_AGG.
    pub(crate) separator: Option<X>,
    pub(crate) order: Vec<OrderX>,
    /// GROUPING: index of the key.
    pub(crate) key: usize,
}

/// Window functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Window {
    RowNumber,
    Rank,
    DenseRank,
    Ntile,
    PercentRank,
    CumeDist,
    Lag,
    Lead,
    FirstValue,
    LastValue,
    Aggregate,
}

#[derive(Debug, Clone)]
pub(crate) struct WindowX {
    pub(crate) kind: Window,
    pub(crate) args: Vec<X>,
    pub(crate) aggregate: Option<AggregateX>,
    pub(crate) partition: Vec<(X, SqlType)>,
    pub(crate) order: Vec<OrderX>,
    pub(crate) frame: super::ast::Frame,
}

/// A source of rows inside FROM; it writes its slots and calls on.
#[derive(Debug)]
pub(crate) enum Node {
    /// One row without columns.
    One,
    Scan(Box<ScanNode>),
    /// Rows that are already there (`inserted`, `deleted`, cursors).
    Rows {
        rows: Arc<Vec<Row>>,
        base: usize,
        width: usize,
    },
    /// A catalog view or table function that computes its rows.
    Virtual(Box<VirtualNode>),
    Filter {
        input: Box<Node>,
        conditions: Vec<X>,
    },
    Join(Box<JoinNode>),
    /// VALUES whose expressions read the current row.
    Values {
        rows: Vec<Vec<X>>,
        base: usize,
    },
    /// A derived table, view or CTE.
    Derived {
        sub: Box<Sub>,
        base: usize,
    },
    /// Sets a slot to 1 in each row.
    Mark {
        input: Box<Node>,
        slot: usize,
    },
    Apply {
        left: Box<Node>,
        right: Box<Node>,
        outer: bool,
        base: usize,
        width: usize,
    },
}

/// A scan or seek of a stored table.
#[derive(Debug)]
pub(crate) struct ScanNode {
    pub(crate) table: ObjectId,
    /// Column types and indexes, for the choice of a seek.
    pub(crate) types: Vec<SqlType>,
    pub(crate) indexes: Vec<(i32, Vec<(usize, bool)>)>,
    /// Table variables live in their own transaction.
    pub(crate) variable: bool,
    pub(crate) columns: usize,
    pub(crate) base: usize,
    /// Positions that are read.
    pub(crate) needed: Vec<bool>,
    pub(crate) mode: ReadMode,
    pub(crate) conditions: Vec<X>,
    /// Index seek: index id and key expressions.
    pub(crate) seek: Option<(i32, Vec<X>)>,
    /// Range on one index column after equality: (index id, low, high).
    pub(crate) range: Option<RangeX>,
    /// Slot that receives the row id.
    pub(crate) row_id_slot: Option<usize>,
    /// Index built on the fly for repeated lookups: key positions and expressions.
    pub(crate) lookup: Option<LookupX>,
    /// Update locks of rows that fail the conditions are given back.
    pub(crate) release: bool,
}

#[derive(Debug)]
pub(crate) struct RangeX {
    pub(crate) index: i32,
    pub(crate) low: Option<(X, bool)>,
    pub(crate) high: Option<(X, bool)>,
}

/// Rows of a scan by key, built at first use.
#[derive(Debug)]
pub(crate) struct LookupX {
    pub(crate) keys: Vec<(usize, X, SqlType)>,
    pub(crate) rows: RefCell<Option<LookupRows>>,
}

/// Rows of a lookup: key to (row id, values).
pub(crate) type LookupRows = Rc<HashMap<Vec<u8>, Vec<(RowId, Row)>>>;

pub(crate) type VirtualRows = fn(&mut Cx<'_>, &super::catalog::Source, &[Value]) -> Result<Vec<Row>>;

#[derive(Debug)]
pub(crate) struct VirtualNode {
    pub(crate) source: super::catalog::Source,
    pub(crate) rows: VirtualRows,
    pub(crate) args: Vec<X>,
    pub(crate) base: usize,
    pub(crate) width: usize,
}

/// A join of two sources.
#[derive(Debug)]
pub(crate) struct JoinNode {
    pub(crate) kind: JoinKind,
    pub(crate) left: Node,
    pub(crate) right: Node,
    pub(crate) left_range: (usize, usize),
    pub(crate) right_range: (usize, usize),
    /// Equal pairs: left expression, right expression, their comparison.
    pub(crate) keys: Vec<JoinKey>,
    pub(crate) on: Vec<X>,
    /// A hidden slot of the right side (its row id) outside its range.
    pub(crate) extra: Option<usize>,
}

#[derive(Debug)]
pub(crate) struct JoinKey {
    pub(crate) left: X,
    pub(crate) left_type: SqlType,
    pub(crate) right: X,
    pub(crate) right_type: SqlType,
    pub(crate) common: SqlType,
}
