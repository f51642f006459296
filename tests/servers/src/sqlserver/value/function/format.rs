//! STR, FORMAT, FORMATMESSAGE.

use super::super::conversion::MONTHS;
use super::super::temporal::{CalendarDay, Clock, DateTime2, weekday};
use super::super::{Collation, Decimal, Length, SqlType, Text, Value, ValueError};
use super::call::{Call, Taken};
use super::date_parts::WEEKDAYS;
use super::text::as_text;
use super::{Resolver, ScalarFunction};

pub(super) const FUNCTIONS: &[(&str, Resolver)] =
    &[("FORMAT", format), ("FORMATMESSAGE", formatmessage), ("STR", str_of)];

/// The English name of a month, from 0.
pub(super) fn month_name(index: usize) -> &'static str {
    MONTHS[index.min(11)]
}

/// STR(number [, length [, decimals]]): right-aligned, fewer decimals where they do not fit, asterisks where the
/// number does not fit at all.
fn str_of(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(1..=3)?;
    let number = call.float(0)?;
    let optional = |index: usize| if call.arguments.len() > index { call.int(index).map(Some) } else { Ok(None) };
    let (length, decimals) = (optional(1)?, optional(2)?);
    call.may_return_null(SqlType::VarChar(Length::Sized(8000), Collation::DEFAULT), move |arguments, _| {
        let argument = |taken: &Option<Taken>, index: usize, default: i64| match taken {
            None => Ok(Some(default)),
            Some(taken) => taken.integer(&arguments[index]),
        };
        let (Some(number), Some(length), Some(decimals)) =
            (number.float(&arguments[0])?, argument(&length, 1, 10)?, argument(&decimals, 2, 0)?)
        else {
            return Ok(Value::Null);
        };
        let (Ok(length), Ok(decimals)) = (usize::try_from(length), usize::try_from(decimals)) else {
            return Ok(Value::Null);
        };
        if length == 0 || length > 8000 {
            return Ok(Value::Null);
        }
        Ok(Value::text(&fixed_width(number, length, decimals.min(16))))
    })
}

fn fixed_width(number: f64, length: usize, decimals: usize) -> String {
    let rounded =
        |decimals: usize| match u8::try_from(decimals).ok().and_then(|scale| Decimal::from_f64(number, 38, scale)) {
            Some(decimal) => decimal.to_string(),
            None => format!("{number:.decimals$}"),
        };
    let whole = rounded(0).len();
    if whole > length {
        return "*".repeat(length);
    }
    // One place goes to the point.
    let decimals = decimals.min(length.saturating_sub(whole + 1));
    format!("{:>length$}", rounded(decimals))
}

/// FORMAT(value, format [, culture]) for the invariant culture and US English: standard formats N, F, D, P of numbers,
/// custom formats of digits, and the usual letters of dates.
fn format(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(2..=3)?;
    let ty = call.ty(0)?;
    if !ty.is_number() && !ty.is_temporal() {
        return Err(call.invalid(0));
    }
    let pattern = call.text(1)?;
    let culture = if call.arguments.len() == 3 { Some(call.text(2)?) } else { None };
    call.may_return_null(SqlType::nvarchar(4000), move |arguments, _| {
        if let Some(taken) = &culture {
            let culture = taken.text(&arguments[2])?.map(|culture| culture.to_string()).unwrap_or_default();
            if !culture.is_empty() && !culture.eq_ignore_ascii_case("en-us") {
                let text = format!("The culture parameter '{culture}' provided in the function call is not supported.");
                return Err(ValueError::new(9818, 1, text));
            }
        }
        let (value, Some(pattern)) = (&arguments[0], pattern.text(&arguments[1])?) else { return Ok(Value::Null) };
        if value.is_null() {
            return Ok(Value::Null);
        }
        let pattern = pattern.to_string();
        let text =
            if ty.is_temporal() { format_date(value, &ty, &pattern)? } else { format_number(value, &ty, &pattern)? };
        Ok(text.map_or(Value::Null, |text| Value::String(Text::from(&*text))))
    })
}

fn format_number(value: &Value, ty: &SqlType, pattern: &str) -> Result<Option<String>, ValueError> {
    let taken = Taken { from: *ty, to: SqlType::decimal(38, 12) };
    let Some(exact) = taken.decimal(value)? else { return Ok(None) };
    let mut letters = pattern.chars();
    let standard = letters.next().filter(char::is_ascii_alphabetic).map(|letter| letter.to_ascii_uppercase());
    let digits = letters.as_str();
    if let (Some(letter), true) = (standard, digits.len() <= 2 && digits.bytes().all(|byte| byte.is_ascii_digit())) {
        let count = digits.parse::<u8>().ok();
        return Ok(match letter {
            'N' => Some(grouped(&rounded(exact, count.unwrap_or(2)), true)),
            'F' => Some(rounded(exact, count.unwrap_or(2))),
            'P' => {
                let hundredfold = Decimal::new(exact.unscaled().saturating_mul(100), 38, exact.scale());
                Some(format!("{}%", grouped(&rounded(hundredfold, count.unwrap_or(2)), true)))
            }
            'D' if ty.is_integer() => {
                let text = rounded(exact, 0);
                let (sign, magnitude) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("-", rest));
                Some(format!("{sign}{magnitude:0>width$}", width = usize::from(count.unwrap_or(0))))
            }
            'G' => Some(trimmed(&exact.to_string())),
            _ => None,
        });
    }
    Ok(Some(custom_number(exact, pattern)))
}

