//! Decides the next step of a cluster: one at a time, from what is seen and nothing else.
//!
//! Nothing is remembered between two steps. An operator that dies after any of them sees the same cluster when it is back, and
//! goes on. The rules, in their order:
//!
//! 1. Without a quorum nothing changes in etcd. Pods of members that have their data are started again, which is how a quorum
//!    comes back; the very first member is bootstrapped.
//! 2. What belongs to a member that was removed goes: its pod, then its claim.
//! 3. Members without a pod get one.
//! 4. A member whose data is lost, or which is away for too long, is removed, if the others are a quorum without it.
//! 5. A learner is promoted when it has caught up.
//! 6. Only if all voters are healthy: one member more, one less, or one pod renewed, the leader's last.
//!
//! **Invariant: no step takes the quorum away** from a cluster of three or more (`tests/plan.rs`).

mod view;

use std::time::Duration;

use jiff::Timestamp;

pub use view::{
    ClaimPhase, ClaimView, Health, MemberView, Observed, PodPhase, PodView, Quorum, Voting,
    majority,
};

use crate::version::Version;

/// What a cluster should be.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The name of the cluster, from which its members get theirs.
    pub name: String,
    /// How many voters it has.
    pub size: usize,
    /// The version that they run.
    pub version: Version,
    /// The digest of everything else that pods are made with.
    pub template: String,
    /// How long a member may be away.
    pub member_timeout: Duration,
}

/// What is to be done next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Make the claim of the first member, and its pod, as a new cluster.
    Bootstrap(String),
    /// Add a member of this name to etcd, as a learner.
    AddMember(String),
    /// Make the claim of a member that etcd lists, if it has none, and its pod.
    StartMember(u64, String),
    /// Start the pod of a member whose data is there, while etcd cannot be asked.
    RestartMember(String),
    /// Let a learner vote.
    Promote(u64),
    /// Have another voter lead before something happens to the leader.
    MoveLeader {
        /// The leader at present.
        from: u64,
        /// The voter that leads afterwards.
        to: u64,
    },
    /// Remove a member from etcd.
    RemoveMember(u64, Removal),
    /// Delete the pod of a member.
    DeletePod(String, PodEnd),
    /// Delete the claim of a member that was removed.
    DeleteClaim(String),
    /// Do nothing until something changes.
    Wait(Waiting),
    /// Do nothing: all is as it should be.
    Idle,
}

/// Why a member is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// The cluster is to be smaller.
    ScaleIn,
    /// It was away for too long.
    Dead,
    /// Its volume is gone.
    DataLost,
}

/// Why a pod is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodEnd {
    /// Its member was removed from etcd.
    Removed,
    /// It ended and does not start again by itself.
    Ended,
    /// It was given a list of members that is not the present one, and would not start.
    WrongPeers,
    /// It is made again with another version or other settings.
    Renewed,
}

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waiting {
    /// The first member starts.
    Bootstrap,
    /// A quorum comes back.
    Quorum,
    /// All members are gone with their data: only a backup helps, and somebody has to decide that.
    AllDataLost,
    /// A pod stops, so that it can be made again.
    PodStops(String),
    /// A learner catches up.
    Learner(String),
    /// A voter comes back, or is replaced when it has been away for too long.
    Member(String),
    /// A dead member cannot be removed without losing the quorum.
    UnsafeRemoval(String),
    /// The wanted version is not one that the present one can become.
    UnsupportedUpgrade(Version),
}

/// Decides the next step.
pub fn plan(wanted: &Wanted, seen: &Observed, now: Timestamp) -> Step {
    let Some(quorum) = &seen.quorum else {
        return without_quorum(wanted, seen);
    };
    clean_up(quorum, seen)
        .or_else(|| start_pods(quorum, seen))
        .or_else(|| replace_dead(wanted, quorum, seen, now))
        .or_else(|| raise_learner(wanted, quorum))
        .or_else(|| wait_for_voters(quorum))
        .or_else(|| resize(wanted, quorum, seen))
        .or_else(|| renew_pods(wanted, quorum, seen))
        .unwrap_or(Step::Idle)
}

/// The version that pods are made with: the wanted one, unless the members that are there cannot become it.
pub fn pod_version(wanted: &Wanted, seen: &Observed) -> Version {
    let running = seen.pods.values().map(|pod| pod.version);
    match running.min() {
        Some(oldest) if !oldest.may_become(wanted.version) => oldest,
        _ => wanted.version,
    }
}

