//! Reads the source of this repository and says how it is built: which module of a crate uses which, and some counts.
//!
//! What is read is source text, not what the compiler makes of it: a path in a macro's output is not seen. Tests are left
//! out. `tests/layers.rs` holds what is found against what was declared; `tests/tidy.rs` does so for words, doc comments, names
//! and links, and `cargo xtask tidy` lists every place.

pub mod counts;
pub mod doc_comments;
pub mod examples;
pub mod modules;
pub mod pages;
pub mod reference;
pub mod source;
pub mod terms;
pub mod translations;
pub mod tree;
pub mod type_names;
pub mod words;
