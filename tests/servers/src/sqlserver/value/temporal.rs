//! Date and time values and calendar arithmetic.

/// 100 ns ticks in a second.
pub(super) const TICKS_PER_SECOND: u64 = 10_000_000;
/// 100 ns ticks in a minute.
pub(super) const TICKS_PER_MINUTE: u64 = 60 * TICKS_PER_SECOND;
/// 100 ns ticks in a day.
pub(super) const TICKS_PER_DAY: u64 = 86_400 * TICKS_PER_SECOND;
/// Days from 0001-01-01 to 1900-01-01, the epoch of `datetime`.
pub(super) const DAYS_TO_1900: i32 = 693_595;
/// Day number of 9999-12-31.
pub(super) const LAST_DAY: i32 = 3_652_058;
/// First day of `datetime`, 1753-01-01, counted from 1900-01-01.
pub(super) const FIRST_DATETIME_DAY: i32 = -53_690;
/// Days of 1/300 s.
pub(super) const DATETIME_TICKS_PER_DAY: i64 = 25_920_000;

/// `date`: days since 0001-01-01, 0 to 3652058.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    /// Days since 0001-01-01 in the proleptic Gregorian calendar.
    pub days: i32,
}

/// `time(n)`: 100 ns ticks since midnight, whatever the scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    /// 0 to 863,999,999,999.
    pub ticks: u64,
}

/// `datetime2(n)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DateTime2 {
    /// Days since 0001-01-01.
    pub days: i32,
    /// 100 ns ticks since midnight, whatever the scale.
    pub ticks: u64,
}

/// `datetimeoffset(n)`: the instant in UTC and the offset that was given with it.
#[derive(Debug, Clone, Copy)]
pub struct DateTimeOffset {
    /// The instant in UTC.
    pub utc: DateTime2,
    /// -840 to 840.
    pub offset_minutes: i16,
}

/// Two values are equal if their instants are, as SQL Server compares them.
impl PartialEq for DateTimeOffset {
    fn eq(&self, other: &Self) -> bool {
        self.utc == other.utc
    }
}

impl Eq for DateTimeOffset {}

/// `datetime`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DateTime {
    /// Days since 1900-01-01, -53690 to 2958463.
    pub days: i32,
    /// 1/300 s since midnight, 0 to 25,919,999.
    pub ticks: u32,
}

/// `smalldatetime`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SmallDateTime {
    /// Days since 1900-01-01.
    pub days: u16,
    /// Minutes since midnight, 0 to 1439.
    pub minutes: u16,
}

/// Order of day, month and year in texts such as `01/02/2003` (SET DATEFORMAT).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DateFormat {
    /// The default of us_english.
    #[default]
    Mdy,
    /// Day first.
    Dmy,
    /// Year first.
    Ymd,
    /// Year, day, month.
    Ydm,
    /// Month, year, day.
    Myd,
    /// Day, year, month.
    Dym,
}

/// A day in the proleptic Gregorian calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CalendarDay {
    /// 1 to 9999.
    pub(super) year: i32,
    /// 1 to 12.
    pub(super) month: u32,
    /// 1 to 31.
    pub(super) day: u32,
}

/// A time of day in its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Clock {
    pub(super) hour: u32,
    pub(super) minute: u32,
    pub(super) second: u32,
    /// 100 ns ticks within the second.
    pub(super) fraction: u32,
}

#[allow(clippy::cast_possible_truncation, reason = "every quotient is below its unit's count in a day")]
impl Clock {
    pub(super) fn of(ticks: u64) -> Self {
        let seconds = ticks / TICKS_PER_SECOND;
        Self {
            hour: (seconds / 3600) as u32,
            minute: (seconds / 60 % 60) as u32,
            second: (seconds % 60) as u32,
            fraction: (ticks % TICKS_PER_SECOND) as u32,
        }
    }

    /// Ticks since midnight; `None` if a part is out of range.
    pub(super) fn ticks(self) -> Option<u64> {
        let valid =
            self.hour < 24 && self.minute < 60 && self.second < 60 && u64::from(self.fraction) < TICKS_PER_SECOND;
        let seconds = u64::from(self.hour) * 3600 + u64::from(self.minute) * 60 + u64::from(self.second);
        valid.then(|| seconds * TICKS_PER_SECOND + u64::from(self.fraction))
    }
}