/// Bootstraps a cluster that never was, and starts pods of one that was. Etcd is not asked for anything.
fn without_quorum(wanted: &Wanted, seen: &Observed) -> Step {
    if let Some((name, _)) = seen
        .pods
        .iter()
        .find(|(_, pod)| pod.phase == PodPhase::Ended)
    {
        return Step::DeletePod(name.clone(), PodEnd::Ended);
    }
    let usable = |claim: &ClaimView| claim.phase == ClaimPhase::Usable;
    let mut claims = seen.claims.iter().filter(|(_, claim)| usable(claim));
    if let Some((name, _)) = claims.find(|(name, _)| !seen.pods.contains_key(*name)) {
        return Step::RestartMember(name.clone());
    }
    let nothing_left = !seen.claims.values().any(usable);
    match (seen.established, nothing_left) {
        (true, true) => Step::Wait(Waiting::AllDataLost),
        (true, false) => Step::Wait(Waiting::Quorum),
        (false, false) => Step::Wait(Waiting::Bootstrap),
        (false, true) => match seen.pods.keys().chain(seen.claims.keys()).next() {
            Some(name) => Step::Wait(Waiting::PodStops(name.clone())),
            None => Step::Bootstrap(fresh_name(wanted, seen)),
        },
    }
}

/// Deletes pods and then claims of members that etcd does not list.
fn clean_up(quorum: &Quorum, seen: &Observed) -> Option<Step> {
    let is_listed = |name: &str, id: Option<u64>| {
        let mut members = quorum.members.iter().filter(|member| member.name == name);
        members.any(|member| id.is_none_or(|id| id == member.id))
    };
    let mut pods = seen.pods.iter();
    let orphan = pods.find(|(name, pod)| {
        pod.phase != PodPhase::Deleting && !is_listed(name.as_str(), pod.member)
    });
    if let Some((name, _)) = orphan {
        return Some(Step::DeletePod(name.clone(), PodEnd::Removed));
    }
    let mut claims = seen.claims.iter();
    let orphan = claims.find(|(name, claim)| {
        claim.phase != ClaimPhase::Deleting
            && !seen.pods.contains_key(*name)
            && !is_listed(name.as_str(), claim.member)
    });
    orphan.map(|(name, _)| Step::DeleteClaim(name.clone()))
}

/// Gives members their pods.
fn start_pods(quorum: &Quorum, seen: &Observed) -> Option<Step> {
    let mut peers: Vec<&str> = quorum.members.iter().map(|it| it.name.as_str()).collect();
    peers.sort_unstable();
    for member in &quorum.members {
        let name = member.name.clone();
        match seen.pods.get(&name) {
            None if can_start(member, seen) => return Some(Step::StartMember(member.id, name)),
            None => {}
            Some(pod) if pod.phase == PodPhase::Deleting => {}
            Some(pod) if pod.phase == PodPhase::Ended => {
                return Some(Step::DeletePod(name, PodEnd::Ended));
            }
            // It compares the list with that of the cluster when it starts for the first time, and ends if they differ.
            Some(pod) if !member.started && pod.member.is_some() && pod.peers != peers => {
                return Some(Step::DeletePod(name, PodEnd::WrongPeers));
            }
            Some(_) => {}
        }
    }
    None
}

/// Whether a member has what a pod of it needs: its data, or none that it could have lost.
fn can_start(member: &MemberView, seen: &Observed) -> bool {
    match seen.claims.get(&member.name) {
        Some(claim) => claim.phase == ClaimPhase::Usable,
        None => !member.started,
    }
}

/// Removes members that do not come back.
fn replace_dead(wanted: &Wanted, quorum: &Quorum, seen: &Observed, now: Timestamp) -> Option<Step> {
    let mut stuck = None;
    for member in &quorum.members {
        let Some(why) = cause_of_death(wanted, member, seen, now) else {
            continue;
        };
        if quorum.survives_without(member) {
            return Some(Step::RemoveMember(member.id, why));
        }
        stuck = Some(Step::Wait(Waiting::UnsafeRemoval(member.name.clone())));
    }
    stuck
}

