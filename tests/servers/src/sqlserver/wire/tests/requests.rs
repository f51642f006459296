//! RPC and transaction manager requests.

use super::super::super::sql::{IsolationRequest, TransactionRequest};
use super::super::super::value::{SqlType, Text, Value};
use super::super::rpc::{self, BadCall, RpcError};
use super::super::source::DecodeError;
use super::super::{WireError, errors, transaction};
use super::{hex, utf16};

/// ALL_HEADERS with transaction descriptor 0 and one outstanding request (MS-TDS 2.2.5.3).
const HEADERS: &str = "16000000 12000000 0200 0000000000000000 01000000";

fn request(body: &[u8]) -> Vec<u8> {
    [hex(HEADERS), body.to_vec()].concat()
}

/// The call of MS-TDS 4.8, without its packet header.
#[test]
fn the_call_of_the_specification_is_understood() {
    let calls = rpc::parse(&request(&hex("0400 66006F006F003300 0000 00 02 2602 00"))).unwrap();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].procedure, "foo3");
    let param = &calls[0].params[0];
    assert_eq!((param.ty, &param.value, param.default, param.output), (SqlType::SmallInt, &Value::Null, true, false));
}

/// A parameter with its TYPE_INFO and value in hex.
fn named(name: &str, status: u8, typed_value: &str) -> Vec<u8> {
    [vec![u8::try_from(name.len()).unwrap()], utf16(name), vec![status], hex(typed_value)].concat()
}

fn by_id(id: u8, params: &[Vec<u8>]) -> Vec<u8> {
    request(&[vec![0xFF, 0xFF, id, 0, 0, 0], params.concat()].concat())
}

#[test]
fn procedure_ids_parameter_names_and_directions_are_kept() {
    let statement = named("", 0, "E7 401F 0904D00034 0400 61006200");
    let text = named("@t", 0, "E7 FFFF 0904D00034 FEFFFFFFFFFFFFFF 02000000 6100 02000000 6200 00000000");
    let number = named("@n", 1, "26 08 08 FEFFFFFFFFFFFFFF");
    let calls = rpc::parse(&by_id(10, &[statement, text, number])).unwrap();
    let params = &calls[0].params;
    assert_eq!(calls[0].procedure, "sp_executesql");
    assert_eq!(params[0].value, Value::text("ab"));
    assert_eq!(
        (params[1].name.as_str(), params[1].ty, &params[1].value),
        ("@t", SqlType::NVARCHAR_MAX, &Value::text("ab"))
    );
    assert_eq!((&params[2].value, params[2].output), (&Value::BigInt(-2), true));
}

#[test]
fn several_calls_of_one_request_are_separated_by_the_batch_flag() {
    let first = by_id(10, &[named("", 0, "E7 0200 0904D00034 0200 6100")]);
    let second = hex("FFFF 0F00 0000 00 00 38 07000000");
    let calls = rpc::parse(&[first, vec![0xFF], second].concat()).unwrap();
    assert_eq!(calls.iter().map(|call| call.procedure.as_str()).collect::<Vec<_>>(), ["sp_executesql", "sp_unprepare"]);
    assert_eq!(calls[1].params[0].value, Value::Int(7));
}

#[test]
fn long_text_parameters_have_a_four_byte_length_and_no_pointer() {
    let calls = rpc::parse(&by_id(10, &[named("", 0, "63 FEFFFF7F 0904D00034 04000000 61006200")])).unwrap();
    assert_eq!(calls[0].params[0].value, Value::text("ab"));
    let calls = rpc::parse(&by_id(10, &[named("", 0, "63 FEFFFF7F 0904D00034 FFFFFFFF")])).unwrap();
    assert_eq!(calls[0].params[0].value, Value::Null);
}

#[test]
fn lone_surrogates_and_zero_characters_are_text() {
    let calls = rpc::parse(&by_id(10, &[named("", 0, "E7 0800 0904D00034 0600 3DD8 0000 4100")])).unwrap();
    assert_eq!(calls[0].params[0].value, Value::String(Text::from_units(&[0xD83D, 0, 0x41])));
}

