//! What a DaemonSet does about the nodes and pods it sees.

use std::slice::from_ref;

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{
    Affinity, Node, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod,
    PodSpec, Toleration,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::backoff::{Attempt, Backoff};
use super::eligibility::{Fit, fit, tolerate};
use super::plan::{Plan, Why};
use super::samples::*;
use super::template::{make, target};
use crate::pods::samples::{at, in_phase, label_of, labels, ready, terminating};

/// The moves in words: `+a` starts a pod on node a, `-name` deletes one.
fn words(plan: &Plan) -> Vec<String> {
    let start = plan
        .create
        .iter()
        .map(|pod| format!("+{}", target(pod).unwrap_or_default()));
    let stop = plan.delete.iter();
    let stop = stop.map(|gone| format!("-{}", gone.pod.metadata.name.clone().unwrap_or_default()));
    start.chain(stop).collect()
}

fn check(what: &str, set: &DaemonSet, nodes: &[Node], pods: &[Pod], expect: &[&str]) -> Plan {
    let plan = plan_of(set, nodes, pods, &[]);
    assert_eq!(words(&plan), expect, "{what}");
    plan
}

#[test]
fn each_node_gets_one_pod() {
    let set = set("0", "1");
    let nodes = [node("a"), node("b")];
    let at_new = |name| good(&set, name, "new");
    check("both", &set, &nodes, &[], &["+a", "+b"]);
    check("the other", &set, &nodes, &[at_new("a")], &["+b"]);
    check("complete", &set, &nodes, &[at_new("a"), at_new("b")], &[]);
    check(
        "waits for one that goes",
        &set,
        &nodes[..1],
        &[terminating(at_new("a"))],
        &[],
    );
    check(
        "not for one that is done",
        &set,
        &nodes[..1],
        &[terminating(in_phase(at_new("a"), "Failed"))],
        &["+a"],
    );
    let mut twin = at_new("a");
    twin.metadata.name = Some("twin".to_owned());
    twin.metadata.creation_timestamp = Some(Time(at(50)));
    let mut first = at_new("a");
    first.metadata.creation_timestamp = Some(Time(at(5)));
    check(
        "the younger of two goes",
        &set,
        &nodes[..1],
        &[twin, first],
        &["-twin"],
    );
}

#[test]
fn a_pod_is_tied_to_its_node_and_tolerates_its_troubles() {
    let pod = make(&set("0", "1"), "a", "new");
    assert_eq!(target(&pod), Some("a"));
    assert_eq!(label_of(&pod, "controller-revision-hash"), "new");
    let spec = pod.spec.expect("pods have specs");
    assert_eq!(spec.node_name, None, "the scheduler binds it");
    let keys: Vec<String> = spec
        .tolerations
        .iter()
        .flatten()
        .filter_map(|toleration| toleration.key.clone())
        .collect();
    assert_eq!(keys.len(), 6);
    assert!(keys.contains(&"node.kubernetes.io/unschedulable".to_owned()));
    let mut host = PodSpec {
        host_network: Some(true),
        ..PodSpec::default()
    };
    tolerate(&mut host);
    assert_eq!(host.tolerations.as_ref().map(Vec::len), Some(7));
    tolerate(&mut host);
    assert_eq!(
        host.tolerations.map(|all| all.len()),
        Some(7),
        "twice is as good as once"
    );
}

#[test]
fn nodes_that_do_not_fit_get_no_pod() {
    let set = set("0", "1");
    let there = good(&set, "a", "new");
    let no_start = tainted(node("a"), "dedicated", "NoSchedule");
    let no_stay = tainted(node("a"), "dedicated", "NoExecute");
    let soft = tainted(node("a"), "dedicated", "PreferNoSchedule");
    let sick = tainted(node("a"), "node.kubernetes.io/unreachable", "NoExecute");
    check("does not start", &set, from_ref(&no_start), &[], &[]);
    let plan = check("but stays", &set, &[no_start], from_ref(&there), &[]);
    assert_eq!(plan.status.number_misscheduled, 1);
    assert_eq!(plan.status.desired_number_scheduled, 0);
    check(
        "does not stay",
        &set,
        &[no_stay],
        from_ref(&there),
        &["-web-a-new"],
    );
    check(
        "a preference is not a requirement",
        &set,
        &[soft],
        &[],
        &["+a"],
    );
    check(
        "stays through trouble",
        &set,
        &[sick],
        from_ref(&there),
        &[],
    );
    check(
        "bound pods of a node that is gone are not ours to delete",
        &set,
        &[],
        from_ref(&there),
        &[],
    );
    let mut unbound = there;
    unbound.spec.get_or_insert_default().node_name = None;
    check("unbound ones are", &set, &[], &[unbound], &["-web-a-new"]);
}

fn requirement(key: &str, operator: &str, values: &[&str]) -> NodeSelectorRequirement {
    NodeSelectorRequirement {
        key: key.to_owned(),
        operator: operator.to_owned(),
        values: Some(values.iter().map(|value| (*value).to_owned()).collect()),
    }
}

fn requiring(terms: Vec<NodeSelectorTerm>) -> PodSpec {
    let required = NodeSelector {
        node_selector_terms: terms,
    };
    let node_affinity = NodeAffinity {
        required_during_scheduling_ignored_during_execution: Some(required),
        ..NodeAffinity::default()
    };
    PodSpec {
        affinity: Some(Affinity {
            node_affinity: Some(node_affinity),
            ..Affinity::default()
        }),
        ..PodSpec::default()
    }
}

fn expression(key: &str, operator: &str, values: &[&str]) -> NodeSelectorTerm {
    NodeSelectorTerm {
        match_expressions: Some(vec![requirement(key, operator, values)]),
        match_fields: None,
    }
}

#[test]
fn nodes_are_selected_by_name_labels_and_affinity() {
    let check = |what: &str, spec: PodSpec, expect: bool| {
        let found = fit(&node("a"), &spec) == Fit::Run;
        assert_eq!(found, expect, "{what}");
    };
    let labelled = |pairs| PodSpec {
        node_selector: Some(labels(pairs)),
        ..PodSpec::default()
    };
    check("anything", PodSpec::default(), true);
    check(
        "named",
        PodSpec {
            node_name: Some("a".to_owned()),
            ..PodSpec::default()
        },
        true,
    );
    check(
        "another",
        PodSpec {
            node_name: Some("b".to_owned()),
            ..PodSpec::default()
        },
        false,
    );
    check("labelled", labelled(&[("disk", "fast")]), true);
    check("other value", labelled(&[("disk", "slow")]), false);
    check(
        "one missing",
        labelled(&[("disk", "fast"), ("gpu", "yes")]),
        false,
    );
    let one = |key, operator, values: &[&str]| requiring(vec![expression(key, operator, values)]);
    check("in", one("disk", "In", &["slow", "fast"]), true);
    check("not in", one("disk", "NotIn", &["slow"]), true);
    check("not in, absent", one("gpu", "NotIn", &["slow"]), true);
    check("exists", one("disk", "Exists", &[]), true);
    check("does not exist", one("disk", "DoesNotExist", &[]), false);
    check("greater", one("size", "Gt", &["9"]), true);
    check("not greater", one("size", "Gt", &["10"]), false);
    check("less", one("size", "Lt", &["11"]), true);
    check("no number", one("disk", "Lt", &["11"]), false);
    check("unknown operator", one("disk", "Like", &["fast"]), false);
    check(
        "any of two",
        requiring(vec![
            expression("gpu", "Exists", &[]),
            expression("disk", "Exists", &[]),
        ]),
        true,
    );
    check("no terms", requiring(vec![]), false);
    check(
        "an empty term",
        requiring(vec![NodeSelectorTerm::default()]),
        false,
    );
    let field = NodeSelectorTerm {
        match_fields: Some(vec![requirement("metadata.name", "In", &["a"])]),
        match_expressions: None,
    };
    check("by field", requiring(vec![field]), true);
}

#[test]
fn taints_are_tolerated_by_key_value_and_effect() {
    let tainted = tainted(node("a"), "dedicated", "NoSchedule");
    let check = |key: &str, operator: &str, effect: &str, value: &str, expect| {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let toleration = Toleration {
            key: some(key),
            operator: some(operator),
            effect: some(effect),
            value: some(value),
            toleration_seconds: None,
        };
        let spec = PodSpec {
            tolerations: Some(vec![toleration]),
            ..PodSpec::default()
        };
        assert_eq!(
            fit(&tainted, &spec),
            expect,
            "{key} {operator} {effect} {value}"
        );
    };
    check("dedicated", "Exists", "NoSchedule", "", Fit::Run);
    check("dedicated", "Exists", "", "", Fit::Run);
    check("", "Exists", "", "", Fit::Run);
    check("dedicated", "Equal", "NoSchedule", "", Fit::Run);
    check("dedicated", "", "NoSchedule", "", Fit::Run);
    check("dedicated", "Equal", "NoSchedule", "x", Fit::Stay);
    check("dedicated", "Exists", "NoExecute", "", Fit::Stay);
    check("other", "Exists", "", "", Fit::Stay);
    check("", "Equal", "", "", Fit::Stay);
}

/// `v1helper.TolerationsTolerateTaint`: the scheduler and the DaemonSet controller ask the same function.
#[test]
fn taints_are_tolerated_by_comparison_as_the_scheduler_does() {
    let mut node = tainted(node("a"), "level", "NoSchedule");
    let taints = node.spec.get_or_insert_default().taints.as_mut();
    taints.expect("it has one")[0].value = Some("5".to_owned());
    for (operator, value, expected) in [
        ("Gt", "4", Fit::Run),
        ("Gt", "5", Fit::Stay),
        ("Lt", "6", Fit::Run),
        ("Lt", "many", Fit::Stay),
    ] {
        let toleration = Toleration {
            key: Some("level".to_owned()),
            operator: Some(operator.to_owned()),
            value: Some(value.to_owned()),
            ..Toleration::default()
        };
        let spec = PodSpec {
            tolerations: Some(vec![toleration]),
            ..PodSpec::default()
        };
        assert_eq!(fit(&node, &spec), expected, "{operator} {value}");
    }
}

#[test]
fn finished_pods_are_replaced_with_a_word_about_it() {
    let set = set("0", "1");
    let failed = in_phase(pod(&set, "a", "new"), "Failed");
    let plan = check(
        "failed",
        &set,
        &[node("a")],
        from_ref(&failed),
        &["-web-a-new"],
    );
    assert_eq!(plan.delete[0].why, Why::Failed("a".to_owned()));
    let done = in_phase(pod(&set, "a", "new"), "Succeeded");
    let plan = check("succeeded", &set, &[node("a")], &[done], &["-web-a-new"]);
    assert_eq!(plan.delete[0].why, Why::Succeeded("a".to_owned()));
    let plan = plan_of(&set, &[node("a")], &[failed], &["a"]);
    assert!(plan.delete.is_empty(), "not while the node rests");
}

#[test]
fn an_update_takes_as_many_nodes_as_may_be_missing() {
    let set = set("0", "1");
    let nodes = [node("a"), node("b"), node("c")];
    let (old, new) = (
        |name| good(&set, name, "old"),
        |name| good(&set, name, "new"),
    );
    check(
        "starts",
        &set,
        &nodes,
        &[old("a"), old("b"), old("c")],
        &["-web-a-old"],
    );
    check(
        "waits",
        &set,
        &nodes,
        &[terminating(old("a")), old("b"), old("c")],
        &[],
    );
    check("makes it new", &set, &nodes, &[old("b"), old("c")], &["+a"]);
    check(
        "waits for it",
        &set,
        &nodes,
        &[pod(&set, "a", "new"), old("b"), old("c")],
        &[],
    );
    check(
        "goes on",
        &set,
        &nodes,
        &[new("a"), old("b"), old("c")],
        &["-web-b-old"],
    );
    check(
        "has ended",
        &set,
        &nodes,
        &[new("a"), new("b"), new("c")],
        &[],
    );
    // Old pods that do not serve go at once, and count against those that do.
    check(
        "idle ones",
        &set,
        &nodes,
        &[old("a"), pod(&set, "b", "old"), pod(&set, "c", "old")],
        &["-web-b-old", "-web-c-old"],
    );
    let half = super::samples::set("0", "50%");
    check(
        "rounds up",
        &half,
        &nodes,
        &[old("a"), old("b"), old("c")],
        &["-web-a-old", "-web-b-old"],
    );
    let none = super::samples::set("0", "0");
    check(
        "at least one",
        &none,
        &nodes,
        &[old("a"), old("b"), old("c")],
        &["-web-a-old"],
    );
}

#[test]
fn on_delete_leaves_pods_to_their_users() {
    let mut set = set("0", "1");
    set.spec.update_strategy.get_or_insert_default().type_ = Some("OnDelete".to_owned());
    check("rests", &set, &[node("a")], &[good(&set, "a", "old")], &[]);
    check("comes back new", &set, &[node("a")], &[], &["+a"]);
}

#[test]
fn a_surge_starts_new_pods_beside_old_ones() {
    let set = set("1", "0");
    let nodes = [node("a"), node("b")];
    let (old, new) = (
        |name| good(&set, name, "old"),
        |name| good(&set, name, "new"),
    );
    let idle = |name, hash| pod(&set, name, hash);
    check("starts", &set, &nodes, &[old("a"), old("b")], &["+a"]);
    check(
        "waits",
        &set,
        &nodes,
        &[old("a"), idle("a", "new"), old("b")],
        &[],
    );
    check(
        "the old one goes",
        &set,
        &nodes,
        &[old("a"), new("a"), old("b")],
        &["-web-a-old"],
    );
    check("goes on", &set, &nodes, &[new("a"), old("b")], &["+b"]);
    check(
        "an old one that does not serve goes first",
        &set,
        &nodes,
        &[idle("a", "old"), idle("a", "new"), old("b")],
        &["-web-a-old"],
    );
    check(
        "and is replaced beyond the surge",
        &set,
        &nodes,
        &[idle("a", "old"), old("b")],
        &["+a", "+b"],
    );
    check(
        "one that goes does not hold up",
        &set,
        &nodes[..1],
        &[terminating(old("a"))],
        &["+a"],
    );
}

#[test]
fn a_surge_keeps_old_pods_on_unwanted_nodes_until_others_serve() {
    let mut set = set("1", "0");
    let spec = set.spec.template.spec.get_or_insert_default();
    spec.tolerations = None;
    let nodes = [tainted(node("a"), "dedicated", "NoSchedule"), node("b")];
    let old = good(&set, "a", "old");
    check(
        "none serves elsewhere",
        &set,
        &nodes,
        &[old.clone(), pod(&set, "b", "new")],
        &[],
    );
    check(
        "one does",
        &set,
        &nodes,
        &[old, good(&set, "b", "new")],
        &["-web-a-old"],
    );
}

#[test]
fn the_status_counts_nodes() {
    let mut set = set("0", "1");
    set.metadata.generation = Some(4);
    set.spec.min_ready_seconds = Some(30);
    let nodes = [
        node("a"),
        node("b"),
        node("c"),
        node("d"),
        tainted(node("x"), "dedicated", "NoSchedule"),
    ];
    let fresh = ready(pod(&set, "b", "old"), at(90));
    let pods = [
        good(&set, "a", "new"),
        fresh,
        pod(&set, "c", "new"),
        good(&set, "x", "new"),
    ];
    let plan = plan_of(&set, &nodes, &pods, &[]);
    let status = plan.status;
    assert_eq!(status.desired_number_scheduled, 4);
    assert_eq!(status.current_number_scheduled, 3);
    assert_eq!(status.number_misscheduled, 1);
    assert_eq!(status.number_ready, 2);
    assert_eq!(status.number_available, Some(1));
    assert_eq!(status.number_unavailable, Some(3));
    assert_eq!(status.updated_number_scheduled, Some(2));
    assert_eq!(status.observed_generation, Some(4));
    assert_eq!(plan.check_after.map(|wait| wait.as_secs()), Some(20));
}

#[test]
fn a_node_that_fails_again_rests_longer() {
    let attempt = |generation| Attempt {
        set: "s".to_owned(),
        generation,
        node: "a".to_owned(),
    };
    let left = |backoff: &Backoff, when| {
        backoff
            .left(&attempt(1), at(when))
            .map(|wait| wait.as_secs())
    };
    let mut backoff = Backoff::default();
    assert_eq!(left(&backoff, 0), None);
    backoff.note(attempt(1), at(0));
    assert_eq!(left(&backoff, 0), Some(1));
    assert_eq!(left(&backoff, 1), None);
    backoff.note(attempt(1), at(1));
    assert_eq!(left(&backoff, 1), Some(2));
    for round in 0..20 {
        backoff.note(attempt(1), at(2 + round));
    }
    assert_eq!(left(&backoff, 21), Some(900));
    // A new generation is a new attempt, and what is long ago is forgotten.
    assert_eq!(backoff.left(&attempt(2), at(21)), None);
    backoff.note(attempt(1), at(10_000));
    assert_eq!(left(&backoff, 10_000), Some(1));
    backoff.forget("s");
    assert_eq!(left(&backoff, 10_000), None);
}
