//! The lease of an agent: a pure machine that says whether its member may take writes at a moment.
//!
//! Guarantees, whatever the network does: a member takes writes only in a term in which it was ordered to, until its lease runs
//! out by its own clock; a lease is counted from the making of a nonce, not from the arrival of an order; after an order to stop
//! in a term nothing of that term brings it back.

use std::collections::VecDeque;
use std::time::Duration;

use crate::protocol::{Order, Role};

/// Nonces that are remembered: more than there can be who ask at once.
const MOST_NONCES: usize = 16;

/// The lease of one agent. Times are those of a clock that only goes forward.
#[derive(Debug, Clone, Default)]
pub struct Lease {
    nonces: VecDeque<(u64, Duration)>,
    term: u64,
    stopped: bool,
    revision: u64,
    until: Option<Duration>,
}

/// Why an order is not obeyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The order belongs to a term that is over.
    #[error("the order is of term {ordered}, and term {present} has begun")]
    OldTerm {
        /// The term of the order.
        ordered: u64,
        /// The term that has begun.
        present: u64,
    },
    /// The member was ordered to stop in this term, for good.
    #[error("the member was stopped in term {0}")]
    Stopped(u64),
    /// Another list of members that commits wait for is in force.
    #[error("the order has revision {ordered}, and revision {present} is in force")]
    OldRevision {
        /// The revision of the order.
        ordered: u64,
        /// The revision that is in force.
        present: u64,
    },
    /// Nobody was given this nonce, or it was too long ago.
    #[error("the nonce is not known")]
    UnknownNonce,
    /// The term could not be written down.
    #[error("the term cannot be written down")]
    Unwritten,
    /// The lease would have run out already.
    #[error("the lease has run out")]
    TooLate,
}

impl Lease {
    /// A lease of an agent that starts, with what it had written down: its last term, and whether it was stopped in it.
    pub fn restore(term: u64, stopped: bool) -> Self {
        Self {
            term,
            stopped,
            ..Self::default()
        }
    }

    /// Remembers a nonce that is being given out now.
    pub fn remember(&mut self, now: Duration, nonce: u64) {
        if self.nonces.len() == MOST_NONCES {
            self.nonces.pop_front();
        }
        self.nonces.push_back((nonce, now));
    }

    /// Obeys an order, or says why not. What it changes has to be written down before the database is touched.
    ///
    /// # Errors
    /// When the order is of the past, or its nonce is.
    pub fn obey(&mut self, now: Duration, order: &Order) -> Result<(), Refused> {
        if order.term < self.term {
            return Err(Refused::OldTerm {
                ordered: order.term,
                present: self.term,
            });
        }
        let is_new = order.term > self.term;
        let mut revised = 0;
        let until = match &order.role {
            Role::Primary {
                nonce,
                lease_millis,
                revision,
                ..
            } => {
                if self.stopped && !is_new {
                    return Err(Refused::Stopped(self.term));
                }
                if *revision < self.revision && !is_new {
                    return Err(Refused::OldRevision {
                        ordered: *revision,
                        present: self.revision,
                    });
                }
                revised = *revision;
                Some(self.granted(now, *nonce, Duration::from_millis(*lease_millis))?)
            }
            Role::Replica { .. } | Role::Stop => None,
        };
        // A replica of a term never becomes its primary: it may have stopped following for it.
        self.stopped = until.is_none();
        self.term = order.term;
        self.revision = revised;
        // An order that was overtaken by a later one does not shorten the lease.
        self.until = match (until, self.until.filter(|_| !is_new)) {
            (Some(new), Some(old)) => Some(new.max(old)),
            (new, _) => new,
        };
        Ok(())
    }

    fn granted(&self, now: Duration, nonce: u64, length: Duration) -> Result<Duration, Refused> {
        let known = self.nonces.iter().find(|(known, _)| *known == nonce);
        let (_, made) = known.ok_or(Refused::UnknownNonce)?;
        let until = *made + length;
        if until <= now {
            return Err(Refused::TooLate);
        }
        Ok(until)
    }

    /// Whether writes may be taken and answered at this moment.
    pub fn holds(&self, now: Duration) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    /// When the lease runs out, if the member has one.
    pub fn until(&self) -> Option<Duration> {
        self.until
    }

    /// The revision of the list of members that commits wait for.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The last term and whether the member was stopped in it: what has to survive a crash of the agent.
    pub fn record(&self) -> (u64, bool) {
        (self.term, self.stopped)
    }
}
