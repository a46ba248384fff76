//! Cron schedules: five fields, or a word such as `@daily`. Only their syntax; nothing is computed.

/// Smallest and largest value of each field, and the names some of them have.
const FIELDS: [(i64, i64, &[&str]); 5] = [
    (0, 59, &[]),
    (0, 23, &[]),
    (1, 31, &[]),
    (
        1,
        12,
        &[
            "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ],
    ),
    (0, 6, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
];

const WORDS: [&str; 7] = [
    "@yearly",
    "@annually",
    "@monthly",
    "@weekly",
    "@daily",
    "@midnight",
    "@hourly",
];

/// What is wrong with a schedule, in the words of the server.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct InvalidSchedule(String);

/// Checks a schedule.
///
/// # Errors
/// What is wrong with it, in the words of the server.
pub(super) fn check(schedule: &str) -> Result<(), InvalidSchedule> {
    let mut rest = schedule;
    if rest.starts_with("TZ=") || rest.starts_with("CRON_TZ=") {
        let (_, after) = rest
            .split_once(' ')
            .ok_or_else(|| InvalidSchedule("unable to parse schedule".to_owned()))?;
        rest = after.trim();
    }
    if rest.starts_with('@') {
        return check_word(rest);
    }
    if rest.is_empty() {
        return Err(InvalidSchedule("empty spec string".to_owned()));
    }
    let fields: Vec<&str> = rest.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        let (count, shown) = (fields.len(), fields.join(" "));
        return Err(InvalidSchedule(format!(
            "expected exactly 5 fields, found {count}: [{shown}]"
        )));
    }
    for (field, (low, high, names)) in fields.iter().zip(FIELDS) {
        for range in field.split(',').filter(|range| !range.is_empty()) {
            check_range(range, low, high, names)?;
        }
    }
    Ok(())
}

fn check_word(word: &str) -> Result<(), InvalidSchedule> {
    if WORDS.contains(&word) {
        return Ok(());
    }
    match word.strip_prefix("@every ") {
        Some(duration) if is_duration(duration) => Ok(()),
        Some(duration) => Err(InvalidSchedule(format!(
            "failed to parse duration {word}: time: invalid duration {duration:?}"
        ))),
        None => Err(InvalidSchedule(format!("unrecognized descriptor: {word}"))),
    }
}

/// Whether a text is a duration such as `1h30m`.
fn is_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    let mut parts = 0;
    while !rest.is_empty() {
        let number = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        if number.len() == rest.len() || rest[..rest.len() - number.len()] == *"." {
            return false;
        }
        let units = ["ns", "us", "µs", "ms", "s", "m", "h"];
        let unit = units
            .iter()
            .filter(|unit| number.starts_with(**unit))
            .max_by_key(|unit| unit.len());
        match unit {
            Some(unit) => rest = &number[unit.len()..],
            None => return false,
        }
        parts += 1;
    }
    parts > 0
}

fn check_range(range: &str, low: i64, high: i64, names: &[&str]) -> Result<(), InvalidSchedule> {
    let mut parts = range.split('/');
    let bounds: Vec<&str> = parts.next().unwrap_or_default().split('-').collect();
    let (start, mut end) = if matches!(bounds[0], "*" | "?") {
        (low, high)
    } else {
        let start = value(bounds[0], low, names)?;
        match bounds.len() {
            1 => (start, start),
            2 => (start, value(bounds[1], low, names)?),
            _ => return Err(InvalidSchedule(format!("too many hyphens: {range}"))),
        }
    };
    let mut step = 1;
    if let Some(text) = parts.next() {
        step = number(text)?;
        if bounds.len() == 1 {
            end = high;
        }
    }
    if parts.next().is_some() {
        return Err(InvalidSchedule(format!("too many slashes: {range}")));
    }
    if start < low {
        return Err(InvalidSchedule(format!(
            "beginning of range ({start}) below minimum ({low}): {range}"
        )));
    }
    if end > high {
        return Err(InvalidSchedule(format!(
            "end of range ({end}) above maximum ({high}): {range}"
        )));
    }
    if start > end {
        return Err(InvalidSchedule(format!(
            "beginning of range ({start}) beyond end of range ({end}): {range}"
        )));
    }
    if step == 0 {
        return Err(InvalidSchedule(format!(
            "step of range should be a positive number: {range}"
        )));
    }
    Ok(())
}

fn value(text: &str, first: i64, names: &[&str]) -> Result<i64, InvalidSchedule> {
    let lower = text.to_ascii_lowercase();
    match names.iter().position(|name| *name == lower) {
        Some(at) => Ok(first + i64::try_from(at).unwrap_or(0)),
        None => number(text),
    }
}

fn number(text: &str) -> Result<i64, InvalidSchedule> {
    match text.parse::<i64>() {
        Ok(number) if number < 0 => Err(InvalidSchedule(format!(
            "negative number ({number}) not allowed: {text}"
        ))),
        Ok(number) => Ok(number),
        Err(_) => Err(InvalidSchedule(format!(
            "failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_schedules_pass() {
        for schedule in [
            "* * * * *",
            "*/5 0-6 1,15 jan-MAR sun",
            "0 0 ? * 1-5/2",
            "@daily",
            "@every 1h30m",
            "59 23 31 12 6",
        ] {
            assert_eq!(check(schedule), Ok(()), "{schedule}");
        }
    }

    #[test]
    fn bad_schedules_are_refused_in_the_words_of_the_server() {
        for (schedule, expect) in [
            ("", "empty spec string"),
            ("* * *", "expected exactly 5 fields, found 3: [* * *]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            (
                "5-3 * * * *",
                "beginning of range (5) beyond end of range (3): 5-3",
            ),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("*/2/3 * * * *", "too many slashes: */2/3"),
            (
                "*/0 * * * *",
                "step of range should be a positive number: */0",
            ),
            (
                "x * * * *",
                "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax",
            ),
            ("@noon", "unrecognized descriptor: @noon"),
            (
                "@every soon",
                "failed to parse duration @every soon: time: invalid duration \"soon\"",
            ),
        ] {
            let expect = InvalidSchedule(expect.to_owned());
            assert_eq!(check(schedule), Err(expect), "{schedule}");
        }
    }
}
