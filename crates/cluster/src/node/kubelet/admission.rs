//! Whether a node takes a pod that was put on it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Pod, Taint};

use super::eviction::{Pressure, admit_under_pressure};
use super::shutdown;
use crate::scheduler::demand::{Demand, HostPort, host_ports};
use crate::scheduler::resources::{Requests, Resources};
use crate::scheduler::selector::{Labels, term_matches};
use crate::scheduler::taints;

/// A pod is not taken: it fails with this reason and message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rejection {
    pub(crate) reason: String,
    pub(crate) message: String,
}

/// A node as admission sees it.
#[derive(Debug, Clone, Default)]
pub(crate) struct NodeView {
    pub(crate) name: String,
    pub(crate) labels: Labels,
    pub(crate) taints: Vec<Taint>,
    pub(crate) allocatable: Resources,
    pub(crate) pod_limit: i64,
    pub(crate) pressures: Vec<Pressure>,
    pub(crate) is_shutting_down: bool,
}

/// What the pods on a node take of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) resources: Resources,
    pub(crate) pods: i64,
    /// The ports of the node; one that two pods have, against the rules, is there twice.
    pub(crate) ports: Vec<HostPort>,
}

/// What one pod takes of its node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Promise {
    resources: Resources,
    ports: Vec<HostPort>,
}

impl Promise {
    pub(crate) fn of(pod: &Pod) -> Self {
        Self {
            resources: Requests::of(pod).exact,
            ports: pod.spec.as_ref().map(host_ports).unwrap_or_default(),
        }
    }
}

impl Taken {
    /// One more pod is there.
    pub(crate) fn add(&mut self, promise: &Promise) {
        self.resources.add(&promise.resources);
        self.pods += 1;
        self.ports.extend(promise.ports.iter().cloned());
    }

    /// A pod needs no longer what it took.
    pub(crate) fn subtract(&mut self, promise: &Promise) {
        self.resources.subtract(&promise.resources);
        self.pods -= 1;
        for port in &promise.ports {
            if let Some(at) = self.ports.iter().position(|taken| taken == port) {
                self.ports.swap_remove(at);
            }
        }
    }
}

/// Looks whether a node can take a pod beside those that are there.
///
/// Mirrors `eviction.managerImpl.Admit`, `predicateAdmitHandler.Admit` with `generalFilter`, `scheduler/eventhandlers.go:
/// AdmissionCheck` and `nodeshutdown.managerImpl.Admit`, in their order and with their texts.
///
/// # Errors
/// Why it cannot.
pub(crate) fn admit(pod: &Pod, node: &NodeView, taken: &Taken) -> Result<(), Rejection> {
    admit_under_pressure(pod, &node.pressures)?;
    let os = pod.spec.as_ref().and_then(|spec| spec.os.as_ref());
    if os.is_some_and(|os| os.name != "linux") {
        return Err(Rejection {
            reason: "PodOSNotSupported".to_owned(),
            message: "Failed to admit pod as the OS field doesn't match node OS".to_owned(),
        });
    }
    let demand = Demand::of(pod);
    fits(&Requests::of(pod).exact, node, taken)?;
    let failed = |name: &str, why: &str| Rejection {
        reason: name.to_owned(),
        message: format!("Predicate {name} failed: {why}"),
    };
    if !matches_node(&demand, node) {
        return Err(failed(
            "NodeAffinity",
            "node(s) didn't match Pod's node affinity/selector",
        ));
    }
    let mut wanted = demand.ports.iter();
    if wanted.any(|port| taken.ports.iter().any(|other| port.clashes(other))) {
        let why = "node(s) didn't have free ports for the requested pod ports";
        return Err(failed("NodePorts", why));
    }
    // A kubelet looks at taints that drive pods away and at no others.
    let mut driving = node
        .taints
        .iter()
        .filter(|taint| taint.effect == "NoExecute");
    let untolerated = driving.any(|taint| {
        let mut tolerations = demand.tolerations.iter();
        !tolerations.any(|toleration| taints::covers(toleration, taint))
    });
    if untolerated {
        return Err(failed(
            "TaintToleration",
            "node(s) had taints that the pod didn't tolerate",
        ));
    }
    if node.is_shutting_down {
        let (reason, message) = shutdown::REJECTION;
        return Err(Rejection {
            reason: reason.to_owned(),
            message: message.to_owned(),
        });
    }
    Ok(())
}

fn fits(wanted: &Resources, node: &NodeView, taken: &Taken) -> Result<(), Rejection> {
    let short = |name: &str, wanted: i64, used: i64, all: i64| Rejection {
        reason: format!("OutOf{name}"),
        message: format!(
            "Node didn't have enough resource: {name}, requested: {wanted}, used: {used}, capacity: {all}"
        ),
    };
    if taken.pods + 1 > node.pod_limit {
        return Err(short("pods", 1, taken.pods, node.pod_limit));
    }
    let (used, all) = (&taken.resources, &node.allocatable);
    let check = |name: &str, wanted: i64, used: i64, all: i64| {
        if wanted > 0 && wanted > all.saturating_sub(used) {
            return Err(short(name, wanted, used, all));
        }
        Ok(())
    };
    check("cpu", wanted.cpu, used.cpu, all.cpu)?;
    check("memory", wanted.memory, used.memory, all.memory)?;
    let of = |amounts: &BTreeMap<Box<str>, i64>, name: &str| amounts.get(name).copied();
    for (name, wanted) in &wanted.others {
        // Resources that a node does not know may be the cluster's.
        let Some(all) = of(&all.others, name) else {
            continue;
        };
        check(name, *wanted, of(&used.others, name).unwrap_or(0), all)?;
    }
    Ok(())
}

