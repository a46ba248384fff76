//! What a StatefulSet does about the pods and claims it sees.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{
    StatefulSet, StatefulSetOrdinals, StatefulSetPersistentVolumeClaimRetentionPolicy,
    StatefulSetUpdateStrategy,
};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::identity::{self, ordinal};
use super::plan::{Change, Plan};
use super::samples::*;
use crate::pods::claim::controller_reference;
use crate::pods::samples::{at, in_phase, label_of, ready, running, terminating};

/// The changes in words: `+web-0` creates a pod, `-web-0` deletes one, `+data-web-0` creates a claim.
fn words(plan: &Plan) -> Vec<String> {
    let name = |name: &Option<String>| name.clone().unwrap_or_default();
    let word = |change: &Change| match change {
        Change::CreateClaim(_, claim) => format!("+{}", name(&claim.metadata.name)),
        Change::CreatePod(pod) => {
            format!("+{}@{}", name(&pod.metadata.name), identity::revision(pod))
        }
        Change::AwaitClaim(pod, claim) => format!("{pod} awaits {claim}"),
        Change::DeletePod(pod) => format!("-{}", name(&pod.metadata.name)),
        Change::UpdatePod(pod, _) => format!("~{}", name(&pod.metadata.name)),
        Change::UpdateClaim(claim, _) => format!("~{}", name(&claim.metadata.name)),
    };
    plan.changes.iter().map(word).collect()
}

fn check(what: &str, set: &StatefulSet, pods: Vec<Pod>, expect: &[&str]) -> Plan {
    let plan = plan_of(set, pods, &Claims::new());
    assert_eq!(words(&plan), expect, "{what}");
    plan
}

#[test]
fn a_pod_knows_who_it_is() {
    let set = with_claims(set(3));
    let pod = identity::make(&set, &revision("new"), 2);
    assert_eq!(pod.metadata.name.as_deref(), Some("web-2"));
    assert_eq!(pod.metadata.generate_name, None);
    assert_eq!(
        label_of(&pod, "statefulset.kubernetes.io/pod-name"),
        "web-2"
    );
    assert_eq!(label_of(&pod, "apps.kubernetes.io/pod-index"), "2");
    assert_eq!(label_of(&pod, "controller-revision-hash"), "new");
    let spec = pod.spec.expect("pods have specs");
    assert_eq!(spec.hostname.as_deref(), Some("web-2"));
    assert_eq!(spec.subdomain.as_deref(), Some("headless"));
    let volumes = spec.volumes.expect("claims are mounted");
    let claim = volumes[0]
        .persistent_volume_claim
        .as_ref()
        .expect("it is a claim");
    assert_eq!(
        (volumes[0].name.as_str(), claim.claim_name.as_str()),
        ("data", "data-web-2")
    );
}

#[test]
fn ordinals_are_read_from_names_that_the_set_gives() {
    let set = set(3);
    let check =
        |name: &str, expect| assert_eq!(ordinal(&set, &running(name, "n")), expect, "{name}");
    check("web-0", Some(0));
    check("web-12", Some(12));
    check("web-07", None);
    check("web-+7", None);
    check("web--1", None);
    check("web-x", None);
    check("web", None);
    check("other-1", None);
    check("web-99999999999", None);
}

#[test]
fn pods_start_one_after_the_other() {
    let set = set(3);
    let at_new = |ordinal| good(&set, ordinal, "new");
    check("first", &set, vec![], &["+web-0@new"]);
    check("waits for the first", &set, vec![pod(&set, 0, "new")], &[]);
    check("second", &set, vec![at_new(0)], &["+web-1@new"]);
    check(
        "fills a gap",
        &set,
        vec![at_new(0), at_new(2)],
        &["+web-1@new"],
    );
    check(
        "waits for one that goes",
        &set,
        vec![terminating(at_new(0)), at_new(1)],
        &[],
    );
    check(
        "replaces one that failed",
        &set,
        vec![in_phase(at_new(0), "Failed"), at_new(1)],
        &["-web-0"],
    );
    check(
        "replaces one that succeeded",
        &set,
        vec![in_phase(at_new(0), "Succeeded")],
        &["-web-0"],
    );
    check(
        "is complete",
        &set,
        vec![at_new(0), at_new(1), at_new(2)],
        &[],
    );
}

#[test]
fn in_parallel_all_start_at_once() {
    let set = parallel(set(3));
    check(
        "all",
        &set,
        vec![],
        &["+web-0@new", "+web-1@new", "+web-2@new"],
    );
    check(
        "the rest",
        &set,
        vec![pod(&set, 1, "new")],
        &["+web-0@new", "+web-2@new"],
    );
    let many = parallel(super::samples::set(10_000));
    assert_eq!(plan_of(&many, vec![], &Claims::new()).changes.len(), 500);
    let huge = parallel(super::samples::set(i32::MAX));
    assert_eq!(plan_of(&huge, vec![], &Claims::new()).changes.len(), 500);
}

