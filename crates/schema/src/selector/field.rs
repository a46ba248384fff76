//! Field selectors: `metadata.name=web,status.phase!=Running`.

use std::fmt;

use super::{MAX_BYTES, MAX_REQUIREMENTS, SelectorError};

/// Selects objects by some of their fields. All terms must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldSelector {
    terms: Vec<FieldTerm>,
}

/// What one field must be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldTerm {
    /// Path of the field, such as `metadata.name`.
    pub field: Box<str>,
    /// How the field and the value relate.
    pub operator: FieldOperator,
    /// The value to compare with.
    pub value: Box<str>,
}

/// How a field and a value relate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FieldOperator {
    /// The field has this value: `=` or `==`.
    Equals,
    /// The field has another value: `!=`.
    NotEquals,
}

impl FieldSelector {
    /// Reads the text form. A backslash takes `\`, `,` and `=` literally in a value.
    ///
    /// # Errors
    /// When the text breaks the grammar or is too large. Which fields exist is not checked here.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        SelectorError::limit("the number of bytes", MAX_BYTES, text.len())?;
        let mut parts = split_terms(text);
        SelectorError::limit("the number of terms", MAX_REQUIREMENTS, parts.len())?;
        parts.sort_unstable();
        let terms = parts.into_iter().filter(|part| !part.is_empty());
        let terms: Result<Vec<FieldTerm>, SelectorError> =
            terms.map(|part| read_term(text, part)).collect();
        let mut terms = terms?;
        terms.sort();
        Ok(Self { terms })
    }

    /// Returns a selector that matches every object.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Whether every object is selected.
    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// The terms, sorted by field.
    pub fn terms(&self) -> &[FieldTerm] {
        &self.terms
    }

    /// The value that a field must have, when there is just one.
    pub fn exact(&self, field: &str) -> Option<&str> {
        self.terms
            .iter()
            .find(|t| t.operator == FieldOperator::Equals && &*t.field == field)
            .map(|t| &*t.value)
    }

    /// Whether an object with these fields is selected. An absent field counts as empty.
    pub fn matches<'a>(&self, field: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.terms.iter().all(|term| {
            let equal = field(&term.field).unwrap_or_default() == &*term.value;
            equal == (term.operator == FieldOperator::Equals)
        })
    }
}

fn split_terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (at, b) in text.bytes().enumerate() {
        match b {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b',' => {
                terms.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

fn read_term(selector: &str, term: &str) -> Result<FieldTerm, SelectorError> {
    let not_understood = || {
        SelectorError::Invalid(format!(
            "invalid selector: '{selector}'; can't understand '{term}'"
        ))
    };
    let equals = term.find('=').ok_or_else(not_understood)?;
    let (before, after) = (&term[..equals], &term[equals + 1..]);
    let (field, operator, value) = match before.strip_suffix('!') {
        Some(field) => (field, FieldOperator::NotEquals, after),
        None => {
            let value = after.strip_prefix('=').unwrap_or(after);
            (before, FieldOperator::Equals, value)
        }
    };
    Ok(FieldTerm {
        field: field.into(),
        operator,
        value: unescape(value)?.into(),
    })
}

fn unescape(text: &str) -> Result<String, SelectorError> {
    let bad_escape = |sequence: &str| {
        SelectorError::Invalid(format!(
            "invalid field selector: invalid escape sequence: {sequence}"
        ))
    };
    let mut value = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => match characters.next() {
                Some(c @ ('\\' | ',' | '=')) => value.push(c),
                Some(c) => return Err(bad_escape(&format!("\\{c}"))),
                None => return Err(bad_escape("\\")),
            },
            // The API server prints the number of the character here.
            ',' | '=' => {
                let number = u32::from(c);
                return Err(SelectorError::Invalid(format!(
                    "invalid field selector: unescaped character in value: {number}"
                )));
            }
            c => value.push(c),
        }
    }
    Ok(value)
}

/// Writes the text form that [`FieldSelector::parse`] reads.
impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.terms.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            write!(f, "{term}")?;
        }
        Ok(())
    }
}

impl fmt::Display for FieldTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = match self.operator {
            FieldOperator::Equals => "=",
            FieldOperator::NotEquals => "!=",
        };
        write!(f, "{}{operator}", self.field)?;
        for c in self.value.chars() {
            if matches!(c, '\\' | ',' | '=') {
                f.write_str("\\")?;
            }
            write!(f, "{c}")?;
        }
        Ok(())
    }
}
