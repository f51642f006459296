//! Document forms of [`SqlType`] and [`Value`] inside catalog records.

use serde::{Deserialize, Serialize};

use crate::sqlserver::store::row;
use crate::sqlserver::value::{Collation, Length, SqlType, Value};

/// A type as its system name, facets (`-1` for `max`) and collation name.
#[derive(Serialize, Deserialize)]
struct TypeDocument {
    name: String,
    facets: Vec<i64>,
    collation: Option<String>,
}

fn length_facet(length: Length) -> i64 {
    match length {
        Length::Sized(length) => i64::from(length),
        Length::Max => -1,
    }
}

fn document_of(ty: &SqlType) -> TypeDocument {
    let (facets, collation) = match *ty {
        SqlType::Decimal { precision, scale } => (vec![i64::from(precision), i64::from(scale)], None),
        SqlType::Char(length, collation) | SqlType::NChar(length, collation) => {
            (vec![i64::from(length)], Some(collation))
        }
        SqlType::VarChar(length, collation) | SqlType::NVarChar(length, collation) => {
            (vec![length_facet(length)], Some(collation))
        }
        SqlType::Text(collation) | SqlType::NText(collation) => (vec![], Some(collation)),
        SqlType::Binary(length) => (vec![i64::from(length)], None),
        SqlType::VarBinary(length) => (vec![length_facet(length)], None),
        SqlType::Time(scale) | SqlType::DateTime2(scale) | SqlType::DateTimeOffset(scale) => {
            (vec![i64::from(scale)], None)
        }
        _ => (vec![], None),
    };
    TypeDocument { name: ty.name().to_owned(), facets, collation: collation.map(|it| it.name()) }
}

fn type_of(document: &TypeDocument) -> Option<SqlType> {
    if document.name == SqlType::Null.name() {
        return Some(SqlType::Null);
    }
    let collation = match &document.collation {
        Some(name) => Collation::from_name(name).ok()?,
        None => Collation::DEFAULT,
    };
    SqlType::from_name(&document.name, &document.facets, 1, collation).ok()
}

/// A type as one JSON text.
pub(in crate::sqlserver::store) fn type_to_json(ty: &SqlType) -> String {
    // A struct of texts and integers always serialises; an empty text would be refused on reading.
    serde_json::to_string(&document_of(ty)).unwrap_or_default()
}

/// A type from its JSON text; none if it is not one.
pub(in crate::sqlserver::store) fn type_from_json(text: &str) -> Option<SqlType> {
    serde_json::from_str(text).ok().as_ref().and_then(type_of)
}

/// Form of a [`SqlType`].
pub(super) mod sql_type {
    use serde::de::Error as _;
    use serde::{Deserializer, Serializer};

    use super::{Deserialize, Serialize, SqlType, TypeDocument, document_of, type_of};

    pub(in super::super) fn serialize<S: Serializer>(ty: &SqlType, serializer: S) -> Result<S::Ok, S::Error> {
        document_of(ty).serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SqlType, D::Error> {
        type_of(&TypeDocument::deserialize(deserializer)?).ok_or_else(|| D::Error::custom("unknown type"))
    }
}

/// Form of a [`Value`]: its row bytes in hexadecimal.
pub(super) mod value {
    use std::fmt::Write as _;

    use serde::de::Error as _;
    use serde::{Deserializer, Serializer};

    use super::{Deserialize, Serialize, Value, row};

    pub(in super::super) fn serialize<S: Serializer>(value: &Value, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::new();
        row::encode_value(value, &mut bytes);
        let mut text = String::with_capacity(bytes.len() * 2);
        for byte in bytes {
            let _infallible = write!(text, "{byte:02x}");
        }
        text.serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = (0..text.len() / 2)
            .map(|i| text.get(2 * i..2 * i + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok()))
            .collect::<Option<Vec<u8>>>()
            .ok_or_else(|| D::Error::custom("bad hexadecimal digits"))?;
        row::decode_single(&bytes).map_err(D::Error::custom)
    }
}
