//! Who makes way for whom, as the documentation of Kubernetes says.

use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};

use super::*;
use crate::scheduler::tests::{node, pod};

/// A pod on a node: name, node, priority, cores, and when it started.
type On = (&'static str, &'static str, i32, &'static str, i64);

fn made((name, _, priority, cpu, started): On) -> Pod {
    let container = json!({"name": "app", "image": "app", "resources": {"requests": {"cpu": cpu}}});
    let labels = json!({"app": &name[..1]});
    let spec = json!({"priority": priority, "containers": [container]});
    let mut made = pod(name, labels, spec);
    let time = Timestamp::from_second(started).expect("a moment");
    let status = made.status.get_or_insert_default();
    status.start_time = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(time));
    made
}

fn budget(app: &str, allowed: i32) -> Arc<PodDisruptionBudget> {
    let budget = json!({
        "metadata": {"name": app, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": allowed, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0},
    });
    Arc::new(serde_json::from_value(budget).expect("it is a budget"))
}

struct World {
    board: Board,
    pods: BTreeMap<Key, Arc<Pod>>,
}

fn world(nodes: &[Node], pods: &[On]) -> World {
    let mut board = Board::default();
    for node in nodes {
        board.put_node(node);
    }
    let mut all = BTreeMap::new();
    for on in pods {
        let (key, pod) = (Key::new("default", on.0), made(*on));
        let identity = Identity {
            key: key.clone(),
            uid: format!("uid-{}", on.0),
            generation: 0,
        };
        board.place(identity, on.1, &Demand::of(&pod));
        all.insert(key, Arc::new(pod));
    }
    World { board, pods: all }
}

/// Asks for room for a pod of priority 100 that wants so many cores of nodes with four.
fn ask(
    world: &mut World,
    cpu: &'static str,
    spec: Value,
    budgets: &[Arc<PodDisruptionBudget>],
) -> String {
    let mut needy = made(("new", "", 100, cpu, 0));
    if let Some(selector) = spec["nodeSelector"].as_object() {
        let read = |(key, value): (&String, &Value)| {
            (key.clone(), value.as_str().unwrap_or_default().to_owned())
        };
        needy.spec.get_or_insert_default().node_selector =
            Some(selector.iter().map(read).collect());
    }
    let demand = Demand::of(&needy);
    let question = Needy {
        demand: &demand,
        volumes: &Volumes::default(),
    };
    let pods = &world.pods;
    let found = choose(
        &mut world.board,
        &question,
        |key| pods.get(key).cloned(),
        budgets,
    );
    let Some(Eviction { node, victims }) = found else {
        return "nobody".to_owned();
    };
    let mut names: Vec<_> = victims.iter().map(Key::name).collect();
    names.sort();
    format!("{} from {node}", names.join(" "))
}

fn check(
    what: &str,
    pods: &[On],
    cpu: &'static str,
    budgets: &[Arc<PodDisruptionBudget>],
    expected: &str,
) {
    let nodes = [node("a1", json!({})), node("b1", json!({}))];
    let mut world = world(&nodes, pods);
    let found = ask(&mut world, cpu, json!({}), budgets);
    assert_eq!(found, expected, "{what}");
    let again = ask(&mut world, cpu, json!({}), budgets);
    assert_eq!(again, expected, "{what}: the board is as it was");
}

#[test]
fn as_few_and_as_unimportant_pods_as_possible_make_way() {
    let important = ("x", "b1", 100, "4", 0);
    check(
        "room for one more",
        &[("a", "a1", 0, "4", 0), important],
        "1",
        &[],
        "a from a1",
    );
    check(
        "nobody less important",
        &[("a", "a1", 100, "4", 0), important],
        "1",
        &[],
        "nobody",
    );
    check(
        "it would not help",
        &[("a", "a1", 0, "1", 0), ("y", "a1", 100, "3", 0), important],
        "2",
        &[],
        "nobody",
    );
    check(
        "the least important goes",
        &[("a", "a1", 10, "2", 0), ("c", "a1", 0, "2", 0), important],
        "2",
        &[],
        "c from a1",
    );
    check(
        "the youngest of equals goes",
        &[("a", "a1", 0, "2", 5), ("c", "a1", 0, "2", 9), important],
        "2",
        &[],
        "c from a1",
    );
    check(
        "both if both are in the way",
        &[("a", "a1", 0, "2", 0), ("c", "a1", 1, "2", 0), important],
        "4",
        &[],
        "a c from a1",
    );
    check(
        "the larger one stays if it may",
        &[("a", "a1", 10, "3", 0), ("c", "a1", 0, "1", 0), important],
        "1",
        &[],
        "c from a1",
    );
}

#[test]
fn the_node_is_taken_where_it_costs_the_least() {
    let both = |a: On, b: On| [a, b];
    check(
        "less important victims",
        &both(("a", "a1", 10, "4", 0), ("c", "b1", 0, "4", 0)),
        "1",
        &[],
        "c from b1",
    );
    check(
        "fewer victims",
        &[
            ("a", "a1", 0, "2", 0),
            ("d", "a1", 0, "2", 0),
            ("c", "b1", 0, "4", 0),
        ],
        "4",
        &[],
        "c from b1",
    );
    check(
        "the younger victim",
        &both(("a", "a1", 0, "4", 5), ("c", "b1", 0, "4", 9)),
        "1",
        &[],
        "c from b1",
    );
    check(
        "the first of equals",
        &both(("a", "a1", 0, "4", 5), ("c", "b1", 0, "4", 5)),
        "1",
        &[],
        "a from a1",
    );
}

#[test]
fn budgets_are_kept_where_that_can_be() {
    let two = [
        ("a", "a1", 0, "2", 0),
        ("c", "a1", 0, "2", 9),
        ("x", "b1", 100, "4", 0),
    ];
    check("without a budget", &two, "2", &[], "c from a1");
    check(
        "the protected one stays",
        &two,
        "2",
        &[budget("c", 0)],
        "a from a1",
    );
    check(
        "what may be disrupted is not protected",
        &two,
        "2",
        &[budget("c", 1)],
        "c from a1",
    );
    check(
        "there is no other way",
        &two,
        "4",
        &[budget("c", 0), budget("a", 0)],
        "a c from a1",
    );
    let apart = [("a", "a1", 0, "4", 0), ("c", "b1", 5, "4", 0)];
    check(
        "a broken budget costs more than importance",
        &apart,
        "4",
        &[budget("a", 0)],
        "c from b1",
    );
}

#[test]
fn nodes_that_preemption_cannot_help_are_left_alone() {
    let nodes = [node("a1", json!({})), node("b1", json!({}))];
    let pods = [("a", "a1", 0, "4", 0), ("c", "b1", 0, "4", 9)];
    let mut world = world(&nodes, &pods);
    let only = json!({"nodeSelector": {"kubernetes.io/hostname": "a1"}});
    assert_eq!(ask(&mut world, "1", only, &[]), "a from a1");
    let none = json!({"nodeSelector": {"kubernetes.io/hostname": "z9"}});
    assert_eq!(ask(&mut world, "1", none, &[]), "nobody");
    assert_eq!(ask(&mut world, "5", json!({}), &[]), "nobody");
}
