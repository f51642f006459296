//! Operations inside a frame.

use super::super::catalog::{CatalogKey, CatalogRecord, DatabaseId, ObjectId};
use super::super::error::StoreError;
use super::super::heap::{RowId, is_whole_row};
use super::super::row::{Reader, put_varint};
use super::super::store::CounterKey;

const BAD: StoreError = StoreError::BadBytes("redo log operation");

/// One change.
#[derive(Debug)]
pub(in super::super) enum Operation<'a> {
    /// A record is as given.
    Put(Box<CatalogRecord>),
    /// A record is gone.
    Remove(CatalogKey),
    /// The table has new, empty storage.
    NewStorage(ObjectId),
    /// Rows stand in consecutive slots of one page.
    Append { table: ObjectId, first: RowId, rows: Vec<&'a [u8]> },
    /// A row has these bytes.
    Update { table: ObjectId, row: RowId, bytes: &'a [u8] },
    /// A row is gone.
    Delete { table: ObjectId, row: RowId },
    /// A counter has this last value.
    Counter(CounterKey, Option<i128>),
    /// Object ids up to this one have been given out.
    LastObjectId(i32),
}

/// Appends the beginning of an `Append` operation; `count` rows follow, each with its LEB128 length.
pub(in super::super) fn encode_append_start(table: ObjectId, first: RowId, count: u32, out: &mut Vec<u8>) {
    out.push(4);
    out.extend_from_slice(&table.0.to_le_bytes());
    out.extend_from_slice(&first.0.to_le_bytes());
    put_varint(u64::from(count), out);
}

fn put_counted(bytes: &[u8], out: &mut Vec<u8>) {
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

impl<'a> Operation<'a> {
    /// Appends the operation.
    pub(in super::super) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Put(record) => {
                out.push(1);
                // Records hold no map with keys other than texts and no failing serialiser, so this cannot fail;
                // empty bytes would be refused on replay, never taken for a record.
                put_counted(&serde_json::to_vec(record).unwrap_or_default(), out);
            }
            Self::Remove(key) => {
                out.push(2);
                put_counted(&serde_json::to_vec(key).unwrap_or_default(), out);
            }
            Self::NewStorage(table) => {
                out.push(3);
                out.extend_from_slice(&table.0.to_le_bytes());
            }
            Self::Append { table, first, rows } => {
                encode_append_start(*table, *first, u32::try_from(rows.len()).unwrap_or(u32::MAX), out);
                for row in rows {
                    put_counted(row, out);
                }
            }
            Self::Update { table, row, bytes } => {
                out.push(5);
                out.extend_from_slice(&table.0.to_le_bytes());
                out.extend_from_slice(&row.0.to_le_bytes());
                put_counted(bytes, out);
            }
            Self::Delete { table, row } => {
                out.push(6);
                out.extend_from_slice(&table.0.to_le_bytes());
                out.extend_from_slice(&row.0.to_le_bytes());
            }
            Self::Counter(key, last) => {
                let (kind, id) = match key {
                    CounterKey::Identity(table) => (0, table.0),
                    CounterKey::Sequence(sequence) => (1, sequence.0),
                    CounterKey::RowVersion(database) => (2, database.0),
                };
                out.extend_from_slice(&[7, kind]);
                out.extend_from_slice(&id.to_le_bytes());
                out.push(u8::from(last.is_some()));
                out.extend_from_slice(&last.unwrap_or_default().to_le_bytes());
            }
            Self::LastObjectId(id) => {
                out.push(8);
                out.extend_from_slice(&id.to_le_bytes());
            }
        }
    }

    /// Reads the next operation.
    pub(in super::super) fn decode(reader: &mut Reader<'a>) -> Result<Self, StoreError> {
        Ok(match reader.u8()? {
            1 => Self::Put(Box::new(serde_json::from_slice(reader.counted()?).map_err(|_| BAD)?)),
            2 => Self::Remove(serde_json::from_slice(reader.counted()?).map_err(|_| BAD)?),
            3 => Self::NewStorage(ObjectId(reader.i32()?)),
            4 => {
                let (table, first) = (ObjectId(reader.i32()?), RowId(reader.u64()?));
                let count = reader.varint()?;
                let mut rows = Vec::new();
                for _ in 0..count {
                    rows.push(whole(reader.counted()?)?);
                }
                Self::Append { table, first, rows }
            }
            5 => Self::Update {
                table: ObjectId(reader.i32()?),
                row: RowId(reader.u64()?),
                bytes: whole(reader.counted()?)?,
            },
            6 => Self::Delete { table: ObjectId(reader.i32()?), row: RowId(reader.u64()?) },
            7 => {
                let (kind, id) = (reader.u8()?, reader.i32()?);
                let key = match kind {
                    0 => CounterKey::Identity(ObjectId(id)),
                    1 => CounterKey::Sequence(ObjectId(id)),
                    2 => CounterKey::RowVersion(DatabaseId(id)),
                    _ => return Err(BAD),
                };
                let (known, last) = (reader.u8()?, reader.i128()?);
                Self::Counter(key, (known == 1).then_some(last))
            }
            8 => Self::LastObjectId(reader.i32()?),
            _ => return Err(BAD),
        })
    }
}

fn whole(row: &[u8]) -> Result<&[u8], StoreError> {
    if is_whole_row(row) { Ok(row) } else { Err(BAD) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn foreign_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), tag in 0u8..10) {
            let mut bytes = bytes;
            bytes.insert(0, tag);
            let mut reader = Reader::new(&bytes);
            while let Ok(operation) = Operation::decode(&mut reader) {
                let mut out = Vec::new();
                operation.encode(&mut out);
                prop_assert!(!out.is_empty());
            }
        }
    }
}
