//! Texts that a regular expression matches.

use regex_syntax::Parser;
use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

/// The longest text that is made.
const MAX_TEXT: usize = 10_000;
/// How much longer than the shortest the repetitions become, at most.
const MAX_EXTRA: usize = 64;

/// Texts for a pattern, the shorter ones first. Not all of them need match, for what surrounds a `^` or a `\b` in the
/// middle is not looked at.
pub(super) fn texts(source: &str, least: usize, most: usize) -> Vec<String> {
    let Ok(hir) = Parser::new().parse(source) else {
        return Vec::new();
    };
    let mut found: Vec<String> = Vec::new();
    for extra in (0..MAX_EXTRA).chain([least.saturating_sub(1), least]) {
        for branch in 0..3 {
            let mut text = String::new();
            let maker = Maker { extra, branch };
            maker.write(&hir, &mut text);
            if text.chars().count() <= most && !found.contains(&text) {
                found.push(text);
            }
        }
    }
    found
}

struct Maker {
    /// How often more than it must a repetition repeats.
    extra: usize,
    /// Which alternative is taken.
    branch: usize,
}

impl Maker {
    /// The parser limits how deep expressions nest.
    fn write(&self, hir: &Hir, out: &mut String) {
        if out.len() > MAX_TEXT {
            return;
        }
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(literal) => out.push_str(&String::from_utf8_lossy(&literal.0)),
            HirKind::Class(class) => out.extend(pick(class)),
            HirKind::Repetition(repetition) => self.repeat(repetition, out),
            HirKind::Capture(capture) => self.write(&capture.sub, out),
            HirKind::Concat(parts) => parts.iter().for_each(|part| self.write(part, out)),
            HirKind::Alternation(parts) => self.write(&parts[self.branch % parts.len()], out),
        }
    }

    fn repeat(&self, repetition: &Repetition, out: &mut String) {
        let least = repetition.min as usize;
        let most = repetition.max.map_or(usize::MAX, |max| max as usize);
        for _ in 0..least.saturating_add(self.extra).min(most) {
            if out.len() > MAX_TEXT {
                return;
            }
            self.write(&repetition.sub, out);
        }
    }
}

/// A character that people can read, if the class has one.
fn pick(class: &Class) -> Option<char> {
    const PREFERRED: &str = "aAx1/-_. ";
    let contains = |wanted: char| match class {
        Class::Unicode(class) => class
            .ranges()
            .iter()
            .any(|r| (r.start()..=r.end()).contains(&wanted)),
        Class::Bytes(class) => {
            let ranges = class.ranges().iter();
            ranges
                .into_iter()
                .any(|r| (char::from(r.start())..=char::from(r.end())).contains(&wanted))
        }
    };
    let first = || match class {
        Class::Unicode(class) => class.ranges().first().map(|range| range.start()),
        Class::Bytes(class) => class
            .ranges()
            .first()
            .map(|range| char::from(range.start())),
    };
    let printable = || (' '..='~').find(|c| contains(*c));
    PREFERRED
        .chars()
        .find(|c| contains(*c))
        .or_else(printable)
        .or_else(first)
}
