//! Informers: the state of a Kubernetes cluster, kept in memory, indexed, and told to handlers as it changes.

mod cached;
mod index;
mod json;
mod key;
mod object;
mod parse;
mod reader;
mod report;
mod shape;
pub mod source;
pub mod store;
mod table;

pub use cached::{Cached, Kind};
pub use index::{Index, IndexExists, UnknownIndex};
pub use key::Key;
pub use object::{Object, Owner};
pub use parse::ParseError;
pub use reader::{Reader, Snapshot};
pub use report::{Report, Reporter};
pub use shape::{Keep, Shape};
