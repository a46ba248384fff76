//! Label selectors: requirements on the labels of an object, all of which must hold.

use std::fmt;

use serde_json::{Map, Value};

use super::{MAX_REQUIREMENTS, MAX_VALUES, SelectorError, parse};
use crate::field::FieldError;
use crate::names;

/// Selects objects by their labels.
///
/// # Examples
/// ```
/// use kubewright_schema::selector::LabelSelector;
///
/// let selector = LabelSelector::parse("app in (web, api), !legacy").unwrap();
/// let labels: [(Box<str>, Box<str>); 1] = [("app".into(), "web".into())];
/// assert!(selector.matches(&labels[..]));
/// assert_eq!(selector.to_string(), "app in (api,web),!legacy");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelSelector {
    /// Sorted by key; `None` selects nothing, an empty list selects everything.
    requirements: Option<Vec<Requirement>>,
}

/// What one label must be like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    key: Box<str>,
    rule: Rule,
}

/// What the value of a label must be like. The lists are sorted, without duplicates and not empty.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// The label is there with this value.
    Equals(Box<str>),
    /// The label is absent or has another value.
    NotEquals(Box<str>),
    /// The label is there with one of these values.
    In(Vec<Box<str>>),
    /// The label is absent or has none of these values.
    NotIn(Vec<Box<str>>),
    /// The label is there.
    Exists,
    /// The label is absent.
    DoesNotExist,
    /// The label is there and is an integer above this one.
    GreaterThan(i64),
    /// The label is there and is an integer below this one.
    LessThan(i64),
}

/// Labels that a selector can look at.
pub trait Labels {
    /// The value of a label.
    fn value_of(&self, key: &str) -> Option<&str>;
}

/// Labels as sorted pairs; a look-up is a binary search.
impl Labels for [(Box<str>, Box<str>)] {
    fn value_of(&self, key: &str) -> Option<&str> {
        let at = self.binary_search_by(|(name, _)| (**name).cmp(key)).ok()?;
        Some(&self[at].1)
    }
}

/// Labels as they are in an object; without any it has none.
impl Labels for Value {
    fn value_of(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }
}

/// Labels as they are in an object.
impl Labels for Map<String, Value> {
    fn value_of(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }
}

impl LabelSelector {
    /// Reads the text form, such as `app=web,tier in (front, back),!legacy`.
    ///
    /// # Errors
    /// When the text breaks the grammar, a key or value is not valid, or the selector is too large.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        parse::parse(text).and_then(Self::of)
    }

    /// Selects what fulfils all of these.
    pub(super) fn of(mut requirements: Vec<Requirement>) -> Result<Self, SelectorError> {
        SelectorError::limit(
            "the number of requirements",
            MAX_REQUIREMENTS,
            requirements.len(),
        )?;
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Self {
            requirements: Some(requirements),
        })
    }

    /// Returns a selector that matches every object.
    pub fn everything() -> Self {
        Self {
            requirements: Some(Vec::new()),
        }
    }

    /// Returns a selector that matches no object.
    pub fn nothing() -> Self {
        Self { requirements: None }
    }

    /// Whether every object is selected, whatever its labels are.
    pub fn is_everything(&self) -> bool {
        self.requirements.as_ref().is_some_and(Vec::is_empty)
    }

    /// Whether no object is selected, whatever its labels are.
    pub fn is_nothing(&self) -> bool {
        self.requirements.is_none()
    }

    /// The requirements, sorted by key.
    pub fn requirements(&self) -> &[Requirement] {
        self.requirements.as_deref().unwrap_or_default()
    }

    /// Whether an object with these labels is selected.
    pub fn matches<L: Labels + ?Sized>(&self, labels: &L) -> bool {
        match &self.requirements {
            Some(requirements) => requirements.iter().all(|r| r.matches(labels)),
            None => false,
        }
    }
}

impl Requirement {
    pub(super) fn new(key: &str, rule: Rule) -> Self {
        Self {
            key: key.into(),
            rule,
        }
    }

    /// The label it is about.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What the label must be like.
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    fn matches<L: Labels + ?Sized>(&self, labels: &L) -> bool {
        let value = labels.value_of(&self.key);
        match &self.rule {
            Rule::Equals(wanted) => value == Some(&**wanted),
            Rule::NotEquals(unwanted) => value != Some(&**unwanted),
            Rule::In(wanted) => value.is_some_and(|v| contains(wanted, v)),
            Rule::NotIn(unwanted) => value.is_none_or(|v| !contains(unwanted, v)),
            Rule::Exists => value.is_some(),
            Rule::DoesNotExist => value.is_none(),
            Rule::GreaterThan(bound) => integer(value).is_some_and(|v| v > *bound),
            Rule::LessThan(bound) => integer(value).is_some_and(|v| v < *bound),
        }
    }
}

fn contains(sorted: &[Box<str>], value: &str) -> bool {
    sorted.binary_search_by(|v| (**v).cmp(value)).is_ok()
}

fn integer(value: Option<&str>) -> Option<i64> {
    value?.parse().ok()
}

/// Sorts the values of `in` and `notin` and drops duplicates.
pub(super) fn value_set<'a>(
    values: impl Iterator<Item = &'a str>,
) -> Result<Vec<Box<str>>, SelectorError> {
    let mut values: Vec<Box<str>> = values.map(Into::into).collect();
    SelectorError::limit("the number of values", MAX_VALUES, values.len())?;
    values.sort();
    values.dedup();
    Ok(values)
}

/// What is wrong with a label key, as one error of a field.
pub(super) fn key_error(field: &str, key: &str) -> Option<FieldError> {
    let errors = names::qualified_name(key);
    (!errors.is_empty()).then(|| FieldError::invalid(field, &key.into(), &errors.join("; ")))
}

/// What is wrong with the values of a requirement on `key`.
pub(super) fn value_errors(key: &str, values: &[Box<str>]) -> Vec<FieldError> {
    let mut found = Vec::new();
    for (index, value) in values.iter().enumerate() {
        let errors = names::label_value(value);
        if !errors.is_empty() {
            let field = format!("values[{index}][{key}]");
            found.push(FieldError::invalid(
                field,
                &(&**value).into(),
                &errors.join("; "),
            ));
        }
    }
    found
}

/// Joins errors as the API server does: one alone, several in brackets.
pub(super) fn aggregate(errors: &[FieldError]) -> Result<(), SelectorError> {
    let text = match errors {
        [] => return Ok(()),
        [one] => one.to_string(),
        several => {
            let texts: Vec<String> = several.iter().map(ToString::to_string).collect();
            format!("[{}]", texts.join(", "))
        }
    };
    Err(SelectorError::Invalid(text))
}

/// Writes the text form that [`LabelSelector::parse`] reads. A selector of nothing has none and writes nothing.
impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements().iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            write!(f, "{requirement}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match &self.rule {
            Rule::Equals(value) => write!(f, "{key}={value}"),
            Rule::NotEquals(value) => write!(f, "{key}!={value}"),
            Rule::In(values) => write!(f, "{key} in ({})", values.join(",")),
            Rule::NotIn(values) => write!(f, "{key} notin ({})", values.join(",")),
            Rule::Exists => write!(f, "{key}"),
            Rule::DoesNotExist => write!(f, "!{key}"),
            Rule::GreaterThan(bound) => write!(f, "{key}>{bound}"),
            Rule::LessThan(bound) => write!(f, "{key}<{bound}"),
        }
    }
}
