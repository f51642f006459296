//! The Native format, as far as a server must know it: where a block ends and what its columns are.
//!
//! A block is the number of columns, the number of rows, and for each column its name, its type and its values; nothing in it
//! tells its length. Client blocks that are not compressed, and results whose header must be known, are walked with
//! [`read_block`], which keeps the bytes as they came. Types whose bytes only the engine can delimit (aggregate states,
//! Variant, Dynamic, JSON) are refused by name.

use std::io::{self, Read};

use super::types::{Layout, layout};
use super::wire::{ReadWire as _, WriteWire as _, append_exact, malformed};

/// The most bytes of one block that a client may send.
pub(crate) const BLOCK_BYTES_MAX: usize = 512 << 20;
/// The most columns of one block that a client may send.
const COLUMNS_MAX: u64 = 100_000;

/// Name and type of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) type_name: String,
}

/// One block: what it holds, and its bytes in the Native format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: u64,
    pub(crate) bytes: Vec<u8>,
}

/// The Native bytes of a block without rows.
pub(crate) fn header_bytes(columns: &[Column]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.put_varint(columns.len() as u64);
    bytes.put_varint(0);
    for column in columns {
        bytes.put_string(&column.name);
        bytes.put_string(&column.type_name);
    }
    bytes
}

/// The number of rows of a block, and its bytes from the first column on.
pub(crate) fn dimensions(mut bytes: &[u8]) -> io::Result<(u64, &[u8])> {
    let (_columns, rows) = (bytes.varint()?, bytes.varint()?);
    Ok((rows, bytes))
}

/// Reads one block and keeps its bytes.
pub(crate) fn read_block<R: Read + ?Sized>(source: &mut R) -> io::Result<Block> {
    let mut tape = Tape { source, bytes: Vec::new() };
    let (column_count, rows) = (tape.varint()?, tape.varint()?);
    if column_count > COLUMNS_MAX {
        return Err(malformed("a block has more columns than the server takes"));
    }
    let rows_here = usize::try_from(rows).map_err(|_| malformed("a block has an impossible number of rows"))?;
    let mut columns = Vec::new();
    for _ in 0..column_count {
        let column = Column { name: tape.string()?, type_name: tape.string()? };
        if rows_here > 0 {
            let layout = layout(&column.type_name)
                .ok_or_else(|| malformed(&format!("the server cannot delimit values of type {}", column.type_name)))?;
            tape.prefix(&layout)?;
            tape.values(&layout, rows_here)?;
        }
        columns.push(column);
    }
    Ok(Block { columns, rows, bytes: tape.bytes })
}

/// A source whose bytes are kept.
struct Tape<'a, R: ?Sized> {
    source: &'a mut R,
    bytes: Vec<u8>,
}

