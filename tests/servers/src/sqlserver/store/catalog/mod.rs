//! Catalog: what exists, seen through the eyes of a transaction.

mod records;
pub(super) mod serde_value;
pub(super) mod state;

pub use records::*;

/// The form of a name under which it is compared: identifiers are not case sensitive, trailing spaces do not count.
#[must_use]
pub fn fold_name(name: &str) -> String {
    name.trim_end_matches(' ').to_lowercase()
}
