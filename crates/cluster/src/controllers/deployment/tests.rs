//! What a Deployment does about the sets it sees.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{
    Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet, ReplicaSetCondition,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::annotations::{self, REVISION};
use super::bounds::Bounds;
use super::conditions::{self, AVAILABLE, PROGRESSING};
use super::plan::{Observed, Plan, plan};
use super::proportion::{self, Share};
use super::rolling::{self, Size};
use super::samples::*;
use super::sets;
use crate::pods::samples::{at, template};

/// Checks the sizes that the sets of some images have after the plan.
fn check_sizes(
    what: &str,
    deployment: &Deployment,
    sets: &[Arc<ReplicaSet>],
    expect: &[(&str, i32)],
) -> Plan {
    let plan = plan_of(deployment, sets);
    let changed = |set: &Arc<ReplicaSet>| {
        let update = plan
            .update
            .iter()
            .find(|update| Arc::ptr_eq(&update.before, set));
        update.map_or_else(|| ReplicaSet::clone(set), |update| update.after.clone())
    };
    let after: Vec<ReplicaSet> = sets
        .iter()
        .map(changed)
        .chain(plan.create.clone())
        .collect();
    let sizes: Vec<(&str, i32)> = after
        .iter()
        .map(|set| (image(set), set.spec.replicas.unwrap_or(1)))
        .collect();
    assert_eq!(sizes, expect, "{what}");
    plan
}

fn progress(status: &DeploymentStatus) -> (&str, &str) {
    let condition = find(status, PROGRESSING).expect("there is a condition of progress");
    (
        condition.status.as_deref().unwrap_or_default(),
        condition.reason.as_deref().unwrap_or_default(),
    )
}

fn find<'a>(status: &'a DeploymentStatus, type_: &str) -> Option<&'a DeploymentCondition> {
    conditions::find(status.conditions.as_deref().unwrap_or_default(), type_)
}

#[test]
fn limits_round_up_for_surge_and_down_for_unavailability() {
    let check = |replicas, surge: &str, unavailable: &str, expect| {
        let bounds = Bounds::of(&deployment("a", replicas, surge, unavailable));
        assert_eq!(
            (bounds.surge, bounds.unavailable),
            expect,
            "{replicas} {surge} {unavailable}"
        );
    };
    check(4, "25%", "25%", (1, 1));
    check(10, "25%", "25%", (3, 2));
    check(1, "25%", "25%", (1, 0));
    check(3, "1", "0", (1, 0));
    // Both are zero: one pod may be missing, or no rollout would start.
    check(2, "0%", "1%", (0, 1));
    check(1, "0", "0", (0, 1));
    check(3, "0", "100%", (0, 3));
    check(3, "0", "10", (0, 3));
    check(0, "25%", "25%", (0, 0));
    let bounds = Bounds::of(&recreating(deployment("a", 3, "1", "1")));
    assert_eq!((bounds.surge, bounds.unavailable), (0, 0));
}

#[test]
fn the_first_set_has_all_pods() {
    let deployment = deployment("a", 3, "25%", "25%");
    let plan = check_sizes("first", &deployment, &[], &[("a", 3)]);
    let set = plan.create.expect("a set is created");
    let name = set.metadata.name.clone().expect("it has a name");
    let labels = set.metadata.labels.clone().expect("it has labels");
    assert_eq!(name, format!("web-{}", labels["pod-template-hash"]));
    assert_eq!(set.spec.selector.match_labels.as_ref(), Some(&labels));
    let template = set
        .spec
        .template
        .as_ref()
        .and_then(|template| template.metadata.as_ref());
    assert_eq!(
        template.and_then(|meta| meta.labels.as_ref()),
        Some(&labels)
    );
    assert_eq!(plan.revision, Some(1));
    assert_eq!(annotations::desired_before(&set), Some(3));
    assert_eq!(annotations::most_before(&set), Some(4));
    assert_eq!(progress(&plan.status), ("True", "NewReplicaSetCreated"));
    let message = find(&plan.status, PROGRESSING).and_then(|condition| condition.message.clone());
    assert_eq!(message, Some(format!("Created new replica set \"{name}\"")));
    let available = find(&plan.status, AVAILABLE).and_then(|condition| condition.reason.as_deref());
    assert_eq!(available, Some("MinimumReplicasUnavailable"));
    assert_eq!(plan.status.unavailable_replicas, Some(3));
}

