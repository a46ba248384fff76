//! What an object counts for in a quota.

use std::collections::{BTreeMap, BTreeSet};

use kubewright_schema::quantity::{Format, Quantity};
use serde_json::Value;

use super::super::attributes::{AdmissionRequest, Operation};
use super::super::resources::{Amounts, Side, amounts, of_pod};
use crate::admission::PluginRefusal;
use crate::kinds::value::{is_empty, items, text};
use crate::object;

const STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";
/// Pods must say how much of these they want where a quota counts them.
const EXPLICIT: [&str; 6] = [
    "cpu",
    "memory",
    "requests.cpu",
    "requests.memory",
    "limits.cpu",
    "limits.memory",
];
const OF_PODS: [&str; 10] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
];
/// Resources that are counted under their plain name too.
const BY_NAME: [&str; 4] = [
    "configmaps",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
];

/// How objects of a resource are measured.
#[derive(Debug, Clone, Copy)]
pub(in crate::admission) struct Measure<'a> {
    pub(in crate::admission) group: &'a str,
    pub(in crate::admission) plural: &'a str,
    /// The present moment, for pods that should be gone.
    pub(in crate::admission) now: &'a str,
}

impl<'a> Measure<'a> {
    /// Whether a write can use up more of a quota.
    pub(in crate::admission) fn concerns(
        &self,
        request: &AdmissionRequest<'_>,
        new: &Value,
        old: &Value,
    ) -> bool {
        let terminates = |pod: &Value| !pod["spec"]["activeDeadlineSeconds"].is_null();
        match (request.operation, self.core(), request.subresource) {
            (Operation::Delete | Operation::Connect, ..) => false,
            (Operation::Create, _, part) => part.is_empty(),
            (Operation::Update, Some("pods"), "resize") => true,
            (Operation::Update, Some("pods"), "") => terminates(new) != terminates(old),
            (Operation::Update, Some("services" | "persistentvolumeclaims"), part) => {
                part.is_empty()
            }
            (Operation::Update, ..) => false,
        }
    }

