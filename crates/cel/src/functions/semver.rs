//! Semantic versions.

use std::cmp::Ordering;
use std::rc::Rc;

use super::super::eval::Evaluator;
use super::super::value::{Evaluated, Value, fail, no_overload};
use super::read;

/// A version. The build does not count when versions are compared.
#[derive(Debug, Clone)]
pub struct Semver {
    numbers: [u64; 3],
    prerelease: Vec<Part>,
}

impl PartialEq for Semver {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

/// A part of a prerelease. Numbers come before words.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Word(String),
}

impl Semver {
    fn parse(text: &str) -> Result<Self, String> {
        let (rest, build) = match text.split_once('+') {
            Some((rest, build)) => (rest, Some(build)),
            None => (text, None),
        };
        if let Some(build) = build {
            for part in build.split('.') {
                identifier(part, "build meta data")?;
            }
        }
        let (core, prerelease) = match rest.split_once('-') {
            Some((core, prerelease)) => (core, Some(prerelease)),
            None => (rest, None),
        };
        let parts: Vec<&str> = core.splitn(3, '.').collect();
        let [major, minor, patch] = parts[..] else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let numbers = [
            number(major, "Major")?,
            number(minor, "Minor")?,
            number(patch, "Patch")?,
        ];
        let prerelease = prerelease.map_or(Ok(Vec::new()), |text| {
            text.split('.').map(prerelease_part).collect()
        })?;
        Ok(Self {
            numbers,
            prerelease,
        })
    }

    /// Reads `v1.2` as `1.2.0`, and `01` as `1`.
    fn parse_tolerant(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(without_zeros).collect();
        if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return Err("short version cannot contain PreRelease/Build meta data".to_owned());
        }
        while parts.len() < 3 {
            parts.push("0".to_owned());
        }
        Self::parse(&parts.join("."))
    }

    fn cmp(&self, other: &Self) -> Ordering {
        let releases = (self.prerelease.is_empty(), other.prerelease.is_empty());
        self.numbers
            .cmp(&other.numbers)
            .then_with(|| match releases {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => self.prerelease.cmp(&other.prerelease),
            })
    }
}

fn without_zeros(part: &str) -> String {
    if part.len() < 2 {
        return part.to_owned();
    }
    let trimmed = part.trim_start_matches('0');
    if trimmed.starts_with(|c: char| c.is_ascii_digit()) {
        trimmed.to_owned()
    } else {
        format!("0{trimmed}")
    }
}

fn number(text: &str, name: &str) -> Result<u64, String> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!(
            "Invalid character(s) found in {} number {text:?}",
            name.to_lowercase()
        ));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!(
            "{name} number must not contain leading zeroes {text:?}"
        ));
    }
    text.parse()
        .map_err(|_| format!("{name} number out of range {text:?}"))
}

fn identifier(part: &str, what: &str) -> Result<(), String> {
    if part.is_empty() {
        return Err(format!("{what} is empty"));
    }
    if part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return Ok(());
    }
    Err(format!("Invalid character(s) found in {what} {part:?}"))
}

fn prerelease_part(part: &str) -> Result<Part, String> {
    identifier(part, "prerelease")?;
    if !part.bytes().all(|b| b.is_ascii_digit()) {
        return Ok(Part::Word(part.to_owned()));
    }
    if part.len() > 1 && part.starts_with('0') {
        return Err(format!(
            "Numeric PreRelease version must not contain leading zeroes {part:?}"
        ));
    }
    part.parse()
        .map(Part::Number)
        .map_err(|_| format!("prerelease number out of range {part:?}"))
}

pub(super) fn call<'a>(eval: &mut Evaluator<'a>, name: &str, args: &[Value<'a>]) -> Evaluated<'a> {
    let parsed = match args {
        [Value::Text(text)] | [Value::Text(text), Value::Bool(false)] => {
            Semver::parse(read(eval, text)?)
        }
        [Value::Text(text), Value::Bool(true)] => Semver::parse_tolerant(read(eval, text)?),
        [Value::Semver(version), rest @ ..] => {
            eval.charge(1)?;
            return of_version(name, version, rest);
        }
        _ => return no_overload(),
    };
    match (name, parsed) {
        ("isSemver", parsed) => Ok(Value::Bool(parsed.is_ok())),
        (_, Ok(version)) => Ok(Value::Semver(Rc::new(version))),
        (_, Err(reason)) => fail(reason),
    }
}

fn of_version<'a>(name: &str, version: &Semver, args: &[Value<'a>]) -> Evaluated<'a> {
    let number = |at: usize| Value::Int(i64::try_from(version.numbers[at]).unwrap_or(i64::MAX));
    Ok(match (name, args) {
        ("major", []) => number(0),
        ("minor", []) => number(1),
        ("patch", []) => number(2),
        ("isGreaterThan", [Value::Semver(other)]) => Value::Bool(version.cmp(other).is_gt()),
        ("isLessThan", [Value::Semver(other)]) => Value::Bool(version.cmp(other).is_lt()),
        ("compareTo", [Value::Semver(other)]) => Value::Int(version.cmp(other) as i64),
        _ => return no_overload(),
    })
}
