//! Sets of completion indexes as statuses tell them: `0-2,5,7-9`.

use std::collections::BTreeSet;

/// The most indexes that are read from a text; validation allows no job more.
const MOST: usize = 100_000;

/// The indexes in a text, those below `end` only. What does not read is left out.
pub(crate) fn parse(text: &str, end: i32) -> BTreeSet<i32> {
    let mut found = BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (Ok(first), Ok(last)) = (first.parse::<i32>(), last.parse::<i32>()) else {
            continue;
        };
        let room = MOST.saturating_sub(found.len());
        found.extend((first.max(0)..=last.min(end.saturating_sub(1))).take(room));
    }
    found
}

/// The text of a set; two neighbours are listed one by one, three and more as a range.
pub(crate) fn format(indexes: &BTreeSet<i32>) -> String {
    let mut parts: Vec<(i32, i32)> = Vec::new();
    for index in indexes {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == *index => *last = *index,
            _ => parts.push((*index, *index)),
        }
    }
    let texts = parts.into_iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first},{last}"),
        _ => format!("{first}-{last}"),
    });
    texts.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_read_as_they_were_written() {
        for text in ["", "0", "0,1", "0-2", "0,2-4,9", "1,3,4,6-8"] {
            assert_eq!(format(&parse(text, 10)), text);
        }
    }

    #[test]
    fn indexes_beyond_the_end_are_left_out() {
        assert_eq!(format(&parse("0-5,8,x,3-", 4)), "0-3");
        assert_eq!(parse("0-2147483647", i32::MAX).len(), MOST);
    }
}
