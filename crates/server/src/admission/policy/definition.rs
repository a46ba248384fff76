//! A policy, read once: what it is about, its conditions and variables, and its rules.

use serde_json::Value;

use super::OnFailure;
use super::params::ParamKind;
use super::variables::Variables;
use crate::admission::PolicyError;
use crate::admission::expression::Conditions;
use crate::admission::matching::Criteria;
use crate::kinds::scope::NAMES;
use crate::kinds::value::{items, text};
use crate::object;

/// A policy whose rules are of one sort.
#[derive(Debug)]
pub(super) struct Definition<R> {
    pub(super) name: String,
    pub(super) criteria: Result<Criteria, PolicyError>,
    pub(super) conditions: Conditions,
    pub(super) variables: Variables,
    pub(super) param_kind: Option<ParamKind>,
    pub(super) on_failure: OnFailure,
    pub(super) again: bool,
    pub(super) rules: Vec<R>,
}

impl<R> Definition<R> {
    /// Reads a policy whose rules are in a field of its spec.
    pub(super) fn read(policy: &Value, field: &str, rule: impl Fn(&Value) -> R) -> Self {
        let spec = &policy["spec"];
        Self {
            name: object::name(policy).to_owned(),
            criteria: Criteria::read(&spec["matchConstraints"]),
            conditions: Conditions::read(&spec["matchConditions"], &NAMES),
            variables: Variables::read(&spec["variables"]),
            param_kind: ParamKind::read(&spec["paramKind"]),
            on_failure: match text(&spec["failurePolicy"]) {
                "Ignore" => OnFailure::Ignore,
                _ => OnFailure::Fail,
            },
            again: text(&spec["reinvocationPolicy"]) == "IfNeeded",
            rules: items(&spec[field]).iter().map(rule).collect(),
        }
    }
}