fn rounded(value: Decimal, decimals: u8) -> String {
    value.rescale(38, decimals.min(20)).map_or_else(|| value.to_string(), |value| value.to_string())
}

fn trimmed(text: &str) -> String {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text.to_owned() }
}

/// Commas between groups of three digits before the point.
fn grouped(text: &str, wanted: bool) -> String {
    if !wanted {
        return text.to_owned();
    }
    let (sign, magnitude) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (whole, fraction) =
        magnitude.split_once('.').map_or((magnitude, None), |(whole, fraction)| (whole, Some(fraction)));
    let mut result = String::from(sign);
    for (at, digit) in whole.char_indices() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            result.push(',');
        }
        result.push(digit);
    }
    if let Some(fraction) = fraction {
        result.push('.');
        result.push_str(fraction);
    }
    result
}

/// Digit placeholders `0` and `#`, a comma between them for groups, a point; other characters stay where they are.
fn custom_number(value: Decimal, pattern: &str) -> String {
    let (whole, fraction) = pattern.split_once('.').unwrap_or((pattern, ""));
    let count = |text: &str, wanted: &[char]| text.chars().filter(|c| wanted.contains(c)).count();
    let (least, most) = (count(fraction, &['0']), count(fraction, &['0', '#']));
    let percent = if pattern.contains('%') { 100 } else { 1 };
    let scaled = Decimal::new(value.unscaled().saturating_mul(percent), 38, value.scale());
    let text = rounded(scaled, u8::try_from(most).unwrap_or(20));
    let (sign, magnitude) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("-", rest));
    let (digits, decimals) = magnitude.split_once('.').unwrap_or((magnitude, ""));
    let digits = digits.trim_start_matches('0');
    let kept = decimals.trim_end_matches('0').len().max(least).min(decimals.len());
    let mut number = fill_whole(whole, digits);
    if kept > 0 {
        number.push('.');
        number.push_str(&decimals[..kept]);
    }
    number.extend(fraction.chars().filter(|c| !matches!(c, '0' | '#' | ',')));
    format!("{sign}{number}")
}

/// Puts digits into the placeholders before the point, from the right; the leftmost placeholder takes all that remain.
fn fill_whole(pattern: &str, digits: &str) -> String {
    let placeholders = pattern.chars().filter(|c| matches!(c, '0' | '#')).count();
    let grouping = pattern.contains(',');
    let mut reversed: Vec<char> = Vec::new();
    let (mut rest, mut left, mut written) = (digits.chars().rev(), placeholders, 0_usize);
    let mut push = |reversed: &mut Vec<char>, digit: char| {
        if grouping && written > 0 && written % 3 == 0 {
            reversed.push(',');
        }
        reversed.push(digit);
        written += 1;
    };
    for symbol in pattern.chars().rev() {
        match symbol {
            '0' | '#' => {
                left -= 1;
                match rest.next() {
                    Some(digit) => push(&mut reversed, digit),
                    None if symbol == '0' => push(&mut reversed, '0'),
                    None => {}
                }
                if left == 0 {
                    rest.by_ref().for_each(|digit| push(&mut reversed, digit));
                }
            }
            ',' => {}
            other => reversed.push(other),
        }
    }
    reversed.into_iter().rev().collect()
}

fn format_date(value: &Value, ty: &SqlType, pattern: &str) -> Result<Option<String>, ValueError> {
    let local = match value {
        Value::DateTimeOffset(value) => value.local(),
        _ => match (Taken { from: *ty, to: SqlType::DateTime2(7) }).value(value)? {
            Value::DateTime2(value) => Some(value),
            _ => None,
        },
    };
    let pattern = match pattern {
        "d" => "M/d/yyyy",
        "D" => "dddd, MMMM d, yyyy",
        "t" => "h:mm tt",
        "T" => "h:mm:ss tt",
        "g" => "M/d/yyyy h:mm tt",
        "G" => "M/d/yyyy h:mm:ss tt",
        "s" => "yyyy-MM-ddTHH:mm:ss",
        other => other,
    };
    Ok(local.map(|local| custom_date(local, pattern)))
}

