//! Transaction manager requests (MS-TDS 2.2.6.9).

use super::super::sql::{IsolationRequest, TransactionRequest};
use super::WireError;
use super::headers;
use super::reader::Reader;

const TM_GET_DTC_ADDRESS: u16 = 0;
const TM_BEGIN_XACT: u16 = 5;
const TM_COMMIT_XACT: u16 = 7;
const TM_ROLLBACK_XACT: u16 = 8;
const TM_SAVE_XACT: u16 = 9;
const CONTINUE_WITH_BEGIN: u8 = 0x01;

/// A request as read; none for distributed transactions, which are refused by the session.
pub(crate) fn parse(message: &[u8]) -> Result<Option<TransactionRequest>, WireError> {
    let mut reader = Reader::new(message);
    headers::parse(&mut reader)?;
    let request = match reader.u16()? {
        TM_BEGIN_XACT => {
            let isolation = isolation(reader.u8()?)?;
            TransactionRequest::Begin { isolation, name: reader.b_varchar()? }
        }
        TM_COMMIT_XACT => {
            let _name = reader.b_varchar()?;
            TransactionRequest::Commit { begin: follow_up(&mut reader)? }
        }
        TM_ROLLBACK_XACT => {
            let name = reader.b_varchar()?;
            TransactionRequest::Rollback { name, begin: follow_up(&mut reader)? }
        }
        TM_SAVE_XACT => TransactionRequest::Save { name: reader.b_varchar()? },
        TM_GET_DTC_ADDRESS..=9 => return Ok(None),
        _ => return Err(WireError::Malformed("transaction manager request type")),
    };
    Ok(Some(request))
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
