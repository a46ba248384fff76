//! Reads times as Go does and writes them in UTC.

use jiff::SignedDuration;
use jiff::civil::DateTime;
use jiff::tz::Offset;

/// Go's name for RFC 3339, as it stands in error messages.
const LAYOUT: &str = "2006-01-02T15:04:05Z07:00";

/// The parts of a time before the fraction: Go's name of the part, its number of digits, what follows it.
const PARTS: [(&str, usize, &str); 6] = [
    ("2006", 4, "-"),
    ("01", 2, "-"),
    ("02", 2, "T"),
    ("15", 2, ":"),
    ("04", 2, ":"),
    ("05", 2, ""),
];

/// Why a text is not a time, in the words of Go.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum TimeError {
    #[error("parsing time {text:?}: {part} out of range")]
    OutOfRange { text: String, part: &'static str },
    #[error("parsing time {text:?} as {LAYOUT:?}: cannot parse {rest:?} as {part:?}")]
    Syntax {
        text: String,
        rest: String,
        part: &'static str,
    },
    #[error("parsing time {text:?}: extra text: {rest:?}")]
    ExtraText { text: String, rest: String },
}

/// A time in whole seconds, in UTC.
pub(super) fn seconds(text: &str) -> Result<String, TimeError> {
    let at = parse(text)?;
    let whole = at.with().subsec_nanosecond(0).build().unwrap_or(at);
    Ok(format!("{whole}Z"))
}

/// A time with six digits of fraction, in UTC.
pub(super) fn micros(text: &str) -> Result<String, TimeError> {
    Ok(format!("{:.6}Z", parse(text)?))
}

/// Reads a time and moves it to UTC. As a date on the calendar and not as a `Timestamp`: that one ends a day before the year
/// 9999 does, so that it can be shown in every zone, and Go knows all of the year.
fn parse(text: &str) -> Result<DateTime, TimeError> {
    let mut parser = Parser { text, rest: text };
    let mut numbers = [0_i16; 6];
    for (number, (name, digits, separator)) in numbers.iter_mut().zip(PARTS) {
        *number = parser.number(name, digits)?;
        parser.separator(separator)?;
    }
    let nanoseconds = parser.fraction();
    let offset = parser.offset()?;
    let [year, month, day, hour, minute, second] = numbers;
    check_ranges(text, &numbers)?;
    let local = DateTime::new(
        year,
        month as i8,
        day as i8,
        hour as i8,
        minute as i8,
        second as i8,
        nanoseconds,
    )
    .map_err(|_| out_of_range(text, "day"))?;
    let utc = local.checked_sub(SignedDuration::from_secs(offset.seconds().into()));
    utc.ok()
        .filter(|utc| utc.year() >= 0)
        .ok_or_else(|| out_of_range(text, "year"))
}

fn check_ranges(text: &str, numbers: &[i16; 6]) -> Result<(), TimeError> {
    let ranges = [
        ("year", 0..=9999),
        ("month", 1..=12),
        ("day", 1..=31),
        ("hour", 0..=23),
        ("minute", 0..=59),
        ("second", 0..=59),
    ];
    for ((name, range), number) in ranges.iter().zip(numbers) {
        if !range.contains(number) {
            return Err(out_of_range(text, name));
        }
    }
    Ok(())
}

fn out_of_range(text: &str, part: &'static str) -> TimeError {
    TimeError::OutOfRange {
        text: text.to_owned(),
        part,
    }
}

struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
}

impl Parser<'_> {
    fn number(&mut self, name: &'static str, digits: usize) -> Result<i16, TimeError> {
        let found = self
            .rest
            .get(..digits)
            .filter(|found| found.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|found| found.parse().ok())
            .ok_or_else(|| self.cannot_parse(name))?;
        self.rest = &self.rest[digits..];
        Ok(found)
    }

    fn separator(&mut self, separator: &'static str) -> Result<(), TimeError> {
        match self.rest.strip_prefix(separator) {
            Some(rest) => {
                self.rest = rest;
                Ok(())
            }
            None => Err(self.cannot_parse(separator)),
        }
    }

    /// Nanoseconds of an optional fraction; digits beyond the ninth are dropped.
    fn fraction(&mut self) -> i32 {
        let Some(rest) = self.rest.strip_prefix(['.', ',']) else {
            return 0;
        };
        let end = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        if end == 0 {
            return 0;
        }
        self.rest = &rest[end..];
        let digits = &rest[..end.min(9)];
        digits.parse::<i32>().unwrap_or(0) * 10_i32.pow(9 - digits.len() as u32)
    }

    fn offset(&mut self) -> Result<Offset, TimeError> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return self.end(Offset::UTC);
        }
        let sign = match self.rest.as_bytes().first() {
            Some(b'+') => 1,
            Some(b'-') => -1,
            _ => return Err(self.cannot_parse("Z07:00")),
        };
        let whole = Parser { ..*self };
        let fail = |_| whole.cannot_parse("Z07:00");
        self.rest = &self.rest[1..];
        let hours = i32::from(self.number("", 2).map_err(fail)?);
        self.separator(":").map_err(fail)?;
        let minutes = i32::from(self.number("", 2).map_err(fail)?);
        match Offset::from_seconds(sign * (hours * 3600 + minutes * 60)) {
            Ok(offset) if hours <= 24 && minutes < 60 => self.end(offset),
            _ => Err(out_of_range(self.text, "time zone offset hour")),
        }
    }

    fn end(&self, offset: Offset) -> Result<Offset, TimeError> {
        if self.rest.is_empty() {
            Ok(offset)
        } else {
            Err(TimeError::ExtraText {
                text: self.text.to_owned(),
                rest: self.rest.to_owned(),
            })
        }
    }

    fn cannot_parse(&self, part: &'static str) -> TimeError {
        TimeError::Syntax {
            text: self.text.to_owned(),
            rest: self.rest.to_owned(),
            part,
        }
    }
}
