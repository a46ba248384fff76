//! Where something is in an expression, and errors that show it.

use std::fmt;

/// Longest line that an error quotes, in bytes.
const MAX_SNIPPET: usize = 16_384;
/// Most errors that are reported of one expression.
const MAX_ERRORS: usize = 100;

/// One error, at a byte offset of the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Issue {
    pub(crate) at: usize,
    pub(crate) message: String,
}

/// What is wrong with an expression. `Display` shows each error with the line it is in and a mark below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileError {
    source: Box<str>,
    /// Sorted by place.
    issues: Vec<Issue>,
    found: usize,
}

impl CompileError {
    pub(crate) fn new(source: &str, mut issues: Vec<Issue>) -> Self {
        issues.sort_by_key(|issue| issue.at);
        let found = issues.len();
        issues.truncate(MAX_ERRORS);
        Self {
            source: source.into(),
            issues,
            found,
        }
    }
}

impl std::error::Error for CompileError {}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, issue) in self.issues.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            show(&self.source, issue, f)?;
        }
        if self.found > self.issues.len() {
            let rest = self.found - self.issues.len();
            write!(f, "\n{rest} more errors were truncated")?;
        }
        Ok(())
    }
}

fn show(source: &str, issue: &Issue, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let before = source.get(..issue.at).unwrap_or(source);
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let column = before[start..].chars().count();
    write!(f, "ERROR: <input>:{line}:{}: {}", column + 1, issue.message)?;
    let text = source[start..].split('\n').next().unwrap_or("");
    if text.len() > MAX_SNIPPET {
        return Ok(());
    }
    let text = text.replace('\t', " ");
    write!(f, "\n | {text}\n | ")?;
    let mut rest = text.chars();
    for _ in 0..column {
        match rest.next() {
            Some(c) => f.write_str(if c.is_ascii() { "." } else { "\u{ff0e}" })?,
            None => break,
        }
    }
    let wide = rest.next().is_some_and(|c| !c.is_ascii());
    f.write_str(if wide { "\u{ff3e}" } else { "^" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, at: usize, expect: &str) {
        let issue = Issue {
            at,
            message: "bad".to_owned(),
        };
        let error = CompileError::new(source, vec![issue]);
        assert_eq!(error.to_string(), expect);
    }

    #[test]
    fn errors_show_their_place() {
        check("self.a", 4, "ERROR: <input>:1:5: bad\n | self.a\n | ....^");
        check("a\n\tb", 3, "ERROR: <input>:2:2: bad\n |  b\n | .^");
        check(
            "'é'+é",
            5,
            "ERROR: <input>:1:5: bad\n | 'é'+é\n | .\u{ff0e}..\u{ff3e}",
        );
        check("a", 9, "ERROR: <input>:1:2: bad\n | a\n | .^");
    }
}
