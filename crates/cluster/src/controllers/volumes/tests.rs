//! The binder's rules as tables, and under random operations, crashes and stale views.

mod cases;
mod matching;
mod model;
mod notation;
mod outside;
mod property;
