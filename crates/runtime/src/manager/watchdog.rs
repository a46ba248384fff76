//! The watchdog: a thread that ends a process which lost its lease and did not end by itself.
//!
//! A reconcile that blocks its thread cannot be dropped, and with all threads of the runtime blocked nobody even notices that
//! the lease was lost. This thread needs none of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tokio::time::Instant;

use crate::lease::LeaderStatus;

/// The exit code of a process that lost its lease and did not end by itself.
const EXIT: i32 = 3;

/// The longest between two looks at the lease.
const LOOK: Duration = Duration::from_millis(500);

/// Watches a leadership until this is dropped. One that was lost is watched on: the process has to end.
pub(super) struct Watchdog {
    leadership: LeaderStatus,
    off: Arc<AtomicBool>,
}

impl Watchdog {
    /// Starts a thread that ends the process half of the margin after the lease is lost, before another process can lead.
    pub(super) fn start(leadership: LeaderStatus, margin: Duration) -> Self {
        let off = Arc::new(AtomicBool::new(false));
        let (watched, stopped) = (leadership.clone(), off.clone());
        let started = thread::Builder::new()
            .name("lease-watchdog".to_owned())
            .spawn(move || watch(&watched, margin / 2, &stopped));
        if let Err(error) = started {
            tracing::error!(%error, "no watchdog: a blocked reconcile can outlive the lease");
        }
        Self { leadership, off }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        if !self.leadership.is_lost() {
            self.off.store(true, Ordering::Release);
        }
    }
}

fn watch(leadership: &LeaderStatus, patience: Duration, off: &AtomicBool) {
    while !off.load(Ordering::Acquire) {
        let end = leadership.deadline().map(|deadline| deadline + patience);
        let now = Instant::now();
        match end.map(|end| end.saturating_duration_since(now)) {
            Some(Duration::ZERO) => exit(leadership),
            Some(left) => thread::park_timeout(left.min(LOOK)),
            None => thread::park_timeout(LOOK.min(patience)),
        }
    }
}

fn exit(leadership: &LeaderStatus) {
    // A log may need a thread that is blocked; standard error does not.
    eprintln!(
        "lease {} was lost and the process did not end: it is ended now",
        leadership.name()
    );
    std::process::exit(EXIT);
}
