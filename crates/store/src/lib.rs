//! The storage of an API server: objects in memory, multi-version, with one global revision, a history that watchers
//! read, and a log on disk where durability is wanted.
//!
//! Guarantees
//! - Every write takes the next revision. Readers of one revision see exactly the state of that revision.
//! - A snapshot's revision is a valid starting point for a watch: nothing is lost, doubled or reordered between them.
//! - A watcher that falls behind the history gets [`Expired`] and never costs a writer anything.
//! - Each event is rendered once, whatever the number of watchers.
//!
//! ```
//! use kubewright_store::environment::Environment;
//! use kubewright_store::{At, Draft, HistoryLimits, Pairs, Store, Write};
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let store = Store::new(Environment::system(), HistoryLimits::default());
//! let pods = store.collection("pods");
//! let before = pods.snapshot(At::Latest)?;
//!
//! let head = r#"{"metadata":{"name":"web","resourceVersion":""#;
//! let draft = Draft {
//!     uid: "7c1d".into(),
//!     labels: [("app", "web")].into_iter().collect(),
//!     fields: Pairs::default(),
//!     body: format!(r#"{head}"}}}}"#).into_bytes(),
//!     version_at: head.len(),
//! };
//! let key = "default/web".to_owned();
//! let done = pods.commit_durable(Write::Create { key, draft }).await?;
//! assert_eq!(done.record.body(), r#"{"metadata":{"name":"web","resourceVersion":"2"}}"#);
//!
//! let mut events = Vec::new();
//! pods.watch(before.revision())?.next_batch(&mut events, 100).await?;
//! let delivery = events[0].delivery(|record| record.labels().get("app") == Some("web"));
//! let frame = events[0].frame(delivery.expect("it matches"));
//! assert!(frame.starts_with(br#"{"type":"ADDED","object":{"metadata""#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The state machine (`state`) is pure: time, revisions and bytes come in as arguments. [`Store`] is the thin shell
//! with the lock and the wake-ups. Durability ([`durable`]) is optional; without it nothing touches the disk.
//!
//! Deliberately absent: transactions over several objects, secondary indexes, leases. An object is the bytes that are
//! served; the store knows where its `resourceVersion` is and nothing else about JSON.

mod collection;
mod cursor;
pub mod durable;
pub mod environment;
mod event;
mod history;
mod pairs;
mod pins;
mod record;
mod root;
mod snapshot;
mod state;
mod store;
mod wakers;

#[cfg(test)]
mod tests;

pub use collection::{Collection, CommitError, Committed, Effect, Write};
pub use cursor::{Cursor, Expired};
pub use durable::{
    Damage, Durability, Examination, Fsync, NotDurable, OpenError, OpenOptions, Recovery, Repair,
    examine,
};
pub use event::{Change, Delivery, Event};
pub use history::HistoryLimits;
pub use pairs::Pairs;
pub use record::{Draft, Record};
pub use snapshot::{At, Snapshot, SnapshotError};
pub use store::{FutureRevision, Observed, RestoreError, Store};
