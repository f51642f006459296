//! Windows: durations, the authored window and the frozen half-open UTC interval (contract.md 10).
//!
//! A window is resolved against the caller's interval end only. There is no clock here, so the same manifest and interval
//! always give the same bounds.

use crate::canon::{Json, legacy_digest};
use crate::civil::{Instant, MICROS_PER_SECOND};
use crate::code;
use crate::digest::Digest;
use crate::error::Refusal;
use crate::mapping::valid_identifier;
use crate::port::source::FrozenWindow;

/// The most boundaries that a rolling window's fingerprint spans.
pub const MAX_CHUNKS: u128 = 100_000;

/// Longest duration: 999,999,999 days, in microseconds.
const MAX_DURATION_MICROS: u128 = 999_999_999 * 86_400 * MICROS_PER_SECOND as u128 + 86_399_999_999;

const KEYS: [&str; 5] = ["column", "anchor", "lookback", "chunk_interval", "timezone"];
const REQUIRED: [&str; 3] = ["column", "anchor", "lookback"];

/// A positive fixed duration in microseconds. There are no months or years: their length depends on a calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u128);

impl Duration {
    /// Reads `P[nD][T[nH][nM][n[.n{1,6}]S]]`.
    ///
    /// # Errors
    /// `rolling_window_duration_invalid`, `rolling_window_duration_nonpositive`, `rolling_window_duration_out_of_range`.
    pub fn parse(text: &str) -> Result<Duration, Refusal> {
        let micros = duration_micros(text).ok_or_else(|| {
            Refusal::new(code::DURATION_INVALID, "use a positive fixed ISO-8601 duration such as P1D or PT6H")
        })?;
        match micros {
            0 => Err(Refusal::new(code::DURATION_NONPOSITIVE, "a window's duration must be longer than nothing")),
            1..=MAX_DURATION_MICROS => Ok(Duration(micros)),
            _ => Err(Refusal::new(code::DURATION_OUT_OF_RANGE, "a duration is at most 999,999,999 days")),
        }
    }

    /// The duration in microseconds.
    pub fn micros(self) -> u128 {
        self.0
    }
}

/// The microseconds of a duration text; saturated where they pass 128 bits; `None` for another grammar.
fn duration_micros(text: &str) -> Option<u128> {
    const SECOND: u128 = MICROS_PER_SECOND as u128;
    let rest = text.strip_prefix('P')?;
    let (date, time) = match rest.split_once('T') {
        Some((date, time)) if !time.is_empty() => (date, time),
        Some(_) => return None,
        None => (rest, ""),
    };
    if date.is_empty() && time.is_empty() {
        return None;
    }
    let days = if date.is_empty() { 0 } else { whole(date.strip_suffix('D')?)? };
    let (hours, time) = unit(time, 'H')?;
    let (minutes, time) = unit(time, 'M')?;
    let seconds = if time.is_empty() { 0 } else { seconds_micros(time.strip_suffix('S')?)? };
    let whole = [(days, 86_400 * SECOND), (hours, 3600 * SECOND), (minutes, 60 * SECOND)];
    Some(whole.iter().fold(seconds, |sum, (count, unit)| sum.saturating_add(count.saturating_mul(*unit))))
}

/// Splits `n` and the letter off the front, if the letter occurs.
fn unit(text: &str, letter: char) -> Option<(u128, &str)> {
    match text.split_once(letter) {
        Some((count, rest)) => Some((whole(count)?, rest)),
        None => Some((0, text)),
    }
}

fn whole(digits: &str) -> Option<u128> {
    let all = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| digits.parse().unwrap_or(u128::MAX))
}

fn seconds_micros(text: &str) -> Option<u128> {
    let (seconds, fraction) = match text.split_once('.') {
        Some((seconds, fraction)) if (1..=6).contains(&fraction.len()) => (seconds, whole(fraction)? * power(fraction)),
        Some(_) => return None,
        None => (text, 0),
    };
    Some(whole(seconds)?.saturating_mul(MICROS_PER_SECOND as u128).saturating_add(fraction))
}

