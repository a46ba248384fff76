//! Merges two texts that both come from a third, line by line. Pure.
//!
//! A line that only one side changed is that side's. Where both changed the same lines in different ways, both are kept
//! between the marks that people know from git.

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// What a mark of a conflict begins with.
const OPEN: &str = "<<<<<<< ";
const BETWEEN: &str = "=======\n";
const CLOSE: &str = ">>>>>>> ";

/// The names of both sides in the marks of conflicts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sides<'a> {
    pub(crate) ours: &'a str,
    pub(crate) theirs: &'a str,
}

/// A merged text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Merged {
    pub(crate) text: String,
    /// The lines at which conflicts begin, counted from one.
    pub(crate) conflicts: Vec<usize>,
}

/// Where a part of each text begins, or ends.
#[derive(Debug, Clone, Copy)]
struct Place {
    base: usize,
    ours: usize,
    theirs: usize,
}

/// Merges what became of a text on two sides.
pub(crate) fn merge(base: &str, ours: &str, theirs: &str, sides: Sides<'_>) -> Merged {
    let [base, ours, theirs] =
        [base, ours, theirs].map(|text| text.split_inclusive('\n').collect::<Vec<_>>());
    let (to_ours, to_theirs) = (kept(&base, &ours), kept(&base, &theirs));
    let mut merged = Merged {
        text: String::new(),
        conflicts: Vec::new(),
    };
    let mut at = Place {
        base: 0,
        ours: 0,
        theirs: 0,
    };
    let end = Place {
        base: base.len(),
        ours: ours.len(),
        theirs: theirs.len(),
    };
    loop {
        // The next line that both sides have kept.
        let kept = (at.base..end.base).find_map(|line| {
            Some(Place {
                base: line,
                ours: to_ours[line]?,
                theirs: to_theirs[line]?,
            })
        });
        let until = kept.unwrap_or(end);
        let part = [
            &base[at.base..until.base],
            &ours[at.ours..until.ours],
            &theirs[at.theirs..until.theirs],
        ];
        merged.add(part, sides);
        if kept.is_none() {
            return merged;
        }
        merged.text.push_str(base[until.base]);
        at = Place {
            base: until.base + 1,
            ours: until.ours + 1,
            theirs: until.theirs + 1,
        };
    }
}

/// The lines at which conflicts begin that nobody has resolved.
pub(crate) fn unresolved(text: &str) -> Vec<usize> {
    let lines = text.lines().enumerate();
    let marks = lines.filter(|(_, line)| line.starts_with(OPEN));
    marks.map(|(number, _)| number + 1).collect()
}

/// Where each line of a text is in another that came from it, if it is there still.
fn kept(base: &[&str], other: &[&str]) -> Vec<Option<usize>> {
    let mut kept = vec![None; base.len()];
    for change in capture_diff_slices(Algorithm::Patience, base, other) {
        if let DiffOp::Equal {
            old_index,
            new_index,
            len,
        } = change
        {
            for step in 0..len {
                kept[old_index + step] = Some(new_index + step);
            }
        }
    }
    kept
}

impl Merged {
    /// Adds what becomes of lines that one side or both have changed.
    fn add(&mut self, [base, ours, theirs]: [&[&str]; 3], sides: Sides<'_>) {
        if ours == base || ours == theirs {
            self.lines(theirs);
        } else if theirs == base {
            self.lines(ours);
        } else {
            self.conflict(ours, theirs, sides);
        }
    }

    fn conflict(&mut self, ours: &[&str], theirs: &[&str], sides: Sides<'_>) {
        // What both have at the beginning and at the end is not a part of it.
        let both = ours.iter().zip(theirs);
        let first = both.take_while(|(one, other)| one == other).count();
        let (same, ours, theirs) = (&ours[..first], &ours[first..], &theirs[first..]);
        let both = ours.iter().rev().zip(theirs.iter().rev());
        let last = both.take_while(|(one, other)| one == other).count();
        let (ours, end) = ours.split_at(ours.len() - last);
        let theirs = &theirs[..theirs.len() - last];
        self.lines(same);
        self.conflicts.push(self.text.lines().count() + 1);
        self.lines(&[OPEN, sides.ours, "\n"]);
        self.lines(ours);
        self.end_line();
        self.lines(&[BETWEEN]);
        self.lines(theirs);
        self.end_line();
        self.lines(&[CLOSE, sides.theirs, "\n"]);
        self.lines(end);
    }

