//! Frames: the rows of one chunk, cut from the stream before anything is encoded.

use std::ops::Range;
use std::sync::Arc;

use contract::block::Block;

/// Rows that become one sealed file and one stage.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    /// Position in the stream, from 0, contiguous.
    pub(crate) ordinal: u64,
    /// Slices of source blocks in stream order.
    pub(crate) slices: Vec<(Arc<Block>, Range<usize>)>,
    /// Number of rows.
    pub(crate) rows: u64,
    /// Native bytes of all rows.
    pub(crate) bytes: u64,
}

/// Cuts the stream into frames of at most `max_rows` rows and `max_bytes` native bytes.
#[derive(Debug)]
pub(crate) struct FrameCutter {
    max_rows: u64,
    max_bytes: u64,
    open: Frame,
}

impl FrameCutter {
    pub(crate) fn new(max_rows: u64, max_bytes: u64) -> Self {
        FrameCutter { max_rows, max_bytes, open: Frame { ordinal: 0, slices: Vec::new(), rows: 0, bytes: 0 } }
    }

    /// Adds a block whose rows have the given native sizes; returns the frames that are full.
    ///
    /// No row is larger than `max_bytes`: `max_row_bytes <= max_bytes` holds in every plan and the encoder has measured.
    pub(crate) fn push(&mut self, block: &Arc<Block>, sizes: &[u32]) -> Vec<Frame> {
        let mut full = Vec::new();
        let mut start = 0;
        for (row, size) in sizes.iter().enumerate() {
            let size = u64::from(*size);
            if self.open.rows + (row - start) as u64 == self.max_rows || self.open.bytes + size > self.max_bytes {
                self.take(block, start..row);
                start = row;
                full.extend(self.cut());
            }
            self.open.bytes += size;
        }
        self.take(block, start..sizes.len());
        full
    }

    /// The last frame, if it has rows.
    pub(crate) fn finish(mut self) -> Option<Frame> {
        self.cut()
    }

    fn take(&mut self, block: &Arc<Block>, rows: Range<usize>) {
        if !rows.is_empty() {
            self.open.rows += rows.len() as u64;
            self.open.slices.push((Arc::clone(block), rows));
        }
    }

    fn cut(&mut self) -> Option<Frame> {
        if self.open.rows == 0 {
            return None;
        }
        let next = Frame { ordinal: self.open.ordinal + 1, slices: Vec::new(), rows: 0, bytes: 0 };
        Some(std::mem::replace(&mut self.open, next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ordinal, rows, bytes, slices.
    type Shown = (u64, u64, u64, Vec<(usize, usize)>);

    fn cut(max_rows: u64, max_bytes: u64, blocks: &[&[u32]]) -> Vec<Shown> {
        let mut cutter = FrameCutter::new(max_rows, max_bytes);
        let mut frames = Vec::new();
        for sizes in blocks {
            let block = Arc::new(Block { rows: sizes.len(), columns: Vec::new() });
            frames.extend(cutter.push(&block, sizes));
        }
        frames.extend(cutter.finish());
        let show =
            |f: Frame| (f.ordinal, f.rows, f.bytes, f.slices.into_iter().map(|(_, r)| (r.start, r.end)).collect());
        frames.into_iter().map(show).collect()
    }

    #[test]
    fn frames_are_contiguous_and_within_both_bounds() {
        assert_eq!(cut(10, 100, &[]), []);
        assert_eq!(cut(10, 100, &[&[]]), []);
        assert_eq!(cut(2, 100, &[&[1, 1, 1]]), [(0, 2, 2, vec![(0, 2)]), (1, 1, 1, vec![(2, 3)])]);
        assert_eq!(cut(10, 5, &[&[5, 5]]), [(0, 1, 5, vec![(0, 1)]), (1, 1, 5, vec![(1, 2)])]);
        assert_eq!(cut(10, 5, &[&[3, 2, 1]]), [(0, 2, 5, vec![(0, 2)]), (1, 1, 1, vec![(2, 3)])]);
        assert_eq!(cut(3, 100, &[&[1, 1], &[1, 1]]), [(0, 3, 3, vec![(0, 2), (0, 1)]), (1, 1, 1, vec![(1, 2)])]);
        assert_eq!(cut(2, 100, &[&[1, 1], &[1]]), [(0, 2, 2, vec![(0, 2)]), (1, 1, 1, vec![(0, 1)])]);
    }

    #[test]
    fn every_row_lands_in_exactly_one_frame() {
        let mut seed = 7u32;
        for _ in 0..200 {
            let mut next = |below: u32| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (seed >> 8) % below
            };
            let (max_rows, max_bytes) = (u64::from(next(7) + 1), u64::from(next(30) + 10));
            let blocks: Vec<Vec<u32>> = (0..next(6)).map(|_| (0..next(9)).map(|_| next(10) + 1).collect()).collect();
            let views: Vec<&[u32]> = blocks.iter().map(Vec::as_slice).collect();
            let frames = cut(max_rows, max_bytes, &views);
            let total: u64 = blocks.iter().flatten().map(|s| u64::from(*s)).sum();
            assert_eq!(frames.iter().map(|f| f.1).sum::<u64>(), blocks.iter().map(|b| b.len() as u64).sum::<u64>());
            assert_eq!(frames.iter().map(|f| f.2).sum::<u64>(), total);
            for (index, frame) in frames.iter().enumerate() {
                assert_eq!(frame.0, index as u64);
                assert!(frame.1 <= max_rows && frame.2 <= max_bytes && frame.1 > 0);
            }
        }
    }
}
