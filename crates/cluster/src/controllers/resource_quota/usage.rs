//! What objects use of a quota, by the names that quotas have for it. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Service};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use kubewright_schema::quantity::{Format, Quantity};

/// Amounts by the name that a quota has for them.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally(BTreeMap<String, Quantity>);

/// What has to be looked at for one entry of a quota.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Counted {
    Pods,
    Services,
    Claims,
    /// Objects that count by being there.
    Objects {
        /// The name in the quota.
        name: String,
        plural: String,
        group: String,
    },
}

/// What has to be looked at for an entry of a quota.
pub(super) fn counted(name: &str) -> Counted {
    let objects = |resource: &str| {
        let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
        Counted::Objects {
            name: name.to_owned(),
            plural: plural.to_owned(),
            group: group.to_owned(),
        }
    };
    match name {
        "services" | "services.loadbalancers" | "services.nodeports" | "count/services" => {
            Counted::Services
        }
        "persistentvolumeclaims" | "requests.storage" | "count/persistentvolumeclaims" => {
            Counted::Claims
        }
        "configmaps" | "secrets" | "replicationcontrollers" | "resourcequotas" => objects(name),
        _ if name.contains(".storageclass.storage.k8s.io/") => Counted::Claims,
        "count/pods" => Counted::Pods,
        _ => match name.strip_prefix("count/") {
            Some(resource) => objects(resource),
            None => Counted::Pods,
        },
    }
}

impl Tally {
    /// An amount; zero when nothing was added.
    pub(super) fn get(&self, name: &str) -> Quantity {
        self.0.get(name).cloned().unwrap_or_default()
    }

    /// Adds an amount. What is beyond all bounds stays what it is.
    pub(super) fn add(&mut self, name: impl Into<String>, amount: &Quantity) {
        let sum = self.0.entry(name.into()).or_default();
        if let Ok(more) = sum.checked_add(amount) {
            *sum = more;
        }
    }

    /// Adds an amount as an object carries it; what cannot be read counts as nothing, the server has refused it anyway.
    pub(super) fn add_text(&mut self, name: impl Into<String>, amount: &Text) {
        if let Ok(amount) = Quantity::parse(&amount.0) {
            self.add(name, &amount);
        }
    }

    /// Adds a number of objects.
    pub(super) fn count(&mut self, name: &str, objects: usize) {
        let number = i64::try_from(objects).unwrap_or(i64::MAX);
        self.add(name, &Quantity::from_integer(number, Format::DecimalSi));
    }

    /// Adds everything of another.
    pub(super) fn add_all(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            self.add(name.clone(), amount);
        }
    }

    /// Takes the larger amount of each.
    pub(super) fn at_least(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let own = self.0.entry(name.clone()).or_default();
            if *own < *amount {
                *own = amount.clone();
            }
        }
    }

    /// The amounts by name.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Quantity)> {
        self.0.iter().map(|(name, amount)| (&**name, amount))
    }

    /// Puts an amount in the place of what is there.
    pub(super) fn set(&mut self, name: &str, amount: Quantity) {
        self.0.insert(name.to_owned(), amount);
    }
}

/// What a service uses.
pub(super) fn of_service(service: &Service) -> Tally {
    let mut tally = Tally::default();
    tally.count("services", 1);
    tally.count("count/services", 1);
    let spec = service.spec.as_ref();
    let ports = spec.and_then(|s| s.ports.as_ref()).map_or(0, Vec::len);
    match spec.and_then(|s| s.type_.as_deref()) {
        Some("NodePort") => tally.count("services.nodeports", ports),
        Some("LoadBalancer") => {
            tally.count("services.loadbalancers", 1);
            let allocates = spec.and_then(|s| s.allocate_load_balancer_node_ports);
            if allocates != Some(false) {
                tally.count("services.nodeports", ports);
            } else {
                let given = spec.and_then(|s| s.ports.as_ref()).into_iter().flatten();
                let given = given
                    .filter(|port| port.node_port.unwrap_or(0) != 0)
                    .count();
                tally.count("services.nodeports", given);
            }
        }
        _ => {}
    }
    tally
}

