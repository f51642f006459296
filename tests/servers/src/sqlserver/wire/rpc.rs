//! RPC requests (MS-TDS 2.2.6.6).

use super::super::sql::{RpcCall, RpcParam};
use super::super::value::{SqlType, Value};
use super::WireError;
use super::headers;
use super::reader::Reader;
use super::source::DecodeError;
use super::type_info::{Form, WireType};
use super::values;

/// Most parameters of one call ("Maximum capacity specifications for SQL Server": 2,100).
const MAX_PARAMETERS: usize = 2100;
const BY_PROCEDURE_ID: u16 = 0xFFFF;
/// Between two calls of one request: BatchFlag of TDS 7.2 and later, NoExecFlag.
const BATCH_FLAG: u8 = 0xFF;
const NO_EXEC_FLAG: u8 = 0xFE;
const BY_REFERENCE: u8 = 0x01;
const DEFAULT_VALUE: u8 = 0x02;

/// Procedures that are called by number (MS-TDS 2.2.6.6, ProcID), from 1.
const PROCEDURE_NAMES: [&str; 15] = [
    "sp_cursor",
    "sp_cursoropen",
    "sp_cursorprepare",
    "sp_cursorexecute",
    "sp_cursorprepexec",
    "sp_cursorunprepare",
    "sp_cursorfetch",
    "sp_cursoroption",
    "sp_cursorclose",
    "sp_executesql",
    "sp_prepare",
    "sp_execute",
    "sp_prepexec",
    "sp_prepexecrpc",
    "sp_unprepare",
];

/// What is wrong with a parameter; the session answers with error 8009, 8016 or 8023 and stays usable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadParameter {
    /// From 1.
    pub(crate) position: usize,
    pub(crate) name: String,
    /// Type token, 0 if it was not read.
    pub(crate) token: u8,
    pub(crate) error: DecodeError,
}

/// A call that cannot be run although its message is intact as far as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BadCall {
    Parameter(BadParameter),
    /// More parameters than 2,100 (error 8003).
    TooManyParameters,
    UnknownProcedureId(u16),
}

/// Why a request cannot be run.
#[derive(Debug)]
pub(crate) enum RpcError {
    /// The message is not TDS.
    Wire(WireError),
    /// The client is told what is wrong and may go on.
    Call(BadCall),
}

impl From<BadCall> for RpcError {
    fn from(fault: BadCall) -> Self {
        Self::Call(fault)
    }
}

impl From<WireError> for RpcError {
    fn from(error: WireError) -> Self {
        Self::Wire(error)
    }
}

/// The calls of a request, one for most clients.
pub(crate) fn parse(message: &[u8]) -> Result<Vec<RpcCall>, RpcError> {
    let mut reader = Reader::new(message);
    headers::parse(&mut reader)?;
    let mut calls = Vec::new();
    while !reader.is_empty() {
        calls.push(call(&mut reader)?);
        if let Some(BATCH_FLAG | NO_EXEC_FLAG) = reader.peek_u8() {
            reader.u8()?;
        }
    }
    if calls.is_empty() {
        return Err(WireError::Malformed("RPC request without a call").into());
    }
    Ok(calls)
}

fn call(reader: &mut Reader<'_>) -> Result<RpcCall, RpcError> {
    let name_length = reader.u16()?;
    let procedure = if name_length == BY_PROCEDURE_ID {
        let id = reader.u16()?;
        let name = usize::from(id).checked_sub(1).and_then(|index| PROCEDURE_NAMES.get(index));
        (*name.ok_or(BadCall::UnknownProcedureId(id))?).to_owned()
    } else {
        reader.utf16(usize::from(name_length))?
    };
    let _option_flags = reader.u16()?;
    let mut params = Vec::new();
    while !matches!(reader.peek_u8(), None | Some(BATCH_FLAG | NO_EXEC_FLAG)) {
        if params.len() == MAX_PARAMETERS {
            return Err(BadCall::TooManyParameters.into());
        }
        params.push(parameter(reader, params.len() + 1)?);
    }
    Ok(RpcCall { procedure, params })
}

fn parameter(reader: &mut Reader<'_>, position: usize) -> Result<RpcParam, RpcError> {
    let name = reader.b_varchar()?;
    let flags = reader.u8()?;
    let code = reader.peek_u8().unwrap_or(0);
    let (ty, value) = typed_value(reader).map_err(|error| match error {
        DecodeError::Truncated | DecodeError::Withdrawn | DecodeError::Token(_) => RpcError::Wire(WireError::Truncated),
        error => BadCall::Parameter(BadParameter { position, name: name.clone(), token: code, error }).into(),
    })?;
    Ok(RpcParam { name, ty, value, output: flags & BY_REFERENCE != 0, default: flags & DEFAULT_VALUE != 0 })
}

fn typed_value(reader: &mut Reader<'_>) -> Result<(SqlType, Value), DecodeError> {
    let mut wire = WireType::parse(reader)?;
    match wire.form {
        Form::Variant => return Err(DecodeError::UnknownType(wire.token)),
        Form::TextPointer => wire.form = Form::LongLength,
        _ => {}
    }
    Ok((wire.ty, values::read(reader, wire, &mut Vec::new())?))
}
