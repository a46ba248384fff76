//! Informers: the state of a Kubernetes cluster, kept in memory, indexed, and delivered to handlers as it changes.
//!
//! The chain, each link usable alone:
//!
//! ```text
//! bytes of the API server ─ source: ListWatch ───→ lists and watch events
//! watch events            ─ reflector ───────────→ deltas {Replace, Apply, Delete, Bookmark}
//! deltas                  ─ bounded queue ───────→ informer, the only writer of store and indexes
//! changes                 ─ one backlog each ────→ handlers {Added, Updated, Deleted}
//! store                   ─ Reader, Lister ──────→ whoever asks
//! ```
//!
//! Most programs start at the top, with a [`Factory`]:
//!
//! ```no_run
//! use k8s_openapi::api::core::v1::Pod;
//! use kubewright_cache::{Event, Factory, Index, Key};
//!
//! # async fn example(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
//! let factory = Factory::new(client);
//! let pods = factory.informer::<Pod>();
//! let store = pods.reader();
//! store.add_index("node", Index::of(|pod: &Pod| {
//!     pod.spec.iter().filter_map(|spec| spec.node_name.clone()).collect()
//! }))?;
//! pods.add_handler(|event: Event<Pod>| println!("{}", event.object().key()))?;
//! factory.start();
//! factory.synced().await?;
//! let web = store.get(&Key::new("default", "web-0"));
//! println!("{:?}; {} on node n1", web, store.keys_by_index("node", "n1")?.len());
//! # Ok(())
//! # }
//! ```
//!
//! Objects are kept as JSON without managedFields and decoded when they are used; [`Keep`] says otherwise. No order is
//! decided by a hash, and time (tokio's, which tests can pause) and random numbers can be replaced, so that a
//! run can be repeated.

mod as_object;
mod backlog;
mod backoff;
mod batch;
pub mod by_hand;
mod cached;
mod core;
mod decode;
pub mod delta;
mod event;
mod factory;
mod frames;
mod handler;
mod hub;
mod index;
mod intake;
mod json;
mod key;
mod latest;
mod list_watch;
mod listener;
mod lister;
mod object;
mod pages;
mod parse;
pub mod prometheus;
mod reader;
pub mod reflector;
mod report;
mod selection;
mod selector;
mod shape;
mod shared;
pub mod source;
mod stats;
pub mod store;
mod table;
mod value;

#[doc(hidden)]
pub use as_object::sealed;
pub use as_object::{AsObject, AsObjectRef};
pub use backoff::Backoff;
pub use cached::{Cached, Kind, Undecodable};
pub use decode::decode;
pub use event::Event;
pub use factory::{Factory, FactorySyncError, InformerPanicked};
pub use handler::{Callbacks, Filtered, Handler};
pub use index::{Index, IndexExists, NAMESPACE_INDEX, UnknownIndex};
pub use key::Key;
pub use list_watch::{ListWatch, Scope};
pub use listener::HandlerOptions;
pub use lister::Lister;
pub use object::{Object, Owner};
pub use parse::ParseError;
pub use reader::{Entries, Reader, Snapshot};
pub use report::{Report, Reporter};
pub use selection::Selection;
pub use selector::{Selector, SelectorError};
pub use shape::{Keep, Shape};
pub use shared::{AlreadyRan, Registration, SharedInformer, Stopped, SyncError, WeakInformer};
pub use stats::Stats;
