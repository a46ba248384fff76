//! What a Deployment does next: which sets it creates, scales, deletes, and what it reports. Pure.
//!
//! One pass of the real controller, with two differences. A Recreate Deployment that is scaled in the middle of a rollout
//! goes on with the rollout, where the real one waits forever if two sets have pods. And a set that was just asked
//! to shrink counts only the available pods that it may keep, where the real one gives up on the pass.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet};

use super::annotations::{self, hand_down, note_size};
use super::bounds::{Bounds, Strategy, strategy};
use super::conditions::{self, PROGRESSING, condition, reason};
use super::sets::{self, Slot};
use super::status;

/// What the controller sees.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observed<'a> {
    /// The Deployment.
    pub(crate) deployment: &'a Deployment,
    /// Its ReplicaSets.
    pub(crate) sets: &'a [Arc<ReplicaSet>],
    /// The pods of its ReplicaSets that may still run, by the set that controls them.
    pub(crate) pod_owners: &'a [String],
    /// The time.
    pub(crate) now: Timestamp,
}

/// A set that changes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Update {
    /// As it is.
    pub(crate) before: Arc<ReplicaSet>,
    /// As it shall be.
    pub(crate) after: ReplicaSet,
}

/// What the controller does.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    /// The set to create.
    pub(crate) create: Option<ReplicaSet>,
    /// The sets to change, in this order.
    pub(crate) update: Vec<Update>,
    /// The sets of old templates that nobody will roll back to.
    pub(crate) delete: Vec<Arc<ReplicaSet>>,
    /// The revision that the Deployment shows.
    pub(crate) revision: Option<i64>,
    /// What the Deployment reports.
    pub(crate) status: DeploymentStatus,
    /// When to look again though nothing happens.
    pub(crate) check_after: Option<Duration>,
}

/// What the controller does about what it sees.
pub(crate) fn plan(observed: &Observed<'_>) -> Plan {
    let mut pass = Pass::new(observed);
    pass.note_pause();
    pass.update_new_set();
    let course = pass.course();
    match course {
        Course::Leave => {}
        Course::Scale => pass.scale(),
        Course::Roll => pass.roll(),
        Course::Recreate => pass.recreate(observed.pod_owners),
    }
    pass.finish(course)
}

/// Which way a pass goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    /// The Deployment goes away: report, touch nothing.
    Leave,
    /// It was scaled or is paused: no template moves.
    Scale,
    /// Replace pods a few at a time.
    Roll,
    /// Replace all pods at once.
    Recreate,
}

pub(super) struct Pass<'a> {
    pub(super) deployment: &'a Deployment,
    pub(super) bounds: Bounds,
    pub(super) new: Option<Slot>,
    /// From the oldest to the youngest.
    pub(super) old: Vec<Slot>,
    conditions: Vec<DeploymentCondition>,
    pub(super) delete: Vec<Arc<ReplicaSet>>,
    now: Timestamp,
}

