//! Conflicts: fields that an apply would change although somebody else manages them.

use std::fmt;

use super::entry::{Entry, Operation};
use super::path::{self, Path};
use super::set::Set;

/// A field that an apply would change, and one of its managers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The manager as conflicts name it: `"kubectl" using apps/v1`.
    pub manager: String,
    /// The field that the other manager owns.
    pub path: Path,
}

impl Conflict {
    /// The field as errors name it: `.spec.replicas`.
    pub fn field(&self) -> String {
        path::display(&self.path)
    }
}

/// Everything that stands against an apply.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Conflicts(pub Vec<Conflict>);

impl Conflicts {
    pub(super) fn add(&mut self, entry: &Entry, fields: &Set) {
        let manager = describe(entry);
        let conflicts = fields.paths().into_iter().map(|path| Conflict {
            manager: manager.clone(),
            path,
        });
        self.0.extend(conflicts);
    }

    pub(super) fn fields(&self) -> Set {
        self.0
            .iter()
            .map(|conflict| conflict.path.clone())
            .collect()
    }
}

impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = &self.0[..] {
            let (manager, field) = (&only.manager, only.field());
            return write!(
                f,
                "Apply failed with 1 conflict: conflict with {manager}: {field}"
            );
        }
        write!(f, "Apply failed with {} conflicts: ", self.0.len())?;
        let mut before = None;
        for (i, conflict) in self.0.iter().enumerate() {
            if before != Some(&conflict.manager) {
                let line = if i > 0 { "\n" } else { "" };
                write!(f, "{line}conflicts with {}:", conflict.manager)?;
                before = Some(&conflict.manager);
            }
            write!(f, "\n- {}", conflict.field())?;
        }
        Ok(())
    }
}

impl std::error::Error for Conflicts {}

/// A manager as conflicts name it.
fn describe(entry: &Entry) -> String {
    let mut text = format!("{:?}", entry.manager);
    if !entry.subresource.is_empty() {
        text += &format!(" with subresource {:?}", entry.subresource);
    }
    if entry.operation == Operation::Update {
        text += &format!(" using {}", entry.api_version);
    }
    text
}