#[test]
fn a_rollout_moves_within_its_limits() {
    let wanted = deployment("b", 4, "1", "1");
    let set =
        |image, revision, desired, available| set(&wanted, image, revision, desired, available);
    let check = |what, sets: &[Arc<ReplicaSet>], expect: &[(&str, i32)]| {
        check_sizes(what, &wanted, sets, expect);
    };
    check("starts", &[set("a", 1, 4, 4)], &[("a", 3), ("b", 1)]);
    check(
        "fills the room",
        &[set("a", 1, 3, 3), set("b", 2, 1, 0)],
        &[("a", 3), ("b", 2)],
    );
    check(
        "waits for new pods",
        &[set("a", 1, 3, 3), set("b", 2, 2, 0)],
        &[("a", 3), ("b", 2)],
    );
    check(
        "goes on",
        &[set("a", 1, 3, 3), set("b", 2, 2, 1)],
        &[("a", 2), ("b", 2)],
    );
    check(
        "drops pods that do not serve",
        &[set("a", 1, 3, 1), set("b", 2, 2, 2)],
        &[("a", 1), ("b", 2)],
    );
    check(
        "ends",
        &[set("a", 1, 1, 1), set("b", 2, 4, 4)],
        &[("a", 0), ("b", 4)],
    );
    check(
        "has ended",
        &[set("a", 1, 0, 0), set("b", 2, 4, 4)],
        &[("a", 0), ("b", 4)],
    );
    check(
        "shrinks a new set that is too large",
        &[set("b", 1, 9, 9)],
        &[("b", 4)],
    );
    check("grows from nothing", &[set("b", 1, 0, 0)], &[("b", 4)]);
    // Three templates: the oldest gives up pods first.
    check(
        "rolls over",
        &[set("a", 1, 2, 2), set("c", 2, 3, 3), set("b", 3, 0, 0)],
        &[("a", 0), ("c", 3), ("b", 0)],
    );
}

#[test]
fn pods_about_to_go_do_not_count_as_serving() {
    // The old set was asked to shrink from 4 to 3 and still reports 4.
    let bounds = Bounds::of(&deployment("b", 4, "1", "1"));
    let sizes = rolling::old_sizes(&bounds, Size::new(2, 1), &[Size::new(3, 4)]);
    assert_eq!(sizes, [2]);
    let sizes = rolling::old_sizes(&bounds, Size::new(1, 0), &[Size::new(3, 4)]);
    assert_eq!(sizes, [3]);
}

#[test]
fn recreate_stops_all_pods_before_it_starts_new_ones() {
    let wanted = recreating(deployment("b", 3, "1", "1"));
    let old = |desired, available| set(&wanted, "a", 1, desired, available);
    check_sizes("stops", &wanted, &[old(3, 3)], &[("a", 0)]);
    let mut stopping = ReplicaSet::clone(&old(0, 0));
    stopping.status = Some(status(2, 0));
    check_sizes(
        "waits for its report",
        &wanted,
        &[Arc::new(stopping)],
        &[("a", 0)],
    );
    check_sizes("starts", &wanted, &[old(0, 0)], &[("a", 0), ("b", 3)]);
    // A pod of the old set is still there.
    let idle = old(0, 0);
    let owner = idle.metadata.uid.clone().expect("samples have uids");
    let observed = Observed {
        deployment: &wanted,
        sets: &[idle],
        pod_owners: &[owner],
        now: at(100),
    };
    assert_eq!(plan(&observed).create, None);
}

#[test]
fn pods_of_the_new_set_do_not_hold_up_recreate() {
    let wanted = recreating(deployment("b", 3, "1", "1"));
    let (old, new) = (set(&wanted, "a", 1, 0, 0), set(&wanted, "b", 2, 1, 1));
    let owner = new.metadata.uid.clone().expect("samples have uids");
    let observed = Observed {
        deployment: &wanted,
        sets: &[old, new],
        pod_owners: &[owner],
        now: at(100),
    };
    let plan = plan(&observed);
    assert_eq!(plan.update[0].after.spec.replicas, Some(3));
}

