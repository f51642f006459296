//! SQL errors that the wire itself raises, with the numbers and texts of sys.messages.

use super::super::sql::SqlError;
use super::rpc::{BadCall, BadParameter};
use super::source::DecodeError;

fn error(number: i32, class: u8, state: u8, message: String) -> SqlError {
    SqlError { number, class, state, message, procedure: String::new(), line: 1 }
}

/// A message that no client of the protocol sends; the connection ends after it.
pub(crate) fn protocol_stream() -> SqlError {
    error(
        4002,
        16,
        19,
        "The incoming tabular data stream (TDS) protocol stream is incorrect. The stream ended unexpectedly.".into(),
    )
}

/// Windows authentication, which this server does not have.
pub(crate) fn integrated_security() -> SqlError {
    let text = "Login failed. The login is from an untrusted domain and cannot be used with Integrated authentication.";
    error(18452, 14, 1, text.into())
}

/// A login that cannot be tried at all (federated authentication).
pub(crate) fn login_failed(user: &str) -> SqlError {
    error(18456, 14, 1, format!("Login failed for user '{user}'."))
}

/// A transaction manager request for a distributed transaction.
pub(crate) fn distributed_transaction(server_name: &str) -> SqlError {
    error(8501, 16, 3, format!("MSDTC on server '{server_name}' is unavailable."))
}

/// What the client learns of a call that cannot be decoded.
pub(crate) fn rpc(fault: &BadCall) -> SqlError {
    match fault {
        BadCall::Parameter(bad) => parameter(bad),
        BadCall::TooManyParameters => {
            let text = "The incoming request has too many parameters. The server supports a maximum of 2100 parameters. \
                        Reduce the number of parameters and resend the request.";
            error(8003, 16, 1, text.into())
        }
        BadCall::UnknownProcedureId(id) => error(2812, 16, 62, format!("Could not find stored procedure '{id}'.")),
    }
}

fn parameter(bad: &BadParameter) -> SqlError {
    let BadParameter { position, name, token, error: fault } = bad;
    let subject = format!(
        "The incoming tabular data stream (TDS) remote procedure call (RPC) protocol stream is incorrect. \
         Parameter {position} (\"{name}\"):"
    );
    match fault {
        DecodeError::UnknownType(_) => error(8009, 16, 254, format!("{subject} Data type 0x{token:02X} is unknown.")),
        DecodeError::Value => {
            let text = format!(
                "{subject} The supplied value is not a valid instance of data type {}. Check the source data for invalid \
                 values. An example of an invalid value is data of numeric type with scale greater than precision.",
                type_name(*token)
            );
            error(8023, 16, 1, text)
        }
        _ => {
            let text = format!("{subject} Data type 0x{token:02X} has an invalid data length or metadata length.");
            error(8016, 16, 1, text)
        }
    }
}

fn type_name(code: u8) -> &'static str {
    use super::type_info::token;
    match code {
        token::FLTN | token::FLT8 => "float",
        token::FLT4 => "real",
        token::DECIMALN | token::NUMERICN => "numeric",
        token::DATEN => "date",
        token::TIMEN => "time",
        token::DATETIME2N => "datetime2",
        token::DATETIMEOFFSETN => "datetimeoffset",
        _ => "datetime",
    }
}

/// A bulk load that does not start with the description of its columns.
pub(crate) fn bulk_without_metadata() -> SqlError {
    error(4894, 16, 1, "COLMETADATA must be present when using bcp.".into())
}

fn premature_end() -> SqlError {
    let text = "While reading current row from host, a premature end-of-message was encountered--an incoming data stream \
                was interrupted when the server expected to see more data. The host program may have terminated. Ensure \
                that you are using a supported client application programming interface (API).";
    error(4804, 16, 1, text.into())
}

/// A column of COLMETADATA, counted from 1, that cannot be loaded.
pub(crate) fn bulk_column(fault: DecodeError, column: usize) -> SqlError {
    match fault {
        DecodeError::Truncated | DecodeError::Withdrawn => premature_end(),
        _ => error(4816, 16, 1, format!("Invalid column type from bcp client for colid {column}.")),
    }
}

/// A cell of a bulk row, column counted from 1, that cannot be decoded.
pub(crate) fn bulk_value(fault: DecodeError, column: usize, name: &str) -> SqlError {
    match fault {
        DecodeError::Truncated | DecodeError::Withdrawn => premature_end(),
        DecodeError::UnknownType(_) => bulk_column(fault, column),
        DecodeError::Length(_) => {
            error(4815, 16, 1, format!("Received an invalid column length from the bcp client for colid {column}."))
        }
        DecodeError::OddUnicode => {
            error(4895, 16, 2, format!("Unicode data is odd byte size for column {column}. Should be even byte size."))
        }
        DecodeError::Chunk => {
            error(4897, 16, 1, format!("Received an invalid length for chunked LOB data for colid {column}."))
        }
        DecodeError::Value => {
            let text = format!(
                "OLE DB provider 'STREAM' for linked server '(null)' returned invalid data for column '[!BulkInsert].{name}'."
            );
            error(7339, 16, 1, text)
        }
        DecodeError::Token(_) => protocol_stream(),
    }
}
