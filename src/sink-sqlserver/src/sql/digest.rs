//! The target-local digest: one aggregate statement per table (contract.md 3.4).
//!
//! Each row's native bytes are rebuilt from its columns and hashed; the statement returns a count, an overflow bit and
//! eight sums of 32-bit words. The frames equal those of the native encoder byte for byte:
//!
//! ```text
//! bigint         [08] b0..b7 little-endian                     NULL: FF
//! float(53)      [08] b0..b7 little-endian IEEE 754            NULL: FF
//! nvarchar(max)  8-byte little-endian DATALENGTH, UTF-16LE     NULL: FF x 8
//! datetime2      [08] 5 bytes ticks, 3 bytes days (scale 7)    NULL: FF
//! ```
//!
//! `[08]` stands before the value only in nullable columns. `CONVERT(binary(n), x)` of a number is big-endian, so it is
//! taken apart byte by byte; `REVERSE` is no help because it works on characters and their collation.

use contract::error::Refusal;
use contract::port::target::StageColumn;

use super::ident::bracket;

/// Columns per `CROSS APPLY` group: keeps each expression small enough for the server's parser.
const GROUP_COLUMNS: usize = 4;

/// Columns of the aggregate row for one hash: count, overflow, eight words.
pub(crate) const SINGLE_FIELDS: usize = 10;
/// Columns of the aggregate row for two hashes.
pub(crate) const DOUBLE_FIELDS: usize = 18;

/// The statement over one set of columns: 10 fields.
pub(crate) fn single(table: &str, columns: &[StageColumn], expected_rows: u64) -> Result<String, Refusal> {
    statement(table, &[columns], expected_rows)
}

/// The statement over business columns and over all columns in one scan: 18 fields.
pub(crate) fn double(
    table: &str,
    business: &[StageColumn],
    all: &[StageColumn],
    expected_rows: u64,
) -> Result<String, Refusal> {
    statement(table, &[business, all], expected_rows)
}

fn statement(table: &str, hashes: &[&[StageColumn]], expected_rows: u64) -> Result<String, Refusal> {
    if expected_rows >= i64::MAX as u64 {
        return Err(Refusal::new(
            "mssql_native.target_digest_expected_rows",
            "the number of rows is beyond what one statement can count",
        ));
    }
    let mut applies = String::new();
    let mut selected = Vec::new();
    for (index, columns) in hashes.iter().enumerate() {
        let mut pieces = vec!["CONVERT(varbinary(max), 0x)".to_string()];
        for (group, chunk) in columns.chunks(GROUP_COLUMNS).enumerate() {
            let frames = chunk.iter().map(frame).collect::<Result<Vec<_>, _>>()?;
            applies.push_str(&format!(
                "\nCROSS APPLY (VALUES (CONVERT(varbinary(max), 0x) + {})) AS g{index}_{group}(p)",
                frames.join("\n  + "),
            ));
            pieces.push(format!("g{index}_{group}.p"));
        }
        selected.push(format!("HASHBYTES('SHA2_256', {}) AS h{index}", pieces.join(" + ")));
    }
    let words: Vec<String> =
        (0..hashes.len()).flat_map(|hash| (0..8).map(move |word| sum_of_word(hash, word))).collect();
    Ok(format!(
        "SET NOCOUNT ON;\n\
         IF OBJECT_ID(N'tempdb..#native_transfer_digest') IS NOT NULL DROP TABLE #native_transfer_digest;\n\
         SELECT TOP ({top}) {selected}\nINTO #native_transfer_digest\nFROM {table} AS s WITH (TABLOCKX, HOLDLOCK){applies};\n\
         SELECT COUNT_BIG(*), CONVERT(bit, CASE WHEN COUNT_BIG(*) > {expected_rows} THEN 1 ELSE 0 END),\n{words}\n\
         FROM #native_transfer_digest;\n\
         DROP TABLE #native_transfer_digest;\n",
        top = expected_rows + 1,
        selected = selected.join(",\n  "),
        words = words.join(",\n"),
    ))
}

/// Sum of one big-endian 32-bit word of a hash. Bytes go through tinyint, so no word is ever negative.
fn sum_of_word(hash: usize, word: usize) -> String {
    let byte =
        |offset: usize| format!("CONVERT(bigint, CONVERT(tinyint, SUBSTRING(h{hash}, {}, 1)))", word * 4 + offset + 1);
    format!(
        "COALESCE(SUM(CONVERT(decimal(38,0), {} * 16777216 + {} * 65536 + {} * 256 + {})), 0)",
        byte(0),
        byte(1),
        byte(2),
        byte(3)
    )
}

/// The native frame of one column as a varbinary expression over alias `s`.
fn frame(column: &StageColumn) -> Result<String, Refusal> {
    let name = format!("s.{}", bracket(&column.name));
    // Why a constant: the column must be NULL in every row (checked apart), and no unbounded text enters the hash.
    if column.name == super::prepare::META_COLUMN {
        return Ok("0xFFFFFFFFFFFFFFFF".to_string());
    }
    let (null, prefix, value) = match column.type_text.as_str() {
        "bigint" => ("0xFF", "0x08", reversed(&format!("CONVERT(binary(8), {name})"), 8)),
        "int" => ("0xFF", "0x04", reversed(&format!("CONVERT(binary(4), {name})"), 4)),
        "float(53)" => ("0xFF", "0x08", reversed(&format!("CONVERT(binary(8), {name})"), 8)),
        "datetime2(6)" | "datetime2(7)" => {
            ("0xFF", "0x08", format!("SUBSTRING(CONVERT(binary(9), CONVERT(datetime2(7), {name})), 2, 8)"))
        }
        "nvarchar(max)" => (
            "0xFFFFFFFFFFFFFFFF",
            "",
            format!(
                "{} + CONVERT(varbinary(max), {name})",
                reversed(&format!("CONVERT(binary(8), CONVERT(bigint, DATALENGTH({name})))"), 8)
            ),
        ),
        "varchar(26)" | "varchar(32)" | "varchar(64)" => (
            "0xFFFF",
            "",
            format!(
                "{} + CONVERT(varbinary(64), {name})",
                reversed(&format!("CONVERT(binary(2), CONVERT(smallint, DATALENGTH({name})))"), 2)
            ),
        ),
        _ => {
            return Err(Refusal::new(
                "mssql_native.target_digest_unsupported_type",
                "a column's type is outside the target-local layout matrix",
            ));
        }
    };
    Ok(match (column.nullable, prefix) {
        (false, _) => format!("({value})"),
        (true, "") => format!("CASE WHEN {name} IS NULL THEN {null} ELSE {value} END"),
        (true, prefix) => format!("CASE WHEN {name} IS NULL THEN {null} ELSE {prefix} + {value} END"),
    })
}

/// `expression` (a `binary(width)`) with its bytes in reverse order.
fn reversed(expression: &str, width: usize) -> String {
    (1..=width).rev().map(|at| format!("SUBSTRING({expression}, {at}, 1)")).collect::<Vec<_>>().join(" + ")
}