/// The real controller waits for ever here: docs/differs.md.
#[test]
fn a_scaled_recreate_goes_on_although_two_sets_have_pods() {
    let before = recreating(deployment("b", 3, "1", "1"));
    let scaled = recreating(deployment("b", 5, "1", "1"));
    let sets = [set(&before, "a", 1, 2, 2), set(&before, "b", 2, 1, 1)];
    check_sizes("stops the old", &scaled, &sets, &[("a", 0), ("b", 1)]);
    let sets = [set(&before, "a", 1, 0, 0), set(&before, "b", 2, 1, 1)];
    check_sizes("grows the new", &scaled, &sets, &[("a", 0), ("b", 5)]);
}

#[test]
fn rolling_back_gives_the_old_set_a_new_number() {
    let wanted = deployment("a", 3, "1", "0");
    let sets = [set(&wanted, "a", 1, 0, 0), set(&wanted, "b", 2, 3, 3)];
    let plan = check_sizes("back", &wanted, &sets, &[("a", 1), ("b", 3)]);
    assert_eq!(plan.create, None);
    assert_eq!(plan.revision, Some(3));
    let annotations = plan.update[0]
        .after
        .metadata
        .annotations
        .clone()
        .unwrap_or_default();
    assert_eq!(annotations[REVISION], "3");
    assert_eq!(
        annotations["deployment.kubernetes.io/revision-history"],
        "1"
    );
}

#[test]
fn annotations_are_handed_down_but_not_those_of_tools() {
    let mut wanted = deployment("a", 1, "1", "0");
    let kept = "kubectl.kubernetes.io/last-applied-configuration";
    let given = [("note", "hello"), (kept, "{}"), (REVISION, "77")];
    wanted.metadata.annotations = Some(crate::pods::samples::labels(&given));
    let created = plan_of(&wanted, &[])
        .create
        .and_then(|set| set.metadata.annotations);
    let annotations = created.expect("the set has annotations");
    assert_eq!(annotations["note"], "hello");
    assert_eq!(annotations[REVISION], "1");
    assert!(!annotations.contains_key(kept));
}

#[test]
fn a_changed_minimum_of_readiness_reaches_the_set() {
    let mut wanted = deployment("a", 3, "1", "0");
    let sets = [set(&wanted, "a", 1, 3, 3)];
    assert!(plan_of(&wanted, &sets).update.is_empty());
    wanted.spec.min_ready_seconds = Some(30);
    let plan = plan_of(&wanted, &sets);
    assert_eq!(plan.update[0].after.spec.min_ready_seconds, Some(30));
    assert_eq!(plan.update[0].after.spec.template, sets[0].spec.template);
}

#[test]
fn a_scaled_deployment_scales_its_only_set() {
    let before = deployment("a", 3, "25%", "25%");
    let sets = [set(&before, "a", 1, 3, 3)];
    let up = deployment("a", 6, "25%", "25%");
    let plan = check_sizes("up", &up, &sets, &[("a", 6)]);
    assert_eq!(annotations::desired_before(&plan.update[0].after), Some(6));
    check_sizes(
        "down",
        &deployment("a", 1, "25%", "25%"),
        &sets,
        &[("a", 1)],
    );
    check_sizes(
        "to nothing",
        &deployment("a", 0, "25%", "25%"),
        &sets,
        &[("a", 0)],
    );
    // A new template waits until the old one has the new size.
    check_sizes(
        "scaled and changed",
        &deployment("b", 6, "25%", "25%"),
        &sets,
        &[("a", 6)],
    );
}

#[test]
fn a_deployment_scaled_in_a_rollout_keeps_the_shares() {
    let before = deployment("b", 10, "3", "2");
    let sets = [set(&before, "a", 1, 8, 8), set(&before, "b", 2, 5, 0)];
    let after = deployment("b", 15, "3", "2");
    check_sizes("up", &after, &sets, &[("a", 11), ("b", 7)]);
    let smaller = deployment("b", 5, "3", "2");
    check_sizes("down", &smaller, &sets, &[("a", 5), ("b", 3)]);
    check_sizes(
        "to nothing",
        &deployment("b", 0, "3", "2"),
        &sets,
        &[("a", 0), ("b", 0)],
    );
}

