//! Filters, scores and sums of the scheduler as tables.

use k8s_openapi::api::core::v1::{Node, Pod};
use kubewright_cache::Key;
use serde_json::{Value, json};

use super::board::{Board, Identity};
use super::decide::decide;
use super::demand::Demand;
use super::volumes::Volumes;

/// A node with four cores, 8Gi, and the host name and zone that its name says: `a1` is in zone `a`.
pub(super) fn node(name: &str, more: Value) -> Node {
    let mut node = json!({
        "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name,
            "topology.kubernetes.io/zone": &name[..1],
        }},
        "spec": {},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    });
    merge(&mut node, more);
    serde_json::from_value(node).expect("a node")
}

/// A pod `default/NAME` with this spec beside one container.
pub(super) fn pod(name: &str, labels: Value, spec: Value) -> Pod {
    let mut pod = json!({
        "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}"), "labels": labels},
        "spec": {"containers": [{"name": "app", "image": "app"}]},
    });
    merge(&mut pod["spec"], spec);
    serde_json::from_value(pod).expect("a pod")
}

fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, more) if !more.is_null() => *into = more,
        _ => {}
    }
}

fn put(board: &mut Board, pod: &Pod, node: &str) {
    let name = pod.metadata.name.as_deref().expect("a name");
    let identity = Identity {
        key: Key::new("default", name),
        uid: pod.metadata.uid.clone().unwrap_or_default(),
        generation: 1,
    };
    board.place(identity, node, &Demand::of(pod));
}

fn requests(cpu: &str, memory: &str) -> Value {
    json!({"containers": [{"name": "app", "image": "app", "resources": {"requests": {"cpu": cpu, "memory": memory}}}]})
}

fn apart(labels: Value, key: &str) -> Value {
    json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": labels}, "topologyKey": key}]}}})
}

fn near(labels: Value, key: &str) -> Value {
    json!({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": labels}, "topologyKey": key}]}}})
}

fn spread(key: &str, when: &str) -> Value {
    json!({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": {"app": "web"}}}]})
}

const HOST: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";

/// Three nodes in two zones. `a1` runs a web pod with two cores, `b1` is tainted.
fn cluster() -> Board {
    let mut board = Board::default();
    board.put_node(&node("a1", json!({})));
    board.put_node(&node(
        "a2",
        json!({"metadata": {"labels": {"disk": "ssd", "size": "7"}}}),
    ));
    let taint = json!([{"key": "k", "value": "v", "effect": "NoSchedule"}]);
    board.put_node(&node("b1", json!({"spec": {"taints": taint}})));
    let web = pod("web-0", json!({"app": "web"}), requests("2", "1Gi"));
    put(&mut board, &web, "a1");
    board
}

fn check(board: &mut Board, spec: Value, expect: Result<&str, &str>) {
    let asked = pod("new", json!({"app": "web"}), spec.clone());
    let got = decide(board, &Demand::of(&asked), &Volumes::default());
    let got = got.map_err(|refusals| refusals.to_string());
    let got = got.as_deref().map_err(String::as_str);
    assert_eq!(got, expect, "{spec}");
}

#[test]
fn the_first_rule_that_fails_says_why() {
    let tolerate = json!({"tolerations": [{"key": "k", "operator": "Equal", "value": "v"}]});
    let with = |mut spec: Value, more: &Value| {
        merge(&mut spec, more.clone());
        spec
    };
    let cases = [
        (json!({}), Ok("a2")),
        (tolerate.clone(), Ok("a2")),
        (json!({"nodeSelector": {"disk": "ssd"}}), Ok("a2")),
        (
            requests("9", "1Gi"),
            Err(
                "0/3 nodes are available: 1 node(s) had untolerated taint {k: v}, 2 Insufficient cpu. \
                 preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
            ),
        ),
        (
            with(requests("3", "9Gi"), &tolerate),
            Err(
                "0/3 nodes are available: 1 Insufficient cpu, 3 Insufficient memory. \
                 preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
            ),
        ),
        (
            with(requests("3", "1Gi"), &json!({"nodeSelector": {HOST: "a1"}})),
            Err(
                "0/3 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector, \
                 1 node(s) had untolerated taint {k: v}. preemption: 0/3 nodes are available: \
                 1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling.",
            ),
        ),
        (
            json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "size", "operator": "Gt", "values": ["5"]}]}]}}}}),
            Ok("a2"),
        ),
        (
            json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a1"]}]}]}}}}),
            Ok("a1"),
        ),
        (apart(json!({"app": "web"}), HOST), Ok("a2")),
        (
            apart(json!({"app": "web"}), ZONE),
            Err(
                "0/3 nodes are available: 1 node(s) had untolerated taint {k: v}, \
                 2 node(s) didn't match pod anti-affinity rules. preemption: 0/3 nodes are available: \
                 1 Preemption is not helpful for scheduling, 2 No preemption victims found for incoming pod.",
            ),
        ),
        (
            with(apart(json!({"app": "web"}), ZONE), &tolerate),
            Ok("b1"),
        ),
        (near(json!({"app": "web"}), HOST), Ok("a1")),
        (
            near(json!({"app": "other"}), HOST),
            Err(
                "0/3 nodes are available: 1 node(s) had untolerated taint {k: v}, \
                 2 node(s) didn't match pod affinity rules. preemption: 0/3 nodes are available: \
                 3 Preemption is not helpful for scheduling.",
            ),
        ),
        (spread(HOST, "DoNotSchedule"), Ok("a2")),
        (
            spread(ZONE, "DoNotSchedule"),
            Err(
                "0/3 nodes are available: 1 node(s) had untolerated taint {k: v}, \
                 2 node(s) didn't match pod topology spread constraints. preemption: 0/3 nodes are available: \
                 1 Preemption is not helpful for scheduling, 2 No preemption victims found for incoming pod.",
            ),
        ),
        (
            spread("rack", "DoNotSchedule"),
            Err(
                "0/3 nodes are available: 1 node(s) had untolerated taint {k: v}, \
                 2 node(s) didn't match pod topology spread constraints (missing required label). \
                 preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
            ),
        ),
        (spread(ZONE, "ScheduleAnyway"), Ok("a2")),
    ];
    for (spec, expect) in cases {
        check(&mut cluster(), spec, expect);
    }
}