#[test]
fn pods_start_only_when_those_before_are_available() {
    let mut set = set(2);
    set.spec.min_ready_seconds = Some(30);
    let fresh = ready(pod(&set, 0, "new"), at(90));
    let plan = check("too fresh", &set, vec![fresh], &[]);
    assert_eq!(plan.check_after.map(|wait| wait.as_secs()), Some(20));
    check(
        "long enough",
        &set,
        vec![ready(pod(&set, 0, "new"), at(70))],
        &["+web-1@new"],
    );
}

#[test]
fn pods_stop_from_the_highest_down() {
    let set = set(1);
    let at_new = |ordinal| good(&set, ordinal, "new");
    check(
        "highest",
        &set,
        vec![at_new(0), at_new(1), at_new(2)],
        &["-web-2"],
    );
    check(
        "waits",
        &set,
        vec![at_new(0), at_new(1), terminating(at_new(2))],
        &[],
    );
    check(
        "waits for a replica",
        &set,
        vec![pod(&set, 0, "new"), at_new(1)],
        &[],
    );
    // The lowest that does not serve may go; another one holds up the rest.
    check(
        "idle",
        &set,
        vec![at_new(0), at_new(1), pod(&set, 2, "new")],
        &["-web-2"],
    );
    check(
        "held up",
        &set,
        vec![at_new(0), pod(&set, 1, "new"), pod(&set, 2, "new")],
        &[],
    );
    let failed = |ordinal| in_phase(pod(&set, ordinal, "new"), "Failed");
    check(
        "finished",
        &set,
        vec![at_new(0), failed(1), failed(2)],
        &["-web-2"],
    );
    let all = parallel(set.clone());
    check(
        "all at once",
        &all,
        vec![at_new(0), at_new(1), at_new(2)],
        &["-web-2", "-web-1"],
    );
}

#[test]
fn ordinals_start_where_the_user_wants() {
    let mut set = set(2);
    set.spec.ordinals = Some(StatefulSetOrdinals { start: Some(5) });
    check("first", &set, vec![], &["+web-5@new"]);
    check(
        "moved",
        &set,
        vec![
            good(&set, 5, "new"),
            good(&set, 6, "new"),
            good(&set, 0, "new"),
        ],
        &["-web-0"],
    );
}

#[test]
fn an_update_replaces_pods_from_the_highest_down() {
    let set = set(3);
    let (old, new) = (|at| good(&set, at, "old"), |at| good(&set, at, "new"));
    check("starts", &set, vec![old(0), old(1), old(2)], &["-web-2"]);
    check(
        "waits",
        &set,
        vec![old(0), old(1), terminating(old(2))],
        &[],
    );
    check("makes it new", &set, vec![old(0), old(1)], &["+web-2@new"]);
    check(
        "waits for the new one",
        &set,
        vec![old(0), old(1), pod(&set, 2, "new")],
        &[],
    );
    check("goes on", &set, vec![old(0), old(1), new(2)], &["-web-1"]);
    check("has ended", &set, vec![new(0), new(1), new(2)], &[]);
}

#[test]
fn an_update_stops_at_the_partition() {
    let mut set = set(3);
    set.spec.update_strategy = Some(rolling(2, "1"));
    let (old, new) = (|at| good(&set, at, "old"), |at| good(&set, at, "new"));
    check("above", &set, vec![old(0), old(1), old(2)], &["-web-2"]);
    check("done", &set, vec![old(0), old(1), new(2)], &[]);
    // A pod below the partition comes back as it was.
    check(
        "comes back old",
        &set,
        vec![old(0), new(2)],
        &["+web-1@old"],
    );
    check(
        "comes back new",
        &set,
        vec![old(0), old(1)],
        &["+web-2@new"],
    );
}