fn custom_date(value: DateTime2, pattern: &str) -> String {
    let mut text = String::new();
    let mut rest = pattern;
    while let Some(letter) = rest.chars().next() {
        if letter == '\'' || letter == '"' {
            let quoted = &rest[1..];
            let end = quoted.find(letter).unwrap_or(quoted.len());
            text.push_str(&quoted[..end]);
            rest = quoted.get(end + 1..).unwrap_or("");
            continue;
        }
        let run = rest.chars().take_while(|c| *c == letter).count();
        let width = run * letter.len_utf8();
        match date_field(value, letter, run) {
            Some(field) => text.push_str(&field),
            None => text.push_str(&rest[..width]),
        }
        rest = &rest[width..];
    }
    text
}

/// A field of a date format; `None` for letters that are no field.
fn date_field(value: DateTime2, letter: char, run: usize) -> Option<String> {
    let day = CalendarDay::of(value.days);
    let clock = Clock::of(value.ticks);
    let padded = |number: u32| if run == 1 { number.to_string() } else { format!("{number:02}") };
    let month = month_name(usize::try_from(day.month - 1).unwrap_or(0));
    let name = WEEKDAYS[usize::try_from(weekday(value.days) - 1).unwrap_or(0)];
    Some(match (letter, run) {
        ('y', 1 | 2) => format!("{:02}", day.year % 100),
        ('y', _) => format!("{:0run$}", day.year),
        ('M', 1 | 2) => padded(day.month),
        ('M', 3) => month[..3].to_owned(),
        ('M', _) => month.to_owned(),
        ('d', 1 | 2) => padded(day.day),
        ('d', 3) => name[..3].to_owned(),
        ('d', _) => name.to_owned(),
        ('H', _) => padded(clock.hour),
        ('h', _) => padded((clock.hour + 11) % 12 + 1),
        ('m', _) => padded(clock.minute),
        ('s', _) => padded(clock.second),
        ('f', 1..=7) => format!("{:07}", clock.fraction)[..run].to_owned(),
        ('t', _) => String::from(if clock.hour < 12 { "AM" } else { "PM" })[..run.min(2)].to_owned(),
        _ => return None,
    })
}

/// FORMATMESSAGE(text, arguments...) with the placeholders of RAISERROR: %s, %d, %i, %u, %x, %X, %o, %%.
fn formatmessage(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(1..=21)?;
    let template = call.text(0)?;
    let types = (1..call.arguments.len()).map(|index| call.ty(index)).collect::<Result<Vec<_>, _>>()?;
    call.may_return_null(SqlType::nvarchar(2048), move |arguments, _| {
        let Some(template) = template.text(&arguments[0])? else { return Ok(Value::Null) };
        let mut texts = Vec::with_capacity(types.len());
        for (value, ty) in arguments[1..].iter().zip(&types) {
            texts.push((
                value.as_i64(),
                as_text(value, ty)?.map_or_else(|| String::from("(null)"), |text| text.to_string()),
            ));
        }
        Ok(Value::text(&fill(&template.to_string(), &texts)))
    })
}

/// Fills placeholders in order; one without an argument is `(null)`.
fn fill(template: &str, arguments: &[(Option<i64>, String)]) -> String {
    let mut filled = String::new();
    let mut arguments = arguments.iter();
    let mut rest = template;
    while let Some(at) = rest.find('%') {
        filled.push_str(&rest[..at]);
        let directive = &rest[at + 1..];
        let width_end =
            directive.find(|c: char| !c.is_ascii_digit() && c != '-' && c != '+').unwrap_or(directive.len());
        let (width, kind) = directive.split_at(width_end);
        let long = kind.strip_prefix("I64").unwrap_or(kind);
        let Some(letter) = long.chars().next() else {
            filled.push_str(&rest[at..]);
            return filled;
        };
        rest = &long[letter.len_utf8()..];
        if letter == '%' {
            filled.push('%');
            continue;
        }
        let argument = arguments.next();
        let text = match (letter, argument) {
            (_, None) => String::from("(null)"),
            ('x', Some((Some(number), _))) => format!("{:x}", *number as u32),
            ('X', Some((Some(number), _))) => format!("{:X}", *number as u32),
            ('o', Some((Some(number), _))) => format!("{:o}", *number as u32),
            (_, Some((_, text))) => text.clone(),
        };
        let (left, zero) = (width.starts_with('-'), width.starts_with('0'));
        let columns = width.trim_matches(['-', '+']).parse::<usize>().unwrap_or(0).min(2048);
        filled.push_str(&match (left, zero) {
            (true, _) => format!("{text:<columns$}"),
            (false, true) => format!("{text:0>columns$}"),
            (false, false) => format!("{text:>columns$}"),
        });
    }
    filled.push_str(rest);
    filled
}