fn bad(typed_value: &str) -> (DecodeError, i32) {
    match rpc::parse(&by_id(10, &[named("", 0, "38 01000000"), named("@p", 0, typed_value)])) {
        Err(RpcError::Call(fault)) => {
            let error = errors::rpc(&fault);
            let BadCall::Parameter(parameter) = fault else { panic!("{fault:?}") };
            assert_eq!((parameter.position, parameter.name.as_str()), (2, "@p"));
            assert!(error.message.contains("Parameter 2 (\"@p\")"), "{}", error.message);
            (parameter.error, error.number)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn bad_parameters_have_the_numbers_of_sql_server() {
    assert_eq!(bad("6D 08 08 000000000000F87F"), (DecodeError::Value, 8023), "NaN");
    assert_eq!(bad("6D 08 08 000000000000F0FF"), (DecodeError::Value, 8023), "-Inf");
    assert_eq!(bad("6A 05 03 00 05 01 E8030000"), (DecodeError::Value, 8023), "1000 is no decimal(3,0)");
    assert_eq!(bad("29 07 05 00C069 2AC9"), (DecodeError::Value, 8023), "24 h");
    assert_eq!(bad("28 03 DBB937"), (DecodeError::Value, 8023), "the day after 9999-12-31");
    assert_eq!(bad("26 03"), (DecodeError::Length(0x26), 8016), "an integer of three bytes");
    assert_eq!(bad("26 04 05 0000000000"), (DecodeError::Length(0x26), 8016), "five bytes in an int");
    assert_eq!(bad("E7 0800 0904D00034 0300 610062"), (DecodeError::OddUnicode, 8016));
    assert_eq!(bad("E7 FFFF 0904D00034 0200000000000000 04000000 61006200 00000000"), (DecodeError::Chunk, 8016));
    assert_eq!(bad("62 00000000 00000000"), (DecodeError::UnknownType(0x62), 8009), "sql_variant");
    assert_eq!(bad("F1 00"), (DecodeError::UnknownType(0xF1), 8009), "xml");
}

#[test]
fn a_request_that_ends_inside_a_value_is_no_request() {
    let whole = by_id(10, &[named("@p", 0, "26 08 08 FEFFFFFFFFFFFFFF")]);
    for length in hex(HEADERS).len() + 8..whole.len() {
        match rpc::parse(&whole[..length]) {
            Err(RpcError::Wire(WireError::Truncated)) => {}
            other => panic!("cut at {length}: {other:?}"),
        }
    }
}

#[test]
fn a_call_takes_2100_parameters_and_no_more() {
    let params = |count| vec![named("", 0, "38 01000000"); count];
    assert_eq!(rpc::parse(&by_id(10, &params(2100))).unwrap()[0].params.len(), 2100);
    match rpc::parse(&by_id(10, &params(2101))) {
        Err(RpcError::Call(fault)) => assert_eq!(errors::rpc(&fault).number, 8003),
        other => panic!("{other:?}"),
    }
}

#[test]
fn transaction_manager_requests_are_understood() {
    let parse = |body: &str| transaction::parse(&request(&hex(body)));
    // Begin of MS-TDS 4.13 (isolation level 1, no name).
    let begin = TransactionRequest::Begin { isolation: IsolationRequest::ReadUncommitted, name: String::new() };
    assert_eq!(parse("0500 01 00").unwrap(), Some(begin));
    assert_eq!(parse("0700 00 00").unwrap(), Some(TransactionRequest::Commit { begin: false }));
    assert_eq!(parse("0700 00 01 00 00").unwrap(), Some(TransactionRequest::Commit { begin: true }));
    assert_eq!(parse("0700 00 80 00 00").unwrap(), Some(TransactionRequest::Commit { begin: true }));
    let to_savepoint = TransactionRequest::Rollback { name: "s".into(), begin: false };
    assert_eq!(parse("0800 02 7300 00").unwrap(), Some(to_savepoint));
    assert_eq!(parse("0900 02 7300").unwrap(), Some(TransactionRequest::Save { name: "s".into() }));
    assert_eq!(parse("0100 0000").unwrap(), None, "a distributed transaction");
    assert!(parse("0500 09 00").is_err(), "an unknown isolation level");
}
