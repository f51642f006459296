//! Size and shape limits of the raw snapshot documents, checked before any JSON text is made.

use crate::canon::Json;
use crate::code;
use crate::error::Refusal;

/// Largest canonical size of a profile, an EOF descriptor or an extension, bytes.
pub const DOCUMENT_BYTES_MAX: usize = 65_536;

/// Deepest nesting of a document; the root is at depth 0.
pub const DOCUMENT_DEPTH_MAX: usize = 8;

/// Checks that a document has only texts, integers, booleans, nulls, arrays and objects, at most
/// [`DOCUMENT_DEPTH_MAX`] levels and at most [`DOCUMENT_BYTES_MAX`] canonical bytes.
///
/// # Errors
/// `mssql_native.source_snapshot_invalid`.
pub fn check(document: &Json) -> Result<(), Refusal> {
    let mut left = DOCUMENT_BYTES_MAX;
    spend(document, 0, &mut left).ok_or_else(|| {
        Refusal::new(
            code::SOURCE_SNAPSHOT_INVALID,
            "A raw snapshot document is larger, deeper or other than its contract allows; nothing was accepted.",
        )
    })
}

/// Takes the canonical size of `value` from `left`; `None` when it does not fit or the shape is not admitted.
fn spend(value: &Json, depth: usize, left: &mut usize) -> Option<()> {
    if depth > DOCUMENT_DEPTH_MAX {
        return None;
    }
    match value {
        Json::Null | Json::Bool(true) => take(left, 4),
        Json::Bool(false) => take(left, 5),
        // An integer of n bits has more than n / 4 decimal digits, which keeps a huge one from being printed at all.
        Json::Int(value) if value.bits() / 4 > *left as u64 => None,
        Json::Int(value) => take(left, value.to_string().len()),
        Json::Float(_) => None,
        Json::Str(text) => take(left, text_len(text)),
        Json::Array(items) => {
            take(left, 2 + items.len().saturating_sub(1))?;
            items.iter().try_for_each(|item| spend(item, depth + 1, left))
        }
        Json::Object(members) => {
            take(left, 2 + members.len().saturating_sub(1) + members.len())?;
            members.iter().try_for_each(|(key, item)| {
                take(left, text_len(key))?;
                spend(item, depth + 1, left)
            })
        }
    }
}

fn take(left: &mut usize, bytes: usize) -> Option<()> {
    *left = left.checked_sub(bytes)?;
    Some(())
}

/// Length of a text in the strict canonical form, quotes included.
fn text_len(text: &str) -> usize {
    let escapes: usize = text
        .bytes()
        .map(|byte| match byte {
            b'"' | b'\\' | 0x08 | 0x0c | b'\n' | b'\r' | b'\t' => 1,
            0x00..=0x1f => 5,
            _ => 0,
        })
        .sum();
    text.len() + escapes + 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon::strict;

    fn nested(levels: usize) -> Json {
        (0..levels).fold(Json::Null, |inner, _| Json::Array(vec![inner]))
    }

    #[test]
    fn the_cap_is_exact_in_canonical_bytes() {
        for text in ["x", "\u{1}", "\"", "é", "漢"] {
            let mut document = Json::object([("k", Json::from(text)), ("list", Json::array([1, -2]))]);
            let room = DOCUMENT_BYTES_MAX - strict(&document).len();
            document = Json::object([
                ("k", Json::from(text)),
                ("list", Json::array([1, -2])),
                ("pad", Json::from("p".repeat(room - 9))),
            ]);
            assert_eq!(strict(&document).len(), DOCUMENT_BYTES_MAX);
            assert!(check(&document).is_ok());
            if let Json::Object(members) = &mut document {
                members.insert("k".into(), Json::from(format!("{text}y")));
            }
            assert!(check(&document).is_err());
        }
    }

    #[test]
    fn depth_eight_passes_and_nine_does_not() {
        assert!(check(&nested(8)).is_ok());
        assert!(check(&nested(9)).is_err());
    }

    #[test]
    fn a_float_is_no_document_value() {
        let float = crate::canon::Finite::new(1.0).map(Json::Float).expect("finite");
        assert!(check(&Json::Array(vec![float])).is_err());
    }
}
