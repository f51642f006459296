//! Date and time values and calendar arithmetic.

/// Ticks of 100 ns in a day.
pub(super) const TICKS_PER_DAY: u64 = 864_000_000_000;
/// Days from 0001-01-01 to 1900-01-01, the epoch of `datetime`.
pub(super) const DAYS_TO_1900: i32 = 693_595;
/// Day number of 9999-12-31.
pub(super) const LAST_DAY: i32 = 3_652_058;

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
