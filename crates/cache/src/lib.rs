//! Informers: the state of a Kubernetes cluster, kept in memory, indexed, and told to handlers as it changes.

mod backlog;
mod backoff;
mod cached;
pub mod delta;
mod event;
mod frames;
mod hub;
mod index;
mod intake;
mod json;
mod key;
mod list_watch;
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
pub use event::Event;
pub use index::{Index, IndexExists, UnknownIndex};
pub use key::Key;
pub use list_watch::{ListWatch, Scope};
pub use object::{Object, Owner};
pub use parse::ParseError;
pub use reader::{Reader, Snapshot};
pub use report::{Report, Reporter};
pub use shape::{Keep, Shape};
