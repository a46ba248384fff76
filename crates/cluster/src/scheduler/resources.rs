//! Amounts of what pods ask for and nodes have: added and taken away, never parsed twice.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use kubewright_schema::quantity::Quantity;

/// Named amounts as objects carry them.
type Amounts = BTreeMap<String, Text>;

/// What a container without requests counts for when nodes are compared, so that such pods spread too.
const ASSUMED_CPU: i64 = 100;
const ASSUMED_MEMORY: i64 = 200 * 1024 * 1024;

/// Amounts by resource. `cpu` is in thousandths, everything else in whole units.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Resources {
    pub(crate) cpu: i64,
    pub(crate) memory: i64,
    /// Everything else: storage, huge pages, devices.
    pub(crate) others: BTreeMap<Box<str>, i64>,
}

/// What one pod takes from a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Requests {
    /// What is promised to the pod.
    pub(crate) exact: Resources,
    /// CPU and memory with an assumption for containers that ask for none; for comparing nodes only.
    pub(crate) assumed: (i64, i64),
}

impl Resources {
    /// Reads amounts; what cannot be read counts as nothing, the server has refused it anyway.
    pub(crate) fn of(amounts: Option<&Amounts>) -> Self {
        let mut resources = Self::default();
        for (name, text) in amounts.into_iter().flatten() {
            resources.add_one(name, amount(name, text));
        }
        resources
    }

    /// What a node can give, and how many pods it takes: none if it does not say (`noderesources/fit.go: fitsRequest`).
    pub(crate) fn of_node(amounts: Option<&Amounts>) -> (Self, i64) {
        let mut resources = Self::of(amounts);
        let pods = resources.others.remove("pods").unwrap_or(0);
        (resources, pods)
    }

    /// Adds amounts.
    pub(crate) fn add(&mut self, more: &Self) {
        self.cpu = self.cpu.saturating_add(more.cpu);
        self.memory = self.memory.saturating_add(more.memory);
        for (name, value) in &more.others {
            let sum = self.others.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*value);
        }
    }

    /// Takes amounts away again. An amount of zero is forgotten, so that sums are equal when their parts are.
    pub(crate) fn subtract(&mut self, less: &Self) {
        self.cpu = self.cpu.saturating_sub(less.cpu);
        self.memory = self.memory.saturating_sub(less.memory);
        for (name, value) in &less.others {
            if let Some(sum) = self.others.get_mut(name) {
                *sum = sum.saturating_sub(*value);
                if *sum == 0 {
                    self.others.remove(name);
                }
            }
        }
    }

    /// The larger amount of each.
    fn at_least(&mut self, other: &Self) {
        self.cpu = self.cpu.max(other.cpu);
        self.memory = self.memory.max(other.memory);
        for (name, value) in &other.others {
            let most = self.others.entry(name.clone()).or_default();
            *most = (*most).max(*value);
        }
    }

    fn add_one(&mut self, name: &str, value: i64) {
        match name {
            "cpu" => self.cpu = self.cpu.saturating_add(value),
            "memory" => self.memory = self.memory.saturating_add(value),
            _ if value == 0 => {}
            _ => {
                let sum = self.others.entry(name.into()).or_default();
                *sum = sum.saturating_add(value);
            }
        }
    }
}

impl Requests {
    /// What a pod asks for: its containers together, or its hungriest moment while it initialises, and its overhead.
    pub(crate) fn of(pod: &Pod) -> Self {
        let Some(spec) = &pod.spec else {
            return Self::default();
        };
        let mut exact = total(spec, asked);
        let of_pod = spec.resources.as_ref().and_then(|r| r.requests.as_ref());
        for (name, text) in of_pod.into_iter().flatten() {
            // Requests of the pod as a whole replace the sum of its containers.
            let value = amount(name, text);
            match name.as_str() {
                "cpu" => exact.cpu = value,
                "memory" => exact.memory = value,
                _ => {
                    exact.others.insert(name.as_str().into(), value);
                }
            }
        }
        let assumed = total(spec, assumed);
        let overhead = Resources::of(spec.overhead.as_ref());
        exact.add(&overhead);
        let assumed = (
            assumed.cpu.saturating_add(overhead.cpu).max(exact.cpu),
            assumed
                .memory
                .saturating_add(overhead.memory)
                .max(exact.memory),
        );
        Self { exact, assumed }
    }
}

