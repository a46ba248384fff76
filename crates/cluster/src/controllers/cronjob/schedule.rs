//! Cron schedules: when the next run is due, in a time zone. Pure.
//!
//! As in Kubernetes, a time that clocks leave out has no run, and one that they show twice has two.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
/// How far ahead a run is looked for: `29 2` on a given weekday comes once in 28 years, and 2100 has no such day.
const FARTHEST_DAYS: usize = 41 * 366;

/// A schedule that has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Schedule {
    /// At times of the calendar.
    Calendar(Calendar),
    /// After every so many seconds.
    Every(i64),
}

/// The values of each field, a bit for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Calendar {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    zone: TimeZone,
    /// Whether a day has to be in both `days` and `weekdays`: one of them is `*`.
    both_days: bool,
}

impl Schedule {
    /// Reads a schedule of times in a zone; none if it is not one.
    pub(crate) fn parse(text: &str, zone: TimeZone) -> Option<Self> {
        let text = match text.trim() {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other => other,
        };
        if let Some(period) = text.strip_prefix("@every ") {
            return seconds(period.trim()).map(Self::Every);
        }
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields[..] else {
            return None;
        };
        let any = |field: &str| field.starts_with(['*', '?']);
        Some(Self::Calendar(Calendar {
            minutes: bits(minutes, 0, 59, &[])?,
            hours: bits(hours, 0, 23, &[])?,
            days: bits(days, 1, 31, &[])?,
            months: bits(months, 1, 12, &MONTHS)?,
            weekdays: bits(weekdays, 0, 6, &DAYS)?,
            zone,
            both_days: any(days) || any(weekdays),
        }))
    }

    /// Returns the first run after a moment, or nothing if it is too far in the future.
    pub(crate) fn next(&self, after: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Every(period) => {
                let second = Timestamp::from_second(after.as_second()).ok()?;
                second.checked_add(SignedDuration::from_secs(*period)).ok()
            }
            Self::Calendar(calendar) => calendar.next(after),
        }
    }
}

impl Calendar {
    fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let mut moment = Timestamp::from_second(after.as_second().div_euclid(60) * 60).ok()?;
        moment = later(moment, 1)?;
        // A day without a run costs a step of the calendar, any other at most its hours and the minutes of one.
        for _ in 0..FARTHEST_DAYS {
            let local = self.zone.to_datetime(moment);
            let minute = i64::from(local.minute());
            moment = if !self.has_day(local.date()) {
                // Where midnight comes twice, its first time may be over.
                let begin = self.begin(self.day_after(local.date())?)?;
                begin.max(later(moment, 1)?)
            } else if !has(self.hours, local.hour().into()) {
                later(moment, 60 - minute)?
            } else if !has(self.minutes, minute) {
                later(moment, 1)?
            } else {
                return Some(moment);
            };
        }
        None
    }

    /// The first day after one that has runs, if there is one in sight.
    fn day_after(&self, date: Date) -> Option<Date> {
        let days = std::iter::successors(date.tomorrow().ok(), |date| date.tomorrow().ok());
        days.take(FARTHEST_DAYS).find(|date| self.has_day(*date))
    }

    /// The moment at which a day begins, which is not midnight everywhere and always.
    fn begin(&self, date: Date) -> Option<Timestamp> {
        let midnight = date.at(0, 0, 0, 0);
        let begin = self.zone.to_ambiguous_timestamp(midnight).compatible();
        begin.ok()
    }

    fn has_day(&self, date: Date) -> bool {
        let day = has(self.days, date.day().into());
        let weekday = date.weekday().to_sunday_zero_offset();
        let weekday = has(self.weekdays, weekday.into());
        let fits = if self.both_days {
            day && weekday
        } else {
            day || weekday
        };
        fits && has(self.months, date.month().into())
    }
}

fn later(moment: Timestamp, minutes: i64) -> Option<Timestamp> {
    moment.checked_add(SignedDuration::from_mins(minutes)).ok()
}

fn has(bits: u64, value: i64) -> bool {
    (0..64).contains(&value) && bits >> value & 1 == 1
}

/// The values of a field: `*`, `a`, `a-b`, each with `/step`, joined by commas.
fn bits(field: &str, low: i64, high: i64, names: &[&str]) -> Option<u64> {
    let mut bits = 0;
    for part in field.split(',').filter(|part| !part.is_empty()) {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(step.parse::<i64>().ok()?)),
            None => (part, None),
        };
        let (start, end) = match range.split_once('-') {
            _ if matches!(range, "*" | "?") => (low, high),
            Some((start, end)) => (value(start, low, names)?, value(end, low, names)?),
            None => {
                let start = value(range, low, names)?;
                // `5/15` goes on to the end.
                (start, if step.is_some() { high } else { start })
            }
        };
        let step = step.unwrap_or(1);
        if start < low || end > high || start > end || step < 1 {
            return None;
        }
        let step = usize::try_from(step).ok()?;
        bits |= (start..=end)
            .step_by(step)
            .fold(0, |bits, value| bits | 1 << value);
    }
    (bits != 0).then_some(bits)
}

