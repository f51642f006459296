//! Dates and times in texts ("Supported string literal formats" of the date and time types).

use super::super::DateFormat;
use super::super::temporal::{CalendarDay, Clock};
use super::temporal_format::MONTHS;

/// What a text says; absent parts keep their defaults in the conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in super::super) struct Parsed {
    /// Year, month, day as written: not checked against the calendar.
    pub(in super::super) day: Option<(i32, u32, u32)>,
    /// As written, not checked.
    pub(in super::super) clock: Option<(u32, u32, u32)>,
    /// 100 ns ticks of the second's fraction.
    pub(in super::super) fraction: u32,
    /// Number of digits of the fraction.
    pub(in super::super) fraction_digits: usize,
    /// Offset from UTC; `Z` is 0.
    pub(in super::super) offset_minutes: Option<i16>,
    /// The offset was written in digits.
    pub(in super::super) numeric_offset: bool,
}

impl Parsed {
    /// The day number; the outer `None` is "not in the calendar", no day at all is 1900-01-01.
    pub(in super::super) fn days(&self) -> Option<i32> {
        let (year, month, day) = self.day.unwrap_or((1900, 1, 1));
        CalendarDay { year, month, day }.days()
    }

    /// Ticks since midnight; `None` if a part is out of range.
    pub(in super::super) fn ticks(&self) -> Option<u64> {
        let (hour, minute, second) = self.clock.unwrap_or((0, 0, 0));
        Clock { hour, minute, second, fraction: self.fraction }.ticks()
    }
}

/// Order in which a style of CONVERT reads numbers.
pub(super) fn order_of_style(style: i32) -> Option<DateFormat> {
    match style {
        0 | 1 | 7 | 9 | 10 | 22 | 100 | 101 | 107 | 109 | 110 => Some(DateFormat::Mdy),
        3..=6 | 13 | 103..=106 | 113 => Some(DateFormat::Dmy),
        2 | 11 | 12 | 20 | 21 | 23 | 25 | 102 | 111 | 112 | 120 | 121 | 126 | 127 => Some(DateFormat::Ymd),
        _ => None,
    }
}

/// Reads a date, a time, or both. `None` is wrong syntax.
///
/// `year_first_is_ymd`: a number of four digits in front is followed by month and day whatever `order` says, which holds for
/// the types since 2008 but not for `datetime`.
pub(in super::super) fn parse(text: &str, order: DateFormat, year_first_is_ymd: bool) -> Option<Parsed> {
    let text = unwrap_odbc(text.trim_matches(|c: char| c.is_ascii_whitespace()))?;
    let mut reader = Reader { rest: text, parsed: Parsed::default(), numbers: Vec::new(), month: None };
    reader.read()?;
    let Reader { mut parsed, numbers, month, .. } = reader;
    parsed.day = match month {
        Some(month) => Some(day_with_month(&numbers, month)?),
        None if numbers.is_empty() => None,
        None => Some(day_of_numbers(&numbers, order, year_first_is_ymd)?),
    };
    Some(parsed)
}

/// `{ts '...'}`, `{d '...'}`, `{t '...'}`.
fn unwrap_odbc(text: &str) -> Option<&str> {
    let Some(inner) = text.strip_prefix('{') else { return Some(text) };
    let inner = inner.strip_suffix('}')?.trim();
    let quoted = inner.trim_start_matches(|c: char| c.is_ascii_alphabetic()).trim();
    quoted.strip_prefix('\'')?.strip_suffix('\'')
}

struct Reader<'a> {
    rest: &'a str,
    parsed: Parsed,
    /// Value and digits of each number of the date.
    numbers: Vec<(u32, usize)>,
    month: Option<u32>,
}

