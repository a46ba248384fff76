//! Points and lengths of time: how they are written, read and taken apart.

use jiff::civil::Date;
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

use super::value::{EvalError, fail};

const SECOND: i128 = 1_000_000_000;
/// Seconds of the years 1 to 9999.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// Reads RFC 3339.
pub(crate) fn timestamp(text: &str) -> Result<Timestamp, EvalError> {
    if let Some(time) = rfc3339(text) {
        return limited(time);
    }
    fail(format!(
        "parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse"
    ))
}

/// A time within the years that can be written.
pub(crate) fn limited(time: Timestamp) -> Result<Timestamp, EvalError> {
    if SECONDS.contains(&time.as_second()) {
        return Ok(time);
    }
    fail("timestamp overflow")
}

/// A time so many seconds after 1970.
pub(crate) fn from_seconds(seconds: i64) -> Result<Timestamp, EvalError> {
    match Timestamp::from_second(seconds) {
        Ok(time) => limited(time),
        Err(_) => fail("timestamp overflow"),
    }
}

fn rfc3339(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let digits = |range: std::ops::Range<usize>| {
        bytes
            .get(range)
            .is_some_and(|part| part.iter().all(u8::is_ascii_digit))
    };
    let is = |at: usize, byte: u8| bytes.get(at) == Some(&byte);
    let shaped = digits(0..4)
        && is(4, b'-')
        && digits(5..7)
        && is(7, b'-')
        && digits(8..10)
        && is(10, b'T')
        && digits(11..13)
        && is(13, b':')
        && digits(14..16)
        && is(16, b':')
        && digits(17..19);
    shaped.then(|| text.parse().ok()).flatten()
}

/// A `date-time` of a schema, which may be written in small letters.
pub(crate) fn date_time(text: &str) -> Option<Timestamp> {
    rfc3339(&text.to_ascii_uppercase())
}

/// A `date` of a schema.
pub(crate) fn date(text: &str) -> Option<Timestamp> {
    let date: Date = (text.len() == 10).then(|| text.parse().ok()).flatten()?;
    Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

/// The text of a time, with as many digits of the second as it has.
pub(crate) fn write_timestamp(time: Timestamp) -> String {
    time.to_string()
}

/// Reads a length of time such as `1h30m` or `-1.5s`, in nanoseconds.
pub(crate) fn duration(text: &str) -> Result<i64, EvalError> {
    match go_duration(text) {
        Some(nanoseconds) => Ok(nanoseconds),
        None => fail(format!("time: invalid duration {text:?}")),
    }
}

const UNITS: [(&str, i128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", SECOND),
    ("m", 60 * SECOND),
    ("h", 3600 * SECOND),
];

fn go_duration(text: &str) -> Option<i64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if unsigned == "0" {
        return Some(0);
    }
    if unsigned.is_empty() || unsigned.len() > 64 {
        return None;
    }
    let mut total = 0i128;
    let mut rest = unsigned;
    while !rest.is_empty() {
        let number = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (digits, after) = rest.split_at(number);
        let unit = after
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(after.len());
        let (name, after) = after.split_at(unit);
        let (_, scale) = UNITS.iter().find(|(unit, _)| *unit == name)?;
        total = total.checked_add(scaled(digits, *scale)?)?;
        rest = after;
    }
    let total = if text.starts_with('-') { -total } else { total };
    i64::try_from(total).ok()
}

/// A decimal number of units, cut off below a nanosecond.
fn scaled(digits: &str, scale: i128) -> Option<i128> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let whole: i128 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let mut total = whole.checked_mul(scale)?;
    let mut unit = scale;
    for digit in fraction.bytes() {
        unit /= 10;
        total += i128::from(digit - b'0') * unit;
    }
    Some(total)
}

