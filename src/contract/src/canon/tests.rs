//! Known answers and properties of the canonical forms.

use proptest::prelude::*;

use super::*;

#[track_caller]
fn check_float(value: f64, expected: &str) {
    assert_eq!(python_float(value), expected);
}

#[test]
fn floats_read_as_in_python() {
    check_float(0.0, "0.0");
    check_float(-0.0, "-0.0");
    check_float(1.0, "1.0");
    check_float(-1.5, "-1.5");
    check_float(0.0001, "0.0001");
    check_float(0.00012345, "0.00012345");
    check_float(0.00001, "1e-05");
    check_float(1.5e-7, "1.5e-07");
    check_float(1e15, "1000000000000000.0");
    check_float(9_007_199_254_740_993.0, "9007199254740992.0");
    check_float(1e16, "1e+16");
    check_float(1.25e16, "1.25e+16");
    check_float(1e22, "1e+22");
    check_float(1e100, "1e+100");
    check_float(5e-324, "5e-324");
    check_float(f64::MAX, "1.7976931348623157e+308");
    check_float(123_456.789, "123456.789");
}

#[track_caller]
fn check_text(text: &str, strict_form: &str, legacy_form: &str) {
    let value = Json::from(text);
    assert_eq!(String::from_utf8(strict(&value)).as_deref(), Ok(strict_form));
    assert_eq!(String::from_utf8(legacy(&value)).as_deref(), Ok(legacy_form));
}

#[test]
fn texts_are_escaped_as_little_as_each_form_allows() {
    check_text("a/\u{7f}", "\"a/\u{7f}\"", r#""a/\u007f""#);
    check_text("\u{0}\u{1f}\"\\", r#""\u0000\u001f\"\\""#, r#""\u0000\u001f\"\\""#);
    check_text("\u{8}\u{c}\n\r\t", r#""\b\f\n\r\t""#, r#""\b\f\n\r\t""#);
    check_text("é漢😀", "\"é漢😀\"", r#""\u00e9\u6f22\ud83d\ude00""#);
}

#[test]
fn keys_are_ordered_by_code_point() {
    let object = decode_object(r#"{"\ud83d\ude00":1,"\uffff":2,"b":3,"B":4}"#.as_bytes()).expect("object");
    let text = String::from_utf8(strict(&Json::Object(object))).expect("UTF-8");
    assert_eq!(text, "{\"B\":4,\"b\":3,\"\u{ffff}\":2,\"😀\":1}");
}

#[track_caller]
fn refused(text: &str, error: DecodeError) {
    assert_eq!(decode_object(text.as_bytes()), Err(error), "{text:?}");
}

#[test]
fn the_first_fault_in_reading_order_is_reported() {
    refused(r#"{"a":1,"a":1"#, DecodeError::Invalid);
    refused(r#"{"a":1,"a":1} x"#, DecodeError::DuplicateKey);
    refused(r#"{"a":NaN,"a":1}"#, DecodeError::NonFiniteConstant("NaN"));
    refused(r#"{"a":-Infinity}"#, DecodeError::NonFiniteConstant("-Infinity"));
    refused(r#"{"a":-1e999}"#, DecodeError::NonFiniteNumber);
    refused(r#"[{"a":1,"a":2}]"#, DecodeError::DuplicateKey);
    refused("[]", DecodeError::RootNotObject);
    refused(r#"{"a":"\udc00"}"#, DecodeError::LoneSurrogate);
    refused(r#"{"\ud800":1,"\ud801":2}"#, DecodeError::LoneSurrogate);
    refused(r#"{"\ud800":1,"\ud800":2}"#, DecodeError::DuplicateKey);
    refused(r#"["\ud800"]"#, DecodeError::RootNotObject);
}

#[test]
fn only_rfc_8259_is_json() {
    let texts = [
        "",
        " ",
        "{",
        "}",
        "{,}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "[1,]",
        "{\"a\":1.}",
        "{\"a\":.5}",
        "{\"a\":+1}",
        "{\"a\":1e}",
        "{\"a\":0x1}",
        "{\"a\":00}",
        "{\"a\":-}",
        "{\"a\":\"\t\"}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\u12g4\"}",
        "{\"a\":tru}",
        "{\"a\":True}",
        "{\"a\":1}{",
        "\u{feff}{}",
        "{\"a\":1\u{a0}}",
        "'a'",
    ];
    for text in texts {
        refused(text, DecodeError::Invalid);
    }
}

#[test]
fn the_decoder_is_bounded() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(decode(nested(MAX_DEPTH).as_bytes()).is_ok());
    assert_eq!(decode(nested(MAX_DEPTH + 2).as_bytes()), Err(DecodeError::Invalid));
    assert_eq!(decode("[".repeat(1_000_000).as_bytes()), Err(DecodeError::Invalid));
    assert!(decode("9".repeat(MAX_INTEGER_DIGITS).as_bytes()).is_ok());
    assert_eq!(decode("9".repeat(MAX_INTEGER_DIGITS + 1).as_bytes()), Err(DecodeError::Invalid));
}

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i128>().prop_map(Json::from),
        any::<f64>().prop_filter_map("finite", |value| Finite::new(value).map(Json::Float)),
        any::<String>().prop_map(Json::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Json::Array),
            prop::collection::btree_map(any::<String>(), inner, 0..6).prop_map(Json::Object),
        ]
    })
}

proptest! {
    #[test]
    fn both_forms_read_back_to_the_same_value(value in any_json()) {
        for bytes in [strict(&value), legacy(&value)] {
            let read = decode(&bytes).and_then(Decoded::encodable);
            prop_assert_eq!(read.as_ref(), Ok(&value));
        }
    }

    #[test]
    fn the_legacy_form_is_ascii(value in any_json()) {
        prop_assert!(legacy(&value).is_ascii());
    }

    #[test]
    fn another_parser_agrees(value in any_json()) {
        let other: serde_json::Value = serde_json::from_slice(&strict(&value)).expect("JSON");
        prop_assert_eq!(Json::try_from(&other), Ok(value));
    }

    #[test]
    fn no_input_panics(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = decode(&bytes);
    }

    #[test]
    fn no_near_json_panics(text in r#"[\[\]{}",:\\u0-9a-fA-FeE+\-. ntrue]{0,48}"#) {
        let _ = decode(text.as_bytes());
    }
}
