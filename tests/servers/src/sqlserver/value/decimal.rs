//! `decimal` and `numeric`.

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
    #[allow(clippy::cast_possible_truncation, reason = "the value is split into its halves")]
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
}

impl std::fmt::Debug for Decimal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}e-{} ({}, {})", self.unscaled(), self.scale, self.precision, self.scale)
    }
}
