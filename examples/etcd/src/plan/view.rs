//! What a plan is made from: the members that etcd lists, and the pods and claims that the API server has.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::version::Version;

/// Everything that was seen of a cluster at one moment. Pods and claims were read before the members, so that a pod without a
/// member belongs to one that was removed.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// Whether the cluster has existed: it is never bootstrapped a second time.
    pub established: bool,
    /// The cluster, if a quorum of its members answers and agrees on a leader.
    pub quorum: Option<Quorum>,
    /// The pods by the name of their member.
    pub pods: BTreeMap<String, PodView>,
    /// The claims by the name of their member.
    pub claims: BTreeMap<String, ClaimView>,
}

/// A cluster that works: more than half of its voters answer and follow one leader.
#[derive(Debug, Clone)]
pub struct Quorum {
    /// The id of the leader.
    pub leader: u64,
    /// All members, by id, as the leader lists them.
    pub members: Vec<MemberView>,
}

/// A member of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberView {
    /// Its id, which etcd gave it.
    pub id: u64,
    /// The name of its pod, from its peer address: a member that never started has no name of its own.
    pub name: String,
    /// Whether it votes or only follows.
    pub voting: Voting,
    /// Whether it has ever started, so that its data is in its claim.
    pub started: bool,
    /// How it is at the moment.
    pub health: Health,
}

/// Whether a member votes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Voting {
    /// It counts for the quorum.
    Voter,
    /// It gets the data and counts for nothing.
    Learner,
}

/// How a member is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// It answers, is who it should be, and follows the leader.
    Healthy,
    /// It does not, since this moment.
    Unhealthy(Timestamp),
}

/// The pod of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodView {
    /// The id of the member that it was made for; none for the first member of a cluster.
    pub member: Option<u64>,
    /// How far it is in its life.
    pub phase: PodPhase,
    /// The version of its image.
    pub version: Version,
    /// A digest of everything else that it was made with.
    pub template: String,
    /// The members that it was given to start with, by name.
    pub peers: Vec<String>,
}

/// How far a pod is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodPhase {
    /// It runs, or is about to.
    Alive,
    /// It ended and will not start again.
    Ended,
    /// Somebody deleted it, and it is stopping.
    Deleting,
}

/// The claim of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimView {
    /// The id of the member that it was made for; none for the first member of a cluster.
    pub member: Option<u64>,
    /// How far it is in its life.
    pub phase: ClaimPhase,
}

/// How far a claim is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimPhase {
    /// It has a volume, or waits for one.
    Usable,
    /// Its volume is gone, and the data with it.
    Lost,
    /// Somebody deleted it.
    Deleting,
}

impl MemberView {
    /// Whether it answers and follows the leader.
    pub fn is_healthy(&self) -> bool {
        self.health == Health::Healthy
    }

    /// Whether it counts for the quorum.
    pub fn is_voter(&self) -> bool {
        self.voting == Voting::Voter
    }
}

impl Quorum {
    /// The members that vote.
    pub fn voters(&self) -> impl Iterator<Item = &MemberView> {
        self.members.iter().filter(|member| member.is_voter())
    }

    /// The members that do not vote yet.
    pub fn learners(&self) -> impl Iterator<Item = &MemberView> {
        self.members.iter().filter(|member| !member.is_voter())
    }

    /// How many voters are healthy.
    pub fn healthy_voters(&self) -> usize {
        self.voters().filter(|member| member.is_healthy()).count()
    }

    /// Whether the cluster goes on without a member: the voters that are left and healthy are a quorum of those that are left.
    /// A learner is never missed.
    pub fn survives_without(&self, member: &MemberView) -> bool {
        if !member.is_voter() {
            return true;
        }
        let left = self.voters().count().saturating_sub(1);
        let healthy = self
            .voters()
            .filter(|other| other.id != member.id && other.is_healthy());
        left > 0 && healthy.count() >= majority(left)
    }
}

/// How many of so many voters have to agree.
pub fn majority(voters: usize) -> usize {
    voters / 2 + 1
}