#[test]
fn shares_are_kept_and_the_rest_goes_to_the_largest() {
    let share = |desired, most_before| Share {
        desired,
        most_before: Some(most_before),
    };
    let check = |replicas, surge: &str, sets: &[Share], expect: &[i32]| {
        let bounds = Bounds::of(&deployment("a", replicas, surge, "0"));
        assert_eq!(
            proportion::sizes(&bounds, sets, 10),
            expect,
            "{replicas} {sets:?}"
        );
    };
    check(12, "1", &[share(5, 11), share(6, 11)], &[6, 7]);
    // Of equal sets the newer grows first and the older shrinks first.
    check(11, "0", &[share(5, 10), share(5, 10)], &[5, 6]);
    check(9, "0", &[share(5, 10), share(5, 10)], &[4, 5]);
    check(0, "1", &[share(5, 10), share(5, 10)], &[0, 0]);
    // An annotation that was tampered with falls back on what runs.
    check(
        20,
        "0",
        &[Share {
            desired: 10,
            most_before: None,
        }],
        &[20],
    );
    check(20, "0", &[share(10, 0)], &[20]);
}

#[test]
fn a_saturated_new_set_ends_the_old_ones() {
    let wanted = deployment("b", 3, "1", "0");
    let mut old = ReplicaSet::clone(&set(&deployment("b", 5, "1", "0"), "a", 1, 2, 2));
    old.metadata.creation_timestamp = Some(Time(at(1)));
    let sets = [Arc::new(old), set(&wanted, "b", 2, 3, 3)];
    check_sizes("saturated", &wanted, &sets, &[("a", 0), ("b", 3)]);
}

#[test]
fn a_paused_deployment_is_scaled_but_not_rolled_out() {
    let mut wanted = deployment("b", 5, "1", "0");
    wanted.spec.paused = Some(true);
    let sets = [set(&deployment("b", 3, "1", "0"), "a", 1, 3, 3)];
    let plan = check_sizes("paused", &wanted, &sets, &[("a", 5)]);
    assert_eq!(plan.create, None);
    assert_eq!(progress(&plan.status), ("Unknown", "DeploymentPaused"));
    wanted.status = Some(plan.status);
    assert_eq!(
        plan_of(&wanted, &sets).status,
        wanted.status.clone().expect("just set"),
        "says it once"
    );
    wanted.spec.paused = None;
    wanted.spec.replicas = Some(3);
    let plan = check_sizes("resumed", &wanted, &sets, &[("a", 3), ("b", 1)]);
    assert_eq!(progress(&plan.status), ("True", "NewReplicaSetCreated"));
}

#[test]
fn resuming_restarts_the_clock() {
    let mut wanted = deployment("a", 3, "1", "0");
    let sets = [set(&wanted, "a", 1, 3, 1)];
    wanted.status = Some(reported(
        3,
        3,
        1,
        Some(("Unknown", "DeploymentPaused", -10_000)),
    ));
    let plan = plan_of(&wanted, &sets);
    assert_eq!(progress(&plan.status), ("Unknown", "DeploymentResumed"));
    assert_eq!(plan.check_after.map(|wait| wait.as_secs()), Some(601));
}

/// A status with these counts and a condition of progress of some moment.
fn reported(
    replicas: i32,
    updated: i32,
    available: i32,
    said: Option<(&str, &str, i64)>,
) -> DeploymentStatus {
    let condition = said.map(|(status, reason, when)| {
        vec![conditions::condition(
            PROGRESSING,
            status,
            reason,
            "said before",
            at(when),
        )]
    });
    DeploymentStatus {
        observed_generation: Some(1),
        replicas: Some(replicas),
        updated_replicas: Some(updated),
        ready_replicas: Some(available),
        available_replicas: Some(available),
        conditions: condition,
        ..DeploymentStatus::default()
    }
}

