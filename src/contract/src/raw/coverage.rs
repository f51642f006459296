//! Touched-part coverage: which rows of which parts the stream returned (contract.md 2.3).

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use super::parts::PartInventory;
use crate::canon::{Json, strict_digest, write_strict_text};
use crate::code;
use crate::digest::{Digest, TypedSum};
use crate::error::Refusal;

/// Accumulates `(_part, _part_offset)` of every row against the inventory taken before the query.
///
/// A row costs one SHA-256 of its canonical `[part, offset]` and no allocation: the part's constant prefix is absorbed
/// once, and consecutive rows usually come from the same part.
#[derive(Debug, Clone)]
pub struct Coverage {
    parts: Vec<Part>,
    by_name: BTreeMap<Vec<u8>, usize>,
    last: usize,
    rows: u64,
}

#[derive(Debug, Clone)]
struct Part {
    name: String,
    physical_rows: u64,
    /// SHA-256 state after `["name",`.
    prefix: Sha256,
    rows: u64,
    sum: TypedSum,
}

impl Part {
    fn new(name: &str, physical_rows: u64) -> Self {
        let mut prefix = vec![b'['];
        write_strict_text(&mut prefix, name);
        prefix.push(b',');
        let prefix = Sha256::new_with_prefix(prefix);
        Part { name: name.to_owned(), physical_rows, prefix, rows: 0, sum: TypedSum::ZERO }
    }

    fn add(&mut self, offset: u64) {
        let (buffer, start) = decimal_and_bracket(offset);
        let mut hash = self.prefix.clone();
        hash.update(&buffer[start..]);
        self.sum.add_hash(&hash.finalize().into());
        self.rows += 1;
    }
}

/// The decimal digits of `value` and a closing bracket, at the end of the buffer from the returned index on.
fn decimal_and_bracket(value: u64) -> ([u8; 21], usize) {
    let mut buffer = [b']'; 21];
    let mut at = 20;
    let mut left = value;
    loop {
        at -= 1;
        buffer[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            return (buffer, at);
        }
    }
}

impl Coverage {
    /// Coverage of nothing yet, against the parts that the stream may touch.
    pub fn new(inventory: &PartInventory) -> Self {
        let parts: Vec<Part> = inventory.iter().map(|part| Part::new(&part.name, part.rows)).collect();
        let by_name = parts.iter().enumerate().map(|(index, part)| (part.name.clone().into_bytes(), index)).collect();
        Coverage { parts, by_name, last: 0, rows: 0 }
    }

    /// Records one row.
    ///
    /// # Errors
    /// `mssql_native.source_provenance_incomplete` when the part is not in the inventory or the offset is not one of
    /// its rows.
    #[inline]
    pub fn observe(&mut self, part: &[u8], offset: u64) -> Result<(), Refusal> {
        let same = self.parts.get(self.last).is_some_and(|last| last.name.as_bytes() == part);
        if !same {
            self.last = *self.by_name.get(part).ok_or_else(unproven)?;
        }
        let entry = self.parts.get_mut(self.last).ok_or_else(unproven)?;
        if offset >= entry.physical_rows {
            return Err(unproven());
        }
        entry.add(offset);
        self.rows += 1;
        Ok(())
    }

    /// Rows recorded.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Number of parts that gave at least one row.
    pub fn touched_parts(&self) -> usize {
        self.parts.iter().filter(|part| part.rows > 0).count()
    }

    /// `{part: [rows, sum]}` of the touched parts.
    pub fn document(&self) -> Json {
        let touched = self.parts.iter().filter(|part| part.rows > 0);
        Json::Object(
            touched
                .map(|part| (part.name.clone(), Json::Array(vec![Json::from(part.rows), Json::from(part.sum)])))
                .collect(),
        )
    }

    /// SHA-256 of the canonical document.
    pub fn sha256(&self) -> Digest {
        strict_digest(&self.document())
    }
}

fn unproven() -> Refusal {
    Refusal::new(
        code::SOURCE_PROVENANCE_INCOMPLETE,
        "The source returned a row whose part or offset was not in the inventory taken before the query; nothing was \
         published, start a new run.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::parts::PartRow;

    fn inventory(parts: &[(&str, u64)]) -> PartInventory {
        let hash = "1".repeat(32);
        let row = |(name, rows): &(&str, u64)| PartRow {
            name: (*name).to_owned(),
            partition_id: "all".into(),
            rows: *rows,
            data_version: 1,
            level: 0,
            has_lightweight_delete: 0,
            hash_of_all_files: hash.clone(),
            hash_of_uncompressed_files: hash.clone(),
            uncompressed_hash_of_compressed_files: hash.clone(),
        };
        PartInventory::new(parts.iter().map(row).collect()).expect("complete parts")
    }

    #[test]
    fn the_digits_end_in_a_bracket() {
        for value in [0, 7, 10, 99, 12_345, u64::MAX] {
            let (buffer, start) = decimal_and_bracket(value);
            assert_eq!(std::str::from_utf8(&buffer[start..]), Ok(format!("{value}]").as_str()));
        }
    }

    #[test]
    fn only_rows_of_the_inventory_count() {
        let mut coverage = Coverage::new(&inventory(&[("a", 2), ("b", 1)]));
        assert!(coverage.observe(b"b", 0).is_ok());
        assert!(coverage.observe(b"a", 1).is_ok());
        assert!(coverage.observe(b"a", 2).is_err(), "offset beyond the part");
        assert!(coverage.observe(b"c", 0).is_err(), "unknown part");
        assert!(coverage.observe(b"\xff", 0).is_err(), "a name that is no text");
        assert_eq!((coverage.rows(), coverage.touched_parts()), (2, 2));
    }

    #[test]
    fn an_empty_inventory_covers_nothing() {
        let mut coverage = Coverage::new(&inventory(&[]));
        assert!(coverage.observe(b"a", 0).is_err());
        assert_eq!(coverage.sha256(), Digest::of(b"{}"));
    }
}
