//! Texts of dates and times ("Date and time styles" of CAST and CONVERT).

use super::super::temporal::{CalendarDay, Clock, DateTime2};
use super::super::{SqlType, Value, ValueError};

pub(in super::super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// What a value has to show.
struct Parts {
    day: Option<CalendarDay>,
    clock: Option<Clock>,
    /// Digits of the second's fraction with their separator for the styles that use `:` for `datetime`.
    fraction: String,
    legacy: bool,
    offset_minutes: Option<i16>,
}

/// The text of a date or time in `style`; without style 0 for `datetime` and `smalldatetime`, 121 for the others.
pub(super) fn format(value: &Value, from: &SqlType, to: &SqlType, style: Option<i32>) -> Result<String, ValueError> {
    let legacy = matches!(from, SqlType::DateTime | SqlType::SmallDateTime);
    let style = style.unwrap_or(if legacy { 0 } else { 121 });
    let parts = parts(value, from, style, legacy).ok_or_else(|| ValueError::not_allowed_explicitly(from, to))?;
    let (date, time) = pattern(style).ok_or_else(|| {
        let text =
            format!("{style} is not a valid style number when converting from {} to a character string.", from.name());
        ValueError::new(281, 1, text)
    })?;
    let day = parts.day.map(|day| date_text(day, date)).filter(|text| !text.is_empty());
    let clock = parts.clock.map(|clock| clock_text(clock, &parts, time)).filter(|text| !text.is_empty());
    let separator = if matches!(style, 126 | 127) { "T" } else { " " };
    let mut text = match (day, clock) {
        (Some(day), Some(clock)) => format!("{day}{separator}{clock}"),
        (Some(only), None) | (None, Some(only)) => only,
        (None, None) => {
            let text =
                format!("The style {style} is not supported for conversions from {} to {}.", from.name(), to.name());
            return Err(ValueError::new(9809, 1, text));
        }
    };
    // The offset belongs to the time of day.
    if let Some(offset) = parts.offset_minutes.filter(|_| time != TimePattern::None) {
        text.push_str(&offset_text(offset, style));
    }
    Ok(text)
}

fn parts(value: &Value, from: &SqlType, style: i32, legacy: bool) -> Option<Parts> {
    let mut parts = Parts { day: None, clock: None, fraction: String::new(), legacy, offset_minutes: None };
    let full = match value {
        Value::Date(date) => {
            parts.day = Some(CalendarDay::of(date.days));
            return Some(parts);
        }
        Value::Time(time) => {
            parts.clock = Some(Clock::of(time.ticks));
            parts.fraction = fraction_digits(Clock::of(time.ticks).fraction, from.scale());
            return Some(parts);
        }
        Value::DateTime2(value) => *value,
        Value::DateTimeOffset(value) => {
            parts.offset_minutes = Some(value.offset_minutes);
            if style == 127 { value.utc } else { value.local()? }
        }
        Value::DateTime(value) => value.to_datetime2(),
        Value::SmallDateTime(value) => value.to_datetime2(),
        _ => return None,
    };
    let DateTime2 { days, ticks } = full;
    parts.day = Some(CalendarDay::of(days));
    parts.clock = Some(Clock::of(ticks));
    parts.fraction = match value {
        Value::DateTime(value) => {
            // Thousandths are rounded from the ticks, not from the 100 ns value.
            parts.clock = Some(Clock::of(u64::from(value.milliseconds()) * 10_000));
            let thousandths = value.milliseconds() % 1000;
            if thousandths == 0 && matches!(style, 126 | 127) { String::new() } else { format!("{thousandths:03}") }
        }
        Value::SmallDateTime(_) if matches!(style, 126 | 127) => String::new(),
        Value::SmallDateTime(_) => String::from("000"),
        _ => fraction_digits(Clock::of(ticks).fraction, from.scale()),
    };
    Some(parts)
}

fn fraction_digits(fraction: u32, scale: u8) -> String {
    let digits = format!("{fraction:07}");
    digits[..usize::from(scale.min(7))].to_owned()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DatePattern {
    None,
    MonthDayYear,
    Numbers { order: [Part; 3], separator: &'static str },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Year,
    ShortYear,
    Month,
    MonthName,
    Day,
    /// The day with a comma behind it.
    DayComma,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TimePattern {
    None,
    /// `hh:miAM`
    Minutes12,
    /// `hh:mi:ss AM`
    Seconds12,
    /// `hh:mi:ss:mmmAM`
    Fraction12,
    /// `hh:mi:ss`
    Seconds24,
    /// `hh:mi:ss:mmm`
    ColonFraction24,
    /// `hh:mi:ss.mmm`
    PointFraction24,
}

fn pattern(style: i32) -> Option<(DatePattern, TimePattern)> {
    use Part::{Day, DayComma, Month, MonthName, ShortYear, Year};
    use TimePattern::{ColonFraction24, Fraction12, Minutes12, None as NoTime, PointFraction24, Seconds12, Seconds24};
    let year = if style >= 100 { Year } else { ShortYear };
    let numbers = |order, separator| DatePattern::Numbers { order, separator };
    let iso = numbers([Year, Month, Day], "-");
    Some(match style {
        0 | 100 => (DatePattern::MonthDayYear, Minutes12),
        1 | 101 => (numbers([Month, Day, year], "/"), NoTime),
        2 | 102 => (numbers([year, Month, Day], "."), NoTime),
        3 | 103 => (numbers([Day, Month, year], "/"), NoTime),
        4 | 104 => (numbers([Day, Month, year], "."), NoTime),
        5 | 105 => (numbers([Day, Month, year], "-"), NoTime),
        6 | 106 => (numbers([Day, MonthName, year], " "), NoTime),
        7 | 107 => (numbers([MonthName, DayComma, year], " "), NoTime),
        8 | 24 | 108 => (DatePattern::None, Seconds24),
        9 | 109 => (DatePattern::MonthDayYear, Fraction12),
        10 | 110 => (numbers([Month, Day, year], "-"), NoTime),
        11 | 111 => (numbers([year, Month, Day], "/"), NoTime),
        12 | 112 => (numbers([year, Month, Day], ""), NoTime),
        13 | 113 => (numbers([Day, MonthName, Year], " "), ColonFraction24),
        14 | 114 => (DatePattern::None, ColonFraction24),
        20 | 120 => (iso, Seconds24),
        21 | 25 | 121 | 126 | 127 => (iso, PointFraction24),
        22 => (numbers([Month, Day, ShortYear], "/"), Seconds12),
        23 => (iso, NoTime),
        _ => return None,
    })
}

fn date_text(day: CalendarDay, pattern: DatePattern) -> String {
    let CalendarDay { year, month, day } = day;
    let name = &MONTHS[usize::try_from(month - 1).unwrap_or(0)][..3];
    match pattern {
        DatePattern::None => String::new(),
        DatePattern::MonthDayYear => format!("{name} {day:>2} {year:04}"),
        DatePattern::Numbers { order, separator } => {
            let parts = order.map(|part| match part {
                Part::Year => format!("{year:04}"),
                Part::ShortYear => format!("{:02}", year % 100),
                Part::Month => format!("{month:02}"),
                Part::MonthName => name.to_owned(),
                Part::Day => format!("{day:02}"),
                Part::DayComma => format!("{day:02},"),
            });
            parts.join(separator)
        }
    }
}

fn clock_text(clock: Clock, parts: &Parts, pattern: TimePattern) -> String {
    let Clock { hour, minute, second, .. } = clock;
    let half_day = if hour < 12 { "AM" } else { "PM" };
    let hour12 = if hour % 12 == 0 { 12 } else { hour % 12 };
    let fraction = |separator: &str| match parts.fraction.as_str() {
        "" => String::new(),
        digits => format!("{separator}{digits}"),
    };
    // The newer types have a point where `datetime` has a colon.
    let colon = if parts.legacy { ":" } else { "." };
    match pattern {
        TimePattern::None => String::new(),
        TimePattern::Minutes12 => format!("{hour12:>2}:{minute:02}{half_day}"),
        TimePattern::Seconds12 => format!("{hour12:>2}:{minute:02}:{second:02} {half_day}"),
        TimePattern::Fraction12 => format!("{hour12:>2}:{minute:02}:{second:02}{}{half_day}", fraction(colon)),
        TimePattern::Seconds24 => format!("{hour:02}:{minute:02}:{second:02}"),
        TimePattern::ColonFraction24 => format!("{hour:02}:{minute:02}:{second:02}{}", fraction(colon)),
        TimePattern::PointFraction24 => format!("{hour:02}:{minute:02}:{second:02}{}", fraction(".")),
    }
}

fn offset_text(offset_minutes: i16, style: i32) -> String {
    if style == 127 {
        return String::from("Z");
    }
    let sign = if offset_minutes < 0 { '-' } else { '+' };
    let space = if style == 126 { "" } else { " " };
    let minutes = offset_minutes.unsigned_abs();
    format!("{space}{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}
