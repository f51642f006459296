//! One typed value, as the row-wise encoder takes it.

/// A value with the type that the source gave it. No conversion between kinds is implied: an integer is not a float, a
/// text is not binary.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// SQL NULL.
    Null,
    /// A truth value; only `bit` takes it.
    Bool(bool),
    /// An integer.
    Int(i128),
    /// An IEEE double (a single is widened, which is exact).
    Float(f64),
    /// Unicode text.
    Text(&'a str),
    /// Text as code points, which may hold surrogates; those are refused, also in pairs.
    CodePoints(&'a [u32]),
    /// Text as source bytes, not yet proven to be UTF-8; a binary column takes them as they are.
    SourceBytes(&'a [u8]),
    /// Binary.
    Bytes(&'a [u8]),
    /// A finite decimal.
    Decimal(Decimal),
    /// A decimal infinity or NaN; no column takes it.
    NotFinite,
    /// A UUID in RFC 4122 byte order.
    Uuid([u8; 16]),
    /// Days since 0001-01-01.
    Date(i32),
    /// 100 ns ticks since midnight.
    Time(i64),
    /// A local date and time, with the offset from UTC if it is known.
    DateTime {
        /// Days since 0001-01-01.
        days: i32,
        /// 100 ns ticks since midnight.
        ticks: i64,
        /// Seconds east of UTC.
        offset_seconds: Option<i32>,
    },
}

/// A finite decimal number: digits, power of ten and sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decimal {
    negative: bool,
    /// Digits 0 to 9, most significant first, without leading zeros; empty for zero.
    digits: Vec<u8>,
    exponent: i32,
}

impl Decimal {
    /// `unscaled * 10^-scale`.
    pub fn from_unscaled(unscaled: i128, scale: u32) -> Decimal {
        let digits = match unscaled.unsigned_abs() {
            0 => Vec::new(),
            magnitude => magnitude.to_string().bytes().map(|digit| digit - b'0').collect(),
        };
        Decimal { negative: unscaled < 0, digits, exponent: i32::try_from(scale).map_or(i32::MIN, |scale| -scale) }
    }

    /// Reads `[+-]digits[.digits][E[+-]digits]`; `None` for anything else, infinities and NaN among it.
    pub fn parse(text: &str) -> Option<Decimal> {
        let (negative, text) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all_digits = whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
        if !all_digits || whole.len() + fraction.len() == 0 {
            return None;
        }
        let digits = whole.bytes().chain(fraction.bytes()).map(|digit| digit - b'0').skip_while(|digit| *digit == 0);
        let exponent = exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?;
        Some(Decimal { negative, digits: digits.collect(), exponent })
    }

    /// The integer `self * 10^scale`, if it is exact and has at most `precision` (38 or fewer) digits.
    pub fn coefficient(&self, precision: u8, scale: u8) -> Option<i128> {
        if self.digits.is_empty() {
            return Some(0);
        }
        let shift = self.exponent.checked_add(i32::from(scale))?;
        let kept = match usize::try_from(shift) {
            Ok(_) => self.digits.len(),
            Err(_) => self.digits.len().checked_sub(usize::try_from(shift.unsigned_abs()).ok()?)?,
        };
        let zeros = usize::try_from(shift.max(0)).ok()?;
        let exact = self.digits[kept..].iter().all(|digit| *digit == 0);
        if kept == 0 || !exact || kept.checked_add(zeros)? > usize::from(precision.min(38)) {
            return None;
        }
        let magnitude = self.digits[..kept].iter().copied().chain(std::iter::repeat_n(0, zeros));
        let magnitude = magnitude.fold(0i128, |number, digit| number * 10 + i128::from(digit));
        Some(if self.negative { -magnitude } else { magnitude })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coefficients_are_exact_or_refused() {
        let coefficient =
            |text: &str, precision, scale| Decimal::parse(text).expect(text).coefficient(precision, scale);
        assert_eq!(coefficient("-12.30", 9, 2), Some(-1230));
        assert_eq!(coefficient("1E-38", 38, 38), Some(1));
        assert_eq!(coefficient("1E+3", 10, 3), Some(1_000_000));
        assert_eq!(coefficient("-0.00", 9, 2), Some(0));
        assert_eq!(coefficient("1.005", 9, 2), None);
        assert_eq!(coefficient("0.001", 9, 2), None);
        assert_eq!(coefficient("1E+38", 38, 0), None);
        assert_eq!(coefficient("1E+2147483647", 38, 0), None);
        for text in ["", "-", "1_0", "Infinity", "NaN", "1e", "0x1", "1.2.3"] {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
        assert_eq!(Decimal::from_unscaled(i128::MIN, 3).coefficient(38, 3), None);
        assert_eq!(Decimal::from_unscaled(-1230, 2).coefficient(9, 2), Some(-1230));
    }
}
