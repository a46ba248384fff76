//! Regular expressions of schemas: RE2 as Go understands it, translated for the `regex` crate.
//!
//! The two dialects differ in small ways that change what matches: Go's `\d`, `\w` and `\s` are ASCII, a `[` inside
//! a class is a character, a `{` that starts no repetition is one too, and `\<` is just `<`.

use std::fmt;
use std::sync::Arc;

use regex::{Regex, RegexBuilder};

/// Longest pattern we compile, in bytes.
const MAX_SOURCE: usize = 10_000;
/// Largest compiled program of one pattern, in bytes.
const MAX_PROGRAM: usize = 4 << 20;
/// The limits that a program is compiled with, one after another, when its size counts.
const SIZES: [usize; 5] = [16 << 10, 64 << 10, 256 << 10, 1 << 20, MAX_PROGRAM];
/// Largest compiled programs of all patterns of a schema, in bytes.
const MAX_PROGRAMS: usize = 32 << 20;
/// Largest cache that a pattern fills while it matches, in bytes.
const MAX_CACHE: usize = 512 << 10;
/// Largest count in a repetition such as `x{1000}`: the limit of RE2.
const MAX_REPEAT: u32 = 1000;

/// A compiled `pattern`. Cloning is cheap.
#[derive(Clone)]
pub struct Pattern {
    source: Arc<str>,
    regex: Regex,
}

/// Why a pattern does not compile. `Display` is the text that Go's regexp package gives for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {reason}: `{fragment}`")]
pub struct PatternError {
    reason: String,
    fragment: String,
}

/// What the patterns of one schema may cost together, in bytes of compiled program. Time goes with it.
#[derive(Debug)]
pub struct PatternBudget {
    left: usize,
}

impl Default for PatternBudget {
    fn default() -> Self {
        Self { left: MAX_PROGRAMS }
    }
}

impl PatternBudget {
    /// Compiles a pattern and takes the size of its program from the budget.
    ///
    /// # Errors
    /// As [`Pattern::new`], and when the budget is used up. A pattern that is too large costs as much as the largest.
    pub fn compile(&mut self, source: &str) -> Result<Pattern, PatternError> {
        let translated = checked(source)?;
        // The library does not report the size of a program. The smallest limit that it keeps to is close enough, and the
        // attempts below cost a third of the last.
        for size in SIZES.into_iter().filter(|size| *size <= self.left) {
            match build(&translated, size) {
                Ok(regex) => {
                    self.left -= size;
                    let source = source.into();
                    return Ok(Pattern { source, regex });
                }
                Err(regex::Error::CompiledTooBig(_)) => {}
                Err(error) => return Err(fault(go_reason(&error), source)),
            }
        }
        self.left = self.left.saturating_sub(MAX_PROGRAM);
        Err(fault("expression too large", source))
    }
}

fn fault(reason: &str, fragment: &str) -> PatternError {
    PatternError {
        reason: reason.to_owned(),
        fragment: fragment.to_owned(),
    }
}

/// A pattern of allowed length as the `regex` crate reads it.
fn checked(source: &str) -> Result<String, PatternError> {
    if source.len() > MAX_SOURCE {
        return Err(fault("expression too large", &source[..floor(source, 64)]));
    }
    translate(source).map_err(|(reason, at)| fault(reason, &at))
}

fn build(translated: &str, size: usize) -> Result<Regex, regex::Error> {
    RegexBuilder::new(translated)
        .size_limit(size)
        .dfa_size_limit(MAX_CACHE)
        .nest_limit(200)
        .octal(true)
        .build()
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// When it is not valid RE2 syntax, or larger than we allow.
    pub fn new(source: &str) -> Result<Self, PatternError> {
        let regex = build(&checked(source)?, MAX_PROGRAM)
            .map_err(|error| fault(go_reason(&error), source))?;
        Ok(Self {
            source: source.into(),
            regex,
        })
    }

    /// Whether the pattern matches anywhere in the text.
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// The first matches in the text that do not overlap, at most so many.
    pub(crate) fn find_all<'t>(&self, text: &'t str, limit: usize) -> Vec<&'t str> {
        let found = self.regex.find_iter(text).take(limit);
        found.map(|found| found.as_str()).collect()
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.source
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pattern").field(&self.source).finish()
    }
}

/// The largest character boundary that is not behind `at`.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len()))
        .rev()
        .find(|i| text.is_char_boundary(*i))
        .unwrap_or(0)
}