#[test]
fn progress_is_judged_by_what_changed() {
    let check =
        |what: &str, before: DeploymentStatus, now: (i32, i32), expect, again: Option<u64>| {
            let mut wanted = deployment("b", 3, "1", "0");
            wanted.status = Some(before);
            let sets = [set(&wanted, "b", 2, now.0, now.1)];
            let plan = plan_of(&wanted, &sets);
            assert_eq!(progress(&plan.status), expect, "{what}");
            assert_eq!(plan.check_after.map(|wait| wait.as_secs()), again, "{what}");
        };
    let created = Some(("True", "NewReplicaSetCreated", 90));
    check(
        "nothing moved",
        reported(3, 3, 1, created),
        (3, 1),
        ("True", "NewReplicaSetCreated"),
        Some(591),
    );
    check(
        "one more serves",
        reported(3, 3, 1, created),
        (3, 2),
        ("True", "ReplicaSetUpdated"),
        Some(601),
    );
    check(
        "all serve",
        reported(3, 3, 2, created),
        (3, 3),
        ("True", "NewReplicaSetAvailable"),
        None,
    );
    let late = Some(("True", "ReplicaSetUpdated", -600));
    check(
        "too late",
        reported(3, 3, 1, late),
        (3, 1),
        ("False", "ProgressDeadlineExceeded"),
        None,
    );
    let failed = Some(("False", "ProgressDeadlineExceeded", -600));
    check(
        "still too late",
        reported(3, 3, 1, failed),
        (3, 1),
        ("False", "ProgressDeadlineExceeded"),
        None,
    );
    check(
        "late but moving",
        reported(3, 3, 1, failed),
        (3, 2),
        ("True", "ReplicaSetUpdated"),
        Some(601),
    );
    // A pod that dies after the rollout does not make the rollout fail.
    let arrived = Some(("True", "NewReplicaSetAvailable", -10_000));
    check(
        "a pod died",
        reported(3, 3, 3, arrived),
        (3, 2),
        ("True", "NewReplicaSetAvailable"),
        None,
    );
    check(
        "nothing was said",
        reported(3, 3, 1, None),
        (3, 1),
        ("True", "FoundNewReplicaSet"),
        Some(601),
    );
}

/// The pass that created the set could not write its status, and the set has its pods by now.
#[test]
fn a_rollout_is_not_judged_by_the_one_before() {
    for before in ["NewReplicaSetAvailable", "ProgressDeadlineExceeded"] {
        let mut wanted = deployment("b", 1, "1", "0");
        let revision = [(REVISION.to_owned(), "1".to_owned())];
        wanted.metadata.annotations = Some(revision.into());
        wanted.status = Some(reported(1, 1, 1, Some(("True", before, -10_000))));
        let sets = [set(&wanted, "a", 1, 1, 1), set(&wanted, "b", 2, 1, 0)];
        let plan = plan_of(&wanted, &sets);
        assert_eq!(
            progress(&plan.status),
            ("True", "FoundNewReplicaSet"),
            "{before}"
        );
        assert!(plan.check_after.is_some());
    }
}

#[test]
fn without_a_deadline_nothing_is_said_of_progress() {
    for deadline in [None, Some(i32::MAX)] {
        let mut wanted = deployment("a", 3, "1", "0");
        wanted.spec.progress_deadline_seconds = deadline;
        let plan = plan_of(&wanted, &[]);
        assert_eq!(find(&plan.status, PROGRESSING), None);
        assert_eq!(plan.check_after, None);
    }
}

#[test]
fn the_time_of_the_last_change_stays_while_the_status_does() {
    let mut wanted = deployment("b", 3, "1", "0");
    wanted.status = Some(reported(3, 3, 1, Some(("True", "NewReplicaSetCreated", 5))));
    let plan = plan_of(&wanted, &[set(&wanted, "b", 2, 3, 2)]);
    let condition = find(&plan.status, PROGRESSING).expect("it progresses");
    assert_eq!(condition.last_transition_time, Some(Time(at(5))));
    assert_eq!(condition.last_update_time, Some(Time(at(100))));
}

#[test]
fn the_status_adds_up_the_sets() {
    let mut wanted = deployment("b", 4, "1", "1");
    wanted.metadata.generation = Some(9);
    let status = plan_of(
        &wanted,
        &[set(&wanted, "a", 1, 3, 3), set(&wanted, "b", 2, 2, 0)],
    )
    .status;
    assert_eq!(status.observed_generation, Some(9));
    assert_eq!(status.replicas, Some(5));
    assert_eq!(status.updated_replicas, Some(2));
    assert_eq!(status.ready_replicas, Some(3));
    assert_eq!(status.available_replicas, Some(3));
    assert_eq!(status.unavailable_replicas, Some(2));
    assert_eq!(status.terminating_replicas, Some(0));
    let available = find(&status, AVAILABLE).and_then(|condition| condition.reason.as_deref());
    assert_eq!(available, Some("MinimumReplicasAvailable"));
}

