//! Reads the text form of label selectors.

use super::label::{Requirement, Rule, aggregate, key_error, value_errors, value_set};
use super::{MAX_BYTES, SelectorError};
use crate::field::FieldError;

/// A token and, for error texts, how it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Token<'a> {
    kind: Kind,
    text: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    End,
    Close,
    Comma,
    Not,
    Equals,
    Greater,
    Identifier,
    In,
    Less,
    NotEquals,
    NotIn,
    Open,
}

struct Parser<'a> {
    rest: &'a str,
    next: Token<'a>,
}

pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, SelectorError> {
    SelectorError::limit("the number of bytes", MAX_BYTES, text.len())?;
    let mut parser = Parser::new(text);
    let mut requirements = Vec::new();
    loop {
        match parser.next.as_value() {
            Kind::Identifier | Kind::Not => requirements.push(parser.requirement()?),
            Kind::End => return Ok(requirements),
            _ => return parser.expected("!, identifier, or 'end of string'"),
        }
        let after = parser.advance();
        match (after.kind, parser.next.as_value()) {
            (Kind::End, _) => return Ok(requirements),
            (Kind::Comma, Kind::Identifier | Kind::Not) => {}
            (Kind::Comma, _) => return parser.expected("identifier after ','"),
            _ => return after.is_not("',' or 'end of string'"),
        }
    }
}

impl<'a> Token<'a> {
    /// `in` and `notin` are words like any other where a key or value is expected.
    fn as_value(self) -> Kind {
        match self.kind {
            Kind::In | Kind::NotIn => Kind::Identifier,
            kind => kind,
        }
    }

    fn is_not<T>(self, what: &str) -> Result<T, SelectorError> {
        invalid(format!("found '{}', expected: {what}", self.text))
    }
}

fn invalid<T>(message: String) -> Result<T, SelectorError> {
    Err(SelectorError::Invalid(message))
}

