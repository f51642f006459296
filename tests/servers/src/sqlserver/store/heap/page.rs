//! One page: row bytes, slots and marks.

use super::super::row::{Reader, put_varint};
use super::super::transaction::TransactionId;

/// Bytes after which a page takes no further rows.
pub(in super::super) const PAGE_BYTES: usize = 64 * 1024;
/// Slots after which a page takes no further rows, whatever their size.
const MAX_SLOTS: u32 = 32 * 1024;
/// Slot of a row that is gone.
const GONE: u32 = u32::MAX;
/// Dead bytes from which a page is rewritten, if they are also half of it.
const COMPACT_BYTES: usize = 4096;

/// Uncommitted slots of one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MarkRange {
    first: u32,
    last: u32,
    transaction: TransactionId,
    deleted: bool,
}

/// What a slot holds at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum RowState {
    /// Nothing.
    Gone,
    /// A committed row.
    Committed,
    /// A row that the transaction inserted or changed.
    Written(TransactionId),
    /// A row that the transaction deleted; its bytes are still there.
    Deleted(TransactionId),
}

/// A page.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct Page {
    data: Vec<u8>,
    slots: Vec<u32>,
    marks: Vec<MarkRange>,
    dead_bytes: usize,
    live: u32,
    /// All rows went and the slots were given back: takes no further rows, so that no address is used twice.
    retired: bool,
}

impl Page {
    /// Whether a row of `length` bytes belongs on a new page.
    pub(in super::super) fn is_full_for(&self, length: usize) -> bool {
        let no_room = !self.data.is_empty() && self.data.len() + length + 10 > PAGE_BYTES;
        no_room || self.retired || self.slot_count() >= MAX_SLOTS
    }

    #[allow(clippy::cast_possible_truncation, reason = "a page has far fewer slots than 2^32")]
    pub(in super::super) fn slot_count(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Rows in the page, deleted but uncommitted ones included.
    pub(in super::super) fn live(&self) -> u32 {
        self.live
    }

    /// Bytes of the rows in the page.
    pub(in super::super) fn live_bytes(&self) -> usize {
        self.data.len() - self.dead_bytes
    }

    /// Bytes of memory that the page occupies.
    pub(in super::super) fn memory(&self) -> usize {
        self.data.capacity() + self.slots.capacity() * 4 + self.marks.capacity() * size_of::<MarkRange>()
    }

    /// Gives unused capacity back: the page is full.
    pub(in super::super) fn seal(&mut self) {
        self.data.shrink_to_fit();
        self.slots.shrink_to_fit();
    }

    /// Bytes of the row in a slot.
    pub(in super::super) fn row(&self, slot: u32) -> Option<&[u8]> {
        let offset = *self.slots.get(slot as usize)?;
        if offset == GONE {
            return None;
        }
        let mut reader = Reader::new(self.data.get(offset as usize..)?);
        reader.counted().ok()
    }

    /// What the slot holds.
    pub(in super::super) fn state(&self, slot: u32) -> RowState {
        if self.slots.get(slot as usize).is_none_or(|offset| *offset == GONE) {
            return RowState::Gone;
        }
        match self.marks.iter().find(|mark| mark.first <= slot && slot <= mark.last) {
            None => RowState::Committed,
            Some(mark) if mark.deleted => RowState::Deleted(mark.transaction),
            Some(mark) => RowState::Written(mark.transaction),
        }
    }

    /// No slot is uncommitted.
    pub(in super::super) fn is_clean(&self) -> bool {
        self.marks.is_empty()
    }

    fn write(&mut self, bytes: &[u8]) -> Option<u32> {
        let offset = u32::try_from(self.data.len()).ok().filter(|offset| *offset != GONE)?;
        put_varint(bytes.len() as u64, &mut self.data);
        self.data.extend_from_slice(bytes);
        Some(offset)
    }

    /// Appends a row; none if the page's address space is used up.
    pub(in super::super) fn append(&mut self, bytes: &[u8]) -> Option<u32> {
        let offset = self.write(bytes)?;
        self.slots.push(offset);
        self.live += 1;
        Some(self.slot_count() - 1)
    }

    /// Puts a row into a slot, with empty slots before it where needed (log replay).
    pub(in super::super) fn place(&mut self, slot: u32, bytes: &[u8]) -> Option<()> {
        // A damaged slot number must not allocate.
        if slot >= MAX_SLOTS {
            return None;
        }
        if self.slots.len() <= slot as usize {
            self.slots.resize(slot as usize + 1, GONE);
        }
        self.replace(slot, bytes)
    }

    /// Gives a slot other bytes.
    pub(in super::super) fn replace(&mut self, slot: u32, bytes: &[u8]) -> Option<()> {
        self.forget(slot);
        let offset = self.write(bytes)?;
        *self.slots.get_mut(slot as usize)? = offset;
        self.live += 1;
        self.compact();
        Some(())
    }

    /// Empties a slot.
    pub(in super::super) fn remove(&mut self, slot: u32) {
        self.forget(slot);
        self.compact();
    }

    fn forget(&mut self, slot: u32) {
        let Some(length) = self.row(slot).map(<[u8]>::len) else { return };
        self.dead_bytes += length + varint_len(length);
        self.live -= 1;
        if let Some(offset) = self.slots.get_mut(slot as usize) {
            *offset = GONE;
        }
    }

    /// Rewrites the page without its dead bytes when they are most of it.
    fn compact(&mut self) {
        if self.dead_bytes < COMPACT_BYTES || self.dead_bytes * 2 < self.data.len() {
            return;
        }
        let mut fresh = Vec::with_capacity(self.live_bytes());
        for slot in 0..self.slots.len() {
            #[allow(clippy::cast_possible_truncation, reason = "slot numbers and page offsets fit")]
            if let Some(row) = self.row(slot as u32) {
                let offset = fresh.len() as u32;
                put_varint(row.len() as u64, &mut fresh);
                fresh.extend_from_slice(row);
                self.slots[slot] = offset;
            }
        }
        self.data = fresh;
        self.dead_bytes = 0;
    }

    /// Marks a slot as changed by `transaction`, replacing an earlier mark of it.
    pub(in super::super) fn mark(&mut self, slot: u32, transaction: TransactionId, deleted: bool) {
        self.unmark(slot);
        if let Some(last) = self.marks.last_mut()
            && last.transaction == transaction
            && last.deleted == deleted
            && last.last + 1 == slot
        {
            last.last = slot;
            return;
        }
        self.marks.push(MarkRange { first: slot, last: slot, transaction, deleted });
    }

    /// Marks all slots of a page that nobody else knows yet.
    pub(in super::super) fn mark_all(&mut self, transaction: TransactionId) {
        if let Some(last) = self.slot_count().checked_sub(1) {
            self.marks = vec![MarkRange { first: 0, last, transaction, deleted: false }];
        }
    }

    /// Removes the mark of a slot.
    pub(in super::super) fn unmark(&mut self, slot: u32) {
        let Some(position) = self.marks.iter().position(|mark| mark.first <= slot && slot <= mark.last) else {
            return;
        };
        let range = self.marks.swap_remove(position);
        if range.first < slot {
            self.marks.push(MarkRange { last: slot - 1, ..range });
        }
        if slot < range.last {
            self.marks.push(MarkRange { first: slot + 1, ..range });
        }
    }

    /// Slots that `transaction` deleted.
    pub(in super::super) fn deleted_by(&self, transaction: TransactionId) -> Vec<u32> {
        let own = self.marks.iter().filter(|mark| mark.deleted && mark.transaction == transaction);
        own.flat_map(|mark| mark.first..=mark.last).collect()
    }

    /// Ends the marks of `transaction`: its deletions empty their slots.
    pub(in super::super) fn settle(&mut self, transaction: TransactionId) {
        let (own, others) = std::mem::take(&mut self.marks).into_iter().partition(|it| it.transaction == transaction);
        self.marks = others;
        let own: Vec<MarkRange> = own;
        for range in own.iter().filter(|range| range.deleted) {
            for slot in range.first..=range.last {
                self.forget(slot);
            }
        }
        if self.live == 0 && self.marks.is_empty() {
            // All slots are gone for good; an empty page answers the same for each of them.
            self.data = Vec::new();
            self.slots = Vec::new();
            self.dead_bytes = 0;
            self.retired = true;
        } else {
            self.compact();
        }
    }
}

fn varint_len(number: usize) -> usize {
    (usize::BITS - (number | 1).leading_zeros()).div_ceil(7) as usize
}

/// Collects rows into a page that does not belong to a table yet.
#[derive(Debug, Default)]
pub(in super::super) struct PageBuilder {
    page: Page,
}

impl PageBuilder {
    /// Adds a row; when the page is full for it, returns that page and starts the next one.
    pub(in super::super) fn push(&mut self, bytes: &[u8]) -> Option<Page> {
        let full = self.page.is_full_for(bytes.len()).then(|| self.take()).flatten();
        if self.page.data.is_empty() {
            self.page.data.reserve_exact(PAGE_BYTES.min(bytes.len().saturating_mul(1024)));
        }
        self.page.append(bytes);
        full
    }