/// Whether February has 29 days.
fn is_leap(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Days of a month.
pub(super) fn days_in_month(year: i32, month: u32) -> u32 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl CalendarDay {
    /// The day of a day number since 0001-01-01.
    pub(super) fn of(days: i32) -> Self {
        // Years of 365.2425 days; the estimate is off by at most one.
        let mut year = i32::try_from(i64::from(days) * 400 / 146_097).unwrap_or(0) + 1;
        while days_before_year(year) > days {
            year -= 1;
        }
        while days_before_year(year + 1) <= days {
            year += 1;
        }
        let mut rest = u32::try_from(days - days_before_year(year)).unwrap_or(0);
        let mut month = 1;
        while rest >= days_in_month(year, month) {
            rest -= days_in_month(year, month);
            month += 1;
        }
        Self { year, month, day: rest + 1 }
    }

    /// The day number; `None` if there is no such day in the years 1 to 9999.
    pub(super) fn days(self) -> Option<i32> {
        let valid = (1..=9999).contains(&self.year)
            && (1..=12).contains(&self.month)
            && (1..=days_in_month(self.year, self.month)).contains(&self.day);
        let before: u32 = (1..self.month.min(13)).map(|month| days_in_month(self.year, month)).sum();
        valid.then(|| days_before_year(self.year) + i32::try_from(before + self.day).unwrap_or(0) - 1)
    }

    /// Day of the year, from 1.
    pub(super) fn day_of_year(self) -> i32 {
        let before: u32 = (1..self.month).map(|month| days_in_month(self.year, month)).sum();
        i32::try_from(before + self.day).unwrap_or(0)
    }
}

fn days_before_year(year: i32) -> i32 {
    let past = year - 1;
    past * 365 + past / 4 - past / 100 + past / 400
}

/// Day of the week of a day number, 1 = Monday ... 7 = Sunday. 0001-01-01 was a Monday.
pub(super) fn weekday(days: i32) -> i32 {
    days.rem_euclid(7) + 1
}

/// Rounds a tick count to `scale` digits of a second. The result may be a whole day.
pub(super) fn round_ticks(ticks: u64, scale: u8) -> u64 {
    let unit = 10_u64.pow(u32::from(7 - scale.min(7)));
    (ticks + unit / 2) / unit * unit
}

impl Time {
    /// The time at `scale`; one that rounds to midnight stays within the day, as SQL Server's `time` wraps to 00:00.
    #[must_use]
    pub fn at_scale(self, scale: u8) -> Self {
        Self { ticks: round_ticks(self.ticks, scale) % TICKS_PER_DAY }
    }
}

impl DateTime2 {
    /// The value at `scale`; `None` if it rounds past the year 9999.
    #[must_use]
    pub fn at_scale(self, scale: u8) -> Option<Self> {
        let ticks = round_ticks(self.ticks, scale);
        if ticks < TICKS_PER_DAY {
            return Some(Self { days: self.days, ticks });
        }
        (self.days < LAST_DAY).then(|| Self { days: self.days + 1, ticks: 0 })
    }

    /// 100 ns ticks since 0001-01-01.
    #[must_use]
    pub fn total_ticks(self) -> i128 {
        i128::from(self.days) * i128::from(TICKS_PER_DAY) + i128::from(self.ticks)
    }

    /// The value of [`total_ticks`](Self::total_ticks); `None` outside of the years 1 to 9999.
    #[must_use]
    pub fn from_total_ticks(ticks: i128) -> Option<Self> {
        let per_day = i128::from(TICKS_PER_DAY);
        let days = i32::try_from(ticks.div_euclid(per_day)).ok().filter(|days| (0..=LAST_DAY).contains(days))?;
        Some(Self { days, ticks: u64::try_from(ticks.rem_euclid(per_day)).ok()? })
    }
}

impl DateTimeOffset {
    /// The local date and time that were written; `None` outside of the years 1 to 9999.
    #[must_use]
    pub fn local(self) -> Option<DateTime2> {
        DateTime2::from_total_ticks(
            self.utc.total_ticks() + i128::from(self.offset_minutes) * i128::from(TICKS_PER_MINUTE),
        )
    }

    /// The value of a local date and time; `None` if the instant is outside of the years 1 to 9999.
    #[must_use]
    pub fn from_local(local: DateTime2, offset_minutes: i16) -> Option<Self> {
        let utc = local.total_ticks() - i128::from(offset_minutes) * i128::from(TICKS_PER_MINUTE);
        Some(Self { utc: DateTime2::from_total_ticks(utc)?, offset_minutes })
    }
}

impl DateTime {
    /// The value with its parts carried; `None` outside of 1753 to 9999.
    #[must_use]
    pub fn from_total_ticks(ticks: i64) -> Option<Self> {
        let days = i32::try_from(ticks.div_euclid(DATETIME_TICKS_PER_DAY)).ok()?;
        let in_range = (FIRST_DATETIME_DAY..=LAST_DAY - DAYS_TO_1900).contains(&days);
        let ticks = u32::try_from(ticks.rem_euclid(DATETIME_TICKS_PER_DAY)).ok()?;
        in_range.then_some(Self { days, ticks })
    }

    /// 1/300 s since 1900-01-01.
    #[must_use]
    pub fn total_ticks(self) -> i64 {
        i64::from(self.days) * DATETIME_TICKS_PER_DAY + i64::from(self.ticks)
    }

    /// The nearest `datetime`; `None` outside of 1753 to 9999.
    #[must_use]
    pub fn from_datetime2(value: DateTime2) -> Option<Self> {
        // 100 ns * 3 / 100,000 = 1/300 s.
        let ticks = i64::try_from((value.ticks * 3 + 50_000) / 100_000).ok()?;
        Self::from_total_ticks(i64::from(value.days - DAYS_TO_1900) * DATETIME_TICKS_PER_DAY + ticks)
    }

    /// The value to the 100 ns; since SQL Server 2016 the thirds of a millisecond count.
    #[must_use]
    pub fn to_datetime2(self) -> DateTime2 {
        DateTime2 { days: self.days + DAYS_TO_1900, ticks: (u64::from(self.ticks) * 100_000 + 1) / 3 }
    }

    /// Milliseconds since midnight as SQL Server prints them, ending in 0, 3 or 7.
    #[must_use]
    pub fn milliseconds(self) -> u32 {
        (self.ticks * 10 + 1) / 3
    }
}

impl SmallDateTime {
    /// The nearest minute; `None` outside of 1900-01-01 to 2079-06-06.
    #[must_use]
    pub fn from_datetime2(value: DateTime2) -> Option<Self> {
        let minutes = (value.ticks + TICKS_PER_MINUTE / 2) / TICKS_PER_MINUTE;
        let days = value.days - DAYS_TO_1900 + i32::from(minutes == 1440);
        Some(Self { days: u16::try_from(days).ok()?, minutes: u16::try_from(minutes % 1440).ok()? })
    }

    /// The value as `datetime2`.
    #[must_use]
    pub fn to_datetime2(self) -> DateTime2 {
        DateTime2 { days: i32::from(self.days) + DAYS_TO_1900, ticks: u64::from(self.minutes) * TICKS_PER_MINUTE }
    }
}
