//! A work queue for controllers. It knows nothing of Kubernetes.
//!
//! Producers [`add`](Queue::add) keys, workers [`get`](Queue::get) them. A key is with at most one worker at a
//! time; added many times before it runs, it runs once; added while it runs, it runs once more. Keys can be delayed, rate
//! limited and given a [`Priority`]. The rules are those of client-go's `workqueue`, case by case; where this
//! queue does more, `docs/parity-workqueue.md` says so.
//!
//! - The rules are one pure state machine, given the time with each call; [`Queue`] is a thin shell around it: one short
//!   lock, one wake-up for each ready key, and one waiting worker that sleeps until the next delayed key is due.
//! - A run can be repeated exactly: no order depends on a hash, and the time comes from a [`Clock`] that can be
//!   replaced, by default tokio's, which tests can pause.
//! - A [`Note`] goes with a key from its adds to its run, for those who want to know why it runs.
//! - An [`Item`] is a guard: a worker that panics or is cancelled gives its key back. A [`RateLimiter`] that panics loses
//!   no key either.
//! - [`Stats`] are counted at all times, durations for queues with a name; [`prometheus`] writes them under the names
//!   that dashboards know.
//!
//! Deliberately absent: worker tasks (a loop over `get` is all there is to one) and persistence.

mod alarms;
mod clock;
mod item;
mod lanes;
#[cfg(test)]
mod limit;
pub mod limiter;
mod machine;
mod moment;
mod note;
mod options;
mod priority;
pub mod prometheus;
mod queue;
mod stats;

pub use clock::{Clock, TokioClock};
pub use item::Item;
pub use limiter::RateLimiter;
pub use machine::Finish;
pub use note::Note;
pub use options::{Add, Options};
pub use priority::{Priority, PriorityPolicy};
pub use queue::{Drain, Queue, Request};
pub use stats::{Histogram, Stats};
