//! The rules of an election, without a clock, network or random numbers of their own.
//!
//! One turn is a few steps: [`Machine::step`] returns which request to send and takes its result, until it returns
//! [`Action::Rest`].

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use tokio::time::Instant;

use super::{LeaseOptions, Standing};

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    /// Read the lease from the server.
    Get,
    /// Create it, as this.
    Create(Box<Lease>),
    /// Write it, as this, if it is still what was read.
    Update(Box<Lease>),
    /// Nothing until the next turn.
    Rest,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Seen {
    /// Nothing yet: a turn begins.
    Turn,
    /// The lease was read.
    Found(Box<Lease>),
    /// The lease does not exist.
    Missing,
    /// The lease was written.
    Written(Box<Lease>),
    /// The request failed, or nobody knows.
    Failed,
}

/// The state of one candidate.
#[derive(Debug)]
pub(crate) struct Machine {
    options: LeaseOptions,
    /// The lease as it was last seen to change, and when that was by our clock.
    observed: Option<Observed>,
    /// The start of the last renewal that succeeded, while we are the holder.
    renewed: Option<Instant>,
    phase: Phase,
    /// Once we led, losing the lease is for good.
    led: Option<Instant>,
}

#[derive(Debug)]
struct Observed {
    lease: Lease,
    at: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Resting,
    Reading,
    /// A leader writes without reading first.
    Renewing {
        since: Instant,
    },
    Writing {
        since: Instant,
    },
}

impl Machine {
    pub(crate) fn new(options: LeaseOptions) -> Self {
        Self {
            options,
            observed: None,
            renewed: None,
            phase: Phase::Resting,
            led: None,
        }
    }

    /// One step of a turn, at `now` by our own clock, which is all that decides; `wall` is for people to read.
    pub(crate) fn step(&mut self, now: Instant, wall: Timestamp, seen: Seen) -> Action {
        match (self.phase, seen) {
            (_, Seen::Turn) => self.begin(now, wall),
            (Phase::Renewing { since } | Phase::Writing { since }, Seen::Written(lease)) => {
                self.accept(*lease, since, now)
            }
            // Perhaps it was written and the answer lost, perhaps somebody else was faster: look.
            (Phase::Renewing { .. }, _) => self.read(),
            (Phase::Reading, Seen::Found(lease)) => self.consider(*lease, now, wall),
            (Phase::Reading, Seen::Missing) => self.create(now, wall),
            _ => self.rest(),
        }
    }

    /// How we stand, whatever the clock says.
    pub(crate) fn standing(&self) -> Standing {
        let holder = self
            .observed
            .as_ref()
            .map(|observed| holder(&observed.lease));
        match (self.renewed, self.led, holder) {
            (Some(renewed), _, _) => Standing::Leading {
                renewed,
                deadline: renewed + self.options.renew_deadline,
            },
            (None, Some(renewed), _) => Standing::Lost { renewed },
            (None, None, Some(leader)) if !leader.is_empty() && leader != self.options.identity => {
                Standing::Following {
                    leader: leader.into(),
                }
            }
            _ => Standing::Unknown,
        }
    }

    /// When the lease that somebody else holds runs out.
    pub(crate) fn expiry(&self) -> Option<Instant> {
        let observed = self.observed.as_ref()?;
        let held = !holder(&observed.lease).is_empty() && !self.is_mine(&observed.lease);
        held.then(|| observed.at + duration(&observed.lease))
    }

    /// Whether the server may have us as holder: then there is something to release.
    pub(crate) fn may_hold(&self) -> bool {
        let writing = matches!(self.phase, Phase::Renewing { .. } | Phase::Writing { .. });
        writing
            || self
                .observed
                .as_ref()
                .is_some_and(|observed| self.is_mine(&observed.lease))
    }

    /// The lease given up, if it is ours.
    pub(crate) fn released(&self, mut lease: Lease, wall: Timestamp) -> Option<Lease> {
        if !self.is_mine(&lease) {
            return None;
        }
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        spec.renew_time = Some(MicroTime(wall));
        spec.acquire_time = Some(MicroTime(wall));
        Some(lease)
    }

