//! Label selectors as objects: `{matchLabels, matchExpressions}`, as Deployments and other objects carry them.

use std::fmt::{Arguments, Display};

use serde_json::Value;

use super::label::{
    LabelSelector, Requirement, Rule, aggregate, key_error, value_errors, value_set,
};
use super::{MAX_REQUIREMENTS, SelectorError};
use crate::field::FieldError;
use crate::names;

/// One entry of `matchExpressions`. Parts of another JSON type count as empty; decoding has refused them before.
struct Expression<'a> {
    key: &'a str,
    operator: &'a str,
    values: Vec<&'a str>,
}

impl<'a> Expression<'a> {
    fn read(value: &'a Value) -> Self {
        let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
        let values = value.get("values").and_then(Value::as_array);
        Self {
            key: text("key"),
            operator: text("operator"),
            values: values
                .into_iter()
                .flatten()
                .map(|v| v.as_str().unwrap_or_default())
                .collect(),
        }
    }

    fn requirement(&self) -> Result<Requirement, SelectorError> {
        let set = value_set(self.values.iter().copied())?;
        let mut errors: Vec<FieldError> = key_error("key", self.key).into_iter().collect();
        let detail = match (self.operator, set.is_empty()) {
            ("In" | "NotIn", true) => {
                Some("for 'in', 'notin' operators, values set can't be empty")
            }
            ("Exists" | "DoesNotExist", false) => {
                Some("values set must be empty for exists and does not exist")
            }
            _ => None,
        };
        if let Some(detail) = detail {
            let values = Value::from(self.values.clone());
            errors.push(FieldError::invalid("values", &values, detail));
        }
        errors.extend(value_errors(self.key, &set));
        aggregate(&errors)?;
        let rule = match self.operator {
            "In" => Rule::In(set),
            "NotIn" => Rule::NotIn(set),
            "Exists" => Rule::Exists,
            "DoesNotExist" => Rule::DoesNotExist,
            other => {
                let text = format!("{other:?} is not a valid label selector operator");
                return Err(SelectorError::Invalid(text));
            }
        };
        Ok(Requirement::new(self.key, rule))
    }
}

impl LabelSelector {
    /// Reads `{matchLabels, matchExpressions}`. `null` selects nothing, an empty object selects everything.
    ///
    /// # Errors
    /// When a key, value or operator is not valid, or the selector is too large.
    pub fn from_object(selector: &Value) -> Result<Self, SelectorError> {
        if selector.is_null() {
            return Ok(Self::nothing());
        }
        let labels = selector.get("matchLabels").and_then(Value::as_object);
        let expressions = selector.get("matchExpressions").and_then(Value::as_array);
        let count = labels.map_or(0, |l| l.len()) + expressions.map_or(0, Vec::len);
        SelectorError::limit("the number of requirements", MAX_REQUIREMENTS, count)?;
        let mut requirements = Vec::with_capacity(count);
        for (key, value) in labels.into_iter().flatten() {
            requirements.push(equals(key, value.as_str().unwrap_or_default())?);
        }
        for expression in expressions.into_iter().flatten() {
            requirements.push(Expression::read(expression).requirement()?);
        }
        Self::of(requirements)
    }
}

fn equals(key: &str, value: &str) -> Result<Requirement, SelectorError> {
    let value: Box<str> = value.into();
    let mut errors: Vec<FieldError> = key_error("key", key).into_iter().collect();
    errors.extend(value_errors(key, std::slice::from_ref(&value)));
    aggregate(&errors)?;
    Ok(Requirement::new(key, Rule::Equals(value)))
}

/// What is wrong with a `{matchLabels, matchExpressions}` object at `path`, as validation of its owner reports it.
pub fn validate_label_selector(
    selector: &Value,
    path: &(impl Display + ?Sized),
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    for (key, value) in labels.into_iter().flatten() {
        let field = format_args!("{path}.matchLabels");
        check(&mut errors, field, key, names::qualified_name);
        let value = value.as_str().unwrap_or_default();
        check(&mut errors, field, value, names::label_value);
    }
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    for (index, expression) in expressions.into_iter().flatten().enumerate() {
        let field = format_args!("{path}.matchExpressions[{index}]");
        validate_expression(&Expression::read(expression), field, &mut errors);
    }
    errors
}

fn validate_expression(
    expression: &Expression<'_>,
    field: Arguments<'_>,
    errors: &mut Vec<FieldError>,
) {
    match (expression.operator, expression.values.is_empty()) {
        ("In" | "NotIn", true) => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(FieldError::required(format!("{field}.values"), detail));
        }
        ("Exists" | "DoesNotExist", false) => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(format!("{field}.values"), detail));
        }
        ("In" | "NotIn" | "Exists" | "DoesNotExist", _) => {}
        (other, _) => {
            let field = format!("{field}.operator");
            let detail = "not a valid selector operator";
            errors.push(FieldError::invalid(field, &other.into(), detail));
        }
    }
    let key = format_args!("{field}.key");
    check(errors, key, expression.key, names::qualified_name);
    for (index, value) in expression.values.iter().enumerate() {
        let field = format_args!("{field}.values[{index}]");
        check(errors, field, value, names::label_value);
    }
}

/// The field is written out only for those that break the rule.
fn check(
    errors: &mut Vec<FieldError>,
    field: Arguments<'_>,
    text: &str,
    rule: fn(&str) -> Vec<String>,
) {
    for message in rule(text) {
        errors.push(FieldError::invalid(
            field.to_string(),
            &text.into(),
            &message,
        ));
    }
}
