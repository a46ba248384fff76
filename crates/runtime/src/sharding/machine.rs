//! The rules by which members share the shards, without time, network or tasks of their own.
//!
//! One turn is a few steps: [`Machine::step`] returns which request to send and takes its result, until it returns
//! [`Action::Rest`]. What the worker side has to do, open and close shards, is read from [`Machine::holdings`].

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use tokio::time::Instant;

use super::ShardingOptions;
use super::assignment::{Shard, assign};
use super::member::{self, Member};

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    /// Read the leases of all members, as one consistent state.
    List,
    /// Create our own lease.
    Create(Box<Lease>),
    /// Write our own lease, if it is still what was read.
    Update(Box<Lease>),
    /// Delete this lease, if it is still what was read: its member has not renewed it in time, or it is our own.
    Delete(Box<Lease>),
    /// Nothing until the next turn.
    Rest,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Seen {
    /// Nothing yet: a turn begins.
    Turn,
    /// All leases at one moment.
    Listed(Vec<Lease>),
    /// Our own lease was written.
    Written(Box<Lease>),
    /// The lease was deleted, or was not there.
    Deleted,
    /// The request failed, or nobody knows.
    Failed,
}

/// How a shard stands with this member. Whatever is in here is also in the member's lease, or was a moment ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holding {
    /// We have asked for it, and do not know yet whether we were alone.
    Claimed,
    /// It is ours. The token rises with every change of hands: no earlier holder has one that is as high.
    Held { token: u64 },
    /// It is still ours and is to be given up: nothing new begins, what runs may end.
    Revoked { token: u64 },
}

/// The state of one member.
#[derive(Debug)]
pub(crate) struct Machine {
    options: ShardingOptions,
    /// Our own lease as it was last read or written.
    own: Option<Lease>,
    /// The start of the last write of it that succeeded.
    renewed: Option<Instant>,
    holdings: BTreeMap<Shard, Holding>,
    /// The leases of others as they were last seen to change, and when that was by our clock.
    peers: BTreeMap<String, Peer>,
    phase: Phase,
    intent: Intent,
    lost: bool,
}

#[derive(Debug)]
struct Peer {
    resource_version: String,
    since: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Resting,
    /// The first look of a turn: a write follows.
    Reading,
    Writing {
        since: Instant,
    },
    /// The look after a write: it says which claims hold.
    Confirming,
    /// A member that is gone is removed; the look is repeated.
    Removing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Intent {
    Stay,
    Leave,
}

impl Machine {
    pub(crate) fn new(options: ShardingOptions) -> Self {
        Self {
            options,
            own: None,
            renewed: None,
            holdings: BTreeMap::new(),
            peers: BTreeMap::new(),
            phase: Phase::Resting,
            intent: Intent::Stay,
            lost: false,
        }
    }

    /// Every shard that we have to do with.
    pub(crate) fn holdings(&self) -> &BTreeMap<Shard, Holding> {
        &self.holdings
    }

    /// When all of our shards are lost if the lease is not renewed before. None while there is nothing to lose.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.renewed
            .map(|renewed| renewed + self.options.renew_deadline)
    }

