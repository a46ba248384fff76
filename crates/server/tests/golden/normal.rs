//! What two servers may say differently and still say the same: identifiers, revisions, moments, addresses.

use std::net::IpAddr;

use jiff::Timestamp;

/// Length of a UUID in text.
const UUID: usize = 36;

/// Whether two strings at a place mean the same. `key` is the last step to the place that has a name.
pub(crate) fn same(key: &str, expected: &str, actual: &str) -> bool {
    if expected == actual {
        return true;
    }
    let both = |test: fn(&str) -> bool| test(expected) && test(actual);
    match key {
        "resourceVersion" if both(is_number) => return true,
        "continue" if both(|text| !text.is_empty()) => return true,
        "clusterIP" | "clusterIPs" | "cells" if both(is_address) => return true,
        "cells" if both(is_age) => return true,
        _ => {}
    }
    if both(is_moment) {
        return shape(expected) == shape(actual);
    }
    scrub(expected) == scrub(actual)
}

/// Whether two names come from the same `generateName`.
pub(crate) fn same_generated(prefix: &str, expected: &str, actual: &str) -> bool {
    let suffix = |name: &str| name.strip_prefix(prefix).map(str::len);
    !prefix.is_empty() && suffix(expected) == Some(5) && suffix(actual) == Some(5)
}

/// Replaces identifiers, hashes and, where a text speaks of them, revisions.
pub(crate) fn scrub(text: &str) -> String {
    let text = replace_runs(
        text,
        |c| c.is_ascii_hexdigit() || c == '-',
        |run| is_uuid(run).then_some("<uid>"),
    );
    let text = replace_runs(
        &text,
        |c| c.is_ascii_hexdigit(),
        |run| (run.len() >= 64).then_some("<hash>"),
    );
    if !text.to_lowercase().contains("resource version") {
        return text;
    }
    replace_runs(&text, |c| c.is_ascii_digit(), |_| Some("<revision>"))
}

/// Replaces the longest runs of certain characters, where `replacement` gives one.
fn replace_runs(
    text: &str,
    belongs: fn(char) -> bool,
    replacement: impl Fn(&str) -> Option<&'static str>,
) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(belongs) {
        let run = &rest[start..];
        let end = run.find(|c| !belongs(c)).unwrap_or(run.len());
        out.push_str(&rest[..start]);
        out.push_str(replacement(&run[..end]).unwrap_or(&run[..end]));
        rest = &run[end..];
    }
    out + rest
}

fn is_uuid(text: &str) -> bool {
    text.len() == UUID
        && text.bytes().enumerate().all(|(index, byte)| match index {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_address(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok()
}

fn is_moment(text: &str) -> bool {
    text.parse::<Timestamp>().is_ok()
}

/// `5s` or `2m10s`: what a table says of time.
fn is_age(text: &str) -> bool {
    let units = text.trim_start_matches(|c: char| c.is_ascii_digit() || "smhdy".contains(c));
    text.starts_with(|c: char| c.is_ascii_digit())
        && units.is_empty()
        && text.ends_with(|c: char| c.is_ascii_alphabetic())
}

/// A moment with its digits hidden: its precision and its zone remain.
fn shape(moment: &str) -> String {
    let hide = |c: char| if c.is_ascii_digit() { '0' } else { c };
    moment.chars().map(hide).collect()
}