#[test]
fn the_first_of_a_group_that_wants_to_be_together_goes_anywhere() {
    let mut board = Board::default();
    board.put_node(&node("a1", json!({})));
    check(&mut board, near(json!({"app": "web"}), HOST), Ok("a1"));
}

#[test]
fn a_cordoned_or_full_node_takes_nobody() {
    let mut board = Board::default();
    check(
        &mut board,
        json!({}),
        Err("no nodes available to schedule pods"),
    );
    board.put_node(&node("a1", json!({"spec": {"unschedulable": true}})));
    let full = json!({"status": {"allocatable": {"pods": "1"}}});
    board.put_node(&node("a2", full));
    put(&mut board, &pod("one", json!({}), json!({})), "a2");
    check(
        &mut board,
        json!({}),
        Err(
            "0/2 nodes are available: 1 Too many pods, 1 node(s) were unschedulable. preemption: 0/2 nodes are \
             available: 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling.",
        ),
    );
    assert!(board.remove(&Key::new("default", "one")));
    check(&mut board, json!({}), Ok("a2"));
}

/// `podtopologyspread/common.go: countPodsMatchSelector`.
#[test]
fn spread_counts_neither_pods_on_their_way_out_nor_those_of_an_empty_selector() {
    let mut board = cluster();
    let rule = spread(ZONE, "DoNotSchedule");
    let tolerate = json!({"tolerations": [{"operator": "Exists"}]});
    let asked = |more: &Value| {
        let mut spec = more.clone();
        merge(&mut spec, tolerate.clone());
        merge(&mut spec, json!({"nodeSelector": {ZONE: "a"}}));
        spec
    };
    let refused = "didn't match pod topology spread constraints";
    let ask = |board: &mut Board, spec: Value| {
        let new = pod("new", json!({"app": "web"}), spec);
        decide(board, &Demand::of(&new), &Volumes::default())
    };
    // One more in zone a would be two more than in zone b; node affinity is honoured, so b has to be asked for too.
    let mut ignoring = asked(&rule);
    ignoring["topologySpreadConstraints"][0]["nodeAffinityPolicy"] = json!("Ignore");
    let why = ask(&mut board, ignoring.clone()).expect_err("zone a is full");
    let why = why.to_string();
    assert!(why.contains(refused), "{why}");
    let mut leaving = pod("web-0", json!({"app": "web"}), requests("2", "1Gi"));
    let deleted = json!("2030-01-01T00:00:00Z");
    leaving.metadata.deletion_timestamp = serde_json::from_value(deleted).expect("a time");
    put(&mut board, &leaving, "a1");
    assert!(ask(&mut board, ignoring.clone()).is_ok());
    let mut everything = ignoring;
    everything["topologySpreadConstraints"][0]["labelSelector"] = json!({});
    let staying = pod("web-0", json!({"app": "web"}), requests("2", "1Gi"));
    put(&mut board, &staying, "a1");
    assert!(ask(&mut board, everything).is_ok());
}

