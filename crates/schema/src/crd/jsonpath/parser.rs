//! The grammar of paths.

use serde_json::Value;

use super::{Filter, JsonPath, JsonPathError, MAX_STEPS, Operand, Operator, Step};

/// Reads a path from its text.
pub(super) struct Parser<'a> {
    text: &'a str,
    at: usize,
    steps: usize,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            steps: 0,
        }
    }

    /// The whole text as one path.
    pub(super) fn run(mut self) -> Result<JsonPath, JsonPathError> {
        self.eat("$");
        let path = self.path(0)?;
        match self.rest() {
            "" => Ok(path),
            _ => Err(self.expected("`.`, `[` or the end")),
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn expected(&self, expected: &'static str) -> JsonPathError {
        JsonPathError::Syntax {
            expected,
            at: self.at,
        }
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    fn need(&mut self, token: &'static str) -> Result<(), JsonPathError> {
        if self.eat(token) {
            Ok(())
        } else {
            Err(self.expected(token))
        }
    }

    fn skip_spaces(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    /// Steps as long as there are some. `depth` counts filters inside of filters.
    fn path(&mut self, depth: usize) -> Result<JsonPath, JsonPathError> {
        let mut steps = Vec::new();
        loop {
            let step = if self.eat("[") {
                self.brackets(depth)?
            } else if self.eat(".") {
                match self.rest().chars().next() {
                    Some('[') => continue,
                    None if steps.is_empty() => break,
                    Some('*') => {
                        self.at += 1;
                        Step::Wildcard
                    }
                    _ => Step::Field(self.name()?),
                }
            } else {
                break;
            };
            self.steps += 1;
            if self.steps > MAX_STEPS {
                return Err(JsonPathError::Long);
            }
            steps.push(step);
        }
        Ok(JsonPath { steps })
    }

    /// A name up to a character that means something; `\` takes that meaning away.
    fn name(&mut self) -> Result<String, JsonPathError> {
        let mut name = String::new();
        let mut chars = self.rest().char_indices();
        let mut used = self.rest().len();
        while let Some((i, c)) = chars.next() {
            match c {
                '\\' => name.extend(chars.next().map(|(_, c)| c)),
                '.' | '[' | ']' | '(' | ')' | '{' | '}' | ' ' | '=' | '!' | '<' | '>' | ',' => {
                    used = i;
                    break;
                }
                c => name.push(c),
            }
        }
        if name.is_empty() {
            return Err(self.expected("a field name"));
        }
        self.at += used;
        Ok(name)
    }

    fn brackets(&mut self, depth: usize) -> Result<Step, JsonPathError> {
        let step = if self.eat("?(") {
            let filter = self.filter(depth)?;
            self.need(")")?;
            Step::Filter(Box::new(filter))
        } else if self.eat("*") {
            Step::Wildcard
        } else if self.rest().starts_with(['\'', '"']) {
            Step::Field(self.quoted()?)
        } else {
            self.index()?
        };
        self.need("]")?;
        Ok(step)
    }

    fn index(&mut self) -> Result<Step, JsonPathError> {
        let start = self.integer();
        if !self.eat(":") {
            return start
                .map(Step::Index)
                .ok_or_else(|| self.expected("an index"));
        }
        let end = self.integer();
        let step = if self.eat(":") {
            self.integer().unwrap_or(1)
        } else {
            1
        };
        if step < 1 {
            return Err(self.expected("a positive step"));
        }
        Ok(Step::Slice { start, end, step })
    }

    fn integer(&mut self) -> Option<i64> {
        let rest = self.rest();
        let digits = rest.strip_prefix('-').unwrap_or(rest);
        let count = digits.len()
            - digits
                .trim_start_matches(|c: char| c.is_ascii_digit())
                .len();
        let length = rest.len() - digits.len() + count;
        let value = rest[..length].parse().ok()?;
        self.at += length;
        Some(value)
    }

    fn quoted(&mut self) -> Result<String, JsonPathError> {
        let quote = self
            .rest()
            .chars()
            .next()
            .ok_or_else(|| self.expected("a quote"))?;
        let mut text = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((i, c)) = chars.next() {
            match c {
                '\\' => text.extend(chars.next().map(|(_, c)| c)),
                c if c == quote => {
                    self.at += i + c.len_utf8();
                    return Ok(text);
                }
                c => text.push(c),
            }
        }
        Err(self.expected("a string with its closing quote"))
    }

    fn filter(&mut self, depth: usize) -> Result<Filter, JsonPathError> {
        if depth > 4 {
            return Err(JsonPathError::Long);
        }
        let left = self.operand(depth)?;
        let operators = [
            ("==", Operator::Equal),
            ("!=", Operator::NotEqual),
            ("<=", Operator::LessOrEqual),
            (">=", Operator::GreaterOrEqual),
            ("<", Operator::Less),
            (">", Operator::Greater),
        ];
        let found = operators.into_iter().find(|(token, _)| self.eat(token));
        let Some((_, operator)) = found else {
            return Ok(Filter::Exists(left));
        };
        let right = self.operand(depth)?;
        Ok(Filter::Compare {
            left,
            operator,
            right,
        })
    }

    fn operand(&mut self, depth: usize) -> Result<Operand, JsonPathError> {
        self.skip_spaces();
        let operand = if self.eat("@") {
            Operand::Path(self.path(depth + 1)?)
        } else if self.rest().starts_with(['\'', '"']) {
            Operand::Literal(self.quoted()?.into())
        } else {
            Operand::Literal(self.literal()?)
        };
        self.skip_spaces();
        Ok(operand)
    }

    fn literal(&mut self) -> Result<Value, JsonPathError> {
        let rest = self.rest();
        let end = rest
            .find([' ', ')', '=', '!', '<', '>'])
            .unwrap_or(rest.len());
        let value = serde_json::from_str(&rest[..end]).map_err(|_| self.expected("a value"))?;
        self.at += end;
        Ok(value)
    }
}
