//! Syntax trees of queries and expressions.

/// A name of one to four parts; omitted middle parts are empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Name {
    pub(crate) parts: Vec<String>,
}

impl Name {
    pub(crate) fn single(name: &str) -> Self {
        Self { parts: vec![name.to_owned()] }
    }

    /// Last part.
    pub(crate) fn base(&self) -> &str {
        self.parts.last().map_or("", String::as_str)
    }

    fn nth_last(&self, index: usize) -> Option<&str> {
        let at = self.parts.len().checked_sub(index + 1)?;
        Some(self.parts[at].as_str()).filter(|p| !p.is_empty())
    }

    pub(crate) fn schema(&self) -> Option<&str> {
        self.nth_last(1)
    }

    pub(crate) fn database(&self) -> Option<&str> {
        self.nth_last(2)
    }

    /// The name as messages show it.
    pub(crate) fn display(&self) -> String {
        self.parts.join(".")
    }
}

/// A type as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TypeName {
    pub(crate) name: String,
    pub(crate) args: Vec<TypeArg>,
}

/// Length, precision or scale as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TypeArg {
    Number(u32),
    Max,
}

/// Literals.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    Null,
    Number(String),
    Float(String),
    Money(String),
    Str { text: String, national: bool },
    Binary(Vec<u8>),
}

/// Operators of two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum BinOp {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    BitAnd,
    BitOr,
    BitXor,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    And,
    Or,
}

impl BinOp {
    pub(crate) fn is_comparison(self) -> bool {
        matches!(self, Self::Eq | Self::Ne | Self::Lt | Self::Le | Self::Gt | Self::Ge)
    }
}

/// Operators of one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum UnOp {
    Plus,
    Minus,
    BitNot,
    Not,
}

/// Expressions; conditions are expressions of the Boolean kind, which the binder tells apart.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expr {
    Literal(Literal),
    Column(Name),
    Var(String),
    Unary(UnOp, Box<Expr>),
    Binary(BinOp, Box<Expr>, Box<Expr>),
    IsNull {
        expr: Box<Expr>,
        negated: bool,
    },
    Like {
        expr: Box<Expr>,
        pattern: Box<Expr>,
        escape: Option<Box<Expr>>,
        negated: bool,
    },
    Between {
        expr: Box<Expr>,
        low: Box<Expr>,
        high: Box<Expr>,
        negated: bool,
    },
    InList {
        expr: Box<Expr>,
        list: Vec<Expr>,
        negated: bool,
    },
    InQuery {
        expr: Box<Expr>,
        query: Box<Query>,
        negated: bool,
    },
    Exists(Box<Query>),
    Quantified {
        expr: Box<Expr>,
        op: BinOp,
        all: bool,
        query: Box<Query>,
    },
    Subquery(Box<Query>),
    Case {
        operand: Option<Box<Expr>>,
        whens: Vec<(Expr, Expr)>,
        otherwise: Option<Box<Expr>>,
    },
    Cast {
        expr: Box<Expr>,
        ty: TypeName,
        attempt: bool,
    },
    Convert {
        expr: Box<Expr>,
        ty: TypeName,
        style: Option<Box<Expr>>,
        attempt: bool,
    },
    Func(Box<FuncCall>),
    Collate(Box<Expr>, String),
    AtTimeZone(Box<Expr>, Box<Expr>),
    NextValue(Name),
    /// `DEFAULT` as a value of INSERT or UPDATE.
    Default,
}

/// A call of a function or aggregate.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FuncCall {
    pub(crate) name: Name,
    pub(crate) args: Vec<Expr>,
    pub(crate) star: bool,
    pub(crate) distinct: bool,
    pub(crate) within_group: Vec<OrderItem>,
    pub(crate) over: Option<Over>,
}

/// `OVER (...)`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Over {
    pub(crate) partition: Vec<Expr>,
    pub(crate) order: Vec<OrderItem>,
    pub(crate) frame: Option<Frame>,
}

/// A window frame.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Frame {
    pub(crate) rows: bool,
    pub(crate) start: Bound,
    pub(crate) end: Bound,
}

/// One end of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    UnboundedPreceding,
    Preceding(u64),
    Current,
    Following(u64),
    UnboundedFollowing,
}

/// One ORDER BY term.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OrderItem {
    pub(crate) expr: Expr,
    pub(crate) descending: bool,
}

/// A whole query expression.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Query {
    pub(crate) ctes: Vec<Cte>,
    pub(crate) body: Body,
    pub(crate) order: Vec<OrderItem>,
    pub(crate) offset: Option<Expr>,
    pub(crate) fetch: Option<Expr>,
    pub(crate) max_recursion: Option<u32>,
}

/// A common table expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cte {
    pub(crate) name: String,
    pub(crate) columns: Vec<String>,
    pub(crate) query: Query,
}

/// Set operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetOp {
    UnionAll,
    Union,
    Except,
    Intersect,
}

/// Body of a query.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Body {
    Select(Box<Select>),
    Set(SetOp, Box<Body>, Box<Body>),
    Values(Vec<Vec<Expr>>),
    Nested(Box<Query>),
}

impl Default for Body {
    fn default() -> Self {
        Self::Values(Vec::new())
    }
}

/// `TOP`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Top {
    pub(crate) count: Expr,
    pub(crate) percent: bool,
    pub(crate) with_ties: bool,
}

/// One SELECT specification.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Select {
    pub(crate) distinct: bool,
    pub(crate) top: Option<Top>,
    pub(crate) items: Vec<Item>,
    pub(crate) into: Option<Name>,
    pub(crate) from: Vec<TableRef>,
    pub(crate) filter: Option<Expr>,
    pub(crate) group: Option<Group>,
    pub(crate) having: Option<Expr>,
}

/// GROUP BY: the grouping sets, each a list of expressions.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Group {
    pub(crate) sets: Vec<Vec<Expr>>,
}

/// One item of a select list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Item {
    Star(Option<Name>),
    Expr {
        expr: Expr,
        alias: Option<String>,
    },
    /// `@v = expr`, or `@v += expr`.
    Assign {
        var: String,
        op: Option<BinOp>,
        expr: Expr,
    },
}

/// Join kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JoinKind {
    Inner,
    Left,
    Right,
    Full,
    Cross,
}

/// Table hints that change locking; others are accepted without effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Hints {
    pub(crate) tablock: bool,
    pub(crate) tablockx: bool,
    pub(crate) holdlock: bool,
    pub(crate) updlock: bool,
    pub(crate) xlock: bool,
    pub(crate) nolock: bool,
    pub(crate) readpast: bool,
    pub(crate) nowait: bool,
    pub(crate) readcommitted: bool,
    pub(crate) repeatable: bool,
    pub(crate) rowlock: bool,
}

/// One table source.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TableRef {
    Table { name: Name, alias: Option<String>, hints: Hints },
    Var { name: String, alias: Option<String> },
    Derived { query: Box<Query>, alias: String, columns: Vec<String> },
    Func { call: Box<FuncCall>, alias: Option<String>, columns: Vec<String> },
    Join { kind: JoinKind, left: Box<TableRef>, right: Box<TableRef>, on: Option<Expr> },
    Apply { outer: bool, left: Box<TableRef>, right: Box<TableRef> },
}
