//! `decimal` and `numeric`: representation, scaling, text, the arithmetic behind the operators.

use num_bigint::BigInt;

use super::SqlType;

/// 10^0 to 10^38.
const POWERS_OF_TEN: [i128; 39] = {
    let mut powers = [1_i128; 39];
    let mut exponent = 1;
    while exponent < 39 {
        powers[exponent] = powers[exponent - 1] * 10;
        exponent += 1;
    }
    powers
};

/// Whether digits that a smaller scale drops round the number (half away from zero) or are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rounding {
    HalfAwayFromZero,
    Truncate,
}

/// A decimal number: `unscaled / 10^scale`, kept with the precision and scale of its type.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decimal {
    // Two halves, because an i128 would align every cell to 16 bytes.
    high: i64,
    low: u64,
    precision: u8,
    scale: u8,
}

impl Decimal {
    /// A number of at most 38 digits.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the value is split into its halves")]
    pub const fn new(unscaled: i128, precision: u8, scale: u8) -> Self {
        Self { high: (unscaled >> 64) as i64, low: unscaled as u64, precision, scale }
    }

    /// The number without its decimal point.
    #[must_use]
    pub const fn unscaled(&self) -> i128 {
        ((self.high as i128) << 64) | self.low as i128
    }

    /// Declared number of digits, 1 to 38.
    #[must_use]
    pub const fn precision(&self) -> u8 {
        self.precision
    }

    /// Declared number of digits behind the point.
    #[must_use]
    pub const fn scale(&self) -> u8 {
        self.scale
    }

    /// The type of the number.
    #[must_use]
    pub const fn sql_type(&self) -> SqlType {
        SqlType::Decimal { precision: self.precision, scale: self.scale }
    }

    /// The number at another precision and scale, rounded half away from zero; `None` if it does not fit.
    #[must_use]
    pub fn rescale(&self, precision: u8, scale: u8) -> Option<Self> {
        rescale(self.unscaled(), self.scale, precision, scale, Rounding::HalfAwayFromZero)
    }

    /// The part before the point.
    #[must_use]
    pub fn whole(&self) -> i128 {
        self.unscaled() / power_of_ten(self.scale)
    }

    /// The nearest `float`.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "exact below 2^53")]
    pub fn to_f64(&self) -> f64 {
        let unscaled = self.unscaled();
        if unscaled.unsigned_abs() < 1 << 53 && self.scale <= 22 {
            // Both are exact, so the one division rounds correctly.
            return unscaled as f64 / power_of_ten(self.scale) as f64;
        }
        format!("{unscaled}e-{}", self.scale).parse().unwrap_or(0.0)
    }

    /// A decimal of a `float`, from its 17 significant digits; `None` if it does not fit.
    #[must_use]
    pub fn from_f64(value: f64, precision: u8, scale: u8) -> Option<Self> {
        let text = format!("{value:.16e}");
        let (digits, exponent) = text.split_once('e')?;
        let unscaled: i128 = digits.replace('.', "").parse().ok()?;
        let exponent: i32 = exponent.parse().ok()?;
        from_digits(unscaled, exponent - 16, precision, scale)
    }

    /// Reads `[+-]digits[.digits]`, rounded to `scale`.
    ///
    /// # Errors
    /// Tells wrong syntax from a number that does not fit.
    pub fn parse(text: &str, precision: u8, scale: u8) -> Result<Self, ParseDecimalError> {
        let (negative, digits) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all_digits = whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
        if !all_digits || whole.len() + fraction.len() == 0 {
            return Err(ParseDecimalError::Syntax);
        }
        let kept = fraction.len().min(usize::from(scale));
        let rounds_up = fraction.as_bytes().get(kept).is_some_and(|digit| *digit >= b'5');
        let kept_digits = format!("0{whole}{}", &fraction[..kept]);
        let unscaled: i128 = kept_digits.parse().map_err(|_| ParseDecimalError::OutOfRange)?;
        let unscaled = unscaled + i128::from(rounds_up);
        let unscaled = if negative { -unscaled } else { unscaled };
        let from_scale = u8::try_from(kept).unwrap_or(u8::MAX);
        rescale(unscaled, from_scale, precision, scale, Rounding::HalfAwayFromZero).ok_or(ParseDecimalError::OutOfRange)
    }
}

/// Why a text is no decimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParseDecimalError {
    /// Not a number.
    Syntax,
    /// More digits than the type has.
    OutOfRange,
}