    /// The rows collected so far; none if there are none.
    pub(in super::super) fn take(&mut self) -> Option<Page> {
        if self.page.slots.is_empty() {
            return None;
        }
        let mut page = std::mem::take(&mut self.page);
        page.seal();
        Some(page)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn lengths_of_numbers_agree(number in any::<usize>()) {
            let mut bytes = Vec::new();
            put_varint(number as u64, &mut bytes);
            prop_assert_eq!(varint_len(number), bytes.len());
        }

        /// Marks behave as one mark per slot.
        #[test]
        fn mark_ranges_equal_single_marks(ops in prop::collection::vec((0u32..12, 0u64..3, any::<bool>(), any::<bool>()), 0..60)) {
            let mut page = Page::default();
            for _ in 0..12 {
                page.append(b"row");
            }
            let mut model = [None; 12];
            for (slot, transaction, deleted, remove) in ops {
                if remove {
                    page.unmark(slot);
                    model[slot as usize] = None;
                } else if model[slot as usize].is_none_or(|(owner, _)| owner == TransactionId(transaction)) {
                    page.mark(slot, TransactionId(transaction), deleted);
                    model[slot as usize] = Some((TransactionId(transaction), deleted));
                }
                for (slot, expected) in (0u32..).zip(model) {
                    let expected = match expected {
                        None => RowState::Committed,
                        Some((transaction, true)) => RowState::Deleted(transaction),
                        Some((transaction, false)) => RowState::Written(transaction),
                    };
                    prop_assert_eq!(page.state(slot), expected);
                }
            }
        }
    }

    #[test]
    fn compaction_keeps_the_rows() {
        let mut page = Page::default();
        let row = [7u8; 100];
        for _ in 0..200 {
            page.append(&row);
        }
        for slot in 0..190 {
            page.remove(slot);
        }
        assert!(page.data.len() < 9000, "{}", page.data.len());
        assert_eq!(page.row(195), Some(row.as_slice()));
        assert_eq!(page.row(3), None);
        assert_eq!(page.live(), 10);
    }
}
