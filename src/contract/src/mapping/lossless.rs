//! Whether one SQL Server type holds every value of another exactly.

use crate::sql_type::{Length, SqlType};

/// Whether every value of `source` has exactly one image in `target`, by type alone.
pub fn keeps_every_value(source: SqlType, target: SqlType) -> bool {
    if source.same_storage(target) {
        return true;
    }
    match structural(source, target) {
        Some(verdict) => verdict,
        None => widens_bounded(source, target),
    }
}

/// Whether `target` may be authored for `source`: it keeps every value by type, or it is a bounded text or binary type
/// of the same family, where the encoder proves every single value (`mssql_native_field_length_exceeded`).
pub fn may_keep_values(source: SqlType, target: SqlType) -> bool {
    let binary = |t: SqlType| matches!(t, SqlType::Binary(_) | SqlType::VarBinary(_));
    keeps_every_value(source, target) || (source.is_text() && target.is_text()) || (binary(source) && binary(target))
}

/// The verdict of families that are ordered by their parameters; `None` where lengths decide.
fn structural(source: SqlType, target: SqlType) -> Option<bool> {
    if let (Some(from), Some(to)) = (integer_rank(source), integer_rank(target)) {
        return Some(to >= from);
    }
    if let (Some(digits), Some((precision, scale))) = (integer_digits(source), decimal(target)) {
        return Some(precision - scale >= digits);
    }
    if let (Some((precision, scale)), Some((to_precision, to_scale))) = (decimal(source), decimal(target)) {
        return Some(to_scale >= scale && to_precision - to_scale >= precision - scale);
    }
    if let (Some(from), Some(to)) = (source.float_bits(), target.float_bits()) {
        return Some(to >= from);
    }
    match (source, target) {
        (SqlType::Time(from), SqlType::Time(to))
        | (SqlType::DateTime2(from), SqlType::DateTime2(to))
        | (SqlType::DateTimeOffset(from), SqlType::DateTimeOffset(to)) => Some(to >= from),
        _ => None,
    }
}

fn integer_rank(sql: SqlType) -> Option<u8> {
    match sql {
        SqlType::TinyInt => Some(1),
        SqlType::SmallInt => Some(2),
        SqlType::Int => Some(3),
        SqlType::BigInt => Some(4),
        _ => None,
    }
}

fn integer_digits(sql: SqlType) -> Option<u8> {
    match sql {
        SqlType::TinyInt => Some(3),
        SqlType::SmallInt => Some(5),
        SqlType::Int => Some(10),
        SqlType::BigInt => Some(19),
        _ => None,
    }
}

fn decimal(sql: SqlType) -> Option<(u8, u8)> {
    match sql {
        SqlType::Decimal { precision, scale, .. } => Some((precision, scale)),
        _ => None,
    }
}

/// Whether `target` is the same bounded family with at least the length.
fn widens_bounded(source: SqlType, target: SqlType) -> bool {
    let length = |sql: SqlType| match sql {
        SqlType::NVarChar(length) | SqlType::VarChar(length) | SqlType::VarBinary(length) => Some(length),
        SqlType::NChar(n) | SqlType::Char(n) | SqlType::Binary(n) => Some(Length::Of(n)),
        _ => None,
    };
    source.base_name() == target.base_name()
        && match (length(source), length(target)) {
            (Some(_), Some(Length::Max)) => true,
            (Some(Length::Of(from)), Some(Length::Of(to))) => to >= from,
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sql(text: &str) -> SqlType {
        SqlType::parse(text).expect(text)
    }

    #[test]
    fn widening_holds_and_narrowing_does_not() {
        for (from, to) in [("tinyint", "bigint"), ("int", "decimal(10,0)"), ("decimal(9,2)", "decimal(18,4)")]
            .into_iter()
            .chain([("real", "float(53)"), ("datetime2(0)", "datetime2(6)"), ("nvarchar(10)", "nvarchar(max)")])
        {
            assert!(keeps_every_value(sql(from), sql(to)), "{from} -> {to}");
            assert!(!keeps_every_value(sql(to), sql(from)), "{to} -> {from}");
        }
        for (from, to) in
            [("bit", "bigint"), ("date", "datetime2(6)"), ("float", "decimal(38,10)"), ("bigint", "decimal(18,0)")]
        {
            assert!(!may_keep_values(sql(from), sql(to)), "{from} -> {to}");
        }
        assert!(may_keep_values(sql("nvarchar(max)"), sql("varchar(10)")));
        assert!(!keeps_every_value(sql("nvarchar(max)"), sql("nvarchar(10)")));
    }
}