    fn begin(&mut self, now: Instant, wall: Timestamp) -> Action {
        let known = self.observed.as_ref().map(|observed| &observed.lease);
        match known.filter(|_| self.renewed.is_some()) {
            Some(lease) => {
                let lease = self.claimed(lease.clone(), wall);
                self.phase = Phase::Renewing { since: now };
                Action::Update(Box::new(lease))
            }
            None => self.read(),
        }
    }

    fn read(&mut self) -> Action {
        self.phase = Phase::Reading;
        Action::Get
    }

    fn rest(&mut self) -> Action {
        self.phase = Phase::Resting;
        Action::Rest
    }

    fn create(&mut self, now: Instant, wall: Timestamp) -> Action {
        let lease = Lease {
            metadata: ObjectMeta {
                namespace: Some(self.options.namespace.clone()),
                name: Some(self.options.name.clone()),
                labels: Some(self.options.labels.clone()).filter(|labels| !labels.is_empty()),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                lease_transitions: Some(0),
                ..self.claim(LeaseSpec::default(), wall)
            }),
        };
        self.phase = Phase::Writing { since: now };
        Action::Create(Box::new(lease))
    }

    fn consider(&mut self, lease: Lease, now: Instant, wall: Timestamp) -> Action {
        let changed = |observed: &Observed| observed.lease.spec != lease.spec;
        if self.observed.as_ref().is_none_or(changed) {
            let lease = lease.clone();
            self.observed = Some(Observed { lease, at: now });
        }
        if !self.is_mine(&lease) {
            self.renewed = None;
        }
        if self.expiry().is_some_and(|expiry| now < expiry) {
            return self.rest();
        }
        self.phase = Phase::Writing { since: now };
        Action::Update(Box::new(self.claimed(lease, wall)))
    }

    fn accept(&mut self, lease: Lease, since: Instant, now: Instant) -> Action {
        self.observed = Some(Observed { lease, at: now });
        // An answer that took longer than the deadline gives nothing: the next turn renews.
        if now < since + self.options.renew_deadline {
            self.renewed = Some(since);
            self.led = Some(since);
        }
        self.rest()
    }

    /// The lease with us as its holder; a transition if we were not.
    fn claimed(&self, mut lease: Lease, wall: Timestamp) -> Lease {
        let mine = self.is_mine(&lease);
        let old = lease.spec.take().unwrap_or_default();
        let (acquired, transitions) =
            (old.acquire_time.clone(), old.lease_transitions.unwrap_or(0));
        let mut spec = self.claim(old, wall);
        spec.lease_transitions = Some(transitions.saturating_add(i32::from(!mine)));
        if mine && acquired.is_some() {
            spec.acquire_time = acquired;
        }
        lease.spec = Some(spec);
        lease
    }

    fn claim(&self, spec: LeaseSpec, wall: Timestamp) -> LeaseSpec {
        // Options were checked: whole seconds that fit.
        let seconds = i32::try_from(self.options.lease_duration.as_secs()).unwrap_or(i32::MAX);
        LeaseSpec {
            holder_identity: Some(self.options.identity.clone()),
            lease_duration_seconds: Some(seconds),
            acquire_time: Some(MicroTime(wall)),
            renew_time: Some(MicroTime(wall)),
            ..spec
        }
    }

    fn is_mine(&self, lease: &Lease) -> bool {
        holder(lease) == self.options.identity
    }
}

fn holder(lease: &Lease) -> &str {
    let spec = lease.spec.as_ref();
    spec.and_then(|spec| spec.holder_identity.as_deref())
        .unwrap_or_default()
}

/// How long the holder asked others to wait. One that did not say is not waited for, as in client-go.
fn duration(lease: &Lease) -> Duration {
    let seconds = lease
        .spec
        .as_ref()
        .and_then(|spec| spec.lease_duration_seconds);
    Duration::from_secs(seconds.unwrap_or(0).try_into().unwrap_or(0))
}
