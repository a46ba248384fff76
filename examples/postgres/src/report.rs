//! What users see of a PostgresCluster: status, conditions, events.

use kubewright::prelude::*;
use kubewright::runtime::conditions::{Condition, Status};

use crate::api::{BackupStatus, MemberStatus, PostgresCluster};
use crate::plan::{Record, View};
use crate::protocol::State;

/// Puts the plan on record. Fails when the object has changed since it was read: then it is decided anew.
pub(crate) async fn record(
    cluster: &mut PostgresCluster,
    old: &Record,
    new: Record,
    cx: &Context,
) -> Result {
    let status = cluster.status.get_or_insert_default();
    status.observed_generation = cluster.metadata.generation;
    status.set_record(new.clone());
    *cluster = cx.client().update_status(&*cluster).await?;
    announce(cluster, old, &new, cx);
    Ok(())
}

fn announce(cluster: &PostgresCluster, old: &Record, new: &Record, cx: &Context) {
    let primary = new.primary.as_deref().unwrap_or_default();
    if new.fencing && !old.fencing {
        let message = format!("the term of {primary} ends");
        cx.event(cluster, EventKind::Normal, "Fencing", message);
    }
    if new.term != old.term {
        let message = format!("{primary} is primary of term {}", new.term);
        cx.event(cluster, EventKind::Normal, "NewPrimary", message);
    }
}

/// Writes what was seen of the members, if it differs.
pub(crate) async fn members(
    cluster: &mut PostgresCluster,
    names: &[String],
    view: &View,
    backup: Option<BackupStatus>,
    cx: &Context,
) -> Result {
    let before = cluster.clone();
    let generation = cluster.metadata.generation;
    let status = cluster.status.get_or_insert_default();
    status.observed_generation = generation;
    status.backup = backup;
    status.members = names
        .iter()
        .map(|name| MemberStatus {
            name: name.clone(),
            role: role(view, name).to_owned(),
            pending_restart: view
                .reports
                .get(name)
                .map(|report| report.pending_restart.clone())
                .unwrap_or_default(),
        })
        .collect();
    let primary = status.primary.clone().unwrap_or_default();
    let reported = [
        ready(role(view, &primary), status.fencing, &primary),
        complete(&status.members),
    ];
    for condition in reported {
        let condition = condition.generation(generation);
        conditions::set(&mut status.conditions, cx.now(), condition);
    }
    cx.client().patch_status(&before, &*cluster).await?;
    Ok(())
}

fn role(view: &View, name: &str) -> &'static str {
    match view.reports.get(name).map(|report| report.state) {
        Some(State::Primary) => "Primary",
        Some(State::Replica) => "Replica",
        Some(State::Busy) => "Busy",
        Some(State::Stopped) => "Stopped",
        None => "Unreachable",
    }
}

/// Whether writes are taken.
fn ready(role: &str, fencing: bool, primary: &str) -> Condition {
    if role == "Primary" && !fencing {
        return Condition::new("Ready", Status::True, "PrimaryUp")
            .message(format!("{primary} takes writes"));
    }
    let reason = if fencing { "Fencing" } else { "PrimaryDown" };
    Condition::new("Ready", Status::False, reason).message(format!("{primary} is {role}"))
}

/// Whether every member does its part.
fn complete(members: &[MemberStatus]) -> Condition {
    let is_up = |member: &&MemberStatus| matches!(member.role.as_str(), "Primary" | "Replica");
    let up = members.iter().filter(is_up).count();
    let status = if up == members.len() {
        Status::True
    } else {
        Status::False
    };
    let message = format!("{up} of {} members are up", members.len());
    Condition::new("Complete", status, "Members").message(message)
}