impl Requests {
    /// What a pod takes that may be about to be resized: the most of what it wants, was promised and has. What its node can never
    /// give counts for nothing.
    ///
    /// Mirrors `AggregateContainerRequests` of component-helpers with `UseStatusResources`.
    pub(crate) fn while_resized(pod: &Pod) -> Self {
        let mut wanted = Self::of(pod);
        let (Some(spec), Some(status)) = (&pod.spec, &pod.status) else {
            return wanted;
        };
        let all = || {
            let main = status.container_statuses.iter().flatten();
            main.chain(status.init_container_statuses.iter().flatten())
        };
        let promised = |container: &Container| {
            let status = all().find(|status| status.name == container.name);
            let allocated = status.and_then(|status| status.allocated_resources.as_ref());
            allocated.map_or_else(|| asked(container), |some| Resources::of(Some(some)))
        };
        let has = |container: &Container| {
            let status = all().find(|status| status.name == container.name);
            let actual = status.and_then(|status| status.resources.as_ref()?.requests.as_ref());
            actual.map_or_else(|| promised(container), |some| Resources::of(Some(some)))
        };
        let mut containers = spec
            .containers
            .iter()
            .chain(spec.init_containers.iter().flatten());
        let settled = containers.all(|container| {
            let asked = asked(container);
            promised(container) == asked && has(container) == asked
        });
        if settled {
            return wanted;
        }
        let mut given = total(spec, promised);
        given.at_least(&total(spec, has));
        given.add(&Resources::of(spec.overhead.as_ref()));
        let infeasible = status.conditions.iter().flatten().any(|condition| {
            condition.type_ == "PodResizePending"
                && condition.reason.as_deref() == Some("Infeasible")
        });
        if infeasible {
            wanted.exact = given;
        } else {
            wanted.exact.at_least(&given);
        }
        let (cpu, memory) = wanted.assumed;
        wanted.assumed = (cpu.max(wanted.exact.cpu), memory.max(wanted.exact.memory));
        wanted
    }
}

fn asked(container: &Container) -> Resources {
    let requests = container.resources.as_ref();
    Resources::of(requests.and_then(|r| r.requests.as_ref()))
}

/// The sum of containers and sidecars, and at least what any init container needs beside the sidecars before it.
fn total(spec: &PodSpec, of: impl Fn(&Container) -> Resources) -> Resources {
    let (mut sidecars, mut hungriest) = (Resources::default(), Resources::default());
    for container in spec.init_containers.iter().flatten() {
        let mut moment = of(container);
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars.add(&moment);
            moment = sidecars.clone();
        } else {
            moment.add(&sidecars);
        }
        hungriest.at_least(&moment);
    }
    let mut sum = sidecars;
    for container in &spec.containers {
        sum.add(&of(container));
    }
    sum.at_least(&hungriest);
    sum
}

fn assumed(container: &Container) -> Resources {
    let requests = container
        .resources
        .as_ref()
        .and_then(|r| r.requests.as_ref());
    let given = |name: &str| Some(amount(name, requests?.get(name)?));
    Resources {
        cpu: given("cpu").unwrap_or(ASSUMED_CPU),
        memory: given("memory").unwrap_or(ASSUMED_MEMORY),
        others: BTreeMap::new(),
    }
}

fn amount(name: &str, text: &Text) -> i64 {
    let Ok(quantity) = Quantity::parse(&text.0) else {
        return 0;
    };
    let value = match name {
        "cpu" => quantity.milli_value(),
        _ => quantity.value(),
    };
    // An amount beyond 64 bits is as good as all there can be.
    value.unwrap_or(i64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// `AggregateContainerRequests` with `UseStatusResources`.
    #[test]
    fn pod_that_is_resized_takes_the_most_of_what_it_wants_was_promised_and_has() {
        let cpu = |amount: &str| json!({"requests": {"cpu": amount}});
        let pod = |wanted: &str, allocated: &str, has: &str, reason: &str| -> Pod {
            let pending = json!({"type": "PodResizePending", "status": "True", "reason": reason});
            let status = json!({"name": "a", "image": "", "imageID": "", "ready": true, "restartCount": 0,
                "allocatedResources": {"cpu": allocated}, "resources": cpu(has)});
            let object: Value = json!({
                "spec": {"containers": [{"name": "a", "resources": cpu(wanted)}], "overhead": {"cpu": "10m"}},
                "status": {"containerStatuses": [status], "conditions": [pending]},
            });
            serde_json::from_value(object).expect("a pod")
        };
        for (wanted, allocated, has, reason, takes) in [
            ("1", "1", "1", "", 1_010),
            ("2", "1", "1", "Deferred", 2_010),
            ("1", "2", "1", "", 2_010),
            ("1", "1", "3", "", 3_010),
            ("9", "1", "1", "Infeasible", 1_010),
        ] {
            let requests = Requests::while_resized(&pod(wanted, allocated, has, reason));
            assert_eq!(
                requests.exact.cpu, takes,
                "{wanted} {allocated} {has} {reason}"
            );
            assert!(requests.assumed.0 >= takes);
        }
    }
}