/// What a claim uses, of all storage and of that of its class.
pub(super) fn of_claim(claim: &PersistentVolumeClaim) -> Tally {
    let mut tally = Tally::default();
    let spec = claim.spec.as_ref();
    let annotations = claim.metadata.annotations.as_ref();
    let annotated = annotations.and_then(|a| a.get("volume.beta.kubernetes.io/storage-class"));
    let class = annotated.or_else(|| spec.and_then(|s| s.storage_class_name.as_ref()));
    let of_class = |what: &str| Some(format!("{}.storageclass.storage.k8s.io/{what}", class?));
    tally.count("persistentvolumeclaims", 1);
    tally.count("count/persistentvolumeclaims", 1);
    if let Some(name) = of_class("persistentvolumeclaims") {
        tally.count(&name, 1);
    }
    let requests = spec.and_then(|s| s.resources.as_ref()?.requests.as_ref());
    if let Some(storage) = requests.and_then(|requests| requests.get("storage")) {
        tally.add_text("requests.storage", storage);
        if let Some(name) = of_class("requests.storage") {
            tally.add_text(name, storage);
        }
    }
    tally
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn entries_name_what_they_count() {
        let objects = |name: &str, plural: &str, group: &str| Counted::Objects {
            name: name.into(),
            plural: plural.into(),
            group: group.into(),
        };
        for (name, expected) in [
            ("pods", Counted::Pods),
            ("requests.cpu", Counted::Pods),
            ("limits.memory", Counted::Pods),
            ("requests.nvidia.com/gpu", Counted::Pods),
            ("services.nodeports", Counted::Services),
            ("requests.storage", Counted::Claims),
            (
                "fast.storageclass.storage.k8s.io/requests.storage",
                Counted::Claims,
            ),
            ("secrets", objects("secrets", "secrets", "")),
            (
                "count/deployments.apps",
                objects("count/deployments.apps", "deployments", "apps"),
            ),
            ("count/pods", Counted::Pods),
        ] {
            assert_eq!(counted(name), expected);
        }
    }

    fn amount(tally: &Tally, name: &str) -> String {
        tally.get(name).to_string()
    }

    #[test]
    fn services_use_node_ports_and_balancers() {
        let service = |spec| {
            let service = json!({"metadata": {"name": "s"}, "spec": spec});
            of_service(&serde_json::from_value(service).expect("a service"))
        };
        let ports = json!([{"port": 1}, {"port": 2, "nodePort": 30000}]);
        let balancer = service(json!({"type": "LoadBalancer", "ports": ports}));
        assert_eq!(amount(&balancer, "services.loadbalancers"), "1");
        assert_eq!(amount(&balancer, "services.nodeports"), "2");
        let frugal =
            json!({"type": "LoadBalancer", "ports": ports, "allocateLoadBalancerNodePorts": false});
        assert_eq!(amount(&service(frugal), "services.nodeports"), "1");
        assert_eq!(
            amount(&service(json!({"ports": ports})), "services.nodeports"),
            "0"
        );
    }

    #[test]
    fn claims_count_for_their_class_as_well() {
        let claim = json!({
            "metadata": {"name": "c"},
            "spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "2Gi"}}},
        });
        let tally = of_claim(&serde_json::from_value(claim).expect("a claim"));
        assert_eq!(amount(&tally, "requests.storage"), "2Gi");
        assert_eq!(
            amount(&tally, "fast.storageclass.storage.k8s.io/requests.storage"),
            "2Gi"
        );
        assert_eq!(
            amount(
                &tally,
                "fast.storageclass.storage.k8s.io/persistentvolumeclaims"
            ),
            "1"
        );
    }
}
