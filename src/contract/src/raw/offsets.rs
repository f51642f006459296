//! Which offsets of a part were seen: finds a row that the stream returned twice.
//!
//! A SELECT over one table returns a physical row at most once, so a repeated `(_part, _part_offset)` means that the
//! stream, a proxy or the server delivered something twice. Offsets come in runs, so they are kept as intervals.

use std::collections::BTreeMap;

/// Most intervals of all parts together: about 32 MiB (design.md 4). A stream that scatters its offsets more is not
/// checked for repetition from there on, and says so.
pub const INTERVALS_MAX: usize = (32 << 20) / 64;

/// The offsets seen of one part, as half-open intervals.
#[derive(Debug, Clone, Default)]
pub(super) struct Offsets {
    /// Intervals that are not growing: start to end; never touching each other or the growing one.
    closed: BTreeMap<u64, u64>,
    /// The growing interval.
    open: Option<Open>,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    start: u64,
    end: u64,
    /// Start of the next closed interval: the growing one may not reach into it.
    limit: u64,
}

impl Offsets {
    /// Adds an offset; `false` if it was there already.
    #[inline]
    pub(super) fn insert(&mut self, offset: u64) -> bool {
        match &mut self.open {
            Some(open) if open.end == offset && offset < open.limit => {
                open.end += 1;
                true
            }
            _ => self.jump(offset),
        }
    }

    /// Number of intervals.
    pub(super) fn intervals(&self) -> usize {
        self.closed.len() + usize::from(self.open.is_some())
    }

    /// Closes the growing interval and begins another at `offset`.
    #[cold]
    fn jump(&mut self, offset: u64) -> bool {
        if let Some(open) = self.open.take() {
            self.close(open);
        }
        let before = self.closed.range(..=offset).next_back().map(|(start, end)| (*start, *end));
        if before.is_some_and(|(_, end)| end > offset) {
            return false;
        }
        let limit = self.closed.range(offset..).next().map_or(u64::MAX, |(start, _)| *start);
        let start = match before {
            Some((start, end)) if end == offset => {
                self.closed.remove(&start);
                start
            }
            _ => offset,
        };
        self.open = Some(Open { start, end: offset + 1, limit });
        true
    }

    /// Stores an interval, joined with the one that begins where it ends.
    fn close(&mut self, open: Open) {
        let end = self.closed.remove(&open.end).unwrap_or(open.end);
        self.closed.insert(open.start, end);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn runs_in_any_order_join_into_one_interval() {
        let mut offsets = Offsets::default();
        for offset in (10..20).chain(0..10).chain(20..30) {
            assert!(offsets.insert(offset), "{offset}");
        }
        assert_eq!(offsets.intervals(), 1);
        assert!((0..30).all(|offset| !offsets.clone().insert(offset)));
    }

    #[test]
    fn a_growing_run_stops_at_what_was_seen() {
        let mut offsets = Offsets::default();
        assert!(offsets.insert(2) && offsets.insert(0) && offsets.insert(1));
        assert!(!offsets.insert(2));
    }

    proptest! {
        #[test]
        fn it_is_a_set(inserted in prop::collection::vec(0u64..40, 0..80)) {
            let (mut offsets, mut set) = (Offsets::default(), BTreeSet::new());
            for offset in inserted {
                prop_assert_eq!(offsets.insert(offset), set.insert(offset), "{}", offset);
            }
            prop_assert!(offsets.intervals() <= set.len() + 1);
        }
    }
}
