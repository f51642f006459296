//! The layout matrix of target-local verification: which wire columns the target can digest itself (contract.md 3.5).

use crate::canon::{Json, legacy_digest};
use crate::code;
use crate::digest::Digest;
use crate::error::Refusal;
use crate::layout::{WireColumn, WireLayout};

/// The most business columns of one target-local digest.
pub const MAX_BUSINESS_COLUMNS: usize = 100;

/// Types of framework columns that the prepared digest knows.
pub const PREPARED_FRAMEWORK_TYPES: [&str; 6] =
    ["datetime2(7)", "int", "nvarchar(max)", "varchar(26)", "varchar(32)", "varchar(64)"];

/// One admitted layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawLayout {
    /// The declaration, compared as text: `float` is not `float(53)` here.
    pub declared: &'static str,
    /// Storage type.
    pub storage_type: &'static str,
    /// Admitted prefix widths.
    pub prefix_widths: &'static [u8],
    /// Payload length.
    pub fixed_length: Option<u8>,
    /// Precision of an explicit float.
    pub precision: Option<u8>,
    /// Physical scale.
    pub scale: Option<u8>,
    /// Text encoding.
    pub encoding: Option<&'static str>,
}

/// The admitted layouts in the order of the artifact.
pub const RAW_LAYOUTS: [RawLayout; 4] = [
    RawLayout {
        declared: "bigint",
        storage_type: "bigint",
        prefix_widths: &[0, 1],
        fixed_length: Some(8),
        precision: None,
        scale: None,
        encoding: None,
    },
    RawLayout {
        declared: "float(53)",
        storage_type: "float",
        prefix_widths: &[0, 1],
        fixed_length: Some(8),
        precision: Some(53),
        scale: None,
        encoding: None,
    },
    RawLayout {
        declared: "nvarchar(max)",
        storage_type: "nvarchar",
        prefix_widths: &[8],
        fixed_length: None,
        precision: None,
        scale: None,
        encoding: Some("utf-16le"),
    },
    RawLayout {
        declared: "datetime2(6)",
        storage_type: "datetime2",
        prefix_widths: &[0, 1],
        fixed_length: Some(8),
        precision: None,
        scale: Some(7),
        encoding: None,
    },
];

impl RawLayout {
    /// Whether a wire column has exactly this layout.
    pub fn admits(&self, column: &WireColumn) -> bool {
        let declared = column.declared.trim().to_lowercase();
        declared.strip_suffix(" nullable").unwrap_or(&declared) == self.declared
            && column.sql.base_name() == self.storage_type
            && self.prefix_widths.contains(&column.prefix_width)
            && column.fixed_length == self.fixed_length
            && column.precision() == self.precision
            && column.scale() == self.scale
            && column.encoding() == self.encoding
    }

    fn document(&self) -> Json {
        Json::object([
            ("source_type", Json::from(self.declared)),
            ("storage_type", Json::from(self.storage_type)),
            ("prefix_widths", Json::array(self.prefix_widths.iter().copied())),
            ("fixed_length", Json::from(self.fixed_length)),
            ("precision", Json::from(self.precision)),
            ("scale", Json::from(self.scale)),
            ("encoding", Json::from(self.encoding)),
        ])
    }
}

/// Whether the target can digest a column of this layout.
pub fn admits(column: &WireColumn) -> bool {
    RAW_LAYOUTS.iter().any(|layout| layout.admits(column))
}

/// Admits a whole row layout for target-local verification.
///
/// # Errors
/// `mssql_native.target_digest_column_count` (more than 100), `mssql_native.target_digest_unsupported_type`,
/// `mssql_native.target_digest_column_identifier` (longer than 128 characters, or with a control character).
pub fn admit_row(layout: &WireLayout) -> Result<(), Refusal> {
    let columns = layout.columns();
    if columns.len() > MAX_BUSINESS_COLUMNS {
        return Err(Refusal::new(
            code::TARGET_DIGEST_COLUMN_COUNT,
            "target_local verification covers at most 100 columns; split the table",
        ));
    }
    if let Some(column) = columns.iter().find(|column| !admits(column)) {
        return Err(Refusal {
            code: crate::error::Code::new(code::TARGET_DIGEST_UNSUPPORTED_TYPE),
            message: format!(
                "column {} is not bigint, float(53), nvarchar(max) or datetime2(6); widen it with \
                 sink.options.physical_design or use python_readback",
                column.name
            )
            .into(),
        });
    }
    let named = |name: &str| !name.is_empty() && name.chars().count() <= 128 && !name.chars().any(|c| c < ' ');
    if columns.iter().any(|column| !named(&column.name)) {
        return Err(Refusal::new(
            code::TARGET_DIGEST_COLUMN_IDENTIFIER,
            "a column name is longer than 128 characters or holds a control character",
        ));
    }
    Ok(())
}

/// The matrix without its own digest.
pub fn base_document() -> Json {
    Json::object([
        ("schema_version", Json::from(1)),
        ("kind", Json::from("dpone.mssql-target-local-layout-matrix")),
        ("max_business_columns", Json::from(MAX_BUSINESS_COLUMNS)),
        ("raw_layouts", Json::array(RAW_LAYOUTS.iter().map(RawLayout::document))),
        ("prepared_framework_types", Json::array(PREPARED_FRAMEWORK_TYPES)),
    ])
}

/// The matrix's content address: SHA-256 of its legacy ascii form.
pub fn capability_digest() -> Digest {
    legacy_digest(&base_document())
}

/// The matrix with its content address.
pub fn payload() -> Json {
    let mut document = base_document();
    if let Json::Object(members) = &mut document {
        members.insert("capability_digest".to_owned(), Json::from(capability_digest()));
    }
    document
}

/// The certification artifact `layout-matrix-v1.json` of a source commit.
///
/// # Errors
/// `mssql_native.layout_matrix_source_commit` unless the commit is 40 lower-case hex digits.
pub fn artifact(source_commit: &str) -> Result<Json, Refusal> {
    let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if source_commit.len() != 40 || !source_commit.bytes().all(hex) {
        return Err(Refusal::new(code::LAYOUT_MATRIX_SOURCE_COMMIT, "a commit is 40 lower-case hex digits"));
    }
    let mut document = payload();
    if let Json::Object(members) = &mut document {
        members.insert("source_commit".to_owned(), Json::from(source_commit));
    }
    Ok(document)
}
