//! Keeps the objects: in memory, multi-version, one global revision, with a history that watchers read.
//!
//! Guarantees
//! - Every write takes the next revision. Readers of one revision see exactly the state of that revision.
//! - A snapshot's revision is a valid starting point for a watch: nothing is lost, doubled or reordered between them.
//! - A watcher that falls behind the history is told so ([`Expired`]) and never costs a writer anything.
//! - Each event is rendered once, whatever the number of watchers.
//!
//! The state machine ([`state`]) is pure: time, revisions and bytes come in as arguments. [`Store`] is the thin shell
//! with the lock and the wake-ups. Durability ([`durable`]) is optional; without it nothing touches the disk.
//!
//! Deliberately absent: transactions over several objects, secondary indexes, leases. An object is the bytes that are
//! served; the store knows where its `resourceVersion` is and nothing else about JSON.

mod collection;
mod cursor;
pub mod durable;
mod event;
mod history;
mod pairs;
mod pins;
mod record;
mod snapshot;
mod state;
mod store;
mod wakers;

#[cfg(test)]
mod tests;

pub use collection::{Collection, CommitError, Committed, Effect, Write};
pub use cursor::{Cursor, Expired};
pub use durable::{Durability, Fsync, NotDurable, OpenError, OpenOptions, Recovery};
pub use event::{Change, Delivery, Event};
pub use history::HistoryLimits;
pub use pairs::Pairs;
pub use record::{Draft, Record};
pub use snapshot::{At, Snapshot, SnapshotError};
pub use store::{FutureRevision, Store};
