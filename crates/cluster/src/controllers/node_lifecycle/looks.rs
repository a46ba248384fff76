//! When nodes are looked at next. Pure.
//!
//! A look comes at the beginning of a period, as Kubernetes looks every five seconds, but only of one that may find
//! something to do: a node that speaks is looked at when it would have been silent for too long, and what is left to do is
//! looked at in the next period. Nobody is woken to see that all is well.

use std::time::Duration;

use jiff::Timestamp;

/// The shortest period.
const SHORTEST: Duration = Duration::from_millis(1);

/// When nodes are looked at next.
#[derive(Debug)]
pub(super) struct Looks {
    /// Periods are counted from here.
    started: Timestamp,
    period: Duration,
    next: Option<Timestamp>,
}

impl Looks {
    pub(super) fn new(started: Timestamp, period: Duration) -> Self {
        Self {
            started,
            period: period.max(SHORTEST),
            next: None,
        }
    }

    /// Asks for a look when the first period after a moment begins, unless one comes before.
    pub(super) fn after(&mut self, moment: Timestamp) {
        let since = moment.duration_since(self.started).as_nanos().max(0);
        let periods = since.unsigned_abs() / self.period.as_nanos() + 1;
        let after = u64::try_from(periods * self.period.as_nanos()).unwrap_or(u64::MAX);
        let look = self.started.saturating_add(Duration::from_nanos(after));
        let look = look.unwrap_or(Timestamp::MAX);
        self.next = Some(self.next.map_or(look, |next| next.min(look)));
    }

    /// Whether a look is due, which is then no longer to come.
    pub(super) fn take(&mut self, now: Timestamp) -> bool {
        let due = self.next.is_some_and(|next| next <= now);
        if due {
            self.next = None;
        }
        due
    }

    /// When the next look comes, if any.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.next
    }
}
