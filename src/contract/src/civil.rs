//! Civil dates and UTC instants, years 1 to 9999, to the microsecond.
//!
//! Everything in the contract is UTC and proleptic Gregorian, so there is no time zone database and no clock here; an
//! offset in a text is only arithmetic.

use std::fmt;

/// Microseconds per second.
pub const MICROS_PER_SECOND: i64 = 1_000_000;
/// Microseconds per day.
pub const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;
/// Days from 0001-01-01 to 1970-01-01.
pub const DAYS_0001_TO_1970: i64 = 719_162;

/// A calendar date, years 1 to 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    /// Year, 1 to 9999.
    pub year: i32,
    /// Month, 1 to 12.
    pub month: u32,
    /// Day of the month, from 1.
    pub day: u32,
}

impl Date {
    /// A date that exists, or `None`.
    pub fn new(year: i32, month: u32, day: u32) -> Option<Self> {
        let valid = (1..=9999).contains(&year) && (1..=12).contains(&month);
        (valid && (1..=days_in_month(year, month)).contains(&day)).then_some(Date { year, month, day })
    }

    /// Days since 1970-01-01.
    pub fn days(self) -> i64 {
        // Years are counted from 1 March, so that the leap day is the last of its year (400-year eras of 146,097 days).
        let year = i64::from(self.year) - i64::from(self.month <= 2);
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let month = (i64::from(self.month) + 9) % 12;
        let day_of_year = (153 * month + 2) / 5 + i64::from(self.day) - 1;
        era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
    }

    /// The date `days` after 1970-01-01, or `None` outside years 1 to 9999.
    pub fn from_days(days: i64) -> Option<Self> {
        let shifted = days.checked_add(719_468)?;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let year = era.checked_mul(400)? + year_of_era + i64::from(month <= 2);
        Date::new(i32::try_from(year).ok()?, u32::try_from(month).ok()?, u32::try_from(day).ok()?)
    }
}

/// `YYYY-MM-DD`.
impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

/// Days of a month in the Gregorian calendar.
pub fn days_in_month(year: i32, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// A UTC instant to the microsecond, 0001-01-01T00:00:00Z to 9999-12-31T23:59:59.999999Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant {
    micros: i64,
}

/// Calendar fields of an [`Instant`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fields {
    /// The date.
    pub date: Date,
    /// Hour, 0 to 23.
    pub hour: u32,
    /// Minute, 0 to 59.
    pub minute: u32,
    /// Second, 0 to 59 (no leap seconds).
    pub second: u32,
    /// Microsecond, 0 to 999,999.
    pub micro: u32,
}

impl Instant {
    /// The first instant: 0001-01-01T00:00:00Z.
    pub const MIN: Instant = Instant { micros: -DAYS_0001_TO_1970 * MICROS_PER_DAY };
    /// The last instant: 9999-12-31T23:59:59.999999Z.
    pub const MAX: Instant = Instant { micros: 2_932_897 * MICROS_PER_DAY - 1 };

    /// The instant `micros` microseconds after 1970-01-01T00:00:00Z, or `None` outside years 1 to 9999.
    pub fn from_micros(micros: i64) -> Option<Self> {
        (Self::MIN.micros..=Self::MAX.micros).contains(&micros).then_some(Instant { micros })
    }

    /// Microseconds since 1970-01-01T00:00:00Z.
    pub fn micros(self) -> i64 {
        self.micros
    }

    /// The UTC instant of calendar fields at `offset_seconds` east of UTC, or `None` if a field or the result is out of
    /// range.
    pub fn from_fields(fields: Fields, offset_seconds: i64) -> Option<Self> {
        let in_range = fields.hour < 24 && fields.minute < 60 && fields.second < 60 && fields.micro < 1_000_000;
        if !in_range {
            return None;
        }
        let seconds = i64::from(fields.hour) * 3600 + i64::from(fields.minute) * 60 + i64::from(fields.second);
        let micros = fields.date.days() * MICROS_PER_DAY
            + (seconds - offset_seconds) * MICROS_PER_SECOND
            + i64::from(fields.micro);
        Self::from_micros(micros)
    }