impl<'a> Pass<'a> {
    fn new(observed: &Observed<'a>) -> Self {
        let deployment = observed.deployment;
        let (new, old) = sets::split(deployment, observed.sets);
        let status = deployment.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.clone());
        Self {
            deployment,
            bounds: Bounds::of(deployment),
            new,
            old,
            conditions: conditions.unwrap_or_default(),
            delete: Vec::new(),
            now: observed.now,
        }
    }

    pub(super) fn is_paused(&self) -> bool {
        self.deployment.spec.paused == Some(true)
    }

    fn is_leaving(&self) -> bool {
        self.deployment.metadata.deletion_timestamp.is_some()
    }

    fn course(&self) -> Course {
        let strategy = strategy(self.deployment);
        if self.is_leaving() {
            Course::Leave
        } else if self.is_paused() {
            Course::Scale
        } else if strategy == Strategy::Recreate {
            Course::Recreate
        } else if self.was_scaled() {
            Course::Scale
        } else {
            Course::Roll
        }
    }

    /// Whether a set with pods was made for another size of the Deployment.
    fn was_scaled(&self) -> bool {
        let active = self
            .old
            .iter()
            .chain(&self.new)
            .filter(|slot| slot.is_active());
        let mut sizes = active.filter_map(|slot| annotations::desired_before(&slot.after));
        sizes.any(|size| size != self.bounds.replicas)
    }

    /// Says that the rollout is paused or goes on, so that the time in between does not count against its deadline.
    fn note_pause(&mut self) {
        let now = conditions::reason_of(&self.conditions, PROGRESSING);
        if self.is_leaving()
            || status::deadline(self.deployment).is_none()
            || now == Some(reason::TIMED_OUT)
        {
            return;
        }
        let (reason, message) = match (self.is_paused(), now == Some(reason::PAUSED)) {
            (true, false) => (reason::PAUSED, "Deployment is paused"),
            (false, true) => (reason::RESUMED, "Deployment is resumed"),
            _ => return,
        };
        conditions::set(
            &mut self.conditions,
            condition(PROGRESSING, "Unknown", reason, message, self.now),
        );
    }

    /// Keeps the annotations and the minimum readiness of the set for the template in step.
    fn update_new_set(&mut self) {
        let revision = self.next_revision();
        let Some(new) = &mut self.new else {
            return;
        };
        hand_down(self.deployment, &mut new.after, revision);
        let seconds = |given: Option<i32>| given.unwrap_or_default();
        let wanted = self.deployment.spec.min_ready_seconds;
        if seconds(new.after.spec.min_ready_seconds) != seconds(wanted) {
            new.after.spec.min_ready_seconds = wanted;
        }
        let name = new.after.metadata.name.clone().unwrap_or_default();
        let said = conditions::reason_of(&self.conditions, PROGRESSING);
        // The revision is written with the status. If it is still another one, what the condition says is about the rollout
        // before: this set was created by a pass that could not write its status.
        let shown = annotations::shown_revision(self.deployment);
        let is_of_before = shown.is_some_and(|shown| shown != annotations::revision(&new.after));
        let is_over = matches!(said, Some(reason::ARRIVED | reason::TIMED_OUT));
        if said.is_none() || (is_of_before && is_over) {
            self.note_progress(reason::FOUND, format!("Found new replica set {name:?}"));
        }
    }

    fn next_revision(&self) -> i64 {
        let revisions = self
            .old
            .iter()
            .map(|slot| annotations::revision(&slot.after));
        revisions.max().unwrap_or_default().max(0).saturating_add(1)
    }

    fn note_progress(&mut self, reason: &str, message: String) {
        if status::deadline(self.deployment).is_some() {
            conditions::set(
                &mut self.conditions,
                condition(PROGRESSING, "True", reason, message, self.now),
            );
        }
    }

    /// Makes the set for the template, of this size.
    pub(super) fn create(&mut self, size: i32) {
        let mut set = sets::make(self.deployment);
        set.spec.replicas = Some(size);
        hand_down(self.deployment, &mut set, self.next_revision());
        note_size(&mut set, &self.bounds);
        let name = set.metadata.name.clone().unwrap_or_default();
        self.note_progress(reason::CREATED, format!("Created new replica set {name:?}"));
        self.new = Some(Slot::fresh(set));
    }

    fn finish(self, course: Course) -> Plan {
        let new = self.new.as_ref();
        let mut status = status::counts(self.deployment, new, &self.old, self.conditions, self.now);
        // While it is scaled, paused or deleted a Deployment makes no progress that could be judged.
        let mut check_after = None;
        if matches!(course, Course::Roll | Course::Recreate) {
            status::judge(self.deployment, new, &mut status, self.now);
            status::show_failures(new, &self.old, &mut status);
            check_after = status::check_after(self.deployment, &status, self.now);
        }
        let revision = new.map(|new| annotations::revision(&new.after));
        let (create, update) = changes(self.new, self.old);
        Plan {
            create,
            update,
            delete: self.delete,
            revision: revision.filter(|revision| *revision > 0),
            status,
            check_after,
        }
    }
}

fn changes(new: Option<Slot>, old: Vec<Slot>) -> (Option<ReplicaSet>, Vec<Update>) {
    let (mut create, mut update) = (None, Vec::new());
    for slot in new.into_iter().chain(old) {
        match slot.before {
            None => create = Some(slot.after),
            Some(before) if *before != slot.after => update.push(Update {
                before,
                after: slot.after,
            }),
            Some(_) => {}
        }
    }
    (create, update)
}
