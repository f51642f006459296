//! Catalog: what exists, seen through the eyes of a transaction.

mod records;
mod security;
pub(super) mod serde_value;
pub(super) mod state;
mod table;

pub use records::*;
pub use security::{Membership, Permission, PermissionKey, PermissionState, Principal, PrincipalKind, Scope};
pub use table::{
    Check, Column, Computed, DefaultConstraint, ForeignKey, Identity, Index, IndexKey, KeyConstraint,
    ReferentialAction, TableDef,
};

/// The form of a name under which it is compared: identifiers are not case sensitive, trailing spaces do not count.
#[must_use]
pub fn fold_name(name: &str) -> String {
    name.trim_end_matches(' ').to_lowercase()
}