impl<'a> Reader<'a> {
    fn read(&mut self) -> Option<()> {
        while let Some(first) = self.rest.chars().next() {
            if first.is_ascii_digit() {
                self.number()?;
            } else if first.is_ascii_alphabetic() {
                self.word()?;
            } else if matches!(first, ' ' | ',' | '/' | '-' | '.' | '\t') {
                self.rest = &self.rest[1..];
            } else {
                return None;
            }
        }
        Some(())
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !wanted(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn digits(&mut self) -> Option<(u32, usize)> {
        let digits = self.take_while(|c| c.is_ascii_digit());
        Some((digits.parse().ok()?, digits.len()))
    }

    fn number(&mut self) -> Option<()> {
        let (value, digits) = self.digits()?;
        if self.rest.starts_with(':') {
            return self.clock(value);
        }
        if let Some(hour) = self.half_day(value) {
            self.set_clock((hour, 0, 0))?;
            return self.offset();
        }
        if self.numbers.len() == 3 {
            return None;
        }
        self.numbers.push((value, digits));
        Some(())
    }

    fn word(&mut self) -> Option<()> {
        let word = self.take_while(|c| c.is_ascii_alphabetic());
        if word.eq_ignore_ascii_case("T")
            && !self.numbers.is_empty()
            && self.rest.starts_with(|c: char| c.is_ascii_digit())
        {
            return Some(());
        }
        let position = MONTHS
            .iter()
            .position(|month| month.eq_ignore_ascii_case(word) || month[..3].eq_ignore_ascii_case(word))?;
        let month = u32::try_from(position + 1).ok()?;
        self.month.replace(month).is_none().then_some(())
    }

    fn set_clock(&mut self, clock: (u32, u32, u32)) -> Option<()> {
        self.parsed.clock.replace(clock).is_none().then_some(())
    }

    /// `hh:mm[:ss[.fraction]] [AM|PM] [offset]`; the cursor is at the first colon.
    fn clock(&mut self, hour: u32) -> Option<()> {
        self.rest = self.rest.strip_prefix(':')?;
        let (minute, _) = self.digits()?;
        let mut second = 0;
        if let Some(rest) = self.rest.strip_prefix(':') {
            self.rest = rest;
            second = self.digits()?.0;
        }
        if self.rest.starts_with(['.', ':']) {
            let colon = self.rest.starts_with(':');
            self.rest = &self.rest[1..];
            self.fraction(colon)?;
        }
        let hour = self.half_day(hour).unwrap_or(hour);
        self.set_clock((hour, minute, second))?;
        self.offset()
    }

    /// Digits behind the second; behind a colon they are thousandths.
    fn fraction(&mut self, thousandths: bool) -> Option<()> {
        let digits = self.take_while(|c| c.is_ascii_digit());
        if digits.is_empty() || digits.len() > if thousandths { 3 } else { 7 } {
            return None;
        }
        let padded = if thousandths { format!("{digits:0>3}0000") } else { format!("{digits:0<7}") };
        self.parsed.fraction = padded.parse().ok()?;
        self.parsed.fraction_digits = digits.len();
        Some(())
    }

    /// The hour of a following AM or PM.
    fn half_day(&mut self, hour: u32) -> Option<u32> {
        let rest = self.rest.trim_start_matches(' ');
        let word = rest.get(..2)?;
        let afternoon = word.eq_ignore_ascii_case("PM");
        if !afternoon && !word.eq_ignore_ascii_case("AM") || rest[2..].starts_with(|c: char| c.is_ascii_alphabetic()) {
            return None;
        }
        self.rest = &rest[2..];
        Some(match (afternoon, hour) {
            (false, 12) => 0,
            (true, 1..=11) => hour + 12,
            _ => hour,
        })
    }

    /// `Z` or `+hh:mm` behind a time.
    fn offset(&mut self) -> Option<()> {
        let rest = self.rest.trim_start_matches(' ');
        if let Some(rest) = rest.strip_prefix(['Z', 'z']) {
            self.rest = rest;
            self.parsed.offset_minutes = Some(0);
            return Some(());
        }
        let negative = rest.starts_with('-');
        if !negative && !rest.starts_with('+') {
            return Some(());
        }
        self.rest = &rest[1..];
        let (hours, _) = self.digits()?;
        self.rest = self.rest.strip_prefix(':')?;
        let (minutes, _) = self.digits()?;
        let total = i16::try_from(hours.checked_mul(60)?.checked_add(minutes)?).ok()?;
        (minutes < 60 && total <= 840).then_some(())?;
        self.parsed.offset_minutes = Some(if negative { -total } else { total });
        self.parsed.numeric_offset = true;
        Some(())
    }
}

/// A year of up to two digits belongs to 1950 to 2049 (two digit year cutoff).
fn full_year((value, digits): (u32, usize)) -> Option<i32> {
    let year = i32::try_from(value).ok()?;
    match digits {
        1 | 2 => Some(if year < 50 { 2000 + year } else { 1900 + year }),
        4 => Some(year),
        _ => None,
    }
}

/// `15 April 2003`, `April 15, 2003`, `2003 April 15`, `April 2003`.
fn day_with_month(numbers: &[(u32, usize)], month: u32) -> Option<(i32, u32, u32)> {
    match numbers {
        [year] => Some((full_year(*year)?, month, 1)),
        [year, day] if year.1 == 4 => Some((full_year(*year)?, month, day.0)),
        [day, year] => Some((full_year(*year)?, month, day.0)),
        _ => None,
    }
}

fn day_of_numbers(numbers: &[(u32, usize)], order: DateFormat, year_first_is_ymd: bool) -> Option<(i32, u32, u32)> {
    match *numbers {
        [(value, 8)] => Some((i32::try_from(value / 10_000).ok()?, value / 100 % 100, value % 100)),
        [(value, 6)] => Some((full_year((value / 10_000, 2))?, value / 100 % 100, value % 100)),
        [year @ (_, 4)] => Some((full_year(year)?, 1, 1)),
        [first, second, third] => {
            let order = match order {
                _ if first.1 == 4 && year_first_is_ymd => DateFormat::Ymd,
                DateFormat::Dmy | DateFormat::Dym | DateFormat::Ydm if first.1 == 4 => DateFormat::Ydm,
                _ if first.1 == 4 => DateFormat::Ymd,
                DateFormat::Ymd | DateFormat::Myd if third.1 == 4 => DateFormat::Mdy,
                DateFormat::Ydm | DateFormat::Dym if third.1 == 4 => DateFormat::Dmy,
                other => other,
            };
            let (year, month, day) = match order {
                DateFormat::Mdy => (third, first, second),
                DateFormat::Dmy => (third, second, first),
                DateFormat::Ymd => (first, second, third),
                DateFormat::Ydm => (first, third, second),
                DateFormat::Myd => (second, first, third),
                DateFormat::Dym => (second, third, first),
            };
            (month.1 <= 2 && day.1 <= 2).then_some(())?;
            Some((full_year(year)?, month.0, day.0))
        }
        _ => None,
    }
}
