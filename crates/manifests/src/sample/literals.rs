//! The constants in expressions: what a rule compares with is a good guess at what it wants.

use std::collections::BTreeSet;

use serde_json::Value;

/// The most constants that are kept of each kind.
const MAX: usize = 48;

/// Constants of all rules in a schema.
#[derive(Debug, Default)]
pub(super) struct Literals {
    /// Whole numbers, with their neighbours.
    pub(super) numbers: BTreeSet<i64>,
    /// Texts between quotes.
    pub(super) texts: BTreeSet<String>,
}

impl Literals {
    /// Collects them. Only on schemas of checked depth.
    pub(super) fn of(schema: &Value) -> Self {
        let mut found = Self::default();
        found.visit(schema);
        found
    }

    fn visit(&mut self, schema: &Value) {
        match schema {
            Value::Object(map) => {
                if let Some(rule) = map.get("rule").and_then(Value::as_str) {
                    self.read(rule);
                }
                map.values().for_each(|value| self.visit(value));
            }
            Value::Array(items) => items.iter().for_each(|item| self.visit(item)),
            _ => {}
        }
    }

    fn read(&mut self, rule: &str) {
        let mut rest = rule;
        while let Some(c) = rest.chars().next() {
            let length = match c {
                '\'' | '"' => self.text(rest, c),
                '0'..='9' => self.number(rest),
                // The digits of a name are not a number.
                _ if is_word(c) => prefix(rest, is_word),
                _ => c.len_utf8(),
            };
            rest = &rest[length..];
        }
    }

    /// Takes a text with its quotes; gives its length.
    fn text(&mut self, rest: &str, quote: char) -> usize {
        let Some(end) = rest[1..].find(quote) else {
            return rest.len();
        };
        if self.texts.len() < MAX {
            self.texts.insert(rest[1..=end].to_owned());
        }
        end + 2
    }

    fn number(&mut self, rest: &str) -> usize {
        let length = prefix(rest, |c| c.is_ascii_digit());
        if let Ok(number) = rest[..length].parse::<i64>()
            && self.numbers.len() < MAX
        {
            self.numbers
                .extend([number, number.saturating_add(1), number.saturating_sub(1)]);
        }
        length
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn prefix(text: &str, holds: impl Fn(char) -> bool) -> usize {
    text.find(|c| !holds(c)).unwrap_or(text.len())
}
