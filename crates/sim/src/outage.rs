//! Outages: for a while no call, or no write, of the operator succeeds, and its attempts are counted.

use std::collections::BTreeMap;
use std::time::Duration;

use kubewright_runtime::gate::ReconcileId;
use tokio::time::Instant;

use crate::plan::Fault;

/// How long an outage lasts: long enough for retries without a growing pause to show, and shorter than the pauses that a
/// work queue has come to by then.
const LASTS: Duration = Duration::from_secs(300);
/// Attempts that one reconcile key or one informer may make in an outage: one a second.
pub(crate) const ATTEMPTS: u32 = 300;

/// Which calls fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    Everything,
    Writes,
}

/// An outage that has begun.
#[derive(Debug)]
pub(crate) struct Outage {
    reach: Reach,
    until: Instant,
    attempts: BTreeMap<String, u32>,
}

/// A call that fails because of an outage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attempt {
    pub(crate) reach: Reach,
    /// Who calls.
    pub(crate) by: String,
    /// How often they have tried so far.
    pub(crate) count: u32,
}

impl Outage {
    /// The outage that a fault begins, if it is one.
    pub(crate) fn of(fault: &Fault) -> Option<Self> {
        let reach = match fault {
            Fault::Outage(_) => Reach::Everything,
            Fault::ReadOnly(_) => Reach::Writes,
            _ => return None,
        };
        Some(Self {
            reach,
            until: Instant::now() + LASTS,
            attempts: BTreeMap::new(),
        })
    }

    /// When it ends.
    pub(crate) fn until(&self) -> Instant {
        self.until
    }

    /// Whether connections break.
    pub(crate) fn is_total(&self) -> bool {
        self.reach == Reach::Everything && Instant::now() < self.until
    }

    /// Counts a call, if it fails.
    pub(crate) fn attempt(
        &mut self,
        reconcile: Option<&ReconcileId>,
        verb: &str,
        resource: &str,
    ) -> Option<Attempt> {
        let is_read = matches!(verb, "get" | "list" | "watch");
        if Instant::now() >= self.until || (is_read && self.reach == Reach::Writes) {
            return None;
        }
        let by = match reconcile {
            Some(id) => format!("{} {}", id.controller, id.key.as_str()),
            None => format!("{verb} {resource}"),
        };
        let count = self.attempts.entry(by.clone()).or_default();
        *count += 1;
        Some(Attempt {
            reach: self.reach,
            by,
            count: *count,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn attempts_are_counted_while_it_lasts() {
        let mut outage = Outage::of(&Fault::ReadOnly("a".to_owned())).expect("it is an outage");
        assert!(!outage.is_total());
        assert_eq!(outage.attempt(None, "list", "pods"), None);
        let counts = |outage: &mut Outage| {
            let attempt = outage.attempt(None, "create", "pods");
            attempt.map(|attempt| (attempt.by, attempt.count))
        };
        assert_eq!(counts(&mut outage), Some(("create pods".to_owned(), 1)));
        assert_eq!(counts(&mut outage), Some(("create pods".to_owned(), 2)));
        tokio::time::advance(LASTS).await;
        assert_eq!(counts(&mut outage), None);
        assert!(Outage::of(&Fault::Restart("a".to_owned())).is_none());
    }
}
