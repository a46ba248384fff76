//! Facts about pods: availability, claims, ranking, batches.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubewright_runtime::owners::{controller_of, is_controlled_by};
use proptest::prelude::*;

use super::batch::{Batch, slow_start};
use super::claim::{self, Claim, Match};
use super::samples::*;
use super::*;

#[test]
fn a_pod_is_available_once_it_was_ready_long_enough() {
    let check = |pod: &Pod, seconds, now, expect| {
        assert_eq!(
            availability(pod, seconds, at(now)),
            expect,
            "{seconds} at {now}"
        );
    };
    let waiting = running("a", "n");
    let good = ready(running("a", "n"), at(10));
    check(&waiting, 0, 10, Availability::NotReady);
    check(&good, 0, 10, Availability::Now);
    check(&good, 5, 10, Availability::In(Duration::from_secs(5)));
    check(&good, 5, 14, Availability::In(Duration::from_secs(1)));
    check(&good, 5, 15, Availability::Now);
    // A clock that went back makes a pod wait, not fail.
    check(&good, 5, 0, Availability::In(Duration::from_secs(15)));
}

#[test]
fn a_ready_pod_without_a_time_never_becomes_available_by_waiting() {
    let mut pod = ready(running("a", "n"), at(0));
    let conditions = pod
        .status
        .as_mut()
        .and_then(|status| status.conditions.as_mut());
    conditions.expect("the sample has conditions")[0].last_transition_time = None;
    assert_eq!(availability(&pod, 1, at(100)), Availability::NotReady);
    assert_eq!(availability(&pod, 0, at(100)), Availability::Now);
}

#[test]
fn the_next_availability_is_that_of_the_pod_that_waits_least() {
    let pods = [
        ready(running("a", "n"), at(0)),
        ready(running("b", "n"), at(7)),
        ready(running("c", "n"), at(4)),
        running("d", "n"),
    ];
    assert_eq!(
        next_availability(&pods, 10, at(10)),
        Some(Duration::from_secs(4))
    );
    assert_eq!(next_availability(&pods, 0, at(10)), None);
    assert_eq!(next_availability(&pods, 10, at(100)), None);
}

#[test]
fn finished_and_terminating_pods_are_not_active() {
    assert!(is_active(&pending("a")));
    assert!(is_active(&running("a", "n")));
    assert!(!is_active(&in_phase(running("a", "n"), "Failed")));
    assert!(!is_active(&in_phase(running("a", "n"), "Succeeded")));
    assert!(!is_active(&terminating(running("a", "n"))));
}

#[test]
fn a_new_pod_carries_its_template_and_its_owner() {
    let owner = ReplicaSet {
        metadata: metadata("web"),
        ..ReplicaSet::default()
    };
    let template = template("nginx");
    let pod = from_template(
        &template,
        Some("default".to_owned()),
        claim::controller_reference(&owner),
    );
    assert_eq!(pod.metadata.generate_name.as_deref(), Some("web-"));
    assert_eq!(pod.metadata.name, None);
    assert_eq!(pod.spec, template.spec);
    let reference = controller_of(&pod).expect("the pod is owned");
    assert_eq!(
        (reference.api_version.as_str(), reference.kind.as_str()),
        ("apps/v1", "ReplicaSet")
    );
    assert_eq!(reference.block_owner_deletion, Some(true));
    assert!(is_controlled_by(&owner, &pod));
}

#[test]
fn claims_follow_the_controller_and_the_selector() {
    let set = ReplicaSet {
        metadata: metadata("web"),
        ..ReplicaSet::default()
    };
    let other = ReplicaSet {
        metadata: metadata("other"),
        ..ReplicaSet::default()
    };
    let orphan = running("a", "n");
    let ours = owned(orphan.clone(), claim::controller_reference(&set));
    let theirs = owned(orphan.clone(), claim::controller_reference(&other));
    let mut leaving = set.clone();
    leaving.metadata.deletion_timestamp = Some(Time(at(0)));
    let mut reborn = set.clone();
    reborn.metadata.uid = Some("another".to_owned());
    let mut elsewhere = orphan.clone();
    elsewhere.metadata.namespace = Some("elsewhere".to_owned());
    let cases = [
        (&set, &ours, Match::Yes, Claim::Ours),
        (&set, &ours, Match::No, Claim::Release),
        (&set, &orphan, Match::Yes, Claim::Adopt),
        (&set, &orphan, Match::No, Claim::NotOurs),
        (&set, &theirs, Match::Yes, Claim::NotOurs),
        (&set, &elsewhere, Match::Yes, Claim::NotOurs),
        (
            &set,
            &terminating(orphan.clone()),
            Match::Yes,
            Claim::NotOurs,
        ),
        // An owner that goes away keeps what it has and touches nothing.
        (&leaving, &ours, Match::Yes, Claim::Ours),
        (&leaving, &ours, Match::No, Claim::NotOurs),
        (&leaving, &orphan, Match::Yes, Claim::NotOurs),
        // The name is the same, the object is not.
        (&reborn, &ours, Match::Yes, Claim::NotOurs),
    ];
    for (case, (owner, pod, found, expect)) in cases.into_iter().enumerate() {
        assert_eq!(claim::claim(owner, pod, found), expect, "case {case}");
    }
}

#[test]
fn adopting_and_releasing_leave_other_owners_alone() {
    let set = ReplicaSet {
        metadata: metadata("web"),
        ..ReplicaSet::default()
    };
    let mut friend = claim::controller_reference(&ReplicaSet {
        metadata: metadata("friend"),
        ..ReplicaSet::default()
    });
    friend.controller = None;
    let mut pod = owned(running("a", "n"), friend.clone());
    let reference = claim::controller_reference(&set);
    let owners = claim::adopted(&pod.metadata, reference.clone());
    assert_eq!(owners, [friend.clone(), reference.clone()]);
    pod.metadata.owner_references = Some(owners);
    assert_eq!(claim::released(&pod.metadata, &reference.uid), [friend]);
}

