//! Known answers (from the examples of MS-TDS where it has one), round trips and random bytes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod bulk;
mod connection;
mod controlled;
mod foreign;
mod login;
mod random_bytes;
mod requests;
mod response;
mod scripted;
mod values;

use super::super::sql::ColumnMeta;
use super::super::value::SqlType;

/// The bytes of a hex text; spaces are for the eye.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn column(name: &str, ty: SqlType, nullable: bool) -> ColumnMeta {
    ColumnMeta { name: name.into(), ty, nullable, identity: false, computed: false, collation: ty.collation() }
}