fn value(text: &str, first: i64, names: &[&str]) -> Option<i64> {
    let lower = text.to_ascii_lowercase();
    match names.iter().position(|name| *name == lower) {
        Some(at) => Some(first + i64::try_from(at).ok()?),
        None => text.parse().ok(),
    }
}

/// The seconds in a text such as `1h30m`; a second at least.
fn seconds(text: &str) -> Option<i64> {
    let mut total: i64 = 0;
    let mut digits = String::new();
    for letter in text.chars() {
        if letter.is_ascii_digit() {
            digits.push(letter);
            continue;
        }
        let unit = match letter {
            'h' => 3600,
            'm' => 60,
            's' => 1,
            _ => return None,
        };
        let number: i64 = std::mem::take(&mut digits).parse().ok()?;
        total = total.checked_add(number.checked_mul(unit)?)?;
    }
    digits.is_empty().then_some(total.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schedule: &str, after: &str, expected: &str) {
        check_in("UTC", schedule, after, expected);
    }

    fn check_in(zone: &str, schedule: &str, after: &str, expected: &str) {
        let zone = super::super::zone::named(Some(zone)).expect("a zone");
        let read = Schedule::parse(schedule, zone).expect("a schedule");
        let after = after.parse().expect("a moment");
        let next = read.next(after).map(|next| next.to_string());
        assert_eq!(next.as_deref(), Some(expected), "{schedule}");
    }

    #[test]
    fn the_next_run_is_the_first_that_fits() {
        check(
            "*/5 * * * *",
            "2030-01-01T00:00:00Z",
            "2030-01-01T00:05:00Z",
        );
        check(
            "*/5 * * * *",
            "2030-01-01T00:04:59Z",
            "2030-01-01T00:05:00Z",
        );
        check("@hourly", "2030-12-31T23:10:00Z", "2031-01-01T00:00:00Z");
        check(
            "30 9-17/4 * * mon-FRI",
            "2030-01-04T17:31:00Z",
            "2030-01-07T09:30:00Z",
        );
        check(
            "0 0 29 feb *",
            "2030-01-01T00:00:00Z",
            "2032-02-29T00:00:00Z",
        );
        // Day of month or day of week, where both are given.
        check("0 0 13 * 5", "2030-01-01T00:00:00Z", "2030-01-04T00:00:00Z");
        check(
            "7/20 * * * *",
            "2030-01-01T00:28:00Z",
            "2030-01-01T00:47:00Z",
        );
        check(
            "@every 1h30m",
            "2030-01-01T00:00:00Z",
            "2030-01-01T01:30:00Z",
        );
    }

    #[test]
    fn runs_follow_the_clocks_of_their_zone() {
        let (rome, york) = ("Europe/Rome", "America/New_York");
        let cases = [
            (
                rome,
                "30 9 * * *",
                "2030-01-10T00:00:00Z",
                "2030-01-10T08:30:00Z",
            ),
            (
                rome,
                "30 9 * * *",
                "2030-07-10T00:00:00Z",
                "2030-07-10T07:30:00Z",
            ),
            (
                york,
                "0 0 1 * *",
                "2030-01-01T04:59:00Z",
                "2030-01-01T05:00:00Z",
            ),
            (
                york,
                "0 0 * * mon",
                "2030-01-07T00:00:00Z",
                "2030-01-07T05:00:00Z",
            ),
            // 2:30 does not exist on the day when clocks go forward.
            (
                york,
                "30 2 * * *",
                "2030-03-09T08:00:00Z",
                "2030-03-11T06:30:00Z",
            ),
            (
                york,
                "30 * * * *",
                "2030-03-10T06:30:00Z",
                "2030-03-10T07:30:00Z",
            ),
            // 1:30 comes twice on the day when they go back.
            (
                york,
                "30 1 * * *",
                "2030-11-03T00:00:00Z",
                "2030-11-03T05:30:00Z",
            ),
            (
                york,
                "30 1 * * *",
                "2030-11-03T05:30:00Z",
                "2030-11-03T06:30:00Z",
            ),
            (
                york,
                "30 1 * * *",
                "2030-11-03T06:30:00Z",
                "2030-11-04T06:30:00Z",
            ),
            // Half an hour off, and a day that begins at one o'clock.
            (
                "Asia/Kolkata",
                "0 0 * * *",
                "2030-01-01T00:00:00Z",
                "2030-01-01T18:30:00Z",
            ),
            (
                "America/Sao_Paulo",
                "*/30 * 4 11 *",
                "2018-11-04T02:59:00Z",
                "2018-11-04T03:00:00Z",
            ),
        ];
        for (zone, schedule, after, expected) in cases {
            check_in(zone, schedule, after, expected);
        }
    }

    #[test]
    fn what_never_comes_and_what_is_no_schedule_is_none() {
        let never = Schedule::parse("0 0 31 2 *", TimeZone::UTC).expect("a schedule");
        assert_eq!(never.next(Timestamp::UNIX_EPOCH), None);
        for text in [
            "",
            "* * *",
            "60 * * * *",
            "*/0 * * * *",
            "5-3 * * * *",
            "@noon",
            "@every soon",
        ] {
            assert_eq!(Schedule::parse(text, TimeZone::UTC), None, "{text}");
        }
    }
}