#[test]
fn an_empty_selector_selects_nothing() {
    assert!(claim::selector(&selector(&[])).is_none());
    let selector = claim::selector(&selector(&[("app", "web")])).expect("it says something");
    assert!(claim::selects(&selector, &metadata("a")));
    assert!(!claim::selects(&selector, &ObjectMeta::default()));
}

/// Checks that the first of two pods goes before the second, whichever way they are listed.
fn check_goes_first(first: Pod, second: Pod, rule: &str) {
    let pods = [Arc::new(first), Arc::new(second)];
    let reversed = [pods[1].clone(), pods[0].clone()];
    for order in [&pods, &reversed] {
        let gone = ranking::first_to_go(order, &pods, 1, at(1000));
        assert_eq!(gone[0].metadata.name, pods[0].metadata.name, "{rule}");
    }
}

fn costing(mut pod: Pod, cost: &str) -> Pod {
    let key = "controller.kubernetes.io/pod-deletion-cost".to_owned();
    pod.metadata.annotations = Some([(key, cost.to_owned())].into());
    pod
}

fn restarted(mut pod: Pod, times: i32) -> Pod {
    pod.status.get_or_insert_default().container_statuses = Some(vec![ContainerStatus {
        restart_count: times,
        ..ContainerStatus::default()
    }]);
    pod
}

fn created(mut pod: Pod, seconds: i64) -> Pod {
    pod.metadata.creation_timestamp = Some(Time(at(seconds)));
    pod
}

#[test]
fn pods_go_in_the_order_of_the_rules() {
    let good = |name| ready(running(name, "n"), at(0));
    check_goes_first(
        ready(running("z", ""), at(0)),
        good("a"),
        "unassigned first",
    );
    check_goes_first(
        in_phase(running("z", "n"), "Pending"),
        in_phase(good("a"), "Unknown"),
        "pending first",
    );
    check_goes_first(
        in_phase(good("z"), "Unknown"),
        running("a", "n"),
        "unknown before running",
    );
    check_goes_first(running("z", "n"), good("a"), "not ready first");
    check_goes_first(costing(good("z"), "-5"), good("a"), "cheaper first");
    check_goes_first(good("z"), costing(good("a"), "5"), "dearer last");
    check_goes_first(
        good("z"),
        ready(running("a", "n"), at(-100_000)),
        "ready for longer last",
    );
    check_goes_first(
        restarted(good("z"), 3),
        restarted(good("a"), 1),
        "restarted more often first",
    );
    check_goes_first(
        created(good("z"), 900),
        created(good("a"), 0),
        "younger first",
    );
    check_goes_first(good("a"), good("z"), "uid decides last");
    check_goes_first(
        running("z", "n"),
        costing(good("a"), "-100"),
        "readiness outweighs cost",
    );
}

#[test]
fn a_cost_that_is_no_whole_number_counts_as_none() {
    for cost in ["", "+5", "05", "1.5", "99999999999", "much"] {
        check_goes_first(
            costing(ready(running("a", "n"), at(0)), cost),
            ready(running("z", "n"), at(0)),
            cost,
        );
    }
}

#[test]
fn crowded_nodes_give_up_pods_first() {
    let good = |name, node| Arc::new(ready(running(name, node), at(0)));
    let pods = [good("a", "quiet"), good("z", "crowded")];
    let related = [pods[0].clone(), pods[1].clone(), good("other", "crowded")];
    let gone = ranking::first_to_go(&pods, &related, 1, at(10));
    assert_eq!(gone[0].metadata.name.as_deref(), Some("z"));
}

/// Runs a slow start of which all calls from `failing` on fail; says how many were made.
async fn slow(count: usize, failing: usize) -> (Batch<usize>, usize) {
    let calls = AtomicUsize::new(0);
    let step = |at: usize| {
        calls.fetch_add(1, Ordering::Relaxed);
        async move { if at >= failing { Err(at) } else { Ok(()) } }
    };
    let batch = slow_start(count, step).await;
    (batch, calls.into_inner())
}

#[tokio::test]
async fn a_failure_ends_the_slow_start_after_its_batch() {
    let done = |done, failure| Batch { done, failure };
    assert_eq!(slow(0, 0).await, (done(0, None), 0));
    assert_eq!(slow(10, 10).await, (done(10, None), 10));
    assert_eq!(slow(500, 0).await, (done(0, Some(0)), 1));
    // Batches are 0, 1-2, 3-6, 7-14: the third fails at 4 and the fourth is not tried.
    assert_eq!(slow(500, 4).await, (done(4, Some(4)), 7));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn no_ready_pod_goes_while_one_that_is_not_stays(
        readiness in prop::collection::vec((any::<bool>(), 0..3u8, 0..2000i64), 0..20),
        share in 0..20usize,
    ) {
        let pods: Vec<Arc<Pod>> = readiness.iter().enumerate().map(|(at_index, (is_ready, node, since))| {
            let pod = running(&format!("pod-{at_index}"), &format!("node-{node}"));
            Arc::new(if *is_ready { ready(pod, at(*since)) } else { pod })
        }).collect();
        let gone = ranking::first_to_go(&pods, &pods, share, at(1000));
        prop_assert_eq!(gone.len(), share.min(pods.len()));
        let unready = pods.iter().filter(|pod| !is_ready(pod)).count();
        let gone_unready = gone.iter().filter(|pod| !is_ready(pod)).count();
        prop_assert_eq!(gone_unready, unready.min(gone.len()));
    }
}