    /// The calendar fields in UTC.
    pub fn fields(self) -> Fields {
        let of_day = self.micros.rem_euclid(MICROS_PER_DAY);
        let seconds = of_day / MICROS_PER_SECOND;
        Fields {
            // Every instant lies within years 1 to 9999, so the fallback is never taken.
            date: Date::from_days(self.micros.div_euclid(MICROS_PER_DAY)).unwrap_or(Date { year: 1, month: 1, day: 1 }),
            hour: (seconds / 3600) as u32,
            minute: (seconds / 60 % 60) as u32,
            second: (seconds % 60) as u32,
            micro: (of_day % MICROS_PER_SECOND) as u32,
        }
    }

    /// This instant moved by `micros`, or `None` outside years 1 to 9999.
    pub fn checked_add_micros(self, micros: i64) -> Option<Self> {
        self.micros.checked_add(micros).and_then(Self::from_micros)
    }

    /// Python's `isoformat()`: `YYYY-MM-DDTHH:MM:SS[.ffffff]+00:00`, microseconds only when nonzero.
    pub fn isoformat(self) -> String {
        let fields = self.fields();
        let date = fields.date;
        let time = format!("{:02}:{:02}:{:02}", fields.hour, fields.minute, fields.second);
        if fields.micro == 0 {
            format!("{date}T{time}+00:00")
        } else {
            format!("{date}T{time}.{:06}+00:00", fields.micro)
        }
    }

    /// [`isoformat`](Self::isoformat) with `Z` instead of `+00:00`.
    pub fn isoformat_z(self) -> String {
        let text = self.isoformat();
        format!("{}Z", text.trim_end_matches("+00:00"))
    }

    /// `YYYY-MM-DD HH:MM:SS.ffffff` in UTC, always with six fraction digits: the text of a window bound in a query.
    pub fn query_text(self) -> String {
        let fields = self.fields();
        let date = fields.date;
        format!("{date} {:02}:{:02}:{:02}.{:06}", fields.hour, fields.minute, fields.second, fields.micro)
    }

    /// Reads `YYYY-MM-DDTHH:MM:SS[.f{1,6}](Z|+hh:mm|-hh:mm)`, or `None` for anything else: seconds and an explicit
    /// offset are demanded, so no default can creep in.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let date_time = bytes.get(..19)?;
        let digits = |at: usize, len: usize| number(date_time.get(at..at + len)?);
        let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
        if separators.iter().any(|(at, expected)| date_time[*at] != *expected) {
            return None;
        }
        let date = Date::new(i32::try_from(digits(0, 4)?).ok()?, digits(5, 2)?, digits(8, 2)?)?;
        let mut rest = &bytes[19..];
        let mut micro = 0;
        if let [b'.', fraction @ ..] = rest {
            let len = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if !(1..=6).contains(&len) {
                return None;
            }
            micro = number(&fraction[..len])? * 10u32.pow(6 - len as u32);
            rest = &fraction[len..];
        }
        let fields = Fields { date, hour: digits(11, 2)?, minute: digits(14, 2)?, second: digits(17, 2)?, micro };
        Self::from_fields(fields, offset_seconds(rest)?)
    }
}

/// Seconds east of UTC of `Z`, `+hh:mm` or `-hh:mm`.
fn offset_seconds(text: &[u8]) -> Option<i64> {
    match text {
        b"Z" => Some(0),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let (hours, minutes) = (number(&[*h1, *h2])?, number(&[*m1, *m2])?);
            let seconds = i64::from(hours) * 3600 + i64::from(minutes) * 60;
            let seconds = if *sign == b'-' { -seconds } else { seconds };
            (hours < 24 && minutes < 60).then_some(seconds)
        }
        _ => None,
    }
}

