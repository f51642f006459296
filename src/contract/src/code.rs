//! Every stable code that this crate hands out, with its meaning and remedy.
//!
//! The pages under `docs/reference/errors/` are generated from this table. A code is the text before `: ` of a message
//! and never changes once released; codes with a detail (`BASE:DETAIL`) are listed by their base.

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeEntry {
    /// The stable text.
    pub code: &'static str,
    /// What it says about the world.
    pub meaning: &'static str,
    /// What a person does about it.
    pub remedy: &'static str,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $meaning:literal, $remedy:literal;)*) => {
        $(#[doc = $meaning] pub const $name: &str = $code;)*

        const TABLE: &[CodeEntry] = &[$(CodeEntry { code: $code, meaning: $meaning, remedy: $remedy }),*];
    };
}

/// The whole table, in the order of this file.
pub fn all() -> &'static [CodeEntry] {
    TABLE
}

codes! {
    TARGET_DIGEST_LIMB = "mssql_native.target_digest_limb",
        "A partial sum of the target's digest query lies outside what its row count allows.",
        "Keep the stage and inspect it: another session may have changed it, or the server misbehaves.";
}
