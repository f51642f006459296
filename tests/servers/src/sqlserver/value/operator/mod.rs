//! Operators: result types, arithmetic, comparison, LIKE.

mod arithmetic;
mod comparison;
mod pattern;
mod types;

pub use arithmetic::{BinaryOperation, unary, unary_type};
pub(super) use comparison::compare_units;
pub use comparison::{Comparison, compare, hash_key, sort_key};
pub(super) use pattern::compile_pattern;
pub use pattern::like;
pub use types::common_type;

/// Binary arithmetic, concatenation and bit operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinaryOperator {
    /// `+`: numbers, `datetime`; concatenation of texts and of binaries.
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
    /// `&`
    BitAnd,
    /// `|`
    BitOr,
    /// `^`
    BitXor,
}

impl BinaryOperator {
    /// The name in error texts.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Subtract => "subtract",
            Self::Multiply => "multiply",
            Self::Divide => "divide",
            Self::Modulo => "modulo",
            Self::BitAnd => "'&'",
            Self::BitOr => "'|'",
            Self::BitXor => "'^'",
        }
    }

    fn is_bitwise(self) -> bool {
        matches!(self, Self::BitAnd | Self::BitOr | Self::BitXor)
    }
}

/// Unary operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnaryOperator {
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `~`
    BitNot,
}