impl<R: Read + ?Sized> Tape<'_, R> {
    fn take(&mut self, count: usize) -> io::Result<&[u8]> {
        let start = self.bytes.len();
        if count > BLOCK_BYTES_MAX - start.min(BLOCK_BYTES_MAX) {
            return Err(malformed("a block is larger than the server takes"));
        }
        append_exact(self.source, &mut self.bytes, count)?;
        Ok(&self.bytes[start..])
    }

    fn varint(&mut self) -> io::Result<u64> {
        let mut encoded = [0; 10];
        for index in 0..encoded.len() {
            encoded[index] = self.take(1)?[0];
            if encoded[index] & 0x80 == 0 {
                let mut whole = &encoded[..=index];
                return whole.varint();
            }
        }
        Err(malformed("a number has more than ten bytes"))
    }

    fn length(&mut self) -> io::Result<usize> {
        usize::try_from(self.varint()?).map_err(|_| malformed("a length is impossible"))
    }

    fn string(&mut self) -> io::Result<String> {
        let length = self.length()?;
        String::from_utf8(self.take(length)?.to_vec()).map_err(|_| malformed("a column's name or type is not UTF-8"))
    }

    fn number(&mut self) -> io::Result<u64> {
        let bytes = self.take(8)?;
        Ok(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    fn repeated(&mut self, width: usize, count: usize) -> io::Result<()> {
        let total = width.checked_mul(count).ok_or_else(|| malformed("a column is impossibly large"))?;
        self.take(total).map(|_| ())
    }

    /// What precedes all values of a column: the version of each low-cardinality dictionary.
    fn prefix(&mut self, layout: &Layout) -> io::Result<()> {
        match layout {
            Layout::Fixed(_) | Layout::Text => Ok(()),
            Layout::Nullable(inner) | Layout::Array(inner) => self.prefix(inner),
            Layout::Tuple(parts) => parts.iter().try_for_each(|part| self.prefix(part)),
            Layout::LowCardinality(_) => match self.number()? {
                1 => Ok(()),
                _ => Err(malformed("a low-cardinality column has an unknown version")),
            },
        }
    }

    fn values(&mut self, layout: &Layout, rows: usize) -> io::Result<()> {
        match layout {
            Layout::Fixed(width) => self.repeated(*width, rows),
            Layout::Text => {
                for _ in 0..rows {
                    let length = self.length()?;
                    self.take(length)?;
                }
                Ok(())
            }
            Layout::Nullable(inner) => {
                self.repeated(1, rows)?;
                self.values(inner, rows)
            }
            Layout::Array(inner) => {
                self.repeated(8, rows)?;
                let total = match rows {
                    0 => 0,
                    _ => self.bytes[self.bytes.len() - 8..].iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)),
                };
                let total = usize::try_from(total).map_err(|_| malformed("an array is impossibly long"))?;
                self.values(inner, total)
            }
            Layout::Tuple(parts) => parts.iter().try_for_each(|part| self.values(part, rows)),
            Layout::LowCardinality(inner) => self.dictionary(inner, rows),
        }
    }

    /// Flags, the block's own dictionary, and one key per row.
    fn dictionary(&mut self, inner: &Layout, rows: usize) -> io::Result<()> {
        const OWN_KEYS: u64 = 1 << 9;
        const SHARED_DICTIONARY: u64 = 1 << 8;
        if rows == 0 {
            return Ok(());
        }
        let flags = self.number()?;
        let width = match flags & 0xff {
            kind @ 0..=3 => 1_usize << kind,
            _ => return Err(malformed("a low-cardinality column has an unknown key type")),
        };
        if flags & SHARED_DICTIONARY != 0 || flags & OWN_KEYS == 0 {
            return Err(malformed("a low-cardinality column shares a dictionary between blocks"));
        }
        let keys = usize::try_from(self.number()?).map_err(|_| malformed("a dictionary is impossibly long"))?;
        self.values(inner, keys)?;
        if self.number()? != rows as u64 {
            return Err(malformed("a low-cardinality column has another number of rows than its block"));
        }
        self.repeated(width, rows)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{dimensions, header_bytes, read_block};

    /// Two rows of nine columns as ClickHouse 26.7 writes them (`FORMAT Native`): low cardinality alone, nullable, in arrays
    /// and without a value, a map, a tuple, nested and empty arrays, a decimal, a nullable date.
    fn engine_block() -> Vec<u8> {
        let text = "0902016c204c6f7743617264696e616c697479284e756c6c61626c6528537472696e67292901000000000000000006000000 \
        00000004000000000000000000013001310200000000000000020301611d4172726179284c6f7743617264696e616c697479 \
        28537472696e6729290100000000000000010000000000000002000000000000000006000000000000020000000000000000 \
        016b02000000000000000101016d134d617028537472696e672c2055496e7436342901000000000000000200000000000000 \
        016b016b000000000000000001000000000000000174145475706c652855496e74382c20537472696e672901010178017801 \
        6e1341727261792841727261792855496e74382929000000000000000001000000000000000200000000000000010201640e \
        446563696d616c2833382c2032296400000000000000000000000000000064000000000000000000000000000000017a174e \
        756c6c61626c65284461746554696d6536342836292901010000000000000000000000000000000001650d41727261792853 \
        7472696e67290000000000000000000000000000000002656c1d4172726179284c6f7743617264696e616c69747928537472 \
        696e672929010000000000000000000000000000000000000000000000";
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        let digit = |byte: u8| char::from(byte).to_digit(16).unwrap() as u8;
        digits.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
    }

    #[test]
    fn a_block_of_the_engine_is_read_to_its_last_byte() {
        let bytes = engine_block();
        let mut source = bytes.as_slice();
        let block = read_block(&mut source).unwrap();
        assert!(source.is_empty());
        assert_eq!(block.bytes, bytes);
        assert_eq!((block.rows, dimensions(&bytes).unwrap()), (2, (2, &bytes[2..])));
        let names: Vec<&str> = block.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["l", "a", "m", "t", "n", "d", "z", "e", "el"]);
        let header = read_block(&mut header_bytes(&block.columns).as_slice()).unwrap();
        assert_eq!((header.columns, header.rows), (block.columns, 0));
        for end in 0..bytes.len() {
            assert!(read_block(&mut &bytes[..end]).is_err(), "cut at {end}");
        }
    }

    proptest! {
        #[test]
        fn a_changed_block_never_panics(at in 0_usize..600, value: u8) {
            let mut bytes = engine_block();
            let at = at % bytes.len();
            bytes[at] = value;
            let _ = read_block(&mut bytes.as_slice());
        }
    }
}