/// Adds where in the grammar the error was found. Limits keep their own text.
fn in_requirement(error: SelectorError) -> SelectorError {
    match error {
        SelectorError::Invalid(text) => {
            SelectorError::Invalid(format!("unable to parse requirement: {text}"))
        }
        limit => limit,
    }
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        let (next, rest) = scan(text);
        Self { rest, next }
    }

    fn advance(&mut self) -> Token<'a> {
        let token = self.next;
        (self.next, self.rest) = scan(self.rest);
        token
    }

    fn expected<T>(&self, what: &str) -> Result<T, SelectorError> {
        self.next.is_not(what)
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        self.key_and_rule()
            .map(|(key, rule)| Requirement::new(key, rule))
            .map_err(in_requirement)
    }

    fn key_and_rule(&mut self) -> Result<(&'a str, Rule), SelectorError> {
        let mut token = self.advance();
        let negated = token.kind == Kind::Not;
        if negated {
            token = self.advance();
        }
        if token.as_value() != Kind::Identifier {
            return token.is_not("identifier");
        }
        // The API server names no field here, and its printer writes the absence so.
        if let Some(error) = key_error("<nil>", token.text) {
            return invalid(error.to_string());
        }
        let rule = match self.next.kind {
            _ if negated => Rule::DoesNotExist,
            Kind::End | Kind::Comma => Rule::Exists,
            _ => self.rule(token.text)?,
        };
        Ok((token.text, rule))
    }

    fn rule(&mut self, key: &str) -> Result<Rule, SelectorError> {
        let operator = self.advance();
        match operator.kind {
            Kind::In => Ok(Rule::In(self.values(key)?)),
            Kind::NotIn => Ok(Rule::NotIn(self.values(key)?)),
            Kind::Equals => Ok(Rule::Equals(self.value(key)?)),
            Kind::NotEquals => Ok(Rule::NotEquals(self.value(key)?)),
            Kind::Greater => Ok(Rule::GreaterThan(self.bound(key)?)),
            Kind::Less => Ok(Rule::LessThan(self.bound(key)?)),
            _ => operator.is_not("in, notin, =, ==, !=, gt, lt"),
        }
    }

    /// `(a, b)`; nothing between commas or parentheses is the empty value.
    fn values(&mut self, key: &str) -> Result<Vec<Box<str>>, SelectorError> {
        let open = self.advance();
        if open.kind != Kind::Open {
            return invalid(format!("found '{}' expected: '('", open.text));
        }
        let mut texts = Vec::new();
        match self.next.as_value() {
            Kind::Identifier | Kind::Comma => self.value_texts(&mut texts)?,
            Kind::Close => texts.push(""),
            _ => return self.expected("',', ')' or identifier"),
        }
        self.advance();
        let values = value_set(texts.into_iter())?;
        aggregate(&value_errors(key, &values))?;
        Ok(values)
    }

    /// Reads up to, but not including, the closing parenthesis.
    fn value_texts(&mut self, texts: &mut Vec<&'a str>) -> Result<(), SelectorError> {
        loop {
            let token = self.advance();
            let next = self.next.as_value();
            match (token.as_value(), next) {
                (Kind::Identifier, Kind::Comma) => texts.push(token.text),
                (Kind::Identifier, Kind::Close) => {
                    texts.push(token.text);
                    return Ok(());
                }
                (Kind::Identifier, _) => return self.expected("',' or ')'"),
                (Kind::Comma, _) => {
                    if texts.is_empty() || matches!(next, Kind::Close | Kind::Comma) {
                        texts.push("");
                    }
                    if next == Kind::Close {
                        return Ok(());
                    }
                }
                _ => return token.is_not("',', or identifier"),
            }
        }
    }

    fn value(&mut self, key: &str) -> Result<Box<str>, SelectorError> {
        let value: Box<str> = self.value_text()?.into();
        aggregate(&value_errors(key, std::slice::from_ref(&value)))?;
        Ok(value)
    }

    fn bound(&mut self, key: &str) -> Result<i64, SelectorError> {
        let value: Box<str> = self.value_text()?.into();
        let mut errors = Vec::new();
        let bound = value.parse();
        if bound.is_err() {
            let detail = "for 'Gt', 'Lt' operators, the value must be an integer";
            errors.push(FieldError::invalid("values[0]", &(&*value).into(), detail));
        }
        errors.extend(value_errors(key, std::slice::from_ref(&value)));
        aggregate(&errors)?;
        bound.or_else(|_| invalid("the bound is not an integer".to_owned()))
    }

    fn value_text(&mut self) -> Result<&'a str, SelectorError> {
        if matches!(self.next.kind, Kind::End | Kind::Comma) {
            return Ok("");
        }
        let token = self.advance();
        if token.as_value() == Kind::Identifier {
            return Ok(token.text);
        }
        token.is_not("identifier")
    }
}

/// The first token, and what comes after it.
fn scan(text: &str) -> (Token<'_>, &str) {
    let text = text.trim_start_matches([' ', '\t', '\r', '\n']);
    let bytes = text.as_bytes();
    let (kind, length) = match (bytes.first(), bytes.get(1)) {
        (None, _) => (Kind::End, 0),
        (Some(b'='), Some(b'=')) => (Kind::Equals, 2),
        (Some(b'='), _) => (Kind::Equals, 1),
        (Some(b'!'), Some(b'=')) => (Kind::NotEquals, 2),
        (Some(b'!'), _) => (Kind::Not, 1),
        (Some(b'('), _) => (Kind::Open, 1),
        (Some(b')'), _) => (Kind::Close, 1),
        (Some(b','), _) => (Kind::Comma, 1),
        (Some(b'>'), _) => (Kind::Greater, 1),
        (Some(b'<'), _) => (Kind::Less, 1),
        _ => {
            let end = bytes.iter().position(|b| ends_word(*b));
            let length = end.unwrap_or(bytes.len());
            (word_kind(&text[..length]), length)
        }
    };
    let (token, rest) = text.split_at(length);
    (Token { kind, text: token }, rest)
}

fn ends_word(b: u8) -> bool {
    matches!(
        b,
        b' ' | b'\t' | b'\r' | b'\n' | b'=' | b'!' | b'(' | b')' | b',' | b'>' | b'<'
    )
}

fn word_kind(word: &str) -> Kind {
    match word {
        "in" => Kind::In,
        "notin" => Kind::NotIn,
        _ => Kind::Identifier,
    }
}