/// `podtopologyspread/filtering.go: calPreFilterState`.
#[test]
fn spread_counts_nodes_that_have_the_keys_of_all_hard_rules() {
    let mut board = Board::default();
    board.put_node(&node("a1", json!({"metadata": {"labels": {"rack": "1"}}})));
    board.put_node(&node("b1", json!({"metadata": {"labels": {"rack": "2"}}})));
    // Without a rack it is not a domain of zone c; otherwise every placement would exceed the skew with it.
    board.put_node(&node("c1", json!({})));
    for (number, node) in [(0, "a1"), (1, "b1")] {
        let web = pod(&format!("web-{number}"), json!({"app": "web"}), json!({}));
        put(&mut board, &web, node);
    }
    let rule = |key: &str| {
        json!({"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}}})
    };
    let spec = json!({"topologySpreadConstraints": [rule(ZONE), rule("rack")]});
    check(&mut board, spec, Ok("a1"));
}

/// `noderesources/fit.go: fitsRequest`.
#[test]
fn node_that_does_not_say_how_many_pods_it_takes_takes_none() {
    let mut board = Board::default();
    let bare: Node = serde_json::from_value(json!({"metadata": {"name": "dead"}})).expect("a node");
    board.put_node(&bare);
    let why = decide(
        &mut board,
        &Demand::of(&pod("new", json!({}), json!({}))),
        &Volumes::default(),
    );
    let why = why.expect_err("nobody is behind it").to_string();
    assert!(why.contains("1 Too many pods"), "{why}");
}

/// `noderesources/balanced_allocation.go: balancedResourceScorer`.
#[test]
fn node_that_would_be_used_evenly_is_preferred_among_equally_empty_ones() {
    let mut board = Board::default();
    board.put_node(&node("a1", json!({})));
    board.put_node(&node("b1", json!({})));
    put(&mut board, &pod("cpu", json!({}), requests("2", "0")), "a1");
    put(
        &mut board,
        &pod("memory", json!({}), requests("0", "4Gi")),
        "b1",
    );
    check(&mut board, requests("0", "2Gi"), Ok("a1"));
    check(&mut board, requests("1", "0"), Ok("b1"));
}

/// `volumerestrictions/volume_restrictions.go: satisfyReadWriteOncePod`.
#[test]
fn claim_for_one_pod_keeps_a_second_one_off_all_nodes() {
    let mut board = cluster();
    let mount = json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]});
    let volumes = Volumes {
        exclusive: vec![Key::new("default", "c")],
        ..Volumes::default()
    };
    let new = Demand::of(&pod("new", json!({}), mount.clone()));
    assert!(decide(&mut board, &new, &volumes).is_ok());
    put(&mut board, &pod("first", json!({}), mount), "a1");
    let why = decide(&mut board, &new, &volumes).expect_err("it is in use");
    let why = why.to_string();
    let text = "2 node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode";
    assert!(why.contains(text), "{why}");
    board.remove(&Key::new("default", "first"));
    assert!(decide(&mut board, &new, &volumes).is_ok());
}

#[test]
fn a_pod_keeps_others_away_that_do_not_mind_it() {
    let mut board = Board::default();
    board.put_node(&node("a1", json!({})));
    let loner = pod(
        "loner",
        json!({"app": "db"}),
        apart(json!({"app": "web"}), HOST),
    );
    put(&mut board, &loner, "a1");
    let expect = "0/1 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity rules. preemption: \
                  0/1 nodes are available: 1 No preemption victims found for incoming pod.";
    check(&mut board, json!({}), Err(expect));
    board.remove(&Key::new("default", "loner"));
    check(&mut board, json!({}), Ok("a1"));
}

