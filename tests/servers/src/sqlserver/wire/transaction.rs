//! Transaction manager requests (MS-TDS 2.2.6.9).

use super::super::sql::{IsolationRequest, TransactionRequest};
use super::WireError;
use super::headers;
use super::reader::{Reader, decode_utf16};

const TM_GET_DTC_ADDRESS: u16 = 0;
const TM_BEGIN_XACT: u16 = 5;
const TM_COMMIT_XACT: u16 = 7;
const TM_ROLLBACK_XACT: u16 = 8;
const TM_SAVE_XACT: u16 = 9;
/// fBeginXact is the first bit of its flags; mssql-tds counts from the other end.
const CONTINUE_WITH_BEGIN: u8 = 0x81;

/// A request as read; none for distributed transactions, which are refused by the session.
pub(crate) fn parse(message: &[u8]) -> Result<Option<TransactionRequest>, WireError> {
    let mut reader = Reader::new(message);
    headers::parse(&mut reader)?;
    let request = match reader.u16()? {
        TM_BEGIN_XACT => {
            let isolation = isolation(reader.u8()?)?;
            TransactionRequest::Begin { isolation, name: name(&mut reader)? }
        }
        TM_COMMIT_XACT => {
            let _name = name(&mut reader)?;
            TransactionRequest::Commit { begin: follow_up(&mut reader)? }
        }
        TM_ROLLBACK_XACT => {
            let name = name(&mut reader)?;
            TransactionRequest::Rollback { name, begin: follow_up(&mut reader)? }
        }
        TM_SAVE_XACT => TransactionRequest::Save { name: name(&mut reader)? },
        TM_GET_DTC_ADDRESS..=9 => return Ok(None),
        _ => return Err(WireError::Malformed("transaction manager request type")),
    };
    Ok(Some(request))
}

/// A name of a transaction or savepoint: its length counts bytes, not characters as B_VARCHAR does (so SqlClient and
/// mssql-tds send it).
fn name(reader: &mut Reader<'_>) -> Result<String, WireError> {
    let bytes = usize::from(reader.u8()?);
    decode_utf16(reader.bytes(bytes)?)
}

/// Whether a new transaction begins at once. Its isolation and name, which then follow, are those of the session.
fn follow_up(reader: &mut Reader<'_>) -> Result<bool, WireError> {
    Ok(reader.u8()? & CONTINUE_WITH_BEGIN != 0)
}

fn isolation(code: u8) -> Result<IsolationRequest, WireError> {
    Ok(match code {
        0 => IsolationRequest::Current,
        1 => IsolationRequest::ReadUncommitted,
        2 => IsolationRequest::ReadCommitted,
        3 => IsolationRequest::RepeatableRead,
        4 => IsolationRequest::Serializable,
        5 => IsolationRequest::Snapshot,
        _ => return Err(WireError::Malformed("isolation level")),
    })
}
