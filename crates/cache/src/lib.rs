//! Informers: the state of a Kubernetes cluster, kept in memory, indexed, and told to handlers as it changes.

mod backoff;
mod cached;
pub mod delta;
mod frames;
mod index;
mod intake;
mod json;
mod key;
mod object;
mod pages;
mod parse;
mod reader;
pub mod reflector;
mod report;
mod shape;
pub mod source;
pub mod store;
mod table;

pub use backoff::Backoff;
pub use cached::{Cached, Kind};
pub use index::{Index, IndexExists, UnknownIndex};
pub use key::Key;
pub use object::{Object, Owner};
pub use parse::ParseError;
pub use reader::{Reader, Snapshot};
pub use report::{Report, Reporter};
pub use shape::{Keep, Shape};