/// Go's words for what is wrong.
fn go_reason(error: &regex::Error) -> &'static str {
    let regex::Error::Syntax(text) = error else {
        return "expression too large";
    };
    let known = [
        ("unclosed group", "missing closing )"),
        ("unopened group", "unexpected )"),
        ("unclosed character class", "missing closing ]"),
        (
            "repetition operator missing expression",
            "missing argument to repetition operator",
        ),
        ("look-around", "invalid or unsupported Perl syntax"),
        ("backreferences", "invalid escape sequence"),
        ("unrecognized escape sequence", "invalid escape sequence"),
        (
            "incomplete escape sequence",
            "trailing backslash at end of expression",
        ),
        (
            "invalid character class range",
            "invalid character class range",
        ),
        ("Unicode property", "invalid character class range"),
        ("invalid repetition count range", "invalid repeat count"),
        ("group name", "invalid named capture"),
        ("flag", "invalid or unsupported Perl syntax"),
    ];
    known
        .iter()
        .find(|(needle, _)| text.contains(needle))
        .map_or("invalid syntax", |(_, reason)| reason)
}

type Fault = (&'static str, String);

/// Rewrites what the `regex` crate would read differently.
fn translate(source: &str) -> Result<String, Fault> {
    let mut out = String::with_capacity(source.len() + 16);
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        let used = match c {
            '\\' => escape(rest, &mut out, Place::Outside),
            '[' => class(rest, &mut out),
            '{' => repetition(rest, &mut out)?,
            _ => {
                out.push(c);
                c.len_utf8()
            }
        };
        rest = &rest[used..];
    }
    Ok(out)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Outside,
    InClass,
}

/// Writes the escape at the start of `rest` and says how many bytes it took.
fn escape(rest: &str, out: &mut String, place: Place) -> usize {
    let Some(c) = rest[1..].chars().next() else {
        out.push('\\');
        return 1;
    };
    let outside = place == Place::Outside;
    match c {
        'd' if outside => out.push_str("[0-9]"),
        'd' => out.push_str("0-9"),
        'w' if outside => out.push_str("[0-9A-Za-z_]"),
        'w' => out.push_str("0-9A-Za-z_"),
        's' if outside => out.push_str(r"[\t\n\f\r ]"),
        's' => out.push_str(r"\t\n\f\r "),
        'D' => out.push_str("[^0-9]"),
        'W' => out.push_str("[^0-9A-Za-z_]"),
        'S' => out.push_str(r"[^\t\n\f\r ]"),
        'b' if outside => out.push_str(r"(?-u:\b)"),
        '<' | '>' => out.push(c),
        'Q' if outside => return quoted(rest, out),
        _ => {
            out.push('\\');
            out.push(c);
        }
    }
    1 + c.len_utf8()
}

/// `\Q…\E`: everything in between is literal.
fn quoted(rest: &str, out: &mut String) -> usize {
    let body = &rest[2..];
    let (literal, used) = match body.find(r"\E") {
        Some(end) => (&body[..end], 2 + end + 2),
        None => (body, rest.len()),
    };
    out.push_str(&regex::escape(literal));
    used
}

/// A character class: `[` inside of it is a character unless it starts `[:name:]`, and there are no set operators.
fn class(rest: &str, out: &mut String) -> usize {
    out.push('[');
    let mut at = 1;
    if rest[at..].starts_with('^') {
        out.push('^');
        at += 1;
    }
    if rest[at..].starts_with(']') {
        out.push_str(r"\]");
        at += 1;
    }
    while let Some(c) = rest[at..].chars().next() {
        match c {
            ']' => {
                out.push(']');
                return at + 1;
            }
            '\\' => at += escape(&rest[at..], out, Place::InClass),
            '[' if rest[at..].starts_with("[:") && rest[at..].contains(":]") => {
                let end = at + rest[at..].find(":]").unwrap_or(0) + 2;
                out.push_str(&rest[at..end]);
                at = end;
            }
            '[' | '&' | '~' => {
                out.push('\\');
                out.push(c);
                at += 1;
            }
            '-' if rest[at..].starts_with("--") => {
                out.push_str(r"\-");
                at += 1;
            }
            _ => {
                out.push(c);
                at += c.len_utf8();
            }
        }
    }
    at
}

