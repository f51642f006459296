//! Lock modes, their compatibility and their combination.
//!
//! Source: "Transaction locking and row versioning guide", tables "Lock compatibility" and
//! "Lock modes" of Microsoft's SQL Server documentation (key-range modes are not used here).

use std::fmt;

/// A lock mode. The discriminant is the row of the compatibility table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum LockMode {
    /// Schema stability: taken by every use of an object's definition.
    SchemaStability,
    /// Schema modification: DDL and TRUNCATE.
    SchemaModification,
    /// Shared.
    Shared,
    /// Update: shared with readers, one intending writer.
    Update,
    /// Exclusive.
    Exclusive,
    /// Intent shared.
    IntentShared,
    /// Intent update.
    IntentUpdate,
    /// Intent exclusive.
    IntentExclusive,
    /// Shared with intent update.
    SharedIntentUpdate,
    /// Shared with intent exclusive.
    SharedIntentExclusive,
    /// Update with intent exclusive.
    UpdateIntentExclusive,
    /// Bulk update: many bulk loads side by side, nobody else.
    BulkUpdate,
}

use LockMode::{
    BulkUpdate, Exclusive, IntentExclusive, IntentShared, IntentUpdate, SchemaModification, SchemaStability, Shared,
    SharedIntentExclusive, SharedIntentUpdate, Update, UpdateIntentExclusive,
};

/// All modes in the order of their discriminants.
pub const ALL_MODES: [LockMode; 12] = [
    SchemaStability,
    SchemaModification,
    Shared,
    Update,
    Exclusive,
    IntentShared,
    IntentUpdate,
    IntentExclusive,
    SharedIntentUpdate,
    SharedIntentExclusive,
    UpdateIntentExclusive,
    BulkUpdate,
];

/// Row = held mode, column = requested mode, both in the order of [`ALL_MODES`]; `1` is compatible.
const COMPATIBLE: [[u8; 12]; 12] = [
    // SchS SchM S  U  X  IS IU IX SIU SIX UIX BU
    [1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], // Sch-S
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], // Sch-M
    [1, 0, 1, 1, 0, 1, 1, 0, 1, 0, 0, 0], // S
    [1, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0], // U
    [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], // X
    [1, 0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 0], // IS
    [1, 0, 1, 0, 0, 1, 1, 1, 1, 1, 0, 0], // IU
    [1, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0], // IX
    [1, 0, 1, 0, 0, 1, 1, 0, 1, 0, 0, 0], // SIU
    [1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0], // SIX
    [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0], // UIX
    [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], // BU
];

impl LockMode {
    /// Whether `requested` can be granted to another session while this mode is held.
    #[must_use]
    pub fn is_compatible_with(self, requested: Self) -> bool {
        COMPATIBLE[self as usize][requested as usize] == 1
    }

    /// Whether holding this mode makes a request for `other` unnecessary.
    #[must_use]
    pub fn covers(self, other: Self) -> bool {
        self.combine(other) == self
    }

    /// The weakest mode that gives both: what a holder of `self` converts to when it asks for `other`.
    #[must_use]
    pub fn combine(self, other: Self) -> Self {
        if self == other {
            return self;
        }
        match (self, other) {
            (SchemaStability, mode) | (mode, SchemaStability) => mode,
            (SchemaModification, _) | (_, SchemaModification) => SchemaModification,
            (Exclusive, _) | (_, Exclusive) => Exclusive,
            // A bulk load that also reads or writes by other roads needs the table for itself.
            (BulkUpdate, _) | (_, BulkUpdate) => Exclusive,
            _ => Self::from_parts(self.parts() | other.parts()),
        }
    }

    /// The independent powers of a mode: read all, update all, intent bits.
    fn parts(self) -> u8 {
        match self {
            IntentShared => IS,
            IntentUpdate => IS | IU,
            IntentExclusive => IS | IU | IX,
            Shared => IS | S,
            SharedIntentUpdate => IS | IU | S,
            SharedIntentExclusive => IS | IU | IX | S,
            Update => IS | IU | S | U,
            UpdateIntentExclusive => IS | IU | IX | S | U,
            SchemaStability | SchemaModification | Exclusive | BulkUpdate => 0,
        }
    }

    fn from_parts(parts: u8) -> Self {
        match (parts & U != 0, parts & S != 0, parts & IX != 0, parts & IU != 0) {
            (true, _, true, _) => UpdateIntentExclusive,
            (true, _, false, _) => Update,
            (false, true, true, _) => SharedIntentExclusive,
            (false, true, false, true) => SharedIntentUpdate,
            (false, true, false, false) => Shared,
            (false, false, true, _) => IntentExclusive,
            (false, false, false, true) => IntentUpdate,
            (false, false, false, false) => IntentShared,
        }
    }

    /// Spelling of `sys.dm_tran_locks.request_mode`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            SchemaStability => "Sch-S",
            SchemaModification => "Sch-M",
            Shared => "S",
            Update => "U",
            Exclusive => "X",
            IntentShared => "IS",
            IntentUpdate => "IU",
            IntentExclusive => "IX",
            SharedIntentUpdate => "SIU",
            SharedIntentExclusive => "SIX",
            UpdateIntentExclusive => "UIX",
            BulkUpdate => "BU",
        }
    }
}

const IS: u8 = 1;
const IU: u8 = 2;
const IX: u8 = 4;
const S: u8 = 8;
const U: u8 = 16;

impl fmt::Display for LockMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compatibility_is_symmetric() {
        for a in ALL_MODES {
            for b in ALL_MODES {
                assert_eq!(a.is_compatible_with(b), b.is_compatible_with(a), "{a} {b}");
            }
        }
    }

    /// The conflict rows of Microsoft's simple table (IS, S, U, IX, SIX, X).
    #[test]
    fn the_published_table_of_common_modes_holds() {
        let modes = [IntentShared, Shared, Update, IntentExclusive, SharedIntentExclusive, Exclusive];
        let expected = [
            [true, true, true, true, true, false],
            [true, true, true, false, false, false],
            [true, true, false, false, false, false],
            [true, false, false, true, false, false],
            [true, false, false, false, false, false],
            [false, false, false, false, false, false],
        ];
        for (held, row) in modes.iter().zip(expected) {
            for (requested, compatible) in modes.iter().zip(row) {
                assert_eq!(held.is_compatible_with(*requested), compatible, "{held} {requested}");
            }
        }
    }

    #[test]
    fn combination_is_an_upper_bound() {
        for a in ALL_MODES {
            for b in ALL_MODES {
                let both = a.combine(b);
                assert_eq!(both, b.combine(a), "{a} {b}");
                assert!(both.covers(a) && both.covers(b), "{a} + {b} = {both}");
                for other in ALL_MODES {
                    if both.is_compatible_with(other) {
                        assert!(
                            a.is_compatible_with(other) && b.is_compatible_with(other),
                            "{a} + {b} = {both}, {other}"
                        );
                    }
                }
            }
        }
        assert_eq!(Shared.combine(IntentExclusive), SharedIntentExclusive);
        assert_eq!(Update.combine(IntentExclusive), UpdateIntentExclusive);
    }
}
