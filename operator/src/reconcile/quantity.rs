//! Amounts as Kubernetes writes them, read exactly.

/// The value of a quantity of bytes, rounded up to a whole byte: digits, a fraction, and one of the suffixes of 1000 or
/// 1024. `None` for another grammar or more than 64 bits.
pub fn bytes(text: &str) -> Option<u64> {
    const SUFFIXES: [(&str, u128); 11] = [
        ("Ki", 1 << 10),
        ("Mi", 1 << 20),
        ("Gi", 1 << 30),
        ("Ti", 1 << 40),
        ("Pi", 1 << 50),
        ("k", 1_000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
        ("T", 1_000_000_000_000),
        ("P", 1_000_000_000_000_000),
        ("", 1),
    ];
    let (number, scale) = SUFFIXES.into_iter().find_map(|(suffix, scale)| Some((text.strip_suffix(suffix)?, scale)))?;
    scaled(number, scale)
}

/// The value of a quantity of processors in thousandths, rounded up: `500m`, `2`, `0.5`.
pub fn millis(text: &str) -> Option<u64> {
    match text.strip_suffix('m') {
        Some(number) => scaled(number, 1),
        None => scaled(text, 1_000),
    }
}

/// `number * scale`, rounded up.
fn scaled(number: &str, scale: u128) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str, most: usize| text.len() <= most && text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole, 19) || !digits(fraction, 9) || number.ends_with('.') {
        return None;
    }
    let denominator = 10u128.pow(u32::try_from(fraction.len()).ok()?);
    let numerator = format!("{whole}{fraction}").parse::<u128>().ok()?;
    let value = numerator.checked_mul(scale)?.div_ceil(denominator);
    u64::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_the_suffixes_of_kubernetes() {
        for (text, value) in [
            ("0", 0),
            ("1", 1),
            ("1k", 1_000),
            ("1Ki", 1_024),
            ("1.5Gi", 1_610_612_736),
            ("0.1k", 100),
            ("0.0001k", 1),
            ("5Gi", 5 << 30),
            ("16Pi", 16 << 50),
            ("9999999999999999999", 9_999_999_999_999_999_999),
        ] {
            assert_eq!(bytes(text), Some(value), "{text}");
        }
        for text in ["", "Gi", "1.", ".5", "1Gb", "-1", "+1", "1e3", "1 Gi", "1E", "99999999999999999999", "9999999P"] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }

    #[test]
    fn processors_are_counted_in_thousandths() {
        assert_eq!(millis("500m"), Some(500));
        assert_eq!(millis("2"), Some(2_000));
        assert_eq!(millis("0.25"), Some(250));
        assert_eq!(millis("0.5m"), Some(1));
        for text in ["", "m", "1.m", "1u", "two"] {
            assert_eq!(millis(text), None, "{text}");
        }
    }
}