/// What one unit of a fraction's last digit is in microseconds.
fn power(fraction: &str) -> u128 {
    10u128.pow(6u32.saturating_sub(fraction.len() as u32))
}

/// The window as authored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowSpec {
    column: String,
    lookback: (String, Duration),
    chunk_interval: (String, Duration),
}

impl WindowSpec {
    /// Reads the closed window object.
    ///
    /// # Errors
    /// `rolling_window_options_invalid` (not an object, or another key), `rolling_window_options_required`,
    /// `rolling_window_column_invalid`, `rolling_window_context_unsupported` (other anchor or time zone), and those of
    /// [`Duration::parse`].
    pub fn parse(window: &Json) -> Result<WindowSpec, Refusal> {
        let closed = window.as_object().filter(|members| members.keys().all(|key| KEYS.contains(&key.as_str())));
        let members = closed.ok_or_else(|| {
            Refusal::new(
                code::WINDOW_OPTIONS_INVALID,
                "a window is an object of column, anchor, lookback, chunk_interval and timezone",
            )
        })?;
        if !REQUIRED.iter().all(|key| members.contains_key(*key)) {
            return Err(Refusal::new(code::WINDOW_OPTIONS_REQUIRED, "a window needs column, anchor and lookback"));
        }
        let text = |key: &str| members.get(key).and_then(Json::as_str);
        let column = text("column").filter(|column| valid_identifier(column)).ok_or_else(|| {
            Refusal::new(code::WINDOW_COLUMN_INVALID, "a window's column is one unqualified identifier")
        })?;
        let utc = !members.contains_key("timezone") || text("timezone") == Some("UTC");
        if text("anchor") != Some("data_interval_end") || !utc {
            return Err(Refusal::new(
                code::WINDOW_CONTEXT_UNSUPPORTED,
                "a window's anchor is data_interval_end and its timezone UTC",
            ));
        }
        let duration = |text: Option<&str>| {
            let text = text.unwrap_or_default();
            Duration::parse(text).map(|duration| (text.to_owned(), duration))
        };
        let lookback = duration(text("lookback"))?;
        let chunk_interval = if members.contains_key("chunk_interval") {
            duration(text("chunk_interval"))?
        } else {
            duration(Some("P1D"))?
        };
        Ok(WindowSpec { column: column.to_owned(), lookback, chunk_interval })
    }

    /// The window's column.
    pub fn column(&self) -> &str {
        &self.column
    }

    /// The five members as authored, defaults filled in.
    pub fn document(&self) -> Json {
        Json::object([
            ("column", Json::from(&self.column)),
            ("anchor", Json::from("data_interval_end")),
            ("lookback", Json::from(&self.lookback.0)),
            ("chunk_interval", Json::from(&self.chunk_interval.0)),
            ("timezone", Json::from("UTC")),
        ])
    }

    /// The interval that ends at `interval_end`: `[end - lookback, end)`.
    ///
    /// # Errors
    /// `rolling_window_anchor_required` (no text), `rolling_window_anchor_invalid` (not an exact timestamp with seconds
    /// and offset), `rolling_window_chunk_count_exceeded`, `rolling_window_bounds_out_of_range`.
    pub fn freeze(&self, interval_end: Option<&Json>) -> Result<RollingWindow, Refusal> {
        let end = anchor(interval_end)?;
        let (lookback, chunk) = (self.lookback.1.micros(), self.chunk_interval.1.micros());
        if lookback.div_ceil(chunk) > MAX_CHUNKS {
            return Err(Refusal::new(
                code::WINDOW_CHUNK_COUNT_EXCEEDED,
                "the lookback has more than 100,000 chunk intervals; increase chunk_interval",
            ));
        }
        let lookback = i64::try_from(lookback).ok();
        let start = lookback.and_then(|lookback| end.checked_add_micros(-lookback)).ok_or_else(|| {
            Refusal::new(
                code::ROLLING_WINDOW_BOUNDS_OUT_OF_RANGE,
                "the window starts before year 1; shorten the lookback",
            )
        })?;
        // A chunk interval longer than the lookback makes one chunk whatever its length.
        let chunk_micros = i64::try_from(chunk).unwrap_or(i64::MAX);
        Ok(RollingWindow { column: self.column.clone(), start, end, chunk_micros })
    }
}

