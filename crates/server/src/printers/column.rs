//! Columns: what a table says about the cells of its rows.

use std::borrow::Cow;

/// One column of a table. Built-in ones are constants; a CRD's are made from its declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    /// Heading; kubectl shows it in upper case.
    pub(crate) name: Cow<'static, str>,
    /// OpenAPI type of the cells.
    pub(crate) type_: Cow<'static, str>,
    /// `name` for the primary identifier, otherwise mostly empty.
    pub(crate) format: Cow<'static, str>,
    /// For people; empty for built-in kinds.
    pub(crate) description: Cow<'static, str>,
    /// Zero is always shown, anything above only with `-o wide`.
    pub(crate) priority: i32,
}

/// The first column of nearly every table.
pub(crate) const NAME: Column = column("Name", "string", "name", 0);

/// Time since creation, already written for people.
pub(super) const AGE: Column = text("Age");

/// Columns of a kind that has no printer of its own.
pub(super) const DEFAULT: &[Column] = &[NAME, column("Created At", "date", "", 0)];

/// A column of strings.
pub(super) const fn text(name: &'static str) -> Column {
    column(name, "string", "", 0)
}

/// A column of strings that is shown with `-o wide` only.
pub(super) const fn wide(name: &'static str) -> Column {
    column(name, "string", "", 1)
}

/// A column of whole numbers.
pub(super) const fn integer(name: &'static str) -> Column {
    column(name, "integer", "", 0)
}

/// A column of booleans.
pub(super) const fn boolean(name: &'static str) -> Column {
    column(name, "boolean", "", 0)
}

/// Any column without a description.
pub(super) const fn column(
    name: &'static str,
    type_: &'static str,
    format: &'static str,
    priority: i32,
) -> Column {
    Column {
        name: Cow::Borrowed(name),
        type_: Cow::Borrowed(type_),
        format: Cow::Borrowed(format),
        description: Cow::Borrowed(""),
        priority,
    }
}