    /// The plural, for resources of the core group.
    pub(super) fn core(&self) -> Option<&'a str> {
        self.group.is_empty().then_some(self.plural)
    }

    /// Whether more of an object counts than that it is there.
    pub(super) fn reads_objects(&self) -> bool {
        matches!(
            self.core(),
            Some("pods" | "services" | "persistentvolumeclaims")
        )
    }

    fn count_name(&self) -> String {
        match self.group {
            "" => format!("count/{}", self.plural),
            group => format!("count/{}.{group}", self.plural),
        }
    }

    /// Whether a line of a quota is about these objects.
    pub(super) fn counts(&self, name: &str) -> bool {
        if name == self.count_name() {
            return true;
        }
        match self.core() {
            Some("pods") => {
                OF_PODS.contains(&name)
                    || name.starts_with("hugepages-")
                    || name.starts_with("requests.hugepages-")
                    || (name.starts_with("requests.") && name.contains('/'))
            }
            Some("services") => {
                matches!(
                    name,
                    "services" | "services.nodeports" | "services.loadbalancers"
                )
            }
            Some("persistentvolumeclaims") => {
                let plain =
                    |name: &str| matches!(name, "persistentvolumeclaims" | "requests.storage");
                plain(name)
                    || name
                        .split_once(STORAGE_CLASS)
                        .is_some_and(|(_, name)| plain(name))
            }
            Some(plural) => name == plural && BY_NAME.contains(&plural),
            None => false,
        }
    }

    /// What an object takes.
    pub(super) fn usage(&self, object: &Value) -> Amounts {
        let mut usage = Amounts::from([(self.count_name(), number(1))]);
        match self.core() {
            Some("pods") if is_charged(object, self.now) => {
                let spec = &object["spec"];
                let sides = [Side::Requests, Side::Limits].map(|side| of_pod(spec, side));
                usage.extend(compute(&sides[0], &sides[1]));
            }
            Some("services") => service(object, &mut usage),
            Some("persistentvolumeclaims") => claim(object, &mut usage),
            Some(plural) if BY_NAME.contains(&plural) => {
                usage.insert(plural.to_owned(), number(1));
            }
            _ => {}
        }
        usage
    }

    /// What an object has to say for itself.
    pub(super) fn constraints(
        &self,
        counted: &BTreeSet<&str>,
        object: &Value,
    ) -> Result<(), PluginRefusal> {
        let spec = &object["spec"];
        if self.core() != Some("pods") || !is_empty(&spec["resources"]) {
            return Ok(());
        }
        let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let containers = items(&spec["containers"]).iter();
        for container in containers.chain(items(&spec["initContainers"])) {
            let resources = &container["resources"];
            let said = compute(
                &amounts(&resources["requests"]),
                &amounts(&resources["limits"]),
            );
            let required = EXPLICIT.iter().filter(|name| counted.contains(**name));
            for name in required.filter(|name| !said.contains_key(**name)) {
                missing
                    .entry(name)
                    .or_default()
                    .insert(text(&container["name"]));
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let missing = missing.into_iter().map(|(name, containers)| {
            let containers: Vec<&str> = containers.into_iter().collect();
            format!("{name} for: {}", containers.join(","))
        });
        Err(PluginRefusal(format!(
            "must specify {}",
            missing.collect::<Vec<_>>().join("; ")
        )))
    }
}

fn number(value: i64) -> Quantity {
    Quantity::from_integer(value, Format::DecimalSi)
}

/// Pods that are over, or should be by now, are not charged for.
fn is_charged(pod: &Value, now: &str) -> bool {
    let over = matches!(text(&pod["status"]["phase"]), "Failed" | "Succeeded");
    // Both are RFC 3339 in UTC and whole seconds, so they compare as text.
    let late = object::is_deleting(pod)
        && !pod["metadata"]["deletionGracePeriodSeconds"].is_null()
        && object::meta_str(pod, "deletionTimestamp") < now;
    !over && !late
}

fn compute(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut usage = Amounts::from([("pods".to_owned(), number(1))]);
    for name in ["cpu", "memory", "ephemeral-storage"] {
        if let Some(request) = requests.get(name) {
            usage.insert(name.to_owned(), request.clone());
            usage.insert(format!("requests.{name}"), request.clone());
        }
        if let Some(limit) = limits.get(name) {
            usage.insert(format!("limits.{name}"), limit.clone());
        }
    }
    for (name, request) in requests {
        let huge = name.starts_with("hugepages-");
        if huge {
            usage.insert(name.clone(), request.clone());
        }
        if huge || name.contains('/') {
            usage.insert(format!("requests.{name}"), request.clone());
        }
    }
    usage
}

fn service(object: &Value, usage: &mut Amounts) {
    let spec = &object["spec"];
    let ports = items(&spec["ports"]);
    let explicit = ports
        .iter()
        .filter(|port| port["nodePort"].as_i64().unwrap_or(0) != 0);
    let (balancers, node_ports) = match text(&spec["type"]) {
        "NodePort" => (0, ports.len()),
        "LoadBalancer" if spec["allocateLoadBalancerNodePorts"] == Value::Bool(false) => {
            (1, explicit.count())
        }
        "LoadBalancer" => (1, ports.len()),
        _ => (0, 0),
    };
    usage.insert("services".into(), number(1));
    usage.insert("services.loadbalancers".into(), number(balancers));
    usage.insert("services.nodeports".into(), number(node_ports as i64));
}

fn claim(object: &Value, usage: &mut Amounts) {
    let annotation = &object["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"];
    let class = match text(annotation) {
        "" => text(&object["spec"]["storageClassName"]),
        class => class,
    };
    let mut put = |name: &str, quantity: Quantity| {
        if !class.is_empty() {
            usage.insert(format!("{class}{STORAGE_CLASS}{name}"), quantity.clone());
        }
        usage.insert(name.to_owned(), quantity);
    };
    put("persistentvolumeclaims", number(1));
    let storage = |list: &Value| Quantity::parse(text(&list["storage"])).ok();
    let requested = storage(&object["spec"]["resources"]["requests"]);
    let allocated = storage(&object["status"]["allocatedResources"]);
    if let Some(requested) = requested {
        let larger = allocated.filter(|allocated| *allocated > requested);
        put("requests.storage", larger.unwrap_or(requested));
    }
}
