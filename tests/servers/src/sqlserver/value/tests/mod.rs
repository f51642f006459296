//! Known answers, each table with the source of its expectations, and property tests.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod conversions;
mod functions;
mod operators;
mod properties;
mod types;

use super::{CastOptions, SqlType, Value, ValueError, cast};

/// A value as tests write it: NULL, `0x..`, or the text of a conversion to `varchar`.
fn show(result: &Result<Value, ValueError>, ty: &SqlType) -> String {
    match result {
        Err(error) => format!("error {}", error.number),
        Ok(Value::Null) => String::from("NULL"),
        Ok(Value::Binary(bytes)) => format!("{bytes:?}"),
        Ok(value) => {
            let options =
                CastOptions { style: if ty.is_approximate() { Some(3) } else { None }, ..CastOptions::EXPLICIT };
            match cast(value, ty, &SqlType::NVARCHAR_MAX, &options) {
                Ok(Value::String(text)) => text.to_string(),
                other => panic!("{value:?} of {ty} has no text: {other:?}"),
            }
        }
    }
}

/// A literal as T-SQL writes it: `NULL`, `1`, `1.50`, `1e0`, `0xAB`, `'text'`, `N'text'`, `$1`; a leading minus sign.
fn literal(text: &str) -> (Value, SqlType) {
    let unquoted = |text: &str| text.strip_suffix('\'').unwrap_or(text).replace("''", "'");
    if text == "NULL" {
        (Value::Null, SqlType::Null)
    } else if let Some(text) = text.strip_prefix("N'") {
        super::string_literal(&unquoted(text), true)
    } else if let Some(text) = text.strip_prefix('\'') {
        super::string_literal(&unquoted(text), false)
    } else if let Some(digits) = text.strip_prefix("0x") {
        super::binary_literal(digits).unwrap()
    } else if let Some(amount) = text.strip_prefix('$') {
        super::money_literal(amount).unwrap()
    } else if let Some(number) = text.strip_prefix('-') {
        let (value, ty) = literal(number);
        (super::unary(super::UnaryOperator::Minus, &value, &ty).unwrap(), ty)
    } else {
        super::number_literal(text).unwrap()
    }
}

/// A type as T-SQL writes it.
fn sql_type(text: &str) -> SqlType {
    let (name, facets) = text.split_once('(').unwrap_or((text, ""));
    let facets: Vec<i64> = facets
        .trim_end_matches(')')
        .split(',')
        .filter(|facet| !facet.is_empty())
        .map(|facet| if facet.trim() == "max" { -1 } else { facet.trim().parse().unwrap() })
        .collect();
    SqlType::from_name(name, &facets, 30, super::Collation::DEFAULT).unwrap()
}

/// `'text' : type` is a cast of the literal; a literal alone is itself.
fn expression(text: &str) -> (Value, SqlType) {
    match text.rsplit_once(" : ") {
        None => literal(text),
        Some((inner, ty)) => {
            let (value, from) = expression(inner);
            let to = sql_type(ty);
            (cast(&value, &from, &to, &CastOptions::EXPLICIT).unwrap(), to)
        }
    }
}
