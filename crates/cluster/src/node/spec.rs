//! How a simulated node is to be, and the Node object that follows.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::Ipv4Addr;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{
    DaemonEndpoint, Node, NodeAddress, NodeCondition, NodeDaemonEndpoints, NodeSpec as Spec,
    NodeStatus, NodeSystemInfo, Taint,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, OwnerReference, Time};

use super::kubelet::eviction::Pressure;
use super::state::NodeState;

/// The port that agents of nodes listen on.
const KUBELET_PORT: i32 = 10250;
/// Says on a Node that it is simulated, or asks for it.
pub(crate) const SIMULATE: &str = "sim.kubewright.dev/simulate";
/// Where leases of nodes are.
pub(crate) const LEASES: &str = "kube-node-lease";

/// How a simulated node is to be.
///
/// ```
/// use kubewright_cluster::node::NodeSpec;
///
/// let node = NodeSpec::new("worker-1")
///     .resource("cpu", "64")
///     .resource("nvidia.com/gpu", "8")
///     .label("pool", "gpu")
///     .taint("pool", "gpu", "NoSchedule");
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct NodeSpec {
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) taints: Vec<Taint>,
    pub(crate) resources: BTreeMap<String, String>,
    /// Whether containers of Guaranteed pods have processors of their own.
    pub(crate) has_static_cpus: bool,
}

impl NodeSpec {
    /// A node with 8 CPUs, 32Gi of memory and room for 110 pods.
    pub fn new(name: impl Into<String>) -> Self {
        let resources = [
            ("cpu", "8"),
            ("memory", "32Gi"),
            ("pods", "110"),
            ("ephemeral-storage", "256Gi"),
        ];
        let resources = resources.map(|(name, amount)| (name.to_owned(), amount.to_owned()));
        Self {
            name: name.into(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            taints: Vec::new(),
            resources: resources.into(),
            has_static_cpus: false,
        }
    }

    /// Returns the name of the node.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How much of a resource it has: `cpu`, `memory`, `pods`, or any device.
    pub fn resource(mut self, name: impl Into<String>, amount: impl Into<String>) -> Self {
        self.resources.insert(name.into(), amount.into());
        self
    }

    /// A label besides those that all nodes have.
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }

    /// Adds an annotation to the Node object.
    pub fn annotation(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.annotations.insert(key.into(), value.into());
        self
    }

    /// A taint; the effect is `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub fn taint(
        mut self,
        key: impl Into<String>,
        value: impl Into<String>,
        effect: impl Into<String>,
    ) -> Self {
        self.taints.push(Taint {
            key: key.into(),
            value: Some(value.into()).filter(|value: &String| !value.is_empty()),
            effect: effect.into(),
            time_added: None,
        });
        self
    }

    /// Gives containers of `Guaranteed` pods processors of their own, as a kubelet with the CPU manager policy `static` does. What
    /// they have of those cannot be resized in place: the pod shows `PodResizePending` with the reason `Infeasible`.
    ///
    /// # Examples
    /// ```
    /// use kubewright_cluster::node::NodeSpec;
    ///
    /// let node = NodeSpec::new("pinned").resource("cpu", "16").static_cpus();
    /// ```
    pub fn static_cpus(mut self) -> Self {
        self.has_static_cpus = true;
        self
    }

    /// What a Node that somebody made says of itself.
    pub(crate) fn of_object(node: &Node) -> Self {
        let mut spec = Self::new(node.metadata.name.clone().unwrap_or_default());
        let capacity = node.status.as_ref().and_then(|s| s.capacity.as_ref());
        for (name, amount) in capacity.into_iter().flatten() {
            spec.resources.insert(name.clone(), amount.0.clone());
        }
        spec
    }

    /// What it has, as objects carry it.
    pub(crate) fn amounts(&self) -> BTreeMap<String, Quantity> {
        let resources = self.resources.iter();
        resources
            .map(|(name, amount)| (name.clone(), Quantity(amount.clone())))
            .collect()
    }

    /// How many pods fit.
    pub(crate) fn pods(&self) -> u32 {
        let pods = self.resources.get("pods");
        pods.and_then(|text| text.parse().ok()).unwrap_or(110)
    }

    /// The Node as it registers.
    pub(crate) fn object(&self, zone: &str, network: &Network, reporting: &Reporting<'_>) -> Node {
        let mut labels: BTreeMap<String, String> = [
            ("kubernetes.io/hostname", self.name.as_str()),
            ("kubernetes.io/arch", "amd64"),
            ("kubernetes.io/os", "linux"),
            ("beta.kubernetes.io/arch", "amd64"),
            ("beta.kubernetes.io/os", "linux"),
            ("topology.kubernetes.io/region", "simulated"),
            ("topology.kubernetes.io/zone", zone),
        ]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
        labels.extend(self.labels.clone());
        let mut annotations = self.annotations.clone();
        annotations.insert(SIMULATE.to_owned(), "true".to_owned());
        Node {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                labels: Some(labels),
                annotations: Some(annotations),
                ..ObjectMeta::default()
            },
            spec: Some(Spec {
                pod_cidr: Some(network.pods.clone()),
                pod_cidrs: Some(vec![network.pods.clone()]),
                provider_id: Some(format!("kubewright://{}", self.name)),
                taints: (!self.taints.is_empty()).then(|| self.taints.clone()),
                ..Spec::default()
            }),
            status: Some(self.status(network.address, reporting)),
        }
    }

    /// The status as the node reports it. Conditions keep the time of their last change.
    pub(crate) fn status(&self, address: Ipv4Addr, reporting: &Reporting<'_>) -> NodeStatus {
        let resources = self.amounts();
        let address_of = |type_: &str, address: String| NodeAddress {
            type_: type_.to_owned(),
            address,
        };
        NodeStatus {
            capacity: Some(resources.clone()),
            allocatable: Some(resources),
            addresses: Some(vec![
                address_of("InternalIP", address.to_string()),
                address_of("Hostname", self.name.clone()),
            ]),
            conditions: Some(conditions(reporting)),
            daemon_endpoints: Some(NodeDaemonEndpoints {
                kubelet_endpoint: Some(DaemonEndpoint { port: KUBELET_PORT }),
            }),
            node_info: Some(self.info(reporting.state.reboots)),
            ..NodeStatus::default()
        }
    }

    fn info(&self, reboots: u32) -> NodeSystemInfo {
        let version = format!("v1.{}.0", kubewright_server::KUBERNETES_MINOR);
        NodeSystemInfo {
            architecture: "amd64".to_owned(),
            operating_system: "linux".to_owned(),
            os_image: "Kubewright simulated node".to_owned(),
            kernel_version: "0.0.0-simulated".to_owned(),
            container_runtime_version: "simulated://0.1.0".to_owned(),
            kubelet_version: version.clone(),
            kube_proxy_version: version,
            machine_id: self.id("machine"),
            system_uuid: self.id("system"),
            boot_id: self.boot_id(reboots),
            ..NodeSystemInfo::default()
        }
    }

    /// The identity of the machine since it was started the last time.
    pub(crate) fn boot_id(&self, reboots: u32) -> String {
        match reboots {
            0 => self.id("boot"),
            count => self.id(&format!("boot {count}")),
        }
    }

    fn id(&self, what: &str) -> String {
        // The default hasher has a fixed key: a node of the same name is the same machine.
        let lane = |lane: u8| {
            let mut hasher = DefaultHasher::new();
            (lane, what, &self.name).hash(&mut hasher);
            format!("{:016x}", hasher.finish())
        };
        lane(0) + &lane(1)
    }
}