fn anchor(interval_end: Option<&Json>) -> Result<Instant, Refusal> {
    let text = interval_end.and_then(Json::as_str).ok_or_else(|| {
        Refusal::new(code::WINDOW_ANCHOR_REQUIRED, "give the interval's end as a timestamp with an offset")
    })?;
    // The separator may be a space; everything else is the exact form.
    let exact = match text.as_bytes().get(10) {
        Some(b' ') if text.is_char_boundary(11) => Instant::parse(&format!("{}T{}", &text[..10], &text[11..])),
        _ => Instant::parse(text),
    };
    exact.ok_or_else(|| {
        Refusal::new(
            code::WINDOW_ANCHOR_INVALID,
            "the interval's end must be an exact timestamp with seconds and offset, such as 2013-07-05T00:00:00Z",
        )
    })
}

/// A frozen window: half-open, UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollingWindow {
    column: String,
    start: Instant,
    end: Instant,
    chunk_micros: i64,
}

impl RollingWindow {
    /// The window's column.
    pub fn column(&self) -> &str {
        &self.column
    }

    /// First instant inside.
    pub fn start(&self) -> Instant {
        self.start
    }

    /// First instant after.
    pub fn end(&self) -> Instant {
        self.end
    }

    /// The bounds as the source port takes them.
    pub fn frozen(&self) -> FrozenWindow {
        FrozenWindow { column: self.column.clone(), start_micros: self.start.micros(), end_micros: self.end.micros() }
    }

    /// The boundaries of the chunk intervals, start and end included. They shape nothing but the fingerprint.
    pub fn boundaries(&self) -> Vec<Instant> {
        let step = |at: &Instant| at.checked_add_micros(self.chunk_micros).filter(|next| *next < self.end);
        std::iter::successors(Some(self.start), step).chain([self.end]).collect()
    }

    /// The `dpone.rolling_window.v1` document.
    pub fn document(&self) -> Json {
        Json::object([
            ("schema_version", Json::from("dpone.rolling_window.v1")),
            ("column", Json::from(&self.column)),
            ("start", Json::from(self.start.isoformat())),
            ("end", Json::from(self.end.isoformat())),
            ("boundaries", Json::array(self.boundaries().into_iter().map(Instant::isoformat))),
        ])
    }

    /// Legacy ascii digest of [`document`](Self::document).
    pub fn fingerprint(&self) -> Digest {
        legacy_digest(&self.document())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_one_grammar() {
        let micros =
            |text: &str| Duration::parse(text).map(Duration::micros).map_err(|refusal| refusal.code.to_string());
        assert_eq!(micros("P1DT2H3M4.5S"), Ok(93_784_500_000));
        assert_eq!(micros("PT0.000001S"), Ok(1));
        let invalid = ["", "P", "PT", "P1DT", "P1M", "P1Y", "-P1D", "P1D ", "PT1.S", "PT0.0000001S", "PT1M1H", "P1.5D"];
        for text in invalid.into_iter().chain(["p1d", "PT1H1H", "PT.5S", "P+1D", "P1W", "1D"]) {
            assert_eq!(micros(text), Err(code::DURATION_INVALID.to_owned()), "{text}");
        }
        assert_eq!(micros("P0DT0S"), Err(code::DURATION_NONPOSITIVE.to_owned()));
        assert_eq!(micros("P1000000000D"), Err(code::DURATION_OUT_OF_RANGE.to_owned()));
        assert_eq!(micros(&format!("P{}D", "9".repeat(60))), Err(code::DURATION_OUT_OF_RANGE.to_owned()));
    }
}