/// A `{` repeats only when a count follows; otherwise it is a character.
fn repetition(rest: &str, out: &mut String) -> Result<usize, Fault> {
    let Some(body) = rest[1..].split_once('}').map(|(body, _)| body) else {
        out.push_str(r"\{");
        return Ok(1);
    };
    let (low, high) = body.split_once(',').unwrap_or((body, body));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if low.is_empty() || !digits(low) || !digits(high) {
        out.push_str(r"\{");
        return Ok(1);
    }
    let whole = &rest[..body.len() + 2];
    let counts = [low, if high.is_empty() { low } else { high }];
    if counts
        .iter()
        .any(|n| n.parse::<u32>().map_or(true, |n| n > MAX_REPEAT))
    {
        return Err(("invalid repeat count", whole.to_owned()));
    }
    out.push_str(whole);
    Ok(whole.len())
}

#[cfg(test)]
mod tests {
    use super::{Pattern, PatternBudget};

    #[track_caller]
    fn check(pattern: &str, yes: &[&str], no: &[&str]) {
        let pattern = Pattern::new(pattern).expect("pattern compiles");
        for text in yes {
            assert!(pattern.is_match(text), "{pattern:?} matches {text:?}");
        }
        for text in no {
            assert!(
                !pattern.is_match(text),
                "{pattern:?} does not match {text:?}"
            );
        }
    }

    #[test]
    fn patterns_match_as_in_go() {
        check("^x", &["xa"], &["ax"]);
        check(r"^\d+$", &["123"], &["١٢"]);
        check(r"^[\d\-a]+$", &["1-a"], &["b"]);
        check(r"^\w$", &["_"], &["é"]);
        check("^[[a]+$", &["[a"], &["b"]);
        check("^[[:alpha:]]+$", &["ab"], &["1"]);
        check("^[a&&b]+$", &["a&b"], &["c"]);
        check(r"^\<a\>$", &["<a>"], &["a"]);
        check("^a{,2}$", &["a{,2}"], &["a"]);
        check("^{{x}}$", &["{{x}}"], &[]);
        check("^a{2}$", &["aa"], &["a"]);
        check(r"^\Qa.b\E$", &["a.b"], &["axb"]);
        check("^[]a]+$", &["]a"], &["b"]);
        check(r"\bfoo\b", &["a foo b"], &["afoo"]);
        check("^[^/]+/[^/]+$", &["a/b"], &["a"]);
    }

    #[test]
    fn faults_are_said_in_the_words_of_go() {
        let cases = [
            ("(a", "error parsing regexp: missing closing ): `(a`"),
            ("a)", "error parsing regexp: unexpected ): `a)`"),
            ("[a", "error parsing regexp: missing closing ]: `[a`"),
            (
                "*a",
                "error parsing regexp: missing argument to repetition operator: `*a`",
            ),
            (
                "a{1001}",
                "error parsing regexp: invalid repeat count: `{1001}`",
            ),
            (
                "(?=a)",
                "error parsing regexp: invalid or unsupported Perl syntax: `(?=a)`",
            ),
        ];
        for (pattern, expect) in cases {
            let error = Pattern::new(pattern).expect_err("pattern is invalid");
            assert_eq!(error.to_string(), expect);
        }
    }

    /// How many of these patterns one schema may have.
    fn within_budget(patterns: impl Iterator<Item = String>) -> usize {
        let mut budget = PatternBudget::default();
        patterns.take_while(|p| budget.compile(p).is_ok()).count()
    }

    #[test]
    fn patterns_of_a_schema_cost_no_more_than_a_few_large_ones() {
        let large = (0..900).map(|n| format!("^(.{{1,1000}}x){{1}}$|a{n}"));
        assert!(within_budget(large) < 40);
        let usual = (0..1_000).map(|n| format!("^[a-z0-9]([-a-z0-9]{{0,61}}[a-z0-9])?-{n}$"));
        assert_eq!(within_budget(usual), 1_000);
    }

    #[test]
    fn patterns_that_are_refused_cost_as_much_as_the_largest() {
        let mut budget = PatternBudget::default();
        let refused = (0..900).filter(|n| budget.compile(&format!(r"[\pL]{{130}}{n}")).is_err());
        assert_eq!(refused.count(), 900);
        assert!(
            budget.compile("a").is_err(),
            "nothing is left to compile even this with"
        );
    }

    proptest::proptest! {
        #[test]
        fn any_text_compiles_or_fails_without_panic(source in "[ -~\\\\\\[\\]{}(),:&é]{0,24}") {
            let _ = Pattern::new(&source);
        }
    }
}