#[test]
fn ports_of_the_node_are_given_out_once() {
    let port = |number: u16| {
        json!({"containers": [{"name": "app", "image": "app", "ports": [
        {"containerPort": 80, "hostPort": number, "protocol": "TCP"}]}]})
    };
    let mut board = Board::default();
    board.put_node(&node("a1", json!({})));
    put(&mut board, &pod("one", json!({}), port(80)), "a1");
    check(&mut board, port(81), Ok("a1"));
    let expect = "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports. preemption: \
                  0/1 nodes are available: 1 No preemption victims found for incoming pod.";
    check(&mut board, port(80), Err(expect));
}

/// `nodeaffinity/node_affinity.go: Score`, `interpodaffinity/scoring.go: Score` and
/// `podtopologyspread/scoring.go: Score, NormalizeScore`.
#[test]
fn preferences_bend_the_choice_of_the_emptiest() {
    let prefer = |labels: Value, kind: &str| {
        json!({"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 100, "podAffinityTerm": {"labelSelector": {"matchLabels": labels}, "topologyKey": HOST}}]}}})
    };
    let nodes = json!({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 10, "preference": {"matchExpressions": [{"key": HOST, "operator": "In", "values": ["a1"]}]}}]}}});
    let cases = [
        (nodes, Ok("a1")),
        (prefer(json!({"app": "web"}), "podAffinity"), Ok("a1")),
        (prefer(json!({"app": "web"}), "podAntiAffinity"), Ok("a2")),
        (spread(HOST, "ScheduleAnyway"), Ok("a2")),
    ];
    for (spec, expect) in cases {
        check(&mut cluster(), spec, expect);
    }
}

/// `podtopologyspread/scoring.go: scoreForCount, NormalizeScore`: the fewer pods a domain has the better, and a node
/// without the key scores nothing.
#[test]
fn soft_spread_prefers_the_domain_with_the_fewest_pods() {
    let mut board = Board::default();
    for (name, rack) in [("a1", Some("1")), ("a2", Some("2")), ("a3", None)] {
        let labels = rack.map_or(
            json!({}),
            |rack| json!({"metadata": {"labels": {"rack": rack}}}),
        );
        board.put_node(&node(name, labels));
    }
    let web = json!({"app": "web"});
    put(&mut board, &pod("one", web.clone(), json!({})), "a1");
    check(&mut board, spread("rack", "ScheduleAnyway"), Ok("a2"));
    put(&mut board, &pod("two", web.clone(), json!({})), "a2");
    put(&mut board, &pod("three", web, json!({})), "a2");
    check(&mut board, spread("rack", "ScheduleAnyway"), Ok("a1"));
}

#[test]
fn equal_nodes_are_filled_in_turn() {
    let mut board = Board::default();
    for name in ["a1", "a2", "a3"] {
        board.put_node(&node(name, json!({})));
    }
    let mut order = Vec::new();
    for i in 0..6 {
        let pod = pod(&format!("p{i}"), json!({}), json!({}));
        let chosen =
            decide(&mut board, &Demand::of(&pod), &Volumes::default()).expect("there is room");
        put(&mut board, &pod, &chosen);
        order.push(chosen.to_string());
    }
    assert_eq!(order, ["a1", "a2", "a3", "a1", "a2", "a3"]);
}

#[test]
fn init_containers_count_at_their_hungriest_and_sidecars_beside_everything() {
    let container = |name: &str, cpu: &str| json!({"name": name, "image": "i", "resources": {"requests": {"cpu": cpu}}});
    let mut sidecar = container("side", "500m");
    sidecar["restartPolicy"] = json!("Always");
    let cases = [
        (
            json!({"containers": [container("a", "1"), container("b", "2")]}),
            3000,
        ),
        (
            json!({"initContainers": [container("i", "4")], "containers": [container("a", "1")]}),
            4000,
        ),
        (
            json!({"initContainers": [sidecar, container("i", "1")], "containers": [container("a", "1")]}),
            1500,
        ),
        (
            json!({"overhead": {"cpu": "250m"}, "containers": [container("a", "1")]}),
            1250,
        ),
        (
            json!({"resources": {"requests": {"cpu": "2"}}, "containers": [container("a", "1")]}),
            2000,
        ),
    ];
    for (spec, expect) in cases {
        let demand = Demand::of(&pod("p", json!({}), spec.clone()));
        assert_eq!(demand.requests.exact.cpu, expect, "{spec}");
    }
}