    fn lines(&mut self, lines: &[&str]) {
        self.text.extend(lines.iter().copied());
    }

    /// The last line of a file may have no end.
    fn end_line(&mut self) {
        if !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIDES: Sides<'_> = Sides {
        ours: "yours",
        theirs: "theirs",
    };

    /// Merges texts of one letter a line.
    fn letters(base: &str, ours: &str, theirs: &str) -> (String, Vec<usize>) {
        let lines = |text: &str| text.chars().map(|c| format!("{c}\n")).collect::<String>();
        let merged = merge(&lines(base), &lines(ours), &lines(theirs), SIDES);
        (merged.text.replace('\n', " "), merged.conflicts)
    }

    #[test]
    fn changes_of_one_side_are_taken() {
        for (base, ours, theirs, expected) in [
            ("abc", "abc", "abc", "a b c "),
            ("abc", "aXc", "abc", "a X c "),
            ("abc", "abc", "aYc", "a Y c "),
            ("abc", "aXc", "aXc", "a X c "),
            ("abcde", "Xbcde", "abcdY", "X b c d Y "),
            ("abcde", "acde", "abcYde", "a c Y d e "),
            ("abc", "abcX", "Yabc", "Y a b c X "),
            ("", "", "Y", "Y "),
            ("abc", "", "abc", ""),
        ] {
            let case = format!("{base} {ours} {theirs}");
            assert_eq!(
                letters(base, ours, theirs),
                (expected.into(), vec![]),
                "{case}"
            );
        }
    }

    #[test]
    fn lines_that_both_changed_are_marked_and_nothing_else_is() {
        let (text, conflicts) = letters("abc", "aXc", "aYc");
        assert_eq!(text, "a <<<<<<< yours X ======= Y >>>>>>> theirs c ");
        assert_eq!(conflicts, [2]);
        let (text, _) = letters("abc", "aPXQc", "aPYQc");
        assert_eq!(text, "a P <<<<<<< yours X ======= Y >>>>>>> theirs Q c ");
        let (text, conflicts) = letters("abcde", "aXcXe", "aYcYe");
        assert_eq!(conflicts, [2, 8], "{text}");
        let merged = merge("a\nb\nc\n", "x\nb\nx\n", "y\nb\ny\n", SIDES);
        assert_eq!(unresolved(&merged.text), merged.conflicts);
        let (text, _) = letters("ab", "a", "aY");
        assert_eq!(text, "a <<<<<<< yours ======= Y >>>>>>> theirs ");
    }

    #[test]
    fn last_line_without_an_end_gets_one_where_a_mark_follows() {
        let merged = merge("a", "b", "c", SIDES);
        assert_eq!(
            merged.text,
            "<<<<<<< yours\nb\n=======\nc\n>>>>>>> theirs\n"
        );
        assert_eq!(unresolved(&merged.text), [1]);
        assert!(unresolved("a <<<<<<< b\n=======\n").is_empty());
    }

    /// Whatever each side does, nothing that only one of them wrote is lost.
    #[test]
    fn every_line_of_either_side_is_there_or_was_changed_by_the_other() {
        let mut seed = 7_u64;
        let mut random = move |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % below
        };
        for _ in 0..2000 {
            let base: Vec<char> = (0..random(12))
                .map(|n| char::from(b'a' + n as u8))
                .collect();
            let mut side = |new: char| {
                let mut lines = base.clone();
                for _ in 0..random(4) {
                    let at = random(lines.len() + 1);
                    match random(2) {
                        0 => lines.insert(at, new),
                        _ if at < lines.len() => drop(lines.remove(at)),
                        _ => {}
                    }
                }
                lines.into_iter().collect::<String>()
            };
            let (ours, theirs) = (side('X'), side('Y'));
            let base: String = base.iter().collect();
            let (text, _) = letters(&base, &ours, &theirs);
            for (letter, from) in [('X', &ours), ('Y', &theirs)] {
                let count = |text: &str| {
                    text.split(' ')
                        .filter(|it| *it == letter.to_string())
                        .count()
                };
                let wanted = from.chars().filter(|c| *c == letter).count();
                assert_eq!(count(&text), wanted, "{base} {ours} {theirs}: {text}");
            }
        }
    }
}
