//! What a ReplicaSet does about the pods it sees.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetSpec};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use proptest::prelude::*;

use super::plan::{Failure, Step, desired, status, step};
use crate::pods::samples::*;
use crate::pods::{is_available, is_ready};

fn set(replicas: i32) -> ReplicaSet {
    ReplicaSet {
        metadata: metadata("web"),
        spec: ReplicaSetSpec {
            replicas: Some(replicas),
            selector: selector(&[("app", "web")]),
            template: Some(template("nginx")),
            min_ready_seconds: None,
        },
        status: None,
    }
}

fn pods(count: usize) -> Vec<Arc<Pod>> {
    let pod = |at| Arc::new(ready(running(&format!("web-{at}"), "n"), at_second(at)));
    (0..count).map(pod).collect()
}

fn at_second(index: usize) -> jiff::Timestamp {
    at(i64::try_from(index).expect("tests are small"))
}

#[test]
fn the_number_of_pods_follows_the_wish() {
    let check = |wanted, there, expect: (usize, usize)| {
        let found = match step(&set(wanted), &pods(there), &[], at(10)) {
            Step::Keep => (0, 0),
            Step::Create(count) => (count, 0),
            Step::Delete(gone) => (0, gone.len()),
        };
        assert_eq!(found, expect, "{there} of {wanted}");
    };
    check(3, 2, (1, 0));
    check(3, 3, (0, 0));
    check(3, 5, (0, 2));
    check(0, 2, (0, 2));
    check(0, 0, (0, 0));
    // One pass does not flood the server.
    check(10_000, 1, (500, 0));
    check(0, 600, (0, 500));
}

#[test]
fn a_set_that_goes_away_keeps_its_pods_for_the_collector() {
    let mut set = set(3);
    set.metadata.deletion_timestamp = Some(Time(at(0)));
    assert_eq!(step(&set, &pods(1), &[], at(10)), Step::Keep);
    assert_eq!(step(&set, &pods(9), &[], at(10)), Step::Keep);
}

#[test]
fn a_set_without_a_number_wants_one_pod() {
    let mut set = set(3);
    set.spec.replicas = None;
    assert_eq!(desired(&set), 1);
}

#[test]
fn the_status_counts_what_is_there() {
    let mut set = set(4);
    set.spec.min_ready_seconds = Some(10);
    set.metadata.generation = Some(7);
    let mut plain = running("d", "n");
    plain.metadata.labels = None;
    let pods: Vec<Arc<Pod>> = [
        ready(running("a", "n"), at(0)),
        ready(running("b", "n"), at(15)),
        running("c", "n"),
        plain,
    ]
    .map(Arc::new)
    .into();
    let status = status(&set, &pods, 2, None, at(20));
    assert_eq!(status.replicas, 4);
    assert_eq!(status.fully_labeled_replicas, Some(3));
    assert_eq!(status.ready_replicas, Some(2));
    assert_eq!(status.available_replicas, Some(1));
    assert_eq!(status.terminating_replicas, Some(2));
    assert_eq!(status.observed_generation, Some(7));
    assert_eq!(status.conditions, None);
}

#[test]
fn counts_of_nothing_are_left_out() {
    let status = status(&set(0), &[], 0, None, at(0));
    assert_eq!(status.replicas, 0);
    assert_eq!(status.ready_replicas, None);
    assert_eq!(status.available_replicas, None);
    assert_eq!(status.terminating_replicas, Some(0));
}

#[test]
fn a_failure_is_shown_until_it_is_over() {
    let failure = |message: &str| Failure {
        reason: "FailedCreate",
        message: message.to_owned(),
    };
    let mut set = set(3);
    let first = status(&set, &[], 0, Some(&failure("exceeded quota")), at(5));
    let shown = first
        .conditions
        .clone()
        .expect("the failure is a condition");
    assert_eq!(shown[0].type_.as_deref(), Some("ReplicaFailure"));
    assert_eq!(shown[0].status.as_deref(), Some("True"));
    assert_eq!(shown[0].reason.as_deref(), Some("FailedCreate"));
    assert_eq!(shown[0].message.as_deref(), Some("exceeded quota"));
    set.status = Some(first);
    // A failure that lasts does not rewrite the status with every attempt.
    let second = status(&set, &[], 0, Some(&failure("another text")), at(9));
    assert_eq!(second.conditions, Some(shown));
    set.status = Some(second);
    assert_eq!(status(&set, &[], 0, None, at(10)).conditions, None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Pods come, become ready and die at random; in the end there are as many as wanted, and what was deleted on the
    /// way down was never a serving pod while an idle one was left.
    #[test]
    fn a_set_reaches_its_size_whatever_happens(
        wanted in 0..12i32,
        start in 0..12usize,
        events in prop::collection::vec((0..3u8, 0..12usize), 0..40),
    ) {
        let set = set(wanted);
        let mut there = pods(start);
        let mut next = start;
        for (kind, at_index) in events {
            let at_index = at_index.min(there.len().saturating_sub(1));
            match (kind, there.get(at_index)) {
                (0, Some(pod)) => there[at_index] = Arc::new(ready(Pod::clone(pod), at(0))),
                (1, Some(pod)) => there[at_index] = Arc::new(unready(Pod::clone(pod))),
                (2, Some(_)) => drop(there.remove(at_index)),
                _ => {}
            }
            let before = there.clone();
            match step(&set, &there, &there, at(100)) {
                Step::Keep => prop_assert_eq!(there.len(), usize::try_from(wanted).unwrap_or(0)),
                Step::Create(count) => {
                    for _ in 0..count {
                        there.push(Arc::new(running(&format!("web-{next}"), "n")));
                        next += 1;
                    }
                }
                Step::Delete(gone) => {
                    there.retain(|pod| !gone.contains(pod));
                    let idle_left = there.iter().any(|pod| !is_ready(pod));
                    let served = gone.iter().any(|pod| is_ready(pod));
                    prop_assert!(!(idle_left && served), "{} of {}", gone.len(), before.len());
                }
            }
            prop_assert_eq!(there.len(), usize::try_from(wanted).unwrap_or(0));
            let seen = status(&set, &there, 0, None, at(100));
            let available = there.iter().filter(|pod| is_available(pod, 0, at(100))).count();
            prop_assert_eq!(usize::try_from(seen.available_replicas.unwrap_or(0)).unwrap_or(0), available);
        }
    }
}
