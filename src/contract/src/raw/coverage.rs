//! Touched-part coverage: which rows of which parts the stream returned (contract.md 2.3).

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use super::offsets::{INTERVALS_MAX, Offsets};
use super::parts::{PartInventory, PartRow};
use crate::canon::{Json, strict_digest, write_strict_text};
use crate::code;
use crate::digest::{Digest, TypedSum};
use crate::error::Refusal;
use crate::port::source::{OffsetUniqueness, PartCoverage, PartRead};

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
    /// Rows that were recorded before.
    repeated: u64,
    /// Intervals of all parts but the last observed one; `None` once there were too many to keep.
    other_intervals: Option<usize>,
    intervals_max: usize,
}

#[derive(Debug, Clone)]
struct Part {
    row: PartRow,
    /// SHA-256 state after `["name",`.
    prefix: Sha256,
    rows: u64,
    sum: TypedSum,
    offsets: Offsets,
}

impl Part {
    fn new(row: &PartRow) -> Self {
        let mut prefix = vec![b'['];
        write_strict_text(&mut prefix, &row.name);
        prefix.push(b',');
        let prefix = Sha256::new_with_prefix(prefix);
        Part { row: row.clone(), prefix, rows: 0, sum: TypedSum::ZERO, offsets: Offsets::default() }
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
        let parts: Vec<Part> = inventory.iter().map(Part::new).collect();
        let by_name =
            parts.iter().enumerate().map(|(index, part)| (part.row.name.clone().into_bytes(), index)).collect();
        Coverage {
            parts,
            by_name,
            last: 0,
            rows: 0,
            repeated: 0,
            other_intervals: Some(0),
            intervals_max: INTERVALS_MAX,
        }
    }

    /// Records one row.
    ///
    /// # Errors
    /// `mssql_native.source_provenance_incomplete` when the part is not in the inventory or the offset is not one of
    /// its rows. A row that was recorded before counts again; [`Coverage::refuse_repetition`] says so at the end.
    #[inline]
    pub fn observe(&mut self, part: &[u8], offset: u64) -> Result<(), Refusal> {
        let same = self.parts.get(self.last).is_some_and(|last| last.row.name.as_bytes() == part);
        if !same {
            self.switch(part)?;
        }
        let entry = self.parts.get_mut(self.last).ok_or_else(unproven)?;
        if offset >= entry.row.rows {
            return Err(unproven());
        }
        if let Some(others) = self.other_intervals {
            self.repeated += u64::from(!entry.offsets.insert(offset));
            if others + entry.offsets.intervals() > self.intervals_max {
                self.forget_offsets();
            }
        }
        if let Some(entry) = self.parts.get_mut(self.last) {
            entry.add(offset);
        }
        self.rows += 1;
        Ok(())
    }

    /// Makes another part the last observed one.
    fn switch(&mut self, part: &[u8]) -> Result<(), Refusal> {
        let index = *self.by_name.get(part).ok_or_else(unproven)?;
        let intervals = |index: usize| self.parts.get(index).map_or(0, |part| part.offsets.intervals());
        if let Some(others) = self.other_intervals {
            self.other_intervals = Some(others + intervals(self.last) - intervals(index));
        }
        self.last = index;
        Ok(())
    }

    fn forget_offsets(&mut self) {
        self.other_intervals = None;
        for part in &mut self.parts {
            part.offsets = Offsets::default();
        }
    }

    /// Whether every row so far was checked against every other for repetition. `false` for a stream whose offsets are
    /// too scattered to keep; evidence says so, nothing is refused.
    pub fn repetition_checked(&self) -> bool {
        self.other_intervals.is_some()
    }

    /// To be asked before the end is sealed.
    ///
    /// # Errors
    /// `mssql_native.source_provenance_incomplete` when some row was recorded twice.
    pub fn refuse_repetition(&self) -> Result<(), Refusal> {
        if self.repeated == 0 {
            return Ok(());
        }
        Err(Refusal::new(
            code::SOURCE_PROVENANCE_INCOMPLETE,
            "The source returned a physical row twice; nothing was published, start a new run.",
        ))
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
                .map(|part| (part.row.name.clone(), Json::Array(vec![Json::from(part.rows), Json::from(part.sum)])))
                .collect(),
        )
    }

    /// SHA-256 of the canonical document.
    pub fn sha256(&self) -> Digest {
        strict_digest(&self.document())
    }

    /// What evidence says of the parts.
    pub fn evidence(&self) -> PartCoverage {
        let touched = self.parts.iter().filter(|part| part.rows > 0);
        PartCoverage {
            sha256: self.sha256(),
            offset_uniqueness: match self.repetition_checked() {
                true => OffsetUniqueness::Proved,
                false => OffsetUniqueness::NotProved,
            },
            inventory_parts: self.parts.len() as u64,
            patch_parts: self.parts.iter().filter(|part| part.row.is_patch()).count() as u64,
            parts: touched
                .map(|part| PartRead { part: part.row.clone(), rows: part.rows, offsets_sum: part.sum })
                .collect(),
        }
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
    fn a_row_seen_twice_refuses_the_end() {
        let mut coverage = Coverage::new(&inventory(&[("a", 10), ("b", 10)]));
        for (part, offset) in [(b"a", 3), (b"b", 3), (b"a", 4), (b"a", 2), (b"b", 9)] {
            assert!(coverage.observe(part, offset).is_ok(), "{part:?} {offset}");
        }
        assert!(coverage.repetition_checked() && coverage.refuse_repetition().is_ok());
        for (part, offset) in [(b"a", 3), (b"a", 2), (b"b", 3), (b"b", 9)] {
            let mut twice = coverage.clone();
            assert!(twice.observe(part, offset).is_ok());
            assert!(twice.refuse_repetition().is_err(), "{part:?} {offset}");
            assert_eq!(twice.rows(), 6);
        }
    }

    #[test]
    fn scattered_offsets_are_counted_but_not_kept_for_ever() {
        let mut coverage = Coverage::new(&inventory(&[("a", u64::MAX), ("b", u64::MAX)]));
        coverage.intervals_max = 10;
        for index in 0..10 {
            let part: &[u8] = if index % 3 == 0 { b"a" } else { b"b" };
            assert!(coverage.observe(part, index * 2).is_ok());
            assert!(coverage.repetition_checked());
        }
        assert!(coverage.observe(b"a", 100).is_ok());
        assert!(!coverage.repetition_checked());
        assert_eq!(coverage.evidence().offset_uniqueness, OffsetUniqueness::NotProved);
        assert!(coverage.observe(b"a", 0).is_ok() && coverage.refuse_repetition().is_ok(), "no longer checked");
        assert_eq!(coverage.rows(), 12);
    }

    #[test]
    fn an_empty_inventory_covers_nothing() {
        let mut coverage = Coverage::new(&inventory(&[]));
        assert!(coverage.observe(b"a", 0).is_err());
        assert_eq!(coverage.sha256(), Digest::of(b"{}"));
    }
}
