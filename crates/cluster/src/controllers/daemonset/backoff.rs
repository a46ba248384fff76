//! How long a DaemonSet leaves a failed pod alone before it tries the node again.
//!
//! A kubelet that rejects a pod rejects its successor as well; without a pause the two would fight as fast as they can.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// Pauses by node and by what was tried there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Backoff {
    pauses: BTreeMap<Attempt, Pause>,
}

/// What failed: a generation of a set on a node. A new generation is a new attempt.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Attempt {
    /// The set's uid.
    pub(crate) set: String,
    /// The generation of its spec.
    pub(crate) generation: i64,
    /// The node's name.
    pub(crate) node: String,
}

#[derive(Clone, Copy, Debug)]
struct Pause {
    since: Timestamp,
    length: Duration,
}

impl Pause {
    fn left(&self, now: Timestamp) -> Duration {
        let passed = now.duration_since(self.since);
        let length = SignedDuration::try_from(self.length).unwrap_or(SignedDuration::MAX);
        let left = length.saturating_sub(passed);
        if left.is_positive() {
            left.unsigned_abs()
        } else {
            Duration::ZERO
        }
    }

    fn is_forgotten(&self, now: Timestamp) -> bool {
        now.duration_since(self.since) > SignedDuration::from_secs(2 * 15 * 60)
    }
}

impl Backoff {
    /// How long the attempt still has to wait; none if it may go on.
    pub(crate) fn left(&self, attempt: &Attempt, now: Timestamp) -> Option<Duration> {
        let left = self.pauses.get(attempt)?.left(now);
        (!left.is_zero()).then_some(left)
    }

    /// Notes that the attempt goes on now; the next one waits twice as long as this one did.
    pub(crate) fn note(&mut self, attempt: Attempt, now: Timestamp) {
        self.pauses.retain(|_, pause| !pause.is_forgotten(now));
        let length = self.pauses.get(&attempt).map(|pause| pause.length);
        let length = length.map_or(FIRST, |length| LONGEST.min(length * 2));
        self.pauses.insert(attempt, Pause { since: now, length });
    }

    /// Forgets a set that is gone.
    pub(crate) fn forget(&mut self, set: &str) {
        self.pauses.retain(|attempt, _| attempt.set != set);
    }
}