/// A `duration` of a schema: as in Go, or in words such as `2 days`.
pub(crate) fn duration_of_format(text: &str) -> Option<i64> {
    if let Some(found) = go_duration(text) {
        return Some(found);
    }
    const WORDS: [(&str, &str, i128); 8] = [
        ("ns", "nano", 1),
        ("us", "micro", 1_000),
        ("ms", "milli", 1_000_000),
        ("s", "sec", SECOND),
        ("m", "min", 60 * SECOND),
        ("h", "hour", 3600 * SECOND),
        ("d", "day", 24 * 3600 * SECOND),
        ("w", "week", 7 * 24 * 3600 * SECOND),
    ];
    let mut total: Option<i128> = None;
    let mut rest = text.trim();
    while !rest.is_empty() {
        let number = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, after) = rest.split_at(number);
        let after = after.trim_start();
        let word = after.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (name, after) = after.split_at(word);
        let name = name.to_ascii_lowercase();
        let known = WORDS
            .iter()
            .find(|(short, long, _)| name == *short || name.starts_with(long));
        let count: i128 = digits.parse().ok()?;
        total = Some(
            total
                .unwrap_or(0)
                .checked_add(count.checked_mul(known?.2)?)?,
        );
        rest = after.trim_start();
    }
    i64::try_from(total?).ok()
}

/// The text of a length of time: seconds, with as many digits as it has.
pub(crate) fn write_duration(nanoseconds: i64) -> String {
    let seconds = nanoseconds as f64 / SECOND as f64;
    format!("{seconds}s")
}

/// The sum of a time and a length of time.
pub(crate) fn add(time: Timestamp, nanoseconds: i64) -> Result<Timestamp, EvalError> {
    match time.checked_add(SignedDuration::from_nanos(nanoseconds)) {
        Ok(time) => limited(time),
        Err(_) => fail("timestamp overflow"),
    }
}

/// The length of time between two times.
pub(crate) fn difference(later: Timestamp, earlier: Timestamp) -> Result<i64, EvalError> {
    match i64::try_from(later.as_nanosecond() - earlier.as_nanosecond()) {
        Ok(nanoseconds) => Ok(nanoseconds),
        Err(_) => fail("timestamp overflow"),
    }
}

/// A part of a time in a zone, UTC when none is given.
pub(crate) fn part(function: &str, time: Timestamp, zone: Option<&str>) -> Result<i64, EvalError> {
    let zoned = time.to_zoned(zone_named(zone.unwrap_or("UTC"))?);
    Ok(match function {
        "getFullYear" => i64::from(zoned.year()),
        "getMonth" => i64::from(zoned.month()) - 1,
        "getDate" => i64::from(zoned.day()),
        "getDayOfMonth" => i64::from(zoned.day()) - 1,
        "getDayOfWeek" => i64::from(zoned.weekday().to_sunday_zero_offset()),
        "getDayOfYear" => i64::from(zoned.day_of_year()) - 1,
        "getHours" => i64::from(zoned.hour()),
        "getMinutes" => i64::from(zoned.minute()),
        "getSeconds" => i64::from(zoned.second()),
        "getMilliseconds" => i64::from(zoned.millisecond()),
        _ => return super::value::no_overload(),
    })
}

fn zone_named(name: &str) -> Result<TimeZone, EvalError> {
    if matches!(name, "UTC" | "" | "Z") {
        return Ok(TimeZone::UTC);
    }
    if let Some(offset) = offset(name) {
        return Ok(TimeZone::fixed(offset));
    }
    TimeZone::get(name).or_else(|_| fail(format!("unknown time zone {name}")))
}

/// `+08:00`, `-8:30` or `08:00`.
fn offset(text: &str) -> Option<Offset> {
    let (hours, minutes) = text.split_once(':')?;
    let sign = if hours.starts_with('-') { -1 } else { 1 };
    let hours: i32 = hours.trim_start_matches(['+', '-']).parse().ok()?;
    let minutes: i32 = minutes.parse().ok()?;
    let in_range = (0..=23).contains(&hours) && (0..=59).contains(&minutes);
    in_range
        .then(|| Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).ok())
        .flatten()
}

/// A length of time in units that are cut off.
pub(crate) fn duration_part(function: &str, nanoseconds: i64) -> Result<i64, EvalError> {
    let unit = match function {
        "getHours" => 3600 * SECOND,
        "getMinutes" => 60 * SECOND,
        "getSeconds" => SECOND,
        "getMilliseconds" => 1_000_000,
        _ => return super::value::no_overload(),
    };
    Ok((i128::from(nanoseconds) / unit) as i64)
}
