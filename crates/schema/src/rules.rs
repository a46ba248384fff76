//! Value rules of CRD schemas: what OpenAPI validation says about a value beyond its shape.

use serde_json::{Number, Value};

/// Rules on one value. The combinators hold rules only: a structural schema may refine what it has specified
/// outside of them, never add to it.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// Lower bound.
    pub minimum: Option<Number>,
    /// The lower bound itself is not allowed.
    pub exclusive_minimum: bool,
    /// Upper bound.
    pub maximum: Option<Number>,
    /// The upper bound itself is not allowed.
    pub exclusive_maximum: bool,
    /// The value is a multiple of this.
    pub multiple_of: Option<Number>,
    /// Least number of characters.
    pub min_length: Option<u64>,
    /// Largest number of characters.
    pub max_length: Option<u64>,
    /// Unanchored regular expression that a string must match.
    pub pattern: Option<regex::Regex>,
    /// Least number of items.
    pub min_items: Option<u64>,
    /// Largest number of items.
    pub max_items: Option<u64>,
    /// Least number of properties.
    pub min_properties: Option<u64>,
    /// Largest number of properties.
    pub max_properties: Option<u64>,
    /// The allowed values.
    pub one_of_values: Option<Vec<Value>>,
    /// The `format` of a string or number.
    pub format: Option<Box<str>>,
    /// `required` inside a combinator; the required fields of a struct itself are on its fields.
    pub required: Vec<Box<str>>,
    /// Rules on named properties, inside a combinator.
    pub properties: Vec<(Box<str>, Rules)>,
    /// Rules on every property value, inside a combinator.
    pub additional_properties: Option<Box<Rules>>,
    /// Rules on every item, inside a combinator.
    pub items: Option<Box<Rules>>,
    /// All must hold.
    pub all_of: Vec<Rules>,
    /// At least one must hold.
    pub any_of: Vec<Rules>,
    /// Exactly one must hold.
    pub one_of: Vec<Rules>,
    /// Must not hold.
    pub not: Option<Box<Rules>>,
}
