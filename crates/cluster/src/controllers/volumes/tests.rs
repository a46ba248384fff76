//! The binder's rules as tables, and under random operations, crashes and stale views.

mod cases;
mod model;
mod property;
