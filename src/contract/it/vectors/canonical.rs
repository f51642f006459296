//! `canonical_json`: the forms, the strict decoder and the multiset digest.

use contract::canon::{DecodeError, Finite, Json, decode, decode_object, legacy, strict};
use contract::digest::{Digest, TypedSum, multiset_preimage, native_multiset_digest};

use super::{Case, Check, File, Run, fail, run, same};

#[test]
fn canonical_json() {
    run(&File {
        name: "canonical_json",
        groups: &[
            ("encode_fixed", Run::Check(encode)),
            ("encode_random", Run::Check(encode)),
            ("encode_reject", Run::Check(encode_reject)),
            ("strict_parse", Run::Check(|case| strict_parse(case, case.text("input_text")?.as_bytes()))),
            ("strict_parse_bytes", Run::Check(|case| strict_parse(case, &case.bytes("input_hex")?))),
            ("native_multiset_digest", Run::Check(multiset)),
            ("legacy_digest_plan_bindings", Run::Check(plan_binding)),
        ],
    });
}

fn encode(case: &Case) -> Check {
    let decoded = decode(case.text("input_text")?.as_bytes()).map_err(|error| error.to_string())?;
    let value = decoded.encodable().map_err(|error| error.to_string())?;
    same("strict", strict(&value), case.bytes("strict_canonical_hex")?)?;
    same("strict digest", Digest::of(&strict(&value)), case.digest("strict_sha256")?)?;
    same("legacy", legacy(&value), case.bytes("legacy_ascii_hex")?)?;
    same("legacy digest", Digest::of(&legacy(&value)), case.digest("legacy_sha256")?)
}

fn encode_reject(case: &Case) -> Check {
    let input = case.text("input")?;
    let error = match input {
        "nan" => Finite::new(f64::NAN).is_none().then_some("ValueError"),
        "inf" => Finite::new(f64::INFINITY).is_none().then_some("ValueError"),
        "-inf" => Finite::new(f64::NEG_INFINITY).is_none().then_some("ValueError"),
        "lone_surrogate_key" => lone_surrogate(br#"{"\ud800":1}"#),
        "lone_surrogate" | "lone_surrogate_value" => lone_surrogate(br#"{"a":"\udfff"}"#),
        _ => return fail(format!("unknown input {input:?}")),
    };
    same("refusal", error, Some(case.text("error_type")?))
}

fn lone_surrogate(text: &[u8]) -> Option<&'static str> {
    let encoded = decode(text).map(contract::canon::Decoded::encodable);
    matches!(encoded, Ok(Err(DecodeError::LoneSurrogate))).then_some("UnicodeEncodeError")
}

fn strict_parse(case: &Case, input: &[u8]) -> Check {
    match decode_object(input) {
        Ok(object) => {
            same("error", None, case.optional_text("error"))?;
            same("re-encoding", None, case.optional_text("reencode_error"))?;
            same("re-encoded", strict(&Json::Object(object)), case.bytes("reencoded_hex")?)
        }
        Err(DecodeError::LoneSurrogate) => {
            same("re-encoding", Some("UnicodeEncodeError"), case.optional_text("reencode_error"))
        }
        Err(error) => same("error", Some(error.to_string().as_str()), case.optional_text("error")),
    }
}

fn multiset(case: &Case) -> Check {
    let rows = case.u64("rows")?;
    let sum = case.integer("typed_sum")?.to_biguint().and_then(|sum| TypedSum::from_integer(&sum));
    let sum = sum.ok_or("typed_sum is no 256-bit integer")?;
    same("preimage", multiset_preimage(rows, &sum).as_str(), case.text("preimage_utf8")?)?;
    same("digest", native_multiset_digest(rows, &sum), case.digest("digest")?)
}

fn plan_binding(case: &Case) -> Check {
    let preimage = legacy(&case.json("input")?);
    same("digest", Digest::of(&preimage), case.digest("sha256")?)?;
    same("preimage", preimage, case.bytes("preimage_hex")?)
}
