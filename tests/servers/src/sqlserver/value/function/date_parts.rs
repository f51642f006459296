//! Parts of dates, adding to them, counting boundaries between them.

use super::super::ValueError;
use super::super::temporal::{
    CalendarDay, Clock, DateTime2, LAST_DAY, TICKS_PER_DAY, TICKS_PER_MINUTE, TICKS_PER_SECOND, days_in_month, weekday,
};

/// The first argument of DATEADD and its kin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DatePart {
    Year,
    Quarter,
    Month,
    DayOfYear,
    Day,
    Week,
    Weekday,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
    TimeZoneOffset,
    IsoWeek,
}

impl DatePart {
    /// Reads a name or an abbreviation; `function` is named in error 155.
    pub(super) fn parse(word: &str, function: &str) -> Result<Self, ValueError> {
        Ok(match word.to_ascii_lowercase().as_str() {
            "year" | "yy" | "yyyy" => Self::Year,
            "quarter" | "qq" | "q" => Self::Quarter,
            "month" | "mm" | "m" => Self::Month,
            "dayofyear" | "dy" | "y" => Self::DayOfYear,
            "day" | "dd" | "d" => Self::Day,
            "week" | "wk" | "ww" => Self::Week,
            "weekday" | "dw" | "w" => Self::Weekday,
            "hour" | "hh" => Self::Hour,
            "minute" | "mi" | "n" => Self::Minute,
            "second" | "ss" | "s" => Self::Second,
            "millisecond" | "ms" => Self::Millisecond,
            "microsecond" | "mcs" => Self::Microsecond,
            "nanosecond" | "ns" => Self::Nanosecond,
            "tzoffset" | "tz" => Self::TimeZoneOffset,
            "iso_week" | "isowk" | "isoww" => Self::IsoWeek,
            _ => {
                return Err(ValueError::syntax(
                    155,
                    1,
                    format!("'{word}' is not a recognized {} option.", function.to_ascii_lowercase()),
                ));
            }
        })
    }

    /// The full name, for messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Year => "year",
            Self::Quarter => "quarter",
            Self::Month => "month",
            Self::DayOfYear => "dayofyear",
            Self::Day => "day",
            Self::Week => "week",
            Self::Weekday => "weekday",
            Self::Hour => "hour",
            Self::Minute => "minute",
            Self::Second => "second",
            Self::Millisecond => "millisecond",
            Self::Microsecond => "microsecond",
            Self::Nanosecond => "nanosecond",
            Self::TimeZoneOffset => "tzoffset",
            Self::IsoWeek => "iso_week",
        }
    }

    /// Hours and shorter parts.
    pub(super) fn is_time(self) -> bool {
        matches!(
            self,
            Self::Hour | Self::Minute | Self::Second | Self::Millisecond | Self::Microsecond | Self::Nanosecond
        )
    }

    /// Months in the part, for the parts that have no fixed length.
    fn months(self) -> Option<i64> {
        match self {
            Self::Year => Some(12),
            Self::Quarter => Some(3),
            Self::Month => Some(1),
            _ => None,
        }
    }

    /// 100 ns ticks in the part; for nanoseconds see [`add`] and [`difference`].
    fn ticks(self) -> u64 {
        match self {
            Self::Week => 7 * TICKS_PER_DAY,
            Self::Hour => 60 * TICKS_PER_MINUTE,
            Self::Minute => TICKS_PER_MINUTE,
            Self::Second => TICKS_PER_SECOND,
            Self::Millisecond => 10_000,
            Self::Microsecond => 10,
            Self::Nanosecond => 1,
            _ => TICKS_PER_DAY,
        }
    }
}

/// `value` and `count` parts; `None` outside of the years 1 to 9999. A day that the month does not have becomes its last.
pub(super) fn add(value: DateTime2, part: DatePart, count: i64) -> Option<DateTime2> {
    let Some(months) = part.months() else {
        let ticks = match part {
            DatePart::Nanosecond => i128::from(count) / 100,
            _ => i128::from(count) * i128::from(part.ticks()),
        };
        return DateTime2::from_total_ticks(value.total_ticks() + ticks);
    };
    let CalendarDay { year, month, day } = CalendarDay::of(value.days);
    let total = i64::from(year) * 12 + i64::from(month) - 1 + count.checked_mul(months)?;
    let year = i32::try_from(total.div_euclid(12)).ok()?;
    let month = u32::try_from(total.rem_euclid(12)).ok()? + 1;
    let days = CalendarDay { year, month, day: day.min(days_in_month(year, month)) }.days()?;
    (0..=LAST_DAY).contains(&days).then_some(DateTime2 { days, ticks: value.ticks })
}

/// Boundaries of the part between two values; weeks begin on Sunday whatever DATEFIRST says.
pub(super) fn difference(part: DatePart, start: DateTime2, end: DateTime2) -> i128 {
    let months = |value: DateTime2| {
        let day = CalendarDay::of(value.days);
        i128::from(day.year) * 12 + i128::from(day.month) - 1
    };
    match part {
        DatePart::Year | DatePart::Quarter | DatePart::Month => {
            let unit = i128::from(part.months().unwrap_or(1));
            months(end).div_euclid(unit) - months(start).div_euclid(unit)
        }
        DatePart::Week => {
            // Day 0 is a Monday, so the Sundays are one day behind the multiples of seven.
            let weeks = |value: DateTime2| i128::from((value.days + 1).div_euclid(7));
            weeks(end) - weeks(start)
        }
        DatePart::Nanosecond => (end.total_ticks() - start.total_ticks()) * 100,
        _ => {
            let unit = i128::from(part.ticks());
            end.total_ticks().div_euclid(unit) - start.total_ticks().div_euclid(unit)
        }
    }
}

/// The number of a part.
pub(super) fn number(part: DatePart, value: DateTime2, offset_minutes: i16, date_first: u8) -> i32 {
    let day = CalendarDay::of(value.days);
    let clock = Clock::of(value.ticks);
    let first = i32::from(date_first);
    let month = i32::try_from(day.month).unwrap_or(0);
    let small = |value: u32| i32::try_from(value).unwrap_or(0);
    match part {
        DatePart::Year => day.year,
        DatePart::Quarter => (month + 2) / 3,
        DatePart::Month => month,
        DatePart::DayOfYear => day.day_of_year(),
        DatePart::Day => small(day.day),
        DatePart::Week => {
            let january_first = value.days - day.day_of_year() + 1;
            let lead = (weekday(january_first) - first).rem_euclid(7);
            (day.day_of_year() - 1 + lead) / 7 + 1
        }
        DatePart::Weekday => (weekday(value.days) - first).rem_euclid(7) + 1,
        DatePart::Hour => small(clock.hour),
        DatePart::Minute => small(clock.minute),
        DatePart::Second => small(clock.second),
        DatePart::Millisecond => small(clock.fraction / 10_000),
        DatePart::Microsecond => small(clock.fraction / 10),
        DatePart::Nanosecond => small(clock.fraction * 100),
        DatePart::TimeZoneOffset => i32::from(offset_minutes),
        DatePart::IsoWeek => {
            // A week belongs to the year of its Thursday.
            let thursday = value.days + 4 - weekday(value.days);
            (CalendarDay::of(thursday).day_of_year() - 1) / 7 + 1
        }
    }
}

pub(super) const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
