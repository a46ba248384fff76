//! The `Table` document, for lists, single objects and watch events.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use jiff::Timestamp;
use kubewright_schema::encode::{write_key, write_string, write_untyped};
use serde_json::Value;

use super::column::Column;
use super::partial::{
    ListMetadata, MetaVersion, append_list_metadata, append_partial, append_start,
};
use super::view::{at, text};

/// Marks the bookmark that ends the initial events of a streaming list.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Computes the cells of one row: the object, and the moment ages are measured from.
pub(crate) type CellsOf = dyn Fn(&Value, Timestamp) -> Vec<Value> + Send + Sync;

/// How the objects of one kind become rows. Cheap to clone, made once per kind.
#[derive(Clone)]
pub(crate) struct Printer {
    /// What the cells are.
    pub(crate) columns: Cow<'static, [Column]>,
    /// One cell for each column.
    pub(crate) cells: Arc<CellsOf>,
    /// What a row says about its object besides the cells.
    pub(super) condition: fn(&Value) -> Option<RowCondition>,
    /// What stands for the rows of a table without any.
    pub(super) no_rows: &'static str,
}

impl Printer {
    /// A printer with columns of its own, such as a CRD declares.
    pub(crate) fn new(
        columns: Vec<Column>,
        cells: impl Fn(&Value, Timestamp) -> Vec<Value> + Send + Sync + 'static,
    ) -> Self {
        Self {
            columns: columns.into(),
            cells: Arc::new(cells),
            condition: |_| None,
            no_rows: "[]",
        }
    }

    /// The table of one object: the answer to a GET, or the object of a watch event.
    pub(crate) fn single(
        &self,
        options: Options,
        headers: Headers,
        row: Row<'_>,
        now: Timestamp,
    ) -> Vec<u8> {
        let metadata = ListMetadata {
            resource_version: text(row.object, "metadata.resourceVersion"),
            ..ListMetadata::default()
        };
        let mut table = Table::new(self, options, headers, &metadata, now);
        table.row(row.object, row.bytes);
        table.finish()
    }
}

impl fmt::Debug for Printer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Printer")
            .field("columns", &self.columns)
            .finish_non_exhaustive()
    }
}

/// An object of which a row is made.
#[derive(Clone, Copy)]
pub(crate) struct Row<'a> {
    pub(crate) object: &'a Value,
    /// The same object as it is served.
    pub(crate) bytes: &'a [u8],
}

/// How a client wants its table.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Options {
    /// Version of the document.
    pub(crate) version: MetaVersion,
    /// What each row carries besides its cells.
    pub(crate) include: IncludeObject,
}

/// Whether a table describes its columns. A watch does so in its first event only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Headers {
    /// The columns are described.
    Shown,
    /// The columns are left out: `columnDefinitions` is null.
    Omitted,
}

/// What each row carries besides its cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum IncludeObject {
    /// Rows have nothing but their cells.
    None,
    /// Rows carry the object's metadata.
    #[default]
    Metadata,
    /// Rows carry the whole object.
    Object,
}

/// The value of `includeObject` is not one of those there are. Answered with 400.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "Unable to convert to Table as requested: includeObject: Invalid value: {value:?}: must be 'Metadata', 'Object', 'None', or empty"
)]
pub(crate) struct InvalidIncludeObject {
    value: String,
}

impl FromStr for IncludeObject {
    type Err = InvalidIncludeObject;

    fn from_str(value: &str) -> Result<Self, Self::Err> {
        match value {
            "" | "Metadata" => Ok(IncludeObject::Metadata),
            "None" => Ok(IncludeObject::None),
            "Object" => Ok(IncludeObject::Object),
            _ => Err(InvalidIncludeObject {
                value: value.to_owned(),
            }),
        }
    }
}

/// What a row says about its object besides the cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowCondition {
    pub(crate) type_: &'static str,
    pub(crate) status: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) message: &'static str,
}

/// A table that is written row by row.
#[derive(Debug)]
pub(crate) struct Table<'a> {
    printer: &'a Printer,
    options: Options,
    now: Timestamp,
    out: Vec<u8>,
    is_empty: bool,
}

impl<'a> Table<'a> {
    /// Starts the table.
    pub(crate) fn new(
        printer: &'a Printer,
        options: Options,
        headers: Headers,
        metadata: &ListMetadata<'_>,
        now: Timestamp,
    ) -> Self {
        let mut out = Vec::new();
        append_start(&mut out, "Table", options.version);
        append_list_metadata(&mut out, metadata);
        out.extend_from_slice(b",\"columnDefinitions\":");
        match headers {
            Headers::Shown => append_columns(&mut out, &printer.columns),
            Headers::Omitted => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(b",\"rows\":");
        Self {
            printer,
            options,
            now,
            out,
            is_empty: true,
        }
    }

    /// Adds an object. `bytes` is the same object as it is served.
    pub(crate) fn row(&mut self, object: &Value, bytes: &[u8]) {
        self.out.push(if self.is_empty { b'[' } else { b',' });
        self.is_empty = false;
        self.out.extend_from_slice(b"{\"cells\":");
        let cells = (self.printer.cells)(object, self.now);
        write_untyped(&Value::Array(cells), &mut self.out);
        if let Some(condition) = (self.printer.condition)(object) {
            append_condition(&mut self.out, &condition);
        }
        self.out.extend_from_slice(b",\"object\":");
        match self.included(object) {
            IncludeObject::None => self.out.extend_from_slice(b"null"),
            IncludeObject::Metadata => {
                append_partial(&mut self.out, object, self.options.version);
            }
            IncludeObject::Object => self.out.extend_from_slice(bytes.trim_ascii()),
        }
        self.out.push(b'}');
    }

    /// The whole document.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let end = if self.is_empty {
            self.printer.no_rows
        } else {
            "]"
        };
        self.out.extend_from_slice(end.as_bytes());
        self.out.push(b'}');
        self.out
    }

    /// An annotation marks the end of the initial events, so metadata is sent even to those who want none.
    fn included(&self, object: &Value) -> IncludeObject {
        let is_end = || {
            let annotations = at(object, "metadata.annotations");
            let mark = annotations.and_then(|all| all.get(INITIAL_EVENTS_END));
            mark.and_then(Value::as_str) == Some("true")
        };
        match self.options.include {
            IncludeObject::None if is_end() => IncludeObject::Metadata,
            include => include,
        }
    }
}

fn append_columns(out: &mut Vec<u8>, columns: &[Column]) {
    out.push(b'[');
    for (index, column) in columns.iter().enumerate() {
        out.extend_from_slice(if index == 0 { b"{" } else { b",{" });
        for (key, value) in [
            ("name", &column.name),
            ("type", &column.type_),
            ("format", &column.format),
            ("description", &column.description),
        ] {
            write_key(key, out);
            write_string(value, out);
            out.push(b',');
        }
        write_key("priority", out);
        write_untyped(&column.priority.into(), out);
        out.push(b'}');
    }
    out.push(b']');
}

fn append_condition(out: &mut Vec<u8>, condition: &RowCondition) {
    out.extend_from_slice(b",\"conditions\":[{");
    for (index, (key, value)) in [
        ("type", condition.type_),
        ("status", condition.status),
        ("reason", condition.reason),
        ("message", condition.message),
    ]
    .into_iter()
    .enumerate()
    {
        if index > 0 {
            out.push(b',');
        }
        write_key(key, out);
        write_string(value, out);
    }
    out.extend_from_slice(b"}]");
}