#[test]
fn tolerations_cover_taints_by_key_value_and_effect() {
    let taint = serde_json::from_value(json!({"key": "k", "value": "5", "effect": "NoSchedule"}));
    let taint = taint.expect("a taint");
    let cases = [
        (json!({"key": "k", "operator": "Equal", "value": "5"}), true),
        (
            json!({"key": "k", "value": "5", "effect": "NoSchedule"}),
            true,
        ),
        (json!({"key": "k", "value": "6"}), false),
        (json!({"key": "k", "operator": "Exists"}), true),
        (
            json!({"key": "k", "operator": "Exists", "effect": "NoExecute"}),
            false,
        ),
        (json!({"key": "other", "operator": "Exists"}), false),
        (json!({"operator": "Exists"}), true),
        (json!({"key": "k", "operator": "Gt", "value": "4"}), true),
        (json!({"key": "k", "operator": "Lt", "value": "4"}), false),
        (json!({"key": "k", "operator": "Perhaps"}), false),
    ];
    for (toleration, expect) in cases {
        let read = serde_json::from_value(toleration.clone()).expect("a toleration");
        assert_eq!(super::taints::covers(&read, &taint), expect, "{toleration}");
    }
}

mod queue {
    use std::time::Duration;

    use jiff::Timestamp;
    use kubewright_cache::Key;

    use crate::scheduler::queue::Queue;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::UNIX_EPOCH + Duration::from_secs(1_000_000 + seconds)
    }

    #[test]
    fn the_most_important_goes_first_and_equals_in_turn() {
        let mut queue = Queue::default();
        for (name, priority) in [("low", 0), ("high", 10), ("low-too", 0)] {
            queue.add(&Key::new("d", name), priority, 1);
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop(at(0))).collect();
        let names: Vec<_> = order.iter().map(Key::name).collect();
        assert_eq!(names, ["high", "low", "low-too"]);
    }

    #[test]
    fn pod_without_a_node_waits_for_news_and_at_least_its_pause() {
        let (mut queue, key) = (Queue::default(), Key::new("d", "p"));
        queue.add(&key, 0, 1);
        // Pauses after each failed try: doubled up to ten seconds.
        let mut now = 0;
        for pause in [1, 2, 4, 8, 10, 10] {
            assert_eq!(queue.pop(at(now)), Some(key.clone()));
            queue.failed(&key, at(now));
            queue.add(&key, 0, 1);
            assert_eq!(queue.pop(at(now + pause)), None, "nothing happened");
            queue.stir(at(now));
            assert_eq!(queue.next(), Some(at(now + pause)));
            assert_eq!(queue.pop(at(now + pause - 1)), None);
            now += pause;
        }
        assert_eq!(queue.pop(at(now)), Some(key.clone()));
        queue.failed(&key, at(now));
        assert_eq!(
            queue.next(),
            Some(at(now + 300)),
            "and after five minutes anyway"
        );
        queue.add(&key, 0, 2);
        assert_eq!(
            queue.pop(at(now)),
            Some(key.clone()),
            "its spec has changed"
        );
        queue.remove(&key);
        assert_eq!((queue.next(), queue.is_ready()), (None, false));
    }

    #[test]
    fn news_that_helps_puts_the_first_in_line_at_once_and_the_others_after_their_pause() {
        let mut queue = Queue::default();
        let keys: Vec<Key> = (0..100)
            .map(|n| Key::new("d", &format!("p{n:03}")))
            .collect();
        for (n, key) in (0..).zip(&keys) {
            queue.add(key, i32::from(n == 99), 1);
        }
        while let Some(key) = queue.pop(at(0)) {
            queue.failed(&key, at(0));
        }
        queue.rouse(at(0));
        let tried: Vec<Key> = std::iter::from_fn(|| queue.pop(at(0))).collect();
        assert_eq!(
            (tried.len(), &tried[0], &tried[1]),
            (64, &keys[99], &keys[0])
        );
        assert_eq!(queue.next(), Some(at(1)));
        tried.iter().for_each(|key| queue.failed(key, at(0)));
        queue.rouse_these(&keys[..1], at(0));
        assert_eq!(queue.pop(at(0)), Some(keys[0].clone()));
        assert_eq!(
            queue.pop(at(0)),
            None,
            "news of its claim helps nobody else"
        );
    }
}

