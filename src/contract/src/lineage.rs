//! Lineage presets: the framework columns that a target table carries besides the business columns (design.md 3.22,
//! contract.md 3.4).

use crate::code;
use crate::digest::Digest;
use crate::error::Refusal;
use crate::port::target::TargetColumn as CatalogColumn;
use crate::sql_type::SqlType;

/// Which framework columns the target has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LineagePreset {
    /// None.
    #[default]
    Off,
    /// load_id, loaded_at.
    Minimal,
    /// minimal, row_id, extracted_at.
    Standard,
    /// standard, run_id.
    BulkStandard,
    /// standard, op, meta.
    Debug,
}

/// One framework column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameworkColumn {
    /// Full name.
    pub name: &'static str,
    /// SQL Server type.
    pub type_text: &'static str,
    /// Whether NULL is allowed.
    pub nullable: bool,
}

const fn column(name: &'static str, type_text: &'static str, nullable: bool) -> FrameworkColumn {
    FrameworkColumn { name, type_text, nullable }
}

const RUN_ID: FrameworkColumn = column("__dpone__run_id", "varchar(26)", false);
const LOAD_ID: FrameworkColumn = column("__dpone__load_id", "varchar(26)", false);
const LOADED_AT: FrameworkColumn = column("__dpone__loaded_at", "datetime2(7)", false);
const ROW_ID: FrameworkColumn = column("__dpone__row_id", "varchar(64)", true);
const EXTRACTED_AT: FrameworkColumn = column("__dpone__extracted_at", "datetime2(7)", false);
const OP: FrameworkColumn = column("__dpone__op", "varchar(32)", true);
const META: FrameworkColumn = column("__dpone__meta", "nvarchar(max)", true);

/// Whether a column name belongs to the framework.
pub fn is_reserved(name: &str) -> bool {
    name.to_lowercase().starts_with("__dpone__")
}

impl LineagePreset {
    /// Every preset with its name.
    pub const ALL: [(&'static str, LineagePreset); 5] = [
        ("off", LineagePreset::Off),
        ("minimal", LineagePreset::Minimal),
        ("standard", LineagePreset::Standard),
        ("bulk_standard", LineagePreset::BulkStandard),
        ("debug", LineagePreset::Debug),
    ];

    /// The preset of that exact name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().find(|(name, _)| *name == text).map(|(_, preset)| *preset)
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            LineagePreset::Off => "off",
            LineagePreset::Minimal => "minimal",
            LineagePreset::Standard => "standard",
            LineagePreset::BulkStandard => "bulk_standard",
            LineagePreset::Debug => "debug",
        }
    }

    /// The framework columns in the order in which they follow the business columns.
    pub fn columns(self) -> &'static [FrameworkColumn] {
        match self {
            LineagePreset::Off => &[],
            LineagePreset::Minimal => &[LOAD_ID, LOADED_AT],
            LineagePreset::Standard => &[LOAD_ID, LOADED_AT, ROW_ID, EXTRACTED_AT],
            LineagePreset::BulkStandard => &[RUN_ID, LOAD_ID, LOADED_AT, ROW_ID, EXTRACTED_AT],
            LineagePreset::Debug => &[LOAD_ID, LOADED_AT, ROW_ID, EXTRACTED_AT, OP, META],
        }
    }

    /// Checks that a target's framework columns are exactly those of the preset.
    ///
    /// # Errors
    /// `native_transfer.lineage_columns_mismatch:COL` naming the first column that is missing, surplus or of another type.
    pub fn admit(self, framework: &[CatalogColumn]) -> Result<(), Refusal> {
        let wanted = self.columns();
        let fits = |want: &FrameworkColumn, have: &CatalogColumn| {
            have.name == want.name
                && have.nullable == want.nullable
                && SqlType::parse(&have.type_text).is_some_and(|sql| sql.to_string() == want.type_text)
        };
        let missing =
            wanted.iter().find(|want| !framework.iter().any(|have| fits(want, have))).map(|c| c.name.to_owned());
        let surplus =
            || framework.iter().find(|have| !wanted.iter().any(|w| w.name == have.name)).map(|c| c.name.clone());
        match missing.or_else(surplus) {
            None => Ok(()),
            Some(name) => Err(Refusal::with_detail(
                code::LINEAGE_COLUMNS_MISMATCH,
                &name,
                "the target's lineage columns are not those of sink.options.lineage.preset; add or drop the named column, \
                 or choose the preset that the table was made for",
            )),
        }
    }
}

/// The lineage id of a key: the first 26 Crockford base32 characters of its SHA-256 digest (design.md 3.22).
///
/// `load_id` is that of the operation key, `run_id` that of SHA-256 over the run id's text.
pub fn lineage_id(digest: &Digest) -> String {
    const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    let bytes = digest.as_bytes();
    (0..26)
        .map(|i| {
            let bit = i * 5;
            let pair = u16::from(bytes[bit / 8]) << 8 | u16::from(bytes[bit / 8 + 1]);
            char::from(ALPHABET[usize::from(pair >> (11 - bit % 8) & 31)])
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog(preset: LineagePreset) -> Vec<CatalogColumn> {
        let state = |c: &FrameworkColumn| CatalogColumn {
            name: c.name.to_owned(),
            type_text: c.type_text.to_owned(),
            nullable: c.nullable,
            collation: None,
            not_writable: None,
        };
        preset.columns().iter().map(state).collect()
    }

    #[test]
    fn a_target_has_exactly_the_presets_columns() {
        for (_, preset) in LineagePreset::ALL {
            for (_, other) in LineagePreset::ALL {
                assert_eq!(preset.admit(&catalog(other)).is_ok(), preset == other, "{preset:?} on {other:?}");
            }
        }
        let mut wrong = catalog(LineagePreset::Minimal);
        wrong[1].nullable = true;
        let refusal = LineagePreset::Minimal.admit(&wrong).expect_err("nullable loaded_at");
        assert_eq!(refusal.code.as_str(), "native_transfer.lineage_columns_mismatch:__dpone__loaded_at");
    }

    #[test]
    fn lineage_ids_are_crockford_base32() {
        // RFC 4648 base32 of 32 bytes 0xFF.. is all ones: the last letter of either alphabet.
        assert_eq!(lineage_id(&Digest::from_bytes([0xFF; 32])), "Z".repeat(26));
        let mut bytes = [0u8; 32];
        bytes[0] = 0b0000_1000;
        bytes[1] = 0b0100_0000;
        assert_eq!(lineage_id(&Digest::from_bytes(bytes)), format!("11{}", "0".repeat(24)));
    }
}
