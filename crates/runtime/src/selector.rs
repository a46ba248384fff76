//! Label selectors in the notation of `kubectl -l`: `app=web,tier in (a,b),!legacy`.

use std::collections::BTreeMap;
use std::fmt;

/// Longest selector that is read.
const LONGEST: usize = 64 * 1024;

/// Why a text is not a label selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a label selector: {problem}")]
pub struct SelectorError {
    text: String,
    problem: &'static str,
}

/// What labels have to be like. All requirements hold together; none means that all objects are selected.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selector(Vec<Requirement>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    label: String,
    operator: Operator,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Operator {
    Exists,
    Absent,
    In(Vec<String>),
    NotIn(Vec<String>),
    Above(i64),
    Below(i64),
}

impl Selector {
    /// Reads a selector.
    ///
    /// # Errors
    /// When the text is not one.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let problem = |problem| SelectorError {
            text: text.chars().take(200).collect(),
            problem,
        };
        if text.len() > LONGEST {
            return Err(problem("it is too long"));
        }
        let mut rest = Rest(text.trim());
        let mut requirements = Vec::new();
        while !rest.0.is_empty() {
            requirements.push(rest.requirement().map_err(problem)?);
            if !rest.take(",") && !rest.0.is_empty() {
                return Err(problem("a comma is missing"));
            }
        }
        Ok(Self(requirements))
    }

    /// Whether these labels are selected.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.matches_by(|label| labels.get(label).map(String::as_str))
    }

    /// Whether an object is selected whose labels are looked up by this function.
    pub fn matches_by<T: AsRef<str>>(&self, look_up: impl Fn(&str) -> Option<T>) -> bool {
        self.0.iter().all(|requirement| {
            let value = look_up(&requirement.label);
            requirement.operator.admits(value.as_ref().map(T::as_ref))
        })
    }
}

impl Operator {
    fn admits(&self, value: Option<&str>) -> bool {
        let one_of =
            |values: &[String]| value.is_some_and(|value| values.iter().any(|v| v == value));
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match self {
            Self::Exists => value.is_some(),
            Self::Absent => value.is_none(),
            Self::In(values) => one_of(values),
            Self::NotIn(values) => !one_of(values),
            Self::Above(bound) => number().is_some_and(|number| number > *bound),
            Self::Below(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

/// What is left to read.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn requirement(&mut self) -> Result<Requirement, &'static str> {
        let absent = self.take("!");
        let label = self.word();
        if label.is_empty() {
            return Err("a label is missing");
        }
        let operator = if absent {
            Operator::Absent
        } else {
            self.operator()?
        };
        let label = label.to_owned();
        Ok(Requirement { label, operator })
    }

    fn operator(&mut self) -> Result<Operator, &'static str> {
        if self.take("!=") {
            return Ok(Operator::NotIn(vec![self.word().to_owned()]));
        }
        if self.take("==") || self.take("=") {
            return Ok(Operator::In(vec![self.word().to_owned()]));
        }
        if self.take(">") {
            return self.number().map(Operator::Above);
        }
        if self.take("<") {
            return self.number().map(Operator::Below);
        }
        match self.word() {
            "" => Ok(Operator::Exists),
            "in" => self.values().map(Operator::In),
            "notin" => self.values().map(Operator::NotIn),
            _ => Err("an operator is not known"),
        }
    }

    fn values(&mut self) -> Result<Vec<String>, &'static str> {
        if !self.take("(") {
            return Err("values stand in parentheses");
        }
        let mut values = vec![self.word().to_owned()];
        while self.take(",") {
            values.push(self.word().to_owned());
        }
        if self.take(")") {
            Ok(values)
        } else {
            Err("a parenthesis is not closed")
        }
    }

    fn number(&mut self) -> Result<i64, &'static str> {
        self.word().parse().map_err(|_| "a number is missing")
    }

    fn take(&mut self, mark: &str) -> bool {
        let Some(rest) = self.0.strip_prefix(mark) else {
            return false;
        };
        self.0 = rest.trim_start();
        true
    }

    /// Label names and values are of letters, digits and `-_./`.
    fn word(&mut self) -> &'a str {
        let known = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        let end = self.0.find(|c| !known(c)).unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(end);
        self.0 = rest.trim_start();
        word
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Requirement { label, operator }) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            match operator {
                Operator::Exists => write!(f, "{label}")?,
                Operator::Absent => write!(f, "!{label}")?,
                Operator::In(values) => write!(f, "{label} in ({})", values.join(","))?,
                Operator::NotIn(values) => write!(f, "{label} notin ({})", values.join(","))?,
                Operator::Above(bound) => write!(f, "{label}>{bound}")?,
                Operator::Below(bound) => write!(f, "{label}<{bound}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(selector: &str, labels: &[(&str, &str)], expected: bool) {
        let labels = labels
            .iter()
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .collect();
        let parsed = Selector::parse(selector).expect("it is a selector");
        assert_eq!(
            parsed.matches(&labels),
            expected,
            "{selector} on {labels:?}"
        );
        let again = Selector::parse(&parsed.to_string()).expect("it prints as it reads");
        assert_eq!(again, parsed);
    }

    #[test]
    fn selectors_choose_as_kubectl_does() {
        let web: &[_] = &[("app", "web"), ("tier", "a"), ("size", "5"), ("e", "")];
        let cases = [
            ("", true),
            ("app=web", true),
            ("app==web", true),
            ("app = db", false),
            ("app!=db", true),
            ("none!=db", true),
            ("tier in (a, b),app", true),
            ("tier notin (a)", false),
            ("none notin (a)", true),
            ("!app", false),
            ("!none", true),
            ("! none , app", true),
            ("size>4,size<6", true),
            ("size>5", false),
            ("app>1", false),
            ("e=", true),
            ("app=", false),
            ("e in (,x)", true),
        ];
        for (selector, expected) in cases {
            check(selector, web, expected);
        }
    }

    #[test]
    fn text_that_is_no_selector_is_refused() {
        for text in [
            "=a", "a b", "a in x", "a in (x", "a,,b", "a>x", "!", "a=b c", "a;b", "a=b=c",
        ] {
            assert!(Selector::parse(text).is_err(), "{text}");
        }
        assert!(Selector::parse(&"a,".repeat(40_000)).is_err());
    }
}