/// Where a node and its pods are.
#[derive(Debug, Clone)]
pub(crate) struct Network {
    pub(crate) pods: String,
    pub(crate) address: Ipv4Addr,
}

/// What the report of a node is made from, besides its spec.
#[derive(Debug)]
pub(crate) struct Reporting<'a> {
    pub(crate) state: &'a NodeState,
    /// The status that its object has.
    pub(crate) before: Option<&'a NodeStatus>,
    pub(crate) now: Timestamp,
}

/// What a node says of itself.
fn conditions(reporting: &Reporting<'_>) -> Vec<NodeCondition> {
    let (now, before) = (reporting.now, reporting.before);
    let healthy = |pressure: Pressure| match pressure {
        Pressure::Memory => (
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available",
        ),
        Pressure::Disk => ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        Pressure::Pid => (
            "KubeletHasSufficientPID",
            "kubelet has sufficient PID available",
        ),
    };
    let pressed = Pressure::ALL.map(|pressure| {
        let holds = reporting.state.pressures.contains(&pressure);
        let status = if holds { "True" } else { "False" };
        let (reason, message) = if holds {
            pressure.reason()
        } else {
            healthy(pressure)
        };
        (pressure.condition(), status, reason, message)
    });
    let (status, reason, message) = reporting.state.ready();
    let ready = ("Ready", status, reason, message);
    let all = pressed.into_iter().chain([ready]);
    all.map(|(type_, status, reason, message)| {
        let reported = before.iter().flat_map(|s| s.conditions.iter().flatten());
        let mut same = reported.filter(|c| c.type_ == type_ && c.status == status);
        let since = same.find_map(|c| c.last_transition_time.clone());
        NodeCondition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_heartbeat_time: Some(Time(now)),
            last_transition_time: Some(since.unwrap_or(Time(now))),
        }
    })
    .collect()
}

/// The lease of a node, good for a while from now.
pub(crate) fn lease(name: &str, uid: &str, duration: Duration, now: Timestamp) -> Lease {
    Lease {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(LEASES.to_owned()),
            owner_references: Some(vec![OwnerReference {
                api_version: "v1".to_owned(),
                kind: "Node".to_owned(),
                name: name.to_owned(),
                uid: uid.to_owned(),
                ..OwnerReference::default()
            }]),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(name.to_owned()),
            lease_duration_seconds: Some(i32::try_from(duration.as_secs()).unwrap_or(i32::MAX)),
            renew_time: Some(MicroTime(now)),
            ..LeaseSpec::default()
        }),
    }
}
