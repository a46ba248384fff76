//! Objects as rows: the `Table` and `PartialObjectMetadata` representations that `kubectl get` and metadata
//! clients ask for.
//!
//! A [`Printer`] knows the columns of one kind and how to fill them. Built-in kinds have theirs in [`kinds`];
//! custom resources bring their own. Rendering goes straight to JSON bytes, one object at a time, so a table
//! of any length needs memory for its text and one parsed object.

mod column;
mod kinds;
mod partial;
mod selector;
mod table;
mod view;

use std::sync::Arc;

pub(crate) use column::Column;
pub(crate) use partial::{
    ListMetadata, MetaVersion, PartialList, metadata_of_bytes, partial_metadata,
};
pub(crate) use table::{Headers, InvalidIncludeObject, Options, Printer, Row, Table};

use view::View;

impl Printer {
    /// The printer of a built-in kind, or the default one: name and time of creation.
    pub(crate) fn builtin(group: &str, kind: &str) -> Self {
        let Some(entry) = kinds::find(group, kind) else {
            return Self::default_for_kind();
        };
        let print = entry.cells;
        Self {
            columns: entry.columns.into(),
            cells: Arc::new(move |object, now| print(&View { object, now })),
            condition: entry.condition,
            no_rows: "[]",
        }
    }

    fn default_for_kind() -> Self {
        Self {
            columns: column::DEFAULT.into(),
            cells: Arc::new(|object, now| kinds::default_cells(&View { object, now })),
            condition: |_| None,
            no_rows: "null",
        }
    }
}

#[cfg(test)]
mod tests;