#[test]
fn an_update_replaces_as_many_as_may_be_missing() {
    let mut two = set(4);
    two.spec.update_strategy = Some(rolling(0, "2"));
    let old = |at| good(&two, at, "old");
    check(
        "two",
        &two,
        vec![old(0), old(1), old(2), old(3)],
        &["-web-3", "-web-2"],
    );
    let mut few = set(4);
    few.spec.update_strategy = Some(rolling(0, "10%"));
    check(
        "at least one",
        &few,
        vec![old(0), old(1), old(2), old(3)],
        &["-web-3"],
    );
    let all = parallel(two.clone());
    let idle = |at| pod(&all, at, "old");
    check(
        "those that do not serve first",
        &all,
        vec![idle(0), old(1), old(2), old(3)],
        &["-web-0", "-web-3"],
    );
    check(
        "and all of them",
        &all,
        vec![idle(0), idle(1), idle(2), old(3)],
        &["-web-2", "-web-1", "-web-0"],
    );
    check(
        "none beyond",
        &all,
        vec![
            good(&all, 0, "new"),
            old(1),
            pod(&all, 2, "new"),
            pod(&all, 3, "new"),
        ],
        &[],
    );
}

#[test]
fn on_delete_leaves_pods_to_their_users() {
    let mut set = set(2);
    set.spec.update_strategy = Some(StatefulSetUpdateStrategy {
        type_: Some("OnDelete".to_owned()),
        rolling_update: None,
    });
    check(
        "rests",
        &set,
        vec![good(&set, 0, "old"), good(&set, 1, "old")],
        &[],
    );
    check(
        "comes back new",
        &set,
        vec![good(&set, 0, "old")],
        &["+web-1@new"],
    );
}

#[test]
fn a_set_that_goes_away_reports_and_rests() {
    let mut set = set(3);
    set.metadata.deletion_timestamp = Some(Time(at(0)));
    let plan = check(
        "rests",
        &set,
        vec![good(&set, 0, "old"), good(&set, 7, "old")],
        &[],
    );
    assert_eq!(plan.status.replicas, 2);
}

#[test]
fn a_pod_without_its_name_is_labelled() {
    let set = set(1);
    let mut adopted = good(&set, 0, "new");
    adopted.metadata.labels =
        Some([("controller-revision-hash".to_owned(), "new".to_owned())].into());
    let plan = check("labels", &set, vec![adopted], &["~web-0"]);
    let [Change::UpdatePod(_, after)] = plan.changes.as_slice() else {
        panic!("one pod is updated: {plan:?}");
    };
    assert_eq!(
        label_of(after, "statefulset.kubernetes.io/pod-name"),
        "web-0"
    );
}

#[test]
fn the_status_counts_pods_by_revision() {
    let set = set(3);
    let pods = vec![
        good(&set, 0, "old"),
        good(&set, 1, "old"),
        pod(&set, 2, "new"),
    ];
    let status = plan_of(&set, pods, &Claims::new()).status;
    assert_eq!((status.replicas, status.ready_replicas), (3, Some(2)));
    assert_eq!(status.available_replicas, Some(2));
    assert_eq!(
        (status.current_replicas, status.updated_replicas),
        (Some(2), Some(1))
    );
    assert_eq!(status.current_revision.as_deref(), Some("old"));
    assert_eq!(status.update_revision.as_deref(), Some("new"));
    assert_eq!(status.collision_count, Some(0));
}

#[test]
fn a_complete_update_makes_its_revision_the_current_one() {
    let set = set(2);
    let status = plan_of(
        &set,
        vec![good(&set, 0, "new"), good(&set, 1, "new")],
        &Claims::new(),
    )
    .status;
    assert_eq!(status.current_revision.as_deref(), Some("new"));
    assert_eq!(status.current_replicas, Some(2));
}

#[test]
fn a_replaced_pod_is_no_longer_current() {
    let set = set(2);
    let status = plan_of(
        &set,
        vec![good(&set, 0, "old"), good(&set, 1, "old")],
        &Claims::new(),
    )
    .status;
    assert_eq!(status.current_replicas, Some(1));
}

fn retaining(when_scaled: &str, when_deleted: &str) -> StatefulSet {
    let mut set = with_claims(set(1));
    let policy = StatefulSetPersistentVolumeClaimRetentionPolicy {
        when_scaled: Some(when_scaled.to_owned()),
        when_deleted: Some(when_deleted.to_owned()),
    };
    set.spec.persistent_volume_claim_retention_policy = Some(policy);
    set
}

/// The claim of the pod with an ordinal, owned by an object of some kind.
fn claim(set: &StatefulSet, ordinal: i32, owner: Owner<'_>) -> Claims {
    let mut claim = identity::claims(set, ordinal).remove(0);
    claim.metadata.owner_references = match owner {
        Owner::Nobody => None,
        Owner::Set => Some(vec![controller_reference(set)]),
        Owner::Pod(pod) => Some(vec![controller_reference(pod)]),
        Owner::Another => {
            let mut another = controller_reference(set);
            another.name = "another".to_owned();
            another.uid = "uid-another".to_owned();
            Some(vec![another])
        }
    };
    let name = claim.metadata.name.clone().expect("claims have names");
    [(name, Arc::new(claim))].into()
}

