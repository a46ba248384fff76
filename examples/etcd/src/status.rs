//! What the status says of what was seen, and of the step that follows.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubewright::prelude::conditions::{self, Condition, ConditionExt, Status};

use crate::api::{EtcdCluster, EtcdClusterStatus, MemberState, Role};
use crate::names::Names;
use crate::observe::Seen;
use crate::plan::{Health, MemberView, Quorum, Step, Waiting};
use crate::version::Version;

/// Brings a status up to date.
pub(crate) fn update(
    status: &mut EtcdClusterStatus,
    cluster: &EtcdCluster,
    seen: &Seen,
    step: &Step,
    now: Timestamp,
) {
    let generation = cluster.metadata.generation;
    status.observed_generation = generation;
    status.endpoint = Some(Names::of(cluster).endpoint());
    match &seen.observed.quorum {
        Some(quorum) => describe(status, quorum, seen),
        None => {
            status.leader = None;
            status.ready_members = Some(0);
            for member in &mut status.members {
                member.healthy = false;
                member.unhealthy_since.get_or_insert(Time(whole(now)));
            }
        }
    }
    for condition in conditions_of(seen, step) {
        conditions::set(
            &mut status.conditions,
            now,
            condition.generation(generation),
        );
    }
}

fn describe(status: &mut EtcdClusterStatus, quorum: &Quorum, seen: &Seen) {
    let statuses = seen.statuses.values();
    if let Some(any) = seen.statuses.get(&quorum.leader) {
        status.cluster_id = Some(format!("{:x}", any.header.cluster_id));
    }
    let revision = statuses.map(|it| it.header.revision).max();
    status.revision = revision.and_then(|revision| i64::try_from(revision).ok());
    status.members = quorum
        .members
        .iter()
        .map(|it| member(it, quorum, seen))
        .collect();
    status.ready_members = i32::try_from(quorum.healthy_voters()).ok();
    let leader = quorum.members.iter().find(|it| it.id == quorum.leader);
    status.leader = leader.map(|leader| leader.name.clone());
    let versions = status.members.iter().filter_map(|it| it.version.as_deref());
    let oldest = versions
        .filter_map(|text| text.parse::<Version>().ok())
        .min();
    status.version = oldest.map(|oldest| oldest.to_string());
}

fn member(member: &MemberView, quorum: &Quorum, seen: &Seen) -> MemberState {
    let status = seen.statuses.get(&member.id);
    MemberState {
        id: format!("{:x}", member.id),
        name: member.name.clone(),
        role: match member {
            _ if member.id == quorum.leader => Role::Leader,
            _ if member.is_voter() => Role::Follower,
            _ => Role::Learner,
        },
        healthy: member.is_healthy(),
        version: status.map(|status| status.version.clone()),
        unhealthy_since: match member.health {
            Health::Healthy => None,
            Health::Unhealthy(since) => Some(Time(whole(since))),
        },
    }
}

/// Times in objects have whole seconds.
fn whole(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

fn conditions_of(seen: &Seen, step: &Step) -> [Condition; 3] {
    let available = match &seen.observed.quorum {
        Some(quorum) => {
            let (healthy, all) = (quorum.healthy_voters(), quorum.voters().count());
            let message = format!("{healthy} of {all} voting members are healthy");
            Condition::new("Available", Status::True, "QuorumHealthy").message(message)
        }
        None if seen.observed.established => Condition::new("Available", Status::False, "NoQuorum")
            .message("no quorum of members answers"),
        None => Condition::new("Available", Status::False, "Bootstrapping")
            .message("the first member has not answered yet"),
    };
    let progressing = match reason(step) {
        None => Condition::new("Progressing", Status::False, "AsWanted"),
        Some((reason, message)) => {
            Condition::new("Progressing", Status::True, reason).message(message)
        }
    };
    let degraded = match trouble(seen, step) {
        None => Condition::new("Degraded", Status::False, "AllHealthy"),
        Some((reason, message)) => {
            Condition::new("Degraded", Status::True, reason).message(message)
        }
    };
    [available, progressing, degraded]
}

/// What is being done, as a reason and a message.
pub(crate) fn reason(step: &Step) -> Option<(&'static str, String)> {
    Some(match step {
        Step::Idle => return None,
        Step::Bootstrap(name) => ("Bootstrapping", format!("starting {name} as a new cluster")),
        Step::AddMember(name) => ("AddingMember", format!("adding {name} as a learner")),
        Step::StartMember(_, name) | Step::RestartMember(name) => {
            ("StartingMember", format!("starting the pod of {name}"))
        }
        Step::Promote(id) => ("PromotingLearner", format!("letting {id:x} vote")),
        Step::MoveLeader { to, .. } => ("MovingLeader", format!("having {to:x} lead")),
        Step::RemoveMember(id, why) => ("RemovingMember", format!("removing {id:x}: {why:?}")),
        Step::DeletePod(name, why) => ("DeletingPod", format!("deleting the pod {name}: {why:?}")),
        Step::DeleteClaim(name) => ("DeletingClaim", format!("deleting the volume of {name}")),
        Step::Wait(waiting) => waiting_for(waiting),
    })
}

fn waiting_for(waiting: &Waiting) -> (&'static str, String) {
    match waiting {
        Waiting::Bootstrap => ("Bootstrapping", "the first member starts".to_owned()),
        Waiting::Quorum => ("WaitingForQuorum", "members start again".to_owned()),
        Waiting::AllDataLost => ("AllDataLost", "the data of all members is gone".to_owned()),
        Waiting::PodStops(name) => ("WaitingForPod", format!("{name} stops")),
        Waiting::Learner(name) => ("WaitingForLearner", format!("{name} catches up")),
        Waiting::Member(name) => ("WaitingForMember", format!("{name} does not answer")),
        Waiting::UnsafeRemoval(name) => {
            let message = format!("{name} cannot be removed without losing the quorum");
            ("UnsafeRemoval", message)
        }
        Waiting::UnsupportedUpgrade(version) => {
            let message = format!("{version} cannot follow the version that runs");
            ("UnsupportedUpgrade", message)
        }
    }
}

/// What somebody should know of, as a reason and a message.
fn trouble(seen: &Seen, step: &Step) -> Option<(&'static str, String)> {
    if let Step::Wait(
        waiting @ (Waiting::AllDataLost
        | Waiting::UnsafeRemoval(_)
        | Waiting::UnsupportedUpgrade(_)),
    ) = step
    {
        return Some(waiting_for(waiting));
    }
    let Some(quorum) = &seen.observed.quorum else {
        let lost = seen.observed.established;
        return lost.then(|| ("NoQuorum", "no quorum of members answers".to_owned()));
    };
    let away = quorum.voters().filter(|member| !member.is_healthy());
    let away: Vec<&str> = away.map(|member| member.name.as_str()).collect();
    let message = format!("not healthy: {}", away.join(", "));
    (!away.is_empty()).then_some(("MembersUnhealthy", message))
}
