//! Whether a line of cron makes sense.

/// The parts of a schedule, and what they may be.
const PARTS: [(&str, u32, u32); 5] = [
    ("minute", 0, 59),
    ("hour", 0, 23),
    ("day of month", 1, 31),
    ("month", 1, 12),
    ("day of week", 0, 6),
];

/// What is wrong with a schedule, if anything is.
pub(crate) fn problem(schedule: &str) -> Option<String> {
    let parts: Vec<&str> = schedule.split_whitespace().collect();
    if parts.len() != PARTS.len() {
        return Some(format!("it has {} parts, not five", parts.len()));
    }
    for (part, (name, least, most)) in parts.into_iter().zip(PARTS) {
        let sound = part.split(',').all(|range| is_range(range, least, most));
        if !sound {
            return Some(format!("{name} {part:?} is not within {least} and {most}"));
        }
    }
    None
}

/// `*`, `5`, `1-5`, each with or without `/2`.
fn is_range(range: &str, least: u32, most: u32) -> bool {
    let (range, step) = match range.split_once('/') {
        Some((range, step)) => (range, step.parse::<u32>().is_ok_and(|step| step > 0)),
        None => (range, true),
    };
    let number = |text: &str| text.parse().ok().filter(|n| (least..=most).contains(n));
    let sound = match range.split_once('-') {
        Some((from, to)) => number(from)
            .zip(number(to))
            .is_some_and(|(from, to)| from <= to),
        None => range == "*" || number(range).is_some(),
    };
    step && sound
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_distinguished_from_other_texts() {
        for sound in ["* * * * *", "*/5 0-6,22 1 1-12/3 0,6", "59 23 31 12 6"] {
            assert_eq!(problem(sound), None, "{sound}");
        }
        for wrong in [
            "",
            "* * * *",
            "* * * * * *",
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * * 13 *",
            "* * * * 7",
            "5-1 * * * *",
            "*/0 * * * *",
            "a * * * *",
            ", * * * *",
            "@hourly",
        ] {
            assert!(problem(wrong).is_some(), "{wrong}");
        }
    }
}
