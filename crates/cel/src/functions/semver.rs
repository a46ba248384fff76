//! Semantic versions.
//!
//! The crate `semver` orders them. Reading them is here, because Kubernetes shows the errors of its own reader to users.

use std::cmp::Ordering;
use std::rc::Rc;

use semver::{BuildMetadata, Prerelease, Version};

use super::super::eval::Evaluator;
use super::super::value::{Evaluated, Value, fail, no_overload};
use super::read;

/// A version. The build does not count when versions are compared.
#[derive(Debug, Clone)]
pub struct Semver(Version);

/// Why a text is not a semantic version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum SemverError {
    #[error("No Major.Minor.Patch elements found")]
    NotThreeNumbers,
    #[error("short version cannot contain PreRelease/Build meta data")]
    SuffixOfShort,
    #[error("{0} is empty")]
    Empty(&'static str),
    #[error("Invalid character(s) found in {part} {text:?}")]
    Characters { part: &'static str, text: String },
    #[error("{part} must not contain leading zeroes {text:?}")]
    LeadingZeroes { part: &'static str, text: String },
    #[error("{part} out of range {text:?}")]
    OutOfRange { part: &'static str, text: String },
}

impl PartialEq for Semver {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Semver {
    fn parse(text: &str) -> Result<Self, SemverError> {
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
            return Err(SemverError::NotThreeNumbers);
        };
        Ok(Self(Version {
            major: number(major, "Major number", "major number")?,
            minor: number(minor, "Minor number", "minor number")?,
            patch: number(patch, "Patch number", "patch number")?,
            pre: prerelease.map_or(Ok(Prerelease::EMPTY), read_prerelease)?,
            build: BuildMetadata::EMPTY,
        }))
    }

    /// Reads `v1.2` as `1.2.0`, and `01` as `1`.
    fn parse_tolerant(text: &str) -> Result<Self, SemverError> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(without_zeros).collect();
        if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return Err(SemverError::SuffixOfShort);
        }
        while parts.len() < 3 {
            parts.push("0".to_owned());
        }
        Self::parse(&parts.join("."))
    }

    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp_precedence(&other.0)
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

/// One of the three numbers. `part` names it at the beginning of a sentence, `within` further on.
fn number(text: &str, part: &'static str, within: &'static str) -> Result<u64, SemverError> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        let (part, text) = (within, text.to_owned());
        return Err(SemverError::Characters { part, text });
    }
    let text = text.to_owned();
    if text.len() > 1 && text.starts_with('0') {
        return Err(SemverError::LeadingZeroes { part, text });
    }
    let number = text.parse();
    number.map_err(|_| SemverError::OutOfRange { part, text })
}

fn identifier(text: &str, part: &'static str) -> Result<(), SemverError> {
    if text.is_empty() {
        return Err(SemverError::Empty(part));
    }
    if text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return Ok(());
    }
    let text = text.to_owned();
    Err(SemverError::Characters { part, text })
}

fn read_prerelease(text: &str) -> Result<Prerelease, SemverError> {
    for part in text.split('.') {
        identifier(part, "prerelease")?;
        if !part.bytes().all(|b| b.is_ascii_digit()) {
            continue;
        }
        let text = part.to_owned();
        if part.len() > 1 && part.starts_with('0') {
            let part = "Numeric PreRelease version";
            return Err(SemverError::LeadingZeroes { part, text });
        }
        if part.parse::<u64>().is_err() {
            let part = "prerelease number";
            return Err(SemverError::OutOfRange { part, text });
        }
    }
    Prerelease::new(text).map_err(|_| SemverError::Characters {
        part: "prerelease",
        text: text.to_owned(),
    })
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
        (_, Err(error)) => fail(error.to_string()),
    }
}

fn of_version<'a>(name: &str, version: &Semver, args: &[Value<'a>]) -> Evaluated<'a> {
    let number = |number: u64| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
    Ok(match (name, args) {
        ("major", []) => number(version.0.major),
        ("minor", []) => number(version.0.minor),
        ("patch", []) => number(version.0.patch),
        ("isGreaterThan", [Value::Semver(other)]) => Value::Bool(version.cmp(other).is_gt()),
        ("isLessThan", [Value::Semver(other)]) => Value::Bool(version.cmp(other).is_lt()),
        ("compareTo", [Value::Semver(other)]) => Value::Int(version.cmp(other) as i64),
        _ => return no_overload(),
    })
}