#[test]
fn failures_of_sets_are_shown_the_new_sets_first() {
    let wanted = deployment("b", 3, "1", "0");
    let failing = |image, revision, message: &str| {
        let mut set = ReplicaSet::clone(&set(&wanted, image, revision, 2, 0));
        let status = set.status.get_or_insert_default();
        status.conditions = Some(vec![ReplicaSetCondition {
            type_: Some("ReplicaFailure".to_owned()),
            status: Some("True".to_owned()),
            reason: Some("FailedCreate".to_owned()),
            message: Some(message.to_owned()),
            last_transition_time: None,
        }]);
        Arc::new(set)
    };
    let sets = [failing("a", 1, "old"), failing("b", 2, "new")];
    let message = |status: &DeploymentStatus| {
        find(status, "ReplicaFailure").and_then(|shown| shown.message.clone())
    };
    let status = plan_of(&wanted, &sets).status;
    assert_eq!(message(&status).as_deref(), Some("new"));
    let mut healed = wanted.clone();
    healed.status = Some(status);
    assert_eq!(
        message(&plan_of(&healed, &[set(&wanted, "b", 2, 3, 3)]).status),
        None
    );
}

#[test]
fn old_revisions_beyond_the_limit_are_deleted_once_the_rollout_is_complete() {
    let mut wanted = deployment("z", 2, "1", "0");
    wanted.spec.revision_history_limit = Some(1);
    let mut busy = ReplicaSet::clone(&set(&wanted, "busy", 1, 0, 0));
    busy.status = Some(status(1, 0));
    let sets = [
        Arc::new(busy),
        set(&wanted, "b", 2, 0, 0),
        set(&wanted, "c", 3, 0, 0),
        set(&wanted, "z", 4, 2, 2),
    ];
    assert!(
        plan_of(&wanted, &sets).delete.is_empty(),
        "not before it is complete"
    );
    wanted.status = Some(reported(
        2,
        2,
        2,
        Some(("True", "NewReplicaSetAvailable", 0)),
    ));
    let gone = |wanted: &Deployment| -> Vec<String> {
        let delete = plan_of(wanted, &sets).delete;
        delete.iter().map(|set| image(set).to_owned()).collect()
    };
    assert_eq!(gone(&wanted), ["b"], "the oldest still has a pod");
    wanted.spec.revision_history_limit = Some(0);
    assert_eq!(gone(&wanted), ["b", "c"]);
    wanted.spec.revision_history_limit = Some(i32::MAX);
    assert!(gone(&wanted).is_empty());
}

#[test]
fn a_deployment_that_goes_away_reports_and_rests() {
    let mut wanted = deployment("b", 5, "1", "0");
    wanted.metadata.deletion_timestamp = Some(Time(at(0)));
    let plan = check_sizes(
        "leaving",
        &wanted,
        &[set(&wanted, "a", 1, 3, 3)],
        &[("a", 3)],
    );
    assert_eq!(plan.create, None);
    assert_eq!(plan.status.replicas, Some(3));
}

#[test]
fn the_oldest_of_sets_with_the_template_is_the_new_one() {
    let wanted = deployment("a", 3, "1", "0");
    let mut twin = ReplicaSet::clone(&set(&wanted, "a", 2, 3, 3));
    twin.metadata.name = Some("web-twin".to_owned());
    let sets = [Arc::new(twin), set(&wanted, "a", 1, 0, 0)];
    let (new, old) = sets::split(&wanted, &sets);
    assert_eq!(new.and_then(|slot| slot.before), Some(sets[1].clone()));
    assert_eq!(old[0].before, Some(sets[0].clone()));
}

#[test]
fn templates_are_compared_without_their_hash() {
    let wanted = deployment("a", 1, "1", "0");
    let made = sets::make(&wanted)
        .spec
        .template
        .expect("sets have templates");
    assert!(sets::same_template(&made, &wanted.spec.template));
    assert!(!sets::same_template(&made, &template("b")));
}

#[test]
fn a_collision_gives_the_set_another_name() {
    let mut wanted = deployment("a", 1, "1", "0");
    let first = sets::make(&wanted).metadata.name;
    wanted.status = Some(DeploymentStatus {
        collision_count: Some(1),
        ..DeploymentStatus::default()
    });
    assert_ne!(sets::make(&wanted).metadata.name, first);
}

#[test]
fn names_of_sets_are_not_too_long() {
    let mut wanted = deployment("a", 1, "1", "0");
    wanted.metadata.name = Some("x".repeat(253));
    let name = sets::make(&wanted).metadata.name.expect("it has a name");
    assert_eq!(name.len(), 253);
}
