//! The parameters of a request.

use std::collections::BTreeMap;

use http::request::Parts;

use crate::http::Problem;

/// The parameters of a request.
pub(crate) struct Query(BTreeMap<String, String>);

impl Query {
    pub(crate) fn of(head: &Parts) -> Self {
        let pairs = head
            .uri
            .query()
            .unwrap_or_default()
            .split('&')
            .filter_map(|pair| pair.split_once('='));
        Self(
            pairs
                .map(|(name, value)| (unescape(name), unescape(value)))
                .collect(),
        )
    }

    /// A parameter, if it is there and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// A parameter that must be there.
    pub(crate) fn need(&self, name: &str) -> Result<&str, Problem> {
        self.get(name)
            .ok_or_else(|| Problem::BadRequest(format!("the parameter {name} is missing")))
    }

    /// A parameter that is a number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, Problem> {
        let wrong = |_| Problem::BadRequest(format!("the parameter {name} is not a number"));
        self.get(name)
            .map(|text| text.parse().map_err(wrong))
            .transpose()
    }
}

fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = bytes
            .get(at + 1..at + 3)
            .and_then(|pair| std::str::from_utf8(pair).ok());
        match (
            bytes[at],
            digits.and_then(|pair| u8::from_str_radix(pair, 16).ok()),
        ) {
            (b'%', Some(byte)) => {
                plain.push(byte);
                at += 3;
            }
            (b'+', _) => {
                plain.push(b' ');
                at += 1;
            }
            (byte, _) => {
                plain.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_unescaped() {
        for (escaped, plain) in [
            ("a%20b", "a b"),
            ("a+b", "a b"),
            ("%", "%"),
            ("%e4%zz", "\u{fffd}%zz"),
            ("%0A", "\n"),
        ] {
            assert_eq!(unescape(escaped), plain, "{escaped}");
        }
    }
}
