//! DaemonSets, nodes and pods for tests.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{
    DaemonSet, DaemonSetSpec, DaemonSetUpdateStrategy, RollingUpdateDaemonSet,
};
use k8s_openapi::api::core::v1::{Node, NodeSpec, Pod, Taint};

use super::plan::{Observed, Plan, plan};
use super::template::make;
use crate::controllers::deployment::samples::limit;
use crate::pods::samples::*;

/// A set that updates within limits.
pub(crate) fn set(surge: &str, unavailable: &str) -> DaemonSet {
    DaemonSet {
        metadata: metadata("web"),
        spec: DaemonSetSpec {
            selector: selector(&[("app", "web")]),
            template: template("new"),
            update_strategy: Some(DaemonSetUpdateStrategy {
                type_: Some("RollingUpdate".to_owned()),
                rolling_update: Some(RollingUpdateDaemonSet {
                    max_surge: Some(limit(surge)),
                    max_unavailable: Some(limit(unavailable)),
                }),
            }),
            ..DaemonSetSpec::default()
        },
        status: None,
    }
}

/// A node that takes all pods.
pub(crate) fn node(name: &str) -> Node {
    let mut node = Node {
        metadata: metadata(name),
        ..Node::default()
    };
    node.metadata.namespace = None;
    node.metadata.labels = Some(labels(&[("disk", "fast"), ("size", "10")]));
    node
}

/// The node with a taint.
pub(crate) fn tainted(mut node: Node, key: &str, effect: &str) -> Node {
    let taint = Taint {
        key: key.to_owned(),
        effect: effect.to_owned(),
        ..Taint::default()
    };
    node.spec = Some(NodeSpec {
        taints: Some(vec![taint]),
        ..NodeSpec::default()
    });
    node
}

/// The set's pod on a node, with the hash `old` or `new`. It runs and is not ready.
pub(crate) fn pod(set: &DaemonSet, node: &str, hash: &str) -> Pod {
    let mut pod = in_phase(make(set, node, hash), "Running");
    let name = format!("web-{node}-{hash}");
    pod.metadata.uid = Some(format!("uid-{name}"));
    pod.metadata.name = Some(name);
    pod.spec.get_or_insert_default().node_name = Some(node.to_owned());
    pod
}

/// The same, and it serves.
pub(crate) fn good(set: &DaemonSet, node: &str, hash: &str) -> Pod {
    ready(pod(set, node, hash), at(0))
}

/// The plan at second 100, with failed pods left alone on the `resting` nodes.
pub(crate) fn plan_of(set: &DaemonSet, nodes: &[Node], pods: &[Pod], resting: &[&str]) -> Plan {
    let nodes: Vec<Arc<Node>> = nodes.iter().cloned().map(Arc::new).collect();
    let pods: Vec<Arc<Pod>> = pods.iter().cloned().map(Arc::new).collect();
    let resting: BTreeSet<String> = resting.iter().map(|name| (*name).to_owned()).collect();
    plan(&Observed {
        set,
        hash: "new",
        nodes: &nodes,
        pods: &pods,
        resting: &resting,
        now: at(100),
    })
}
