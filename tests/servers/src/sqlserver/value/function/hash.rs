//! HASHBYTES, NEWID.

use sha2::Digest;

use super::super::{Bytes, Collation, SqlType, Text, Value, ValueError};
use super::call::Call;
use super::{Resolver, ScalarFunction};

pub(super) const FUNCTIONS: &[(&str, Resolver)] = &[("HASHBYTES", hashbytes), ("NEWID", newid)];

/// Digests of texts are over their stored bytes: UTF-16LE, or the code page of the collation.
fn hashbytes(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(2..=2)?;
    if !call.ty(0)?.is_character() {
        return Err(call.invalid(0));
    }
    let ty = call.ty(1)?;
    let hashable = ty == SqlType::Null
        || matches!(ty, SqlType::Binary(_) | SqlType::VarBinary(_))
        || ty.is_character() && !ty.is_legacy_large();
    if !hashable {
        return Err(call.invalid(1));
    }
    let collation = ty.collation().unwrap_or(Collation::DEFAULT);
    call.may_return_null(SqlType::varbinary(8000), move |arguments, _| {
        let (Value::String(algorithm), value) = (&arguments[0], &arguments[1]) else { return Ok(Value::Null) };
        let digest = match value {
            Value::Binary(bytes) => digest(algorithm, bytes)?,
            Value::String(text) if ty.is_unicode() => digest(algorithm, text.as_utf16le())?,
            Value::String(text) => digest(algorithm, &collation.encode(text))?,
            _ => None,
        };
        Ok(digest.map_or(Value::Null, Value::Binary))
    })
}

/// NULL for a name that is no algorithm; an error for the two obsolete ones that are not built here.
fn digest(algorithm: &Text, bytes: &[u8]) -> Result<Option<Bytes>, ValueError> {
    let named = |name: &str| {
        algorithm.len() == name.len()
            && algorithm
                .units()
                .zip(name.bytes())
                .all(|(unit, byte)| u8::try_from(unit).is_ok_and(|unit| unit.eq_ignore_ascii_case(&byte)))
    };
    Ok(Some(if named("SHA2_256") {
        Bytes::from(sha2::Sha256::digest(bytes).as_slice())
    } else if named("SHA2_512") {
        Bytes::from(sha2::Sha512::digest(bytes).as_slice())
    } else if named("SHA1") || named("SHA") {
        Bytes::from(sha1::Sha1::digest(bytes).as_slice())
    } else if named("MD5") {
        Bytes::from(md5::Md5::digest(bytes).as_slice())
    } else if named("MD2") || named("MD4") {
        let text = format!("HASHBYTES({algorithm}) is not built in this server.");
        return Err(ValueError::new(195, 10, text));
    } else {
        return Ok(None);
    }))
}

fn newid(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(0..=0)?;
    let function = call.returns(SqlType::UniqueIdentifier, |_, context| {
        let mut guid = [0; 16];
        guid[..8].copy_from_slice(&context.random_bits().to_le_bytes());
        guid[8..].copy_from_slice(&context.random_bits().to_le_bytes());
        // Version 4, variant 1 (RFC 9562); the version sits in the third group, which is stored little-endian.
        guid[7] = guid[7] & 0x0F | 0x40;
        guid[8] = guid[8] & 0x3F | 0x80;
        Ok(Value::Guid(guid))
    })?;
    Ok(ScalarFunction { deterministic: false, ..function })
}