/// The number with all digits of its scale: `-0.50`, `12`.
impl std::fmt::Display for Decimal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let unscaled = self.unscaled();
        let sign = if unscaled < 0 { "-" } else { "" };
        let scale = usize::from(self.scale);
        let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        if scale == 0 { write!(f, "{sign}{whole}") } else { write!(f, "{sign}{whole}.{fraction}") }
    }
}

impl std::fmt::Debug for Decimal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self} as decimal({},{})", self.precision, self.scale)
    }
}

/// 10^`exponent`; exponents beyond 38 do not occur in declared types.
pub(super) fn power_of_ten(exponent: u8) -> i128 {
    POWERS_OF_TEN[usize::from(exponent.min(38))]
}

/// Whether the number has at most `precision` digits.
pub(super) fn fits(unscaled: i128, precision: u8) -> bool {
    unscaled.unsigned_abs() < power_of_ten(precision).unsigned_abs()
}

/// Divides by a positive divisor.
pub(super) fn divide_rounded(dividend: i128, divisor: i128, rounding: Rounding) -> i128 {
    let (quotient, rest) = (dividend / divisor, dividend % divisor);
    if rounding == Rounding::HalfAwayFromZero && rest.unsigned_abs() >= divisor.unsigned_abs().div_ceil(2) {
        quotient + dividend.signum()
    } else {
        quotient
    }
}

/// `unscaled / 10^from_scale` at `precision` and `scale`.
pub(super) fn rescale(unscaled: i128, from_scale: u8, precision: u8, scale: u8, rounding: Rounding) -> Option<Decimal> {
    let scaled = if scale >= from_scale {
        unscaled.checked_mul(power_of_ten(scale - from_scale))?
    } else if from_scale - scale > 38 {
        0
    } else {
        divide_rounded(unscaled, power_of_ten(from_scale - scale), rounding)
    };
    fits(scaled, precision).then(|| Decimal::new(scaled, precision, scale))
}

/// `digits * 10^exponent`, rounded to `scale`.
fn from_digits(digits: i128, exponent: i32, precision: u8, scale: u8) -> Option<Decimal> {
    let shift = exponent + i32::from(scale);
    let scaled = if digits == 0 || shift < -38 {
        0
    } else if shift < 0 {
        divide_rounded(digits, power_of_ten(u8::try_from(-shift).ok()?), Rounding::HalfAwayFromZero)
    } else if shift <= 38 {
        digits.checked_mul(power_of_ten(u8::try_from(shift).ok()?))?
    } else {
        return None;
    };
    fits(scaled, precision).then(|| Decimal::new(scaled, precision, scale))
}

/// `left * right` at the result's precision and scale, rounded.
pub(super) fn multiply(left: Decimal, right: Decimal, precision: u8, scale: u8) -> Option<Decimal> {
    let from_scale = left.scale + right.scale;
    if let Some(product) = left.unscaled().checked_mul(right.unscaled()) {
        return rescale(product, from_scale, precision, scale, Rounding::HalfAwayFromZero);
    }
    // The scale of a product never grows, so only a division can follow.
    let product = BigInt::from(left.unscaled()) * BigInt::from(right.unscaled());
    let divisor = BigInt::from(10).pow(u32::from(from_scale.saturating_sub(scale)));
    let half = &divisor / BigInt::from(2);
    let rounded = if product.sign() == num_bigint::Sign::Minus { product - half } else { product + half } / divisor;
    let unscaled = i128::try_from(rounded).ok()?;
    fits(unscaled, precision).then(|| Decimal::new(unscaled, precision, scale))
}

/// `left / right` at the result's precision and scale; digits beyond the scale are cut, as SQL Server does.
/// `right` is not zero.
pub(super) fn divide(left: Decimal, right: Decimal, precision: u8, scale: u8) -> Option<Decimal> {
    // left/10^ls / (right/10^rs) * 10^scale = left * 10^(scale + rs - ls) / right
    let shift = i32::from(scale) + i32::from(right.scale) - i32::from(left.scale);
    let (mut dividend, mut divisor) = (BigInt::from(left.unscaled()), BigInt::from(right.unscaled()));
    let power = BigInt::from(10).pow(shift.unsigned_abs());
    if shift >= 0 {
        dividend *= power;
    } else {
        divisor *= power;
    }
    let unscaled = i128::try_from(dividend / divisor).ok()?;
    fits(unscaled, precision).then(|| Decimal::new(unscaled, precision, scale))
}
