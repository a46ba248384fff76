//! Why a strategic merge patch was refused, in the words of the API server.

use serde_json::{Map, Value};

use crate::go::{self, Printer};
use crate::patch::MAX_DEPTH;

/// Longest print of a value in an error.
const MAX_PRINT: usize = 4096;

/// Why a strategic merge patch was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StrategicError {
    /// The patch is not an object.
    #[error("json: cannot unmarshal {0} into Go value of type map[string]interface {{}}")]
    NotAnObject(&'static str),
    /// The patch is nested too deeply.
    #[error("exceeded max depth of {MAX_DEPTH}")]
    TooDeep,
    /// `$deleteFromPrimitiveList` without a field, or on a list of objects.
    #[error("invalid patch format of primitive list")]
    PrimitiveListFormat,
    /// `$retainKeys` is not a list, or does not name a member that the patch sets.
    #[error("invalid patch format of retainKeys")]
    RetainKeysFormat,
    /// `$setElementOrder` without a field.
    #[error("invalid patch format of setElementOrder list")]
    SetElementOrderFormat,
    /// A merged list holds lists.
    #[error("lists of lists are not supported")]
    ListOfLists,
    /// A directive or its field is not a list.
    #[error("expected a []interface {{}}, but received a {0}")]
    NotAList(&'static str),
    /// An item of a list that merges by key is not an object.
    #[error("expected a map[string]interface {{}}, but received a {0}")]
    NotAMap(&'static str),
    /// An item has no value for the key that its list merges by.
    #[error("map: {map} does not contain declared merge key: {key}")]
    NoMergeKey {
        /// The item.
        map: String,
        /// The key that items need.
        key: Box<str>,
    },
    /// A list of objects merges, but its type declares no key.
    #[error("cannot merge lists without merge key for struct")]
    NoDeclaredMergeKey,
    /// `$patch` has an unknown value.
    #[error("unknown patch type: {directive} in map: {map}")]
    UnknownPatchType {
        /// The value of `$patch`.
        directive: Box<str>,
        /// The object it is in.
        map: String,
    },
    /// `$patch: merge` in an item of a list.
    #[error("merging lists cannot yet be specified in the patch")]
    MergeDirective,
    /// The items of a list are of several JSON types.
    #[error("list element types are not identical: {0}")]
    MixedItems(String),
    /// The list of the patch and its `$setElementOrder` contradict each other.
    #[error("The order in patch list:\n{patch}\n doesn't match $setElementOrder list:\n{order}\n")]
    OrderMismatch {
        /// The list of the patch.
        patch: Box<str>,
        /// The order it should have.
        order: Box<str>,
    },
}

impl StrategicError {
    /// The HTTP status that the API server answers with. With 500 it gives the message but no reason.
    pub fn status(&self) -> u16 {
        match self {
            Self::NotAnObject(_)
            | Self::TooDeep
            | Self::PrimitiveListFormat
            | Self::RetainKeysFormat
            | Self::SetElementOrderFormat => 400,
            Self::ListOfLists => 422,
            _ => 500,
        }
    }

    pub(super) fn unknown_patch_type(directive: &Value, map: &Map<String, Value>) -> Self {
        Self::UnknownPatchType {
            directive: print(directive).into(),
            map: print_map(map),
        }
    }

    pub(super) fn no_merge_key(map: &Map<String, Value>, key: &str) -> Self {
        Self::NoMergeKey {
            map: print_map(map),
            key: key.into(),
        }
    }

    pub(super) fn order_mismatch(patch: &[Value], order: &[Value]) -> Self {
        Self::OrderMismatch {
            patch: print_list(patch).into(),
            order: print_list(order).into(),
        }
    }
}

/// The name of the Go type that a JSON value decodes to.
pub(super) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        known => go::type_name(known),
    }
}

fn print(value: &Value) -> String {
    let mut printer = Printer::within(MAX_PRINT);
    printer.value(value);
    printer.finish()
}

fn print_map(map: &Map<String, Value>) -> String {
    let mut printer = Printer::within(MAX_PRINT);
    printer.map(map);
    printer.finish()
}

pub(super) fn print_list(items: &[Value]) -> String {
    let mut printer = Printer::within(MAX_PRINT);
    printer.list(items);
    printer.finish()
}