/// The value of ASCII digits only.
fn number(digits: &[u8]) -> Option<u32> {
    let mut value = 0u32;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u32::from(digit - b'0'))?;
    }
    (!digits.is_empty()).then_some(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, iso: &str) {
        assert_eq!(Instant::parse(text).map(Instant::isoformat).as_deref(), Some(iso), "{text}");
    }

    #[test]
    fn offsets_are_arithmetic_and_fractions_are_kept() {
        check("1970-01-01T00:00:00Z", "1970-01-01T00:00:00+00:00");
        check("2026-09-30T03:00:00+03:00", "2026-09-30T00:00:00+00:00");
        check("2026-09-30T00:00:00-23:59", "2026-09-30T23:59:00+00:00");
        check("2026-09-30T00:00:00.5Z", "2026-09-30T00:00:00.500000+00:00");
        check("2026-09-30T00:00:00.000001Z", "2026-09-30T00:00:00.000001+00:00");
        check("2024-02-29T23:59:59.999999Z", "2024-02-29T23:59:59.999999+00:00");
        check("0001-01-01T00:00:00Z", "0001-01-01T00:00:00+00:00");
        check("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999+00:00");
    }

    #[test]
    fn nothing_is_guessed() {
        let texts = [
            "2026-09-30",
            "2026-09-30T00:00Z",
            "2026-09-30T00:00:00",
            "2026-09-30 00:00:00Z",
            "2026-9-30T00:00:00Z",
            "2023-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-09-30T24:00:00Z",
            "2026-09-30T00:60:00Z",
            "2026-09-30T00:00:60Z",
            "2026-09-30T00:00:00.Z",
            "2026-09-30T00:00:00.0000001Z",
            "2026-09-30T00:00:00z",
            "2026-09-30T00:00:00+0300",
            "2026-09-30T00:00:00+24:00",
            "0000-01-01T00:00:00Z",
            "+026-09-30T00:00:00Z",
            "0001-01-01T00:00:00+00:01",
            "9999-12-31T23:59:59-00:01",
            "2026-09-30T00:00:00ZZ",
            "é026-09-30T00:00:00Z",
        ];
        for text in texts {
            assert_eq!(Instant::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_ends_of_the_calendar() {
        assert_eq!(Date { year: 1, month: 1, day: 1 }.days(), -DAYS_0001_TO_1970);
        assert_eq!(Date::from_days(-DAYS_0001_TO_1970 - 1), None);
        assert_eq!(Instant::MAX.isoformat(), "9999-12-31T23:59:59.999999+00:00");
        assert_eq!(Instant::MAX.checked_add_micros(1), None);
        assert_eq!(Instant::MIN.checked_add_micros(-1), None);
        assert_eq!(Instant::MIN.query_text(), "0001-01-01 00:00:00.000000");
        assert_eq!(Date::from_days(i64::MAX), None);
        assert_eq!(Date::from_days(i64::MIN), None);
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let mut date = Date { year: 1, month: 1, day: 1 };
        for days in -DAYS_0001_TO_1970..=2_932_896 {
            assert_eq!((Date::from_days(days), date.days()), (Some(date), days));
            let next_month = date.day == days_in_month(date.year, date.month);
            date = match (next_month, date.month) {
                (false, _) => Date { day: date.day + 1, ..date },
                (true, 12) => Date { year: date.year + 1, month: 1, day: 1 },
                (true, month) => Date { month: month + 1, day: 1, ..date },
            };
        }
    }

    proptest! {
        #[test]
        fn texts_read_back(micros in Instant::MIN.micros()..=Instant::MAX.micros()) {
            let instant = Instant::from_micros(micros).expect("in range");
            prop_assert_eq!(Instant::parse(&instant.isoformat()), Some(instant));
            prop_assert_eq!(Instant::parse(&instant.isoformat_z()), Some(instant));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = Instant::parse(&text);
        }
    }
}
