//! JSON patch (RFC 6902), applied as the API server applies it.
//!
//! Written here rather than taken from a crate, because every operation has to count against limits: a few hundred bytes
//! of `copy` can grow a document a thousandfold, and `move` can nest it deeper than any later step survives.
//! Where the library of the API server is more lenient than the RFC, so is this: `replace` of an absent member adds it,
//! and `test` takes an absent member for `null`.

mod budget;
mod error;
mod pointer;
#[cfg(test)]
mod tests;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{MAX_DEPTH, is_within_depth};
use budget::Budget;
pub use error::{JsonPatchError, OperationError};
use pointer::Pointer;

/// Most operations of one patch.
pub const MAX_OPERATIONS: usize = 10_000;

/// The API server's words for an object in place of a list, which is a common mistake.
const NOT_A_LIST: &str =
    "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp";

/// A decoded JSON patch.
#[derive(Debug, Clone)]
pub struct JsonPatch {
    operations: Vec<Operation>,
}

/// One operation as it was sent. What is missing is found out when it is applied, as the API server does.
#[derive(Debug, Clone)]
struct Operation {
    op: Option<String>,
    path: Option<String>,
    from: Option<String>,
    value: Value,
}

impl JsonPatch {
    /// Decodes a patch.
    ///
    /// # Errors
    /// When it is not a JSON list of operations, or a list of too many.
    pub fn decode(patch: &[u8]) -> Result<Self, JsonPatchError> {
        // Split first and decode later, so that a list of a million operations costs little more than its text.
        if patch.trim_ascii_start().starts_with(b"{") {
            return Err(JsonPatchError::Undecodable(NOT_A_LIST.to_owned()));
        }
        let items: Option<Vec<&RawValue>> = serde_json::from_slice(patch).map_err(undecodable)?;
        let items = items.unwrap_or_default();
        if items.len() > MAX_OPERATIONS {
            return Err(JsonPatchError::TooManyOperations(items.len()));
        }
        let operations: Result<_, _> = items.into_iter().map(Operation::decode).collect();
        Ok(Self {
            operations: operations?,
        })
    }

    /// Applies the operations in order, and all or none of them.
    ///
    /// # Errors
    /// When an operation does not fit the document, or the document would grow over a limit.
    pub fn apply(&self, document: Value) -> Result<Value, JsonPatchError> {
        let mut editor = Editor {
            document,
            budget: Budget::default(),
        };
        for operation in &self.operations {
            editor
                .run(operation)
                .map_err(JsonPatchError::DoesNotApply)?;
        }
        Ok(editor.document)
    }
}

fn undecodable(error: serde_json::Error) -> JsonPatchError {
    JsonPatchError::Undecodable(error.to_string())
}

impl Operation {
    fn decode(text: &RawValue) -> Result<Self, JsonPatchError> {
        let members: Option<Map<String, Value>> =
            serde_json::from_str(text.get()).map_err(undecodable)?;
        let mut members = members.unwrap_or_default();
        let mut text = |name: &str| match members.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(JsonPatchError::Undecodable(format!(
                "field {name} of an operation is not a string"
            ))),
        };
        Ok(Self {
            op: text("op")?,
            path: text("path")?,
            from: text("from")?,
            value: members.remove("value").unwrap_or_default(),
        })
    }
}

/// A document that is being patched, and what may still be spent on it.
struct Editor {
    /// Never nested deeper than [`MAX_DEPTH`], given that it came in so.
    document: Value,
    budget: Budget,
}

type Step = Result<(), OperationError>;

impl Editor {
    fn run(&mut self, operation: &Operation) -> Step {
        let path = pointer::required(operation.path.as_deref(), "path");
        let from = || pointer::required(operation.from.as_deref(), "from");
        match operation.op.as_deref().unwrap_or("unknown") {
            "add" => self.add(&path?, operation.value.clone()),
            "remove" => self.remove(&path?).map(drop),
            "replace" => self.replace(&path?, operation.value.clone()),
            "move" => {
                let value = self.remove(&from()?)?;
                // A moved value is as large as it likes; walking it has to be paid for.
                self.budget.spend_work(count_nodes(&value))?;
                self.add(&path?, value)
            }
            "copy" => {
                let value = self.copied(&from()?)?;
                self.add(&path?, value)
            }
            "test" => self.test(&path?, &operation.value),
            other => Err(OperationError::UnknownKind(other.to_owned())),
        }
    }

    fn add(&mut self, path: &Pointer, value: Value) -> Step {
        check_depth(path, &value)?;
        let (parent, key) = path.parent_mut(&mut self.document)?;
        match parent {
            Value::Object(members) => {
                members.insert(key.to_owned(), value);
            }
            Value::Array(items) => {
                let at = match key {
                    "-" => items.len(),
                    _ => pointer::index(key, items.len() + 1)?,
                };
                self.budget.spend_work(items.len() - at)?;
                items.insert(at, value);
            }
            _ => return Err(path.missing()),
        }
        Ok(())
    }

    fn remove(&mut self, path: &Pointer) -> Result<Value, OperationError> {
        let (parent, key) = path.parent_mut(&mut self.document)?;
        match parent {
            Value::Object(members) => members.remove(key).ok_or_else(|| path.missing()),
            Value::Array(items) => {
                let at = pointer::index(key, items.len())?;
                self.budget.spend_work(items.len() - at)?;
                Ok(items.remove(at))
            }
            _ => Err(path.missing()),
        }
    }

    fn replace(&mut self, path: &Pointer, value: Value) -> Step {
        check_depth(path, &value)?;
        if path.is_root() {
            if !value.is_object() && !value.is_array() {
                return Err(OperationError::ScalarDocument);
            }
            self.document = value;
            return Ok(());
        }
        let (parent, key) = path.parent_mut(&mut self.document)?;
        match parent {
            Value::Object(members) => {
                members.insert(key.to_owned(), value);
            }
            Value::Array(items) => {
                let at = pointer::index(key, items.len())?;
                items[at] = value;
            }
            _ => return Err(path.missing()),
        }
        Ok(())
    }

    fn copied(&mut self, from: &Pointer) -> Result<Value, OperationError> {
        let value = from.get(&self.document)?;
        self.budget.spend_copy(value)?;
        Ok(value.clone())
    }

    fn test(&self, path: &Pointer, expected: &Value) -> Step {
        let value = if path.is_root() {
            &self.document
        } else {
            path.get(&self.document)?
        };
        if value == expected {
            return Ok(());
        }
        Err(OperationError::TestFailed(path.to_string()))
    }
}

fn check_depth(path: &Pointer, value: &Value) -> Step {
    let fits = MAX_DEPTH
        .checked_sub(path.depth())
        .is_some_and(|left| is_within_depth(value, left));
    if fits {
        return Ok(());
    }
    Err(OperationError::DeepDocument)
}

fn count_nodes(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count_nodes).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(count_nodes).sum::<usize>(),
        _ => 1,
    }
}
