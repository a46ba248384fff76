//! Selectors over labels, and selectors over nodes.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{NodeSelectorRequirement, NodeSelectorTerm};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// Labels of an object.
pub(crate) type Labels = BTreeMap<String, String>;

/// A label selector in a form that can be compared and put in order, so that equal ones share their work.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Selector {
    /// No selector at all chooses nothing; one without requirements chooses everything.
    requirements: Option<Vec<Requirement>>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
    GreaterThan,
    LessThan,
    /// Something that nobody knows; it chooses nothing.
    Unknown,
}

impl Selector {
    /// Reads a selector.
    pub(crate) fn of(selector: Option<&LabelSelector>) -> Self {
        let Some(selector) = selector else {
            return Self::default();
        };
        let mut requirements: Vec<Requirement> = Vec::new();
        for (key, value) in selector.match_labels.iter().flatten() {
            requirements.push(Requirement::equals(key, value));
        }
        for expression in selector.match_expressions.iter().flatten() {
            let values = expression.values.clone();
            requirements.push(Requirement::new(
                &expression.key,
                &expression.operator,
                values,
            ));
        }
        requirements.sort();
        Self {
            requirements: Some(requirements),
        }
    }

    /// Asks in addition for the same values of these labels as the pod has that carries the selector.
    pub(crate) fn with_keys_of(mut self, keys: Option<&Vec<String>>, labels: &Labels) -> Self {
        if let Some(requirements) = &mut self.requirements {
            let keys = keys.into_iter().flatten();
            let same = keys.filter_map(|key| Some(Requirement::equals(key, labels.get(key)?)));
            requirements.extend(same);
            requirements.sort();
        }
        self
    }

    /// Whether it chooses these labels.
    pub(crate) fn matches(&self, labels: &Labels) -> bool {
        self.requirements
            .as_ref()
            .is_some_and(|all| all.iter().all(|one| one.matches(labels)))
    }

    /// Whether it chooses everything.
    pub(crate) fn is_everything(&self) -> bool {
        self.requirements.as_ref().is_some_and(Vec::is_empty)
    }
}

impl Requirement {
    fn equals(key: &str, value: &str) -> Self {
        Self {
            key: key.to_owned(),
            operator: Operator::In,
            values: vec![value.to_owned()],
        }
    }

    fn new(key: &str, operator: &str, values: Option<Vec<String>>) -> Self {
        let operator = match operator {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            "Gt" => Operator::GreaterThan,
            "Lt" => Operator::LessThan,
            _ => Operator::Unknown,
        };
        let mut values = values.unwrap_or_default();
        values.sort();
        Self {
            key: key.to_owned(),
            operator,
            values,
        }
    }

    fn matches(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        match self.operator {
            Operator::In => value.is_some_and(|v| self.values.contains(v)),
            Operator::NotIn => value.is_none_or(|v| !self.values.contains(v)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan => self.compares(value, |have, bound| have > bound),
            Operator::LessThan => self.compares(value, |have, bound| have < bound),
            Operator::Unknown => false,
        }
    }

    fn compares(&self, value: Option<&String>, holds: fn(i64, i64) -> bool) -> bool {
        let have = value.and_then(|v| v.parse().ok());
        let bound = self.values.first().and_then(|v| v.parse().ok());
        matches!((have, bound), (Some(have), Some(bound)) if holds(have, bound))
    }
}

/// Whether a term of a node selector chooses a node. A term without anything in it chooses none.
pub(crate) fn term_matches(term: &NodeSelectorTerm, name: &str, labels: &Labels) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    if expressions.is_empty() && fields.is_empty() {
        return false;
    }
    let field_values = Labels::from([("metadata.name".to_owned(), name.to_owned())]);
    let holds = |requirement: &NodeSelectorRequirement, labels: &Labels| {
        let NodeSelectorRequirement {
            key,
            operator,
            values,
        } = requirement;
        Requirement::new(key, operator, values.clone()).matches(labels)
    };
    expressions.iter().all(|one| holds(one, labels))
        && fields.iter().all(|one| holds(one, &field_values))
}
