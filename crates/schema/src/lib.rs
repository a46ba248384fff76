//! One type table for every kind, built in or custom, and what can be done with it.
//!
//! A [`Table`] holds types: structs, maps, lists and scalars, with the list keys, merge strategies, defaults and
//! value rules that Kubernetes attaches to them. The built-in kinds come from a checked-in table generated from
//! the published API definitions; a CRD's structural schema compiles into the same shape. Everything that needs
//! to know a type works on it: decoding, pruning, defaulting, validation, merging, discovery and OpenAPI.
//!
//! The crate does no I/O and knows no server.

pub mod apply;
mod builtin;
pub mod catalog;
pub mod crd;
pub mod decode;
pub mod discovery;
pub mod duration;
pub mod encode;
pub mod field;
mod go;
#[cfg(test)]
mod invented;
pub mod openapi;
pub mod patch;
pub mod protobuf;
pub mod rules;
pub mod selector;
pub mod types;
pub mod yaml;

#[doc(inline)]
pub use kubewright_cel as cel;
#[doc(inline)]
pub use kubewright_cel::{names, quantity};

pub use field::{FieldError, Reason};
pub use types::{
    Field, Kind, List, ListKind, Patch, Scalar, Shape, Struct, Table, Type, TypeId, Wire,
};