/// Why a member will not come back, if that is so.
fn cause_of_death(
    wanted: &Wanted,
    member: &MemberView,
    seen: &Observed,
    now: Timestamp,
) -> Option<Removal> {
    let Health::Unhealthy(since) = member.health else {
        return None;
    };
    if !seen.pods.contains_key(&member.name) && !can_start(member, seen) {
        return Some(Removal::DataLost);
    }
    let away = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    (away >= wanted.member_timeout).then_some(Removal::Dead)
}

/// Promotes a learner, waits for it, or removes one that is not needed any more.
fn raise_learner(wanted: &Wanted, quorum: &Quorum) -> Option<Step> {
    let learner = quorum.learners().next()?;
    let voters = quorum.voters().count();
    if voters >= wanted.size {
        return Some(Step::RemoveMember(learner.id, Removal::ScaleIn));
    }
    let enough = quorum.healthy_voters() + 1 >= majority(voters + 1);
    if learner.is_healthy() && enough {
        return Some(Step::Promote(learner.id));
    }
    Some(Step::Wait(Waiting::Learner(learner.name.clone())))
}

/// Waits for voters that are away: nothing else is changed until they are back or removed.
fn wait_for_voters(quorum: &Quorum) -> Option<Step> {
    let away = quorum.voters().find(|member| !member.is_healthy())?;
    Some(Step::Wait(Waiting::Member(away.name.clone())))
}

/// Adds or removes one voter. All of them are healthy.
fn resize(wanted: &Wanted, quorum: &Quorum, seen: &Observed) -> Option<Step> {
    let voters = quorum.voters().count();
    if voters < wanted.size {
        return Some(Step::AddMember(fresh_name(wanted, seen)));
    }
    if voters == wanted.size || voters == 1 {
        return None;
    }
    let newest = quorum.voters().max_by_key(|member| index(&member.name))?;
    if !quorum.survives_without(newest) {
        return Some(Step::Wait(Waiting::UnsafeRemoval(newest.name.clone())));
    }
    Some(match successor(quorum, newest) {
        Some(to) => Step::MoveLeader {
            from: newest.id,
            to,
        },
        None => Step::RemoveMember(newest.id, Removal::ScaleIn),
    })
}

/// Makes pods again that have another version or other settings, one at a time, the leader's last.
fn renew_pods(wanted: &Wanted, quorum: &Quorum, seen: &Observed) -> Option<Step> {
    let version = pod_version(wanted, seen);
    let is_old = |member: &&MemberView| {
        let pod = seen.pods.get(&member.name);
        pod.is_some_and(|pod| pod.version != version || pod.template != wanted.template)
    };
    let old = quorum.voters().filter(is_old);
    let Some(next) = old.min_by_key(|member| member.id == quorum.leader) else {
        let refused = version != wanted.version;
        return refused.then_some(Step::Wait(Waiting::UnsupportedUpgrade(wanted.version)));
    };
    // Every member is healthy, so its pod is there: one that is stopping already is waited for.
    if seen
        .pods
        .values()
        .any(|pod| pod.phase == PodPhase::Deleting)
    {
        return Some(Step::Wait(Waiting::PodStops(next.name.clone())));
    }
    Some(match successor(quorum, next) {
        Some(to) => Step::MoveLeader { from: next.id, to },
        None => Step::DeletePod(next.name.clone(), PodEnd::Renewed),
    })
}

/// Who should lead before something happens to a member; nobody if it does not lead, or is alone.
fn successor(quorum: &Quorum, member: &MemberView) -> Option<u64> {
    if member.id != quorum.leader {
        return None;
    }
    let others = quorum.voters().filter(|other| other.id != member.id);
    let healthy = others.filter(|other| other.is_healthy());
    healthy
        .min_by_key(|other| index(&other.name))
        .map(|other| other.id)
}

/// A name that no member, pod or claim has: one more than the highest number.
fn fresh_name(wanted: &Wanted, seen: &Observed) -> String {
    let members = seen.quorum.iter().flat_map(|quorum| &quorum.members);
    let names = members.map(|member| &member.name);
    let names = names.chain(seen.pods.keys()).chain(seen.claims.keys());
    let highest = names.filter_map(|name| index(name)).max();
    format!(
        "{}-{}",
        wanted.name,
        highest.map_or(0, |highest| highest + 1)
    )
}

/// The number at the end of a member's name.
fn index(name: &str) -> Option<u64> {
    let (_, number) = name.rsplit_once('-')?;
    number.parse().ok()
}
