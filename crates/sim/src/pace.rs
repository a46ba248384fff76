//! How long things take in a run: in virtual time, or with a real program on a real clock.

use std::time::Duration;

use crate::plan::Fault;

/// The times of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Whether the clock is the machine's.
    pub(crate) is_real: bool,
    /// How long it takes until a process that died is started again.
    pub(crate) restarted_after: Duration,
    /// How long a stale API server stays behind.
    pub(crate) stale_for: Duration,
    /// How much later events come.
    pub(crate) lag: Duration,
    /// How long a connection is silent before it breaks, for clients that wait longer.
    pub(crate) silent_for: Duration,
    /// How long an event that is skipped can be held at most.
    pub(crate) skipped_within: Duration,
    /// How long a write takes in a flood.
    pub(crate) flooded_for: Duration,
    /// How long the cluster may take to come to rest.
    pub(crate) settled_within: Duration,
}

impl Pace {
    /// The times of runs in which waiting costs nothing.
    pub(crate) const VIRTUAL: Self = Self {
        is_real: false,
        restarted_after: Duration::from_secs(1),
        stale_for: Duration::from_secs(20),
        lag: Duration::from_secs(20),
        silent_for: Duration::from_secs(40),
        skipped_within: Duration::from_secs(10),
        flooded_for: Duration::from_secs(10),
        settled_within: Duration::from_secs(1800),
    };

    /// The times of runs in which waiting is waited for. All of it is shorter than the time after which a step counts as done.
    pub(crate) const REAL: Self = Self {
        is_real: true,
        restarted_after: Duration::from_millis(50),
        stale_for: Duration::from_millis(1500),
        lag: Duration::from_millis(1500),
        silent_for: Duration::from_millis(1500),
        skipped_within: Duration::from_millis(1500),
        flooded_for: Duration::from_millis(250),
        settled_within: Duration::from_secs(60),
    };

    /// How long a fault goes on once it has begun. Nobody can expect the operator to have dealt with it before.
    pub(crate) fn lasts(&self, fault: &Fault) -> Duration {
        match fault {
            Fault::CrashBefore(_) | Fault::CrashAfter(_) | Fault::Restart(_) => {
                self.restarted_after
            }
            Fault::Silence(_) | Fault::Partition(_) => self.silent_for,
            Fault::Lag(_) => self.lag,
            Fault::Skip(_) => self.skipped_within,
            Fault::StaleRestart(..) => self.restarted_after + self.stale_for,
            Fault::StaleReconnect(_) => self.stale_for,
            _ => Duration::ZERO,
        }
    }
}