    /// Whether somebody else removed our lease, because it was not renewed in time.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost
    }

    /// Whether we left, and our lease is gone.
    pub(crate) fn has_left(&self) -> bool {
        self.intent == Intent::Leave && self.own.is_none()
    }

    /// From now on every shard is given up; the lease goes with the last one.
    pub(crate) fn leave(&mut self) {
        self.intent = Intent::Leave;
    }

    /// Nothing runs in a revoked shard any more. The next write gives it up.
    pub(crate) fn drained(&mut self, shard: Shard) {
        if let Some(Holding::Revoked { .. }) = self.holdings.get(&shard) {
            self.holdings.remove(&shard);
        }
    }

    /// One step of a turn, at `now` by our own clock, which is all that decides; `wall` is for people to read.
    pub(crate) fn step(&mut self, now: Instant, wall: Timestamp, seen: Seen) -> Action {
        match (self.phase, seen) {
            _ if self.lost || self.has_left() => self.rest(),
            (_, Seen::Turn) | (Phase::Removing, Seen::Deleted) => self.list(Phase::Reading),
            (Phase::Reading, Seen::Listed(leases)) => self.consider(leases, now, wall),
            (Phase::Confirming, Seen::Listed(leases)) => {
                self.read(&leases, now);
                self.rest()
            }
            (Phase::Writing { since }, Seen::Written(lease)) => self.accept(*lease, since),
            (Phase::Writing { .. }, Seen::Deleted) => {
                self.own = None;
                self.rest()
            }
            // A write may have happened although it seemed to fail; the next look shows it.
            _ => self.rest(),
        }
    }

    fn list(&mut self, phase: Phase) -> Action {
        self.phase = phase;
        Action::List
    }

    fn rest(&mut self) -> Action {
        self.phase = Phase::Resting;
        Action::Rest
    }

    fn accept(&mut self, lease: Lease, since: Instant) -> Action {
        let joined = self.own.is_none();
        self.own = Some(lease);
        self.renewed = Some(since);
        if joined {
            return self.list(Phase::Reading);
        }
        let claims = self.holdings.values();
        if claims.into_iter().any(|it| *it == Holding::Claimed) {
            self.list(Phase::Confirming)
        } else {
            self.rest()
        }
    }

    fn consider(&mut self, leases: Vec<Lease>, now: Instant, wall: Timestamp) -> Action {
        let members = self.read(&leases, now);
        if self.lost {
            return self.rest();
        }
        if let Some(gone) = self.expired(&leases, now) {
            self.phase = Phase::Removing;
            return Action::Delete(Box::new(gone.clone()));
        }
        self.decide(&members);
        self.phase = Phase::Writing { since: now };
        match &self.own {
            Some(lease) if self.intent == Intent::Leave && self.holdings.is_empty() => {
                Action::Delete(Box::new(lease.clone()))
            }
            Some(lease) => Action::Update(Box::new(self.renewal(lease.clone(), wall))),
            None if self.intent == Intent::Leave => self.rest(),
            None => Action::Create(Box::new(self.renewal(Lease::default(), wall))),
        }
    }

    /// Takes in the leases of all members. A claim that is in our lease, and in nobody else's at the same moment, holds;
    /// one that is in another lease as well is withdrawn.
    fn read(&mut self, leases: &[Lease], now: Instant) -> Vec<Member> {
        let members: Vec<Member> = leases.iter().map(Member::read).collect();
        let (mine, others): (Vec<_>, Vec<_>) = members
            .iter()
            .zip(leases)
            .partition(|(member, lease)| self.is_own(member, lease));
        let known = |name: &String| others.iter().any(|(_, lease)| member::name(lease) == name);
        self.peers.retain(|name, _| known(name));
        for (_, lease) in &others {
            let version = member::version(lease);
            let peer = self.peers.get(member::name(lease));
            if peer.is_none_or(|peer| peer.resource_version != version) {
                let peer = Peer {
                    resource_version: version.to_owned(),
                    since: now,
                };
                self.peers.insert(member::name(lease).to_owned(), peer);
            }
        }
        let Some((mine, lease)) = mine.into_iter().next() else {
            // Nobody else may delete it unless it ran out.
            self.lost |= self.own.is_some();
            return members;
        };
        self.own = Some(lease.clone());
        let token = member::token(lease);
        let claims = self.holdings.iter_mut();
        let claims =
            claims.filter(|(shard, it)| **it == Holding::Claimed && mine.shards.contains(shard));
        let mut withdrawn = Vec::new();
        for (shard, holding) in claims {
            let contested = others.iter().any(|(other, _)| other.shards.contains(shard));
            if contested {
                withdrawn.push(*shard);
            } else {
                *holding = Holding::Held { token };
            }
        }
        self.holdings.retain(|shard, _| !withdrawn.contains(shard));
        members
    }

    /// Whether this is the lease of this very process. We join without a shard: one with our name and with shards is that
    /// of an earlier process, and has to run out like any other.
    fn is_own(&self, member: &Member, lease: &Lease) -> bool {
        let same = match &self.own {
            Some(own) => own.metadata.uid == lease.metadata.uid,
            None => member.shards.is_empty(),
        };
        same && member.identity == self.options.identity
    }

    /// A lease that has not changed for as long as its member asked others to wait.
    fn expired<'a>(&self, leases: &'a [Lease], now: Instant) -> Option<&'a Lease> {
        leases.iter().find(|lease| {
            let peer = self.peers.get(member::name(lease));
            peer.is_some_and(|peer| now >= peer.since + member::duration(lease))
        })
    }

    /// Compares what we have with what we should have.
    fn decide(&mut self, members: &[Member]) {
        let me = self.options.identity.as_str();
        let staying = members.iter().filter(|member| !member.leaving);
        let mut names: BTreeSet<&str> = staying.map(|member| member.identity.as_str()).collect();
        match self.intent {
            Intent::Stay => names.insert(me),
            Intent::Leave => names.remove(me),
        };
        let names: Vec<&str> = names.into_iter().collect();
        let assigned = assign(&names, self.options.shards);
        let wanted = |shard: &Shard| assigned.get(shard).is_some_and(|member| *member == me);
        // A claim that is not wanted any more was never worked on.
        self.holdings
            .retain(|shard, holding| *holding != Holding::Claimed || wanted(shard));
        for (shard, holding) in &mut self.holdings {
            *holding = match (*holding, wanted(shard)) {
                (Holding::Held { token }, false) => Holding::Revoked { token },
                (Holding::Revoked { token }, true) => Holding::Held { token },
                (holding, _) => holding,
            };
        }
        if self.own.is_none() {
            return;
        }
        let taken: BTreeSet<Shard> = members
            .iter()
            .filter(|member| member.identity != me)
            .flat_map(|member| member.shards.iter().copied())
            .collect();
        let free = assigned
            .keys()
            .filter(|shard| wanted(shard) && !taken.contains(shard));
        for shard in free {
            self.holdings.entry(*shard).or_insert(Holding::Claimed);
        }
    }

    /// Our lease with everything that we hold, claim, or have yet to give up.
    fn renewal(&self, lease: Lease, wall: Timestamp) -> Lease {
        let member = Member {
            identity: self.options.identity.clone(),
            shards: self.holdings.keys().copied().collect(),
            leaving: self.intent == Intent::Leave,
        };
        member.write(lease, &self.options, wall)
    }
}

#[cfg(test)]
mod tests;