fn matches_node(demand: &Demand, node: &NodeView) -> bool {
    let has = |(key, value): (&String, &String)| node.labels.get(key) == Some(value);
    demand.node_selector.iter().all(has)
        && demand.node_terms.as_ref().is_none_or(|terms| {
            let mut terms = terms.iter();
            terms.any(|term| term_matches(term, &node.name, &node.labels))
        })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(spec: Value) -> Pod {
        let mut pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}});
        for (key, value) in spec.as_object().expect("fields") {
            pod["spec"][key] = value.clone();
        }
        serde_json::from_value(pod).expect("a pod")
    }

    fn asking(resource: &str, amount: &str) -> Value {
        json!({"containers": [{"name": "c", "resources": {"requests": {resource: amount}}}]})
    }

    fn listening(port: Value) -> Value {
        json!({"containers": [{"name": "c", "ports": [port]}]})
    }

    /// `predicateAdmitHandler.Admit` and `eviction.managerImpl.Admit`.
    #[test]
    fn pod_that_does_not_fit_is_rejected_with_the_kubelets_reason() {
        let mut resources = Resources {
            cpu: 8_000,
            memory: 1 << 30,
            others: BTreeMap::new(),
        };
        resources.others.insert("example.com/gpu".into(), 1);
        let node = NodeView {
            name: "n".to_owned(),
            labels: [("disk".to_owned(), "ssd".to_owned())].into(),
            taints: vec![Taint {
                key: "k".to_owned(),
                effect: "NoExecute".to_owned(),
                ..Taint::default()
            }],
            allocatable: resources,
            pod_limit: 2,
            pressures: Vec::new(),
            is_shutting_down: false,
        };
        let taken = Taken {
            resources: Resources {
                cpu: 1_000,
                ..Resources::default()
            },
            pods: 1,
            ports: vec![HostPort {
                address: "10.0.0.1".to_owned(),
                protocol: "TCP".to_owned(),
                port: 80,
            }],
        };
        let tolerant = |mut spec: Value| {
            spec["tolerations"] = json!([{"operator": "Exists"}]);
            spec
        };
        for (spec, expect) in [
            (tolerant(json!({})), ""),
            (tolerant(asking("cpu", "7")), ""),
            (
                tolerant(asking("cpu", "7001m")),
                "OutOfcpu: Node didn't have enough resource: cpu, requested: 7001, used: 1000, capacity: 8000",
            ),
            (
                tolerant(asking("memory", "2Gi")),
                "OutOfmemory: Node didn't have enough resource: memory, requested: 2147483648, used: 0, capacity: 1073741824",
            ),
            (
                tolerant(asking("example.com/gpu", "2")),
                "OutOfexample.com/gpu: Node didn't have enough resource: example.com/gpu, requested: 2, used: 0, capacity: 1",
            ),
            (tolerant(asking("example.com/unknown", "2")), ""),
            (
                tolerant(json!({"nodeSelector": {"disk": "hdd"}})),
                "NodeAffinity: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
            ),
            (
                tolerant(listening(json!({"containerPort": 80, "hostPort": 80}))),
                "NodePorts: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
            ),
            (
                tolerant(listening(
                    json!({"containerPort": 80, "hostPort": 80, "hostIP": "10.0.0.2"}),
                )),
                "",
            ),
            (
                tolerant(listening(
                    json!({"containerPort": 80, "hostPort": 80, "protocol": "UDP"}),
                )),
                "",
            ),
            (tolerant(listening(json!({"containerPort": 80}))), ""),
            (
                tolerant(json!({"os": {"name": "windows"}})),
                "PodOSNotSupported: Failed to admit pod as the OS field doesn't match node OS",
            ),
            (
                json!({}),
                "TaintToleration: Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate",
            ),
        ] {
            let said = match admit(&pod(spec.clone()), &node, &taken) {
                Ok(()) => String::new(),
                Err(Rejection { reason, message }) => format!("{reason}: {message}"),
            };
            assert_eq!(said, expect, "{spec}");
        }
        let full = Taken {
            pods: 2,
            ..taken.clone()
        };
        let rejection = admit(&pod(tolerant(json!({}))), &node, &full).expect_err("it is full");
        assert_eq!(rejection.reason, "OutOfpods");
        let leaving = NodeView {
            is_shutting_down: true,
            ..node.clone()
        };
        let rejection = admit(&pod(tolerant(json!({}))), &leaving, &taken).expect_err("it leaves");
        assert_eq!(rejection.reason, "NodeShutdown");
        let low = NodeView {
            pressures: vec![Pressure::Memory],
            ..node
        };
        assert_eq!(
            admit(&pod(tolerant(json!({}))), &low, &taken),
            Ok(()),
            "it tolerates everything"
        );
        let rejection = admit(&pod(json!({})), &low, &taken).expect_err("best effort");
        assert_eq!(
            (rejection.reason.as_str(), rejection.message.as_str()),
            ("Evicted", "The node had condition: [MemoryPressure]. ")
        );
    }
}
