//! Dates, times and durations, as lenient as the API server reads them.

use std::sync::LazyLock;

use regex::Regex;

use super::compiled;

static DURATION_PART: LazyLock<Regex> = LazyLock::new(|| compiled(r"([0-9]+)\s*([A-Za-zµ]+)"));

pub(super) fn is_date(text: &str) -> bool {
    text.len() == 10
        && text.bytes().enumerate().all(|(i, b)| {
            if i == 4 || i == 7 {
                b == b'-'
            } else {
                b.is_ascii_digit()
            }
        })
        && text.parse::<jiff::civil::Date>().is_ok()
}

/// Go reads the time after the first `t` and compares its parts as text.
pub(super) fn is_date_time(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut parts = text.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    is_date(date) && is_time(time)
}

fn is_time(time: &str) -> bool {
    let bytes = time.as_bytes();
    let two = |at: usize, max: &str| {
        bytes.len() >= at + 2
            && bytes[at..at + 2].iter().all(u8::is_ascii_digit)
            && &bytes[at..at + 2] <= max.as_bytes()
    };
    let colon = |at: usize| bytes.get(at) == Some(&b':');
    if !(two(0, "23") && colon(2) && two(3, "59") && colon(5) && two(6, "59")) {
        return false;
    }
    let mut zone = &bytes[8..];
    if zone.len() > 1 && zone[1].is_ascii_digit() && !is_zone(zone) {
        let digits = zone[1..].iter().take_while(|b| b.is_ascii_digit()).count();
        zone = &zone[1 + digits..];
    }
    is_zone(zone)
}

fn is_zone(zone: &[u8]) -> bool {
    match zone {
        b"z" => true,
        [b'+' | b'-', a, b, b':', c, d] => [a, b, c, d].iter().all(|b| b.is_ascii_digit()),
        _ => false,
    }
}

/// A Go duration such as `1h30m`, or words such as `2 days`.
pub(super) fn is_duration(text: &str) -> bool {
    if is_go_duration(text) {
        return true;
    }
    const UNITS: [&[&str]; 8] = [
        &["ns", "nano"],
        &["us", "µs", "micro"],
        &["ms", "milli"],
        &["s", "sec"],
        &["m", "min"],
        &["h", "hr", "hour"],
        &["d", "day"],
        &["w", "wk", "week"],
    ];
    let unit = |unit: &str| {
        UNITS.iter().any(|names| {
            names.contains(&unit) || names.last().is_some_and(|word| unit.starts_with(word))
        })
    };
    let mut found = false;
    for part in DURATION_PART.captures_iter(text) {
        if part[1].parse::<i64>().is_err() {
            return false;
        }
        found |= unit(&part[2].to_lowercase());
    }
    found
}

fn is_go_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let number = rest.len()
            - rest
                .trim_start_matches(|c: char| c.is_ascii_digit() || c == '.')
                .len();
        let digits = &rest[..number];
        let after = &rest[number..];
        let units = ["ns", "us", "µs", "μs", "ms", "s", "m", "h"];
        let unit = units.iter().find(|u| {
            after.strip_prefix(**u).is_some_and(|r| {
                r.is_empty() || r.starts_with(|c: char| c.is_ascii_digit() || c == '.')
            })
        });
        let valid = digits.matches('.').count() <= 1 && digits.bytes().any(|b| b.is_ascii_digit());
        let Some(unit) = unit.filter(|_| valid) else {
            return false;
        };
        rest = &after[unit.len()..];
    }
    true
}
