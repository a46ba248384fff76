//! Sharding: the replicas of one operator share the objects, and no object is reconciled by two at once.
//!
//! Keys are spread over a fixed number of shards by a hash of namespace and name. Each replica is a *member*: it holds one
//! `Lease` of coordination.k8s.io, renews it, and lists in it every shard that it may be working on. Which member should
//! have which shard is computed by everybody from the list of members (rendezvous hashing with equal shares), so a replica
//! that joins, leaves or dies moves little more than its own share, and there is no leader.
//!
//! # Why no object is reconciled twice at once
//!
//! - **Taking.** A member writes the shard into its own lease, then lists the leases of all members, which the server
//!   answers with one consistent state. It works on the shard only if that state has the shard in its own lease and in no
//!   other. Of two members that claim a shard, neither can see itself alone before the other has withdrawn.
//! - **Giving up.** A member first lets what runs in the shard end, and removes the shard from its lease afterwards.
//! - **Dying.** A member works for `renew_deadline` after the *start* of its last renewal, and not longer. Others delete
//!   its lease once they have *seen* it unchanged for `lease_duration`, which is longer; only then its shards are free.
//!   This needs what leader election needs: clocks that go at about the same rate. They need not show the same time.
//!
//! Suppose two members work on one shard. Each has seen a state with the shard in its own lease only. Those states are not
//! the same one, so take the earlier: between it and the later one that member's lease lost the shard. It was written
//! without it, which happens after the work has ended; or it was deleted, which happens after its member's deadline.
//!
//! What is left is a request that was under way when its member's time ended, as with leader election. For those who
//! need more there is [`Shards::token`]: it rises with every change of hands, so that a server which remembers the
//! highest one can refuse older ones.
//!
//! # What it costs
//!
//! One list and one write of leases for each replica and `retry_period`. A replica that loses its lease ends, as a leader
//! does. Controllers [of requests](crate::Controller::for_requests) are not sharded: every replica runs them.

mod assignment;
mod gate;
mod machine;
mod member;
mod sharder;

use std::time::Duration;

pub use assignment::Shard;
pub use gate::Shards;
pub(crate) use sharder::{Ended, Sharder};

use crate::lease::LeaseOptionsError;

/// How the replicas of an operator share its objects.
///
/// ```no_run
/// # async fn run(identity: &str) -> Result<(), Box<dyn std::error::Error>> {
/// use kubewright_runtime::{Manager, ShardingOptions};
///
/// Manager::from_env().await?
///     .sharded(ShardingOptions::new("operators", "my-operator", identity))
///     .run().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
#[must_use]
pub struct ShardingOptions {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) identity: String,
    pub(crate) shards: u32,
    pub(crate) lease_duration: Duration,
    pub(crate) renew_deadline: Duration,
    pub(crate) retry_period: Duration,
    pub(crate) caches: Caches,
    /// Who writes the leases, to the server.
    pub(crate) field_manager: Option<String>,
}

/// What the caches of a replica keep of the kinds that its controllers reconcile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Caches {
    /// Every object, as without sharding: a reconcile can read the objects of other replicas.
    #[default]
    Everything,
    /// Only the objects of the replica's own shards. Its memory is then its share of the whole; lists lack the objects of
    /// other replicas, and reads of one by its key are [out of scope](crate::ClientError::is_out_of_scope). Whenever shards
    /// change hands the kind is listed once. Caches that are used before the manager runs keep everything.
    OwnShards,
}

impl ShardingOptions {
    /// Replicas of the operator `name` share its objects. Their leases are in `namespace`; `identity` tells them apart and
    /// is part of a lease's name: the name of the pod. 64 shards, 15 s of lease, 10 s to renew it, a turn every 2 s.
    pub fn new(namespace: &str, name: &str, identity: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            identity: identity.into(),
            shards: 64,
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            caches: Caches::default(),
            field_manager: None,
        }
    }

    /// What the caches keep of the kinds that controllers reconcile.
    pub fn caches(mut self, caches: Caches) -> Self {
        self.caches = caches;
        self
    }

    /// How many shards there are. All replicas must say the same; several times as many as there will be replicas make
    /// shares equal.
    pub fn shards(mut self, shards: u32) -> Self {
        self.shards = shards;
        self
    }

    /// How long others wait after they saw the last renewal, in whole seconds.
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.lease_duration = duration;
        self
    }

    /// How long after its last renewal a replica works.
    pub fn renew_deadline(mut self, duration: Duration) -> Self {
        self.renew_deadline = duration;
        self
    }

    /// How long to wait between turns.
    pub fn retry_period(mut self, duration: Duration) -> Self {
        self.retry_period = duration;
        self
    }

    /// Sets the name under which the leases are written.
    pub(crate) fn field_manager(mut self, name: &str) -> Self {
        self.field_manager = Some(name.to_owned());
        self
    }

    /// The name of this replica's lease.
    pub(crate) fn lease_name(&self) -> String {
        format!("{}-{}", self.name, self.identity)
    }

    pub(crate) fn check(&self) -> Result<(), LeaseOptionsError> {
        let names = [&self.namespace, &self.name, &self.identity];
        if names.iter().any(|name| name.is_empty()) {
            return Err(LeaseOptionsError::Empty);
        }
        if self.lease_duration <= self.renew_deadline {
            return Err(LeaseOptionsError::LeaseDuration);
        }
        if self.renew_deadline <= self.retry_period {
            return Err(LeaseOptionsError::RenewDeadline);
        }
        if self.retry_period.is_zero() || self.shards == 0 {
            return Err(LeaseOptionsError::RetryPeriod);
        }
        let seconds = i32::try_from(self.lease_duration.as_secs());
        if self.lease_duration.subsec_nanos() > 0 || seconds.is_err() {
            return Err(LeaseOptionsError::WholeSeconds);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
