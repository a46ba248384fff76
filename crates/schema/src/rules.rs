//! Value rules of CRD schemas: what OpenAPI validation says about a value beyond its shape.

use serde_json::Value;

use kubewright_cel::pattern::Pattern;

/// Rules on one value. The combinators hold rules only: a structural schema may refine what it has specified
/// outside of them, never add to it.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// The declared `type`, where it is not the one that the shape implies; an empty list allows every type.
    /// Absent inside a combinator it allows every type too.
    pub types: Option<Vec<JsonType>>,
    /// The lower bound of a number.
    pub minimum: Option<f64>,
    /// The lower bound itself is not allowed.
    pub exclusive_minimum: bool,
    /// The upper bound of a number.
    pub maximum: Option<f64>,
    /// The upper bound itself is not allowed.
    pub exclusive_maximum: bool,
    /// The value is a multiple of this.
    pub multiple_of: Option<f64>,
    /// Least number of characters.
    pub min_length: Option<u64>,
    /// Largest number of characters.
    pub max_length: Option<u64>,
    /// Unanchored regular expression that a string must match.
    pub pattern: Option<Pattern>,
    /// Least number of items.
    pub min_items: Option<u64>,
    /// Largest number of items.
    pub max_items: Option<u64>,
    /// Least number of properties.
    pub min_properties: Option<u64>,
    /// Largest number of properties.
    pub max_properties: Option<u64>,
    /// The `enum` keyword: the value is one of these.
    pub one_of_values: Option<Vec<Value>>,
    /// The `format` of a string or number; formats that the API server does not know are absent.
    pub format: Option<Box<str>>,
    /// The `required` list as written: it may name properties that the schema does not specify.
    pub required: Vec<Box<str>>,
    /// What `additionalProperties: true` or `false` says; a schema there makes the type a map.
    pub additional: Additional,
    /// Rules on named properties, inside a combinator.
    pub properties: Vec<(Box<str>, Rules)>,
    /// Rules on every item, inside a combinator.
    pub items: Option<Box<Rules>>,
    /// Every one of these must hold.
    pub all_of: Vec<Rules>,
    /// At least one must hold.
    pub any_of: Vec<Rules>,
    /// Exactly one must hold.
    pub one_of: Vec<Rules>,
    /// These rules must not hold.
    pub not: Option<Box<Rules>>,
    /// The CEL rules of `x-kubernetes-validations`.
    pub expressions: Vec<Validation>,
}

/// An entry of `x-kubernetes-validations`, as written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Validation {
    /// The expression that must hold.
    pub rule: String,
    /// What to say when it does not; empty when not given.
    pub message: String,
    /// An expression that makes the message; empty when not given.
    pub message_expression: String,
    /// Class of the error.
    pub reason: Option<String>,
    /// Which field to blame; empty for the value itself.
    pub field_path: String,
    /// [`Validation::field_path`] as errors write it, empty where it does not lead anywhere.
    pub blamed: String,
    /// Whether the rule holds for new values too, with an empty `oldSelf`.
    pub optional_old_self: Option<bool>,
}

/// What a boolean `additionalProperties` says about properties that are not listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Additional {
    /// The schema has no boolean `additionalProperties`.
    #[default]
    Unset,
    /// `true`: other properties are kept, but what is inside of them is not specified.
    Allowed,
    /// `false`: other properties are errors.
    Forbidden,
}

/// A `type` of JSON schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonType {
    /// A text in double quotes.
    String,
    /// A number, with or without a fraction.
    Number,
    /// A number without fraction.
    Integer,
    /// Either `true` or `false`.
    Boolean,
    /// A list of values.
    Array,
    /// A map with string keys.
    Object,
}

impl JsonType {
    /// Reads the `type` keyword.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "string" => JsonType::String,
            "number" => JsonType::Number,
            "integer" => JsonType::Integer,
            "boolean" => JsonType::Boolean,
            "array" => JsonType::Array,
            "object" => JsonType::Object,
            _ => return None,
        })
    }

    /// Returns the name that the `type` keyword uses.
    pub fn as_str(self) -> &'static str {
        match self {
            JsonType::String => "string",
            JsonType::Number => "number",
            JsonType::Integer => "integer",
            JsonType::Boolean => "boolean",
            JsonType::Array => "array",
            JsonType::Object => "object",
        }
    }
}