mod sums {
    use proptest::prelude::*;

    use super::*;
    use crate::scheduler::demand::Terminating;
    use crate::scheduler::demand::{Pods, Term};
    use crate::scheduler::selector::Selector;

    #[derive(Debug, Clone)]
    enum Step {
        Place {
            pod: u8,
            node: u8,
            cpu: u8,
            port: u8,
            label: u8,
        },
        Remove(u8),
        Node(u8),
        NoNode(u8),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0u8..12, 0u8..4, 0u8..5, 0u8..3, 0u8..3)
                .prop_map(|(pod, node, cpu, port, label)| Step::Place { pod, node, cpu, port, label }),
            2 => (0u8..12).prop_map(Step::Remove),
            1 => (0u8..4).prop_map(Step::Node),
            1 => (0u8..4).prop_map(Step::NoNode),
        ]
    }

    fn some_pod(pod: u8, cpu: u8, port: u8, label: u8) -> Pod {
        let container = json!({"name": "app", "image": "i",
            "resources": {"requests": {"cpu": format!("{cpu}00m"), "example.com/gpu": cpu}},
            "ports": [{"containerPort": 80, "hostPort": port}]});
        let mut spec = json!({"containers": [container]});
        if label == 2 {
            merge(&mut spec, apart(json!({"l": "1"}), HOST));
        }
        super::pod(&format!("p{pod}"), json!({"l": label.to_string()}), spec)
    }

    fn ones() -> Pods {
        let selector =
            serde_json::from_value(json!({"matchLabels": {"l": "1"}})).expect("a selector");
        Pods {
            namespaces: vec!["default".to_owned()],
            namespace_selector: Selector::default(),
            selector: Selector::of(Some(&selector)),
            terminating: Terminating::Counted,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn incremental_sums_equal_recomputation(steps in proptest::collection::vec(step(), 1..60)) {
            let mut board = Board::default();
            // Asked about early, so that it is kept up rather than counted at the end.
            board.tally(&ones());
            let mut model = std::collections::BTreeMap::new();
            let mut nodes = std::collections::BTreeSet::new();
            for step in steps {
                match step {
                    Step::Place { pod, node, cpu, port, label } => {
                        let object = some_pod(pod, cpu, port, label);
                        put(&mut board, &object, &format!("a{node}"));
                        model.insert(pod, (node, object));
                    }
                    Step::Remove(pod) => {
                        let was = board.remove(&Key::new("default", &format!("p{pod}")));
                        prop_assert_eq!(was, model.remove(&pod).is_some());
                    }
                    Step::Node(n) => {
                        board.put_node(&super::node(&format!("a{n}"), json!({})));
                        nodes.insert(n);
                    }
                    Step::NoNode(n) => {
                        board.remove_node(&format!("a{n}"));
                        nodes.remove(&n);
                    }
                }
            }
            let mut fresh = Board::default();
            for n in &nodes {
                fresh.put_node(&super::node(&format!("a{n}"), json!({})));
            }
            for (node, object) in model.values() {
                put(&mut fresh, object, &format!("a{node}"));
            }
            let places = |board: &Board| board.nodes().map(|(_, place)| place.clone()).collect::<Vec<_>>();
            prop_assert_eq!(places(&board), places(&fresh));
            prop_assert_eq!(&board.tally(&ones()).by_node, &fresh.tally(&ones()).by_node);
            let asked = Demand::of(&some_pod(99, 1, 0, 1));
            let repelling = |board: &Board| board.repelling(&asked)
                .map(|(term, nodes)| (term.clone(), nodes.cloned().collect::<Vec<_>>()))
                .collect::<Vec<(Term, _)>>();
            prop_assert_eq!(repelling(&board), repelling(&fresh));
        }
    }
}