#[derive(Clone, Copy)]
enum Owner<'a> {
    Nobody,
    Set,
    Pod(&'a Pod),
    Another,
}

#[test]
fn claims_are_made_before_their_pods_and_once() {
    let set = with_claims(set(2));
    check("both", &set, vec![], &["+data-web-0", "+web-0@new"]);
    let known = claim(&set, 0, Owner::Nobody);
    assert_eq!(words(&plan_of(&set, vec![], &known)), ["+web-0@new"]);
    let waiting = in_phase(pod(&set, 0, "new"), "Pending");
    check(
        "a pending pod gets its claim back",
        &set,
        vec![waiting],
        &["+data-web-0"],
    );
    let plan = plan_of(&set, vec![], &Claims::new());
    let Change::CreateClaim(_, claim) = &plan.changes[0] else {
        panic!("the claim stands first: {plan:?}");
    };
    let labels = claim.metadata.labels.clone().unwrap_or_default();
    assert_eq!(labels.get("app").map(String::as_str), Some("web"));
}

#[test]
fn a_pod_waits_for_a_claim_that_goes_away() {
    let set = with_claims(set(1));
    let mut claims = claim(&set, 0, Owner::Nobody);
    for claim in claims.values_mut() {
        Arc::<PersistentVolumeClaim>::make_mut(claim)
            .metadata
            .deletion_timestamp = Some(Time(at(0)));
    }
    assert_eq!(
        words(&plan_of(&set, vec![], &claims)),
        ["web-0 awaits data-web-0"]
    );
}

#[test]
fn a_pod_waits_for_the_claim_of_its_condemned_namesake() {
    let set = retaining("Delete", "Retain");
    let gone = good(&set, 0, "new");
    let claims = claim(&set, 0, Owner::Pod(&gone));
    assert_eq!(
        words(&plan_of(&set, vec![], &claims)),
        ["web-0 awaits data-web-0"]
    );
    let kept = retaining("Retain", "Retain");
    assert_eq!(words(&plan_of(&kept, vec![], &claims)), ["+web-0@new"]);
}

#[test]
fn claims_belong_to_whom_they_go_away_with() {
    let check = |scaled: &str, deleted: &str, ordinal, owner: Owner<'_>, expect: Option<&str>| {
        let set = retaining(scaled, deleted);
        let mut pods = vec![good(&set, 0, "new")];
        if ordinal > 0 {
            pods.push(good(&set, ordinal, "new"));
        }
        let plan = plan_of(&set, pods, &claim(&set, ordinal, owner));
        let changed = plan.changes.iter().find_map(|change| match change {
            Change::UpdateClaim(_, after) => {
                Some(after.metadata.owner_references.clone().unwrap_or_default())
            }
            _ => None,
        });
        let owners = changed.map(|owners| {
            owners
                .iter()
                .map(|owner| owner.name.clone())
                .collect::<Vec<_>>()
                .join(",")
        });
        assert_eq!(owners.as_deref(), expect, "{scaled} {deleted} {ordinal}");
    };
    let sample = retaining("Delete", "Delete");
    let (zero, nine) = (good(&sample, 0, "new"), good(&sample, 9, "new"));
    check("Retain", "Retain", 0, Owner::Nobody, None);
    check("Retain", "Retain", 0, Owner::Set, Some(""));
    check("Retain", "Delete", 0, Owner::Nobody, Some("web"));
    check("Retain", "Delete", 0, Owner::Set, None);
    check("Retain", "Delete", 9, Owner::Set, None);
    check("Delete", "Retain", 0, Owner::Nobody, None);
    check("Delete", "Retain", 0, Owner::Pod(&zero), Some(""));
    check("Delete", "Retain", 9, Owner::Nobody, Some("web-9"));
    check("Delete", "Delete", 0, Owner::Nobody, Some("web"));
    check("Delete", "Delete", 9, Owner::Set, Some("web-9"));
    check("Delete", "Delete", 9, Owner::Pod(&nine), None);
    // A claim with a controller of its own is left to it.
    check("Delete", "Delete", 0, Owner::Another, None);
}

#[test]
fn claims_of_an_earlier_set_of_the_same_name_are_left_alone() {
    let mut earlier = retaining("Retain", "Delete");
    earlier.metadata.uid = Some("uid-of-before".to_owned());
    let claims = claim(&earlier, 0, Owner::Set);
    let set = retaining("Retain", "Delete");
    assert!(
        plan_of(&set, vec![good(&set, 0, "new")], &claims)
            .changes
            .is_empty()
    );
}
