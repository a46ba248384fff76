//! What a pod asks of the node it is to run on, read once.

use k8s_openapi::api::core::v1::{
    NodeSelectorTerm, Pod, PodAffinityTerm, PodSpec, PreferredSchedulingTerm, Toleration,
    TopologySpreadConstraint, WeightedPodAffinityTerm,
};
use kubewright_cache::Key;

use super::resources::Requests;
use super::selector::{Labels, Selector};

/// What a pod asks for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Demand {
    pub(crate) namespace: String,
    pub(crate) labels: Labels,
    pub(crate) priority: i32,
    pub(crate) requests: Requests,
    pub(crate) tolerations: Vec<Toleration>,
    pub(crate) node_selector: Labels,
    /// Terms of which one must hold; nothing when any node will do.
    pub(crate) node_terms: Option<Vec<NodeSelectorTerm>>,
    pub(crate) preferred_nodes: Vec<PreferredSchedulingTerm>,
    pub(crate) near: Vec<Term>,
    pub(crate) apart: Vec<Term>,
    /// Preferences with their weight, below zero for pods to stay away from.
    pub(crate) preferred: Vec<(i64, Term)>,
    pub(crate) spread: Vec<Spread>,
    pub(crate) ports: Vec<HostPort>,
    pub(crate) claims: Vec<Claim>,
    /// Whether the pod has been deleted and is on its way out.
    pub(crate) terminating: bool,
}

/// Pods to be near to, or away from, within a domain.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Term {
    pub(crate) pods: Pods,
    pub(crate) topology_key: String,
}

/// A set of pods: in some namespaces, with some labels.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pods {
    pub(crate) namespaces: Vec<String>,
    /// Chooses further namespaces by their labels.
    pub(crate) namespace_selector: Selector,
    pub(crate) selector: Selector,
    pub(crate) terminating: Terminating,
}

/// Whether pods on their way out are in a set: affinity sees them, topology spread does not
/// (`podtopologyspread/common.go: countPodsMatchSelector`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Terminating {
    Counted,
    Skipped,
}

/// One rule of even distribution.
#[derive(Debug, Clone)]
pub(crate) struct Spread {
    pub(crate) topology_key: String,
    pub(crate) pods: Pods,
    pub(crate) max_skew: i64,
    pub(crate) min_domains: i64,
    pub(crate) strictness: Strictness,
    pub(crate) counts: Counts,
}

/// Whether a rule may be broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strictness {
    Required,
    Preferred,
}

/// Which nodes count as domains of a spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) node_affinity: Policy,
    pub(crate) taints: Policy,
}

/// Whether something is taken into account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    Honor,
    Ignore,
}

/// A port of the node itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HostPort {
    pub(crate) address: String,
    pub(crate) protocol: String,
    pub(crate) port: i32,
}

/// A claim that a pod mounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) key: Key,
    pub(crate) origin: Origin,
}

/// Where a claim comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Somebody made it, and the pod names it.
    Named,
    /// It is made for the pod of this uid.
    Ephemeral { pod: Option<String> },
}

impl Demand {
    /// Reads a pod.
    pub(crate) fn of(pod: &Pod) -> Self {
        let mut demand = Self {
            namespace: pod.metadata.namespace.clone().unwrap_or_default(),
            labels: pod.metadata.labels.clone().unwrap_or_default(),
            requests: Requests::while_resized(pod),
            terminating: pod.metadata.deletion_timestamp.is_some(),
            ..Self::default()
        };
        let Some(spec) = &pod.spec else {
            return demand;
        };
        demand.priority = spec.priority.unwrap_or(0);
        demand.tolerations = spec.tolerations.clone().unwrap_or_default();
        demand.node_selector = spec.node_selector.clone().unwrap_or_default();
        demand.ports = host_ports(spec);
        demand.claims = claims(pod, spec);
        demand.read_affinity(spec);
        let spread = spec.topology_spread_constraints.iter().flatten();
        demand.spread = spread.map(|one| demand.spread_rule(one)).collect();
        demand
    }

    fn read_affinity(&mut self, spec: &PodSpec) {
        let Some(affinity) = &spec.affinity else {
            return;
        };
        if let Some(nodes) = &affinity.node_affinity {
            let required = nodes
                .required_during_scheduling_ignored_during_execution
                .as_ref();
            self.node_terms = required.map(|r| r.node_selector_terms.clone());
            let preferred = &nodes.preferred_during_scheduling_ignored_during_execution;
            self.preferred_nodes = preferred.clone().unwrap_or_default();
        }
        if let Some(near) = &affinity.pod_affinity {
            let required = &near.required_during_scheduling_ignored_during_execution;
            self.near = self.terms(required.as_deref());
            let preferred = &near.preferred_during_scheduling_ignored_during_execution;
            self.prefer(preferred.as_deref(), 1);
        }
        if let Some(apart) = &affinity.pod_anti_affinity {
            let required = &apart.required_during_scheduling_ignored_during_execution;
            self.apart = self.terms(required.as_deref());
            let preferred = &apart.preferred_during_scheduling_ignored_during_execution;
            self.prefer(preferred.as_deref(), -1);
        }
    }

    fn terms(&self, terms: Option<&[PodAffinityTerm]>) -> Vec<Term> {
        let terms = terms.unwrap_or_default().iter();
        terms.map(|term| self.term(term)).collect()
    }

    fn prefer(&mut self, terms: Option<&[WeightedPodAffinityTerm]>, sign: i64) {
        for weighted in terms.unwrap_or_default() {
            let term = self.term(&weighted.pod_affinity_term);
            self.preferred
                .push((sign * i64::from(weighted.weight), term));
        }
    }

    fn term(&self, term: &PodAffinityTerm) -> Term {
        let selector = Selector::of(term.label_selector.as_ref());
        let mut namespaces = term.namespaces.clone().unwrap_or_default();
        // Without a word about namespaces the pod's own is meant.
        if namespaces.is_empty() && term.namespace_selector.is_none() {
            namespaces.push(self.namespace.clone());
        }
        Term {
            pods: Pods {
                namespaces,
                namespace_selector: Selector::of(term.namespace_selector.as_ref()),
                selector: selector.with_keys_of(term.match_label_keys.as_ref(), &self.labels),
                terminating: Terminating::Counted,
            },
            topology_key: term.topology_key.clone(),
        }
    }

    fn spread_rule(&self, rule: &TopologySpreadConstraint) -> Spread {
        let selector = Selector::of(rule.label_selector.as_ref());
        let policy = |given: &Option<String>, default| match given.as_deref() {
            Some("Honor") => Policy::Honor,
            Some("Ignore") => Policy::Ignore,
            _ => default,
        };
        Spread {
            topology_key: rule.topology_key.clone(),
            pods: Pods {
                namespaces: vec![self.namespace.clone()],
                namespace_selector: Selector::default(),
                selector: selector.with_keys_of(rule.match_label_keys.as_ref(), &self.labels),
                terminating: Terminating::Skipped,
            },
            max_skew: i64::from(rule.max_skew),
            min_domains: i64::from(rule.min_domains.unwrap_or(1)),
            strictness: match rule.when_unsatisfiable.as_str() {
                "ScheduleAnyway" => Strictness::Preferred,
                _ => Strictness::Required,
            },
            counts: Counts {
                node_affinity: policy(&rule.node_affinity_policy, Policy::Honor),
                taints: policy(&rule.node_taints_policy, Policy::Ignore),
            },
        }
    }
}

impl HostPort {
    /// Whether two pods with these ports cannot be on one node.
    pub(crate) fn clashes(&self, other: &Self) -> bool {
        let everywhere = |address: &str| address.is_empty() || address == "0.0.0.0";
        self.port == other.port
            && self.protocol == other.protocol
            && (self.address == other.address
                || everywhere(&self.address)
                || everywhere(&other.address))
    }
}

/// The ports of its node that a pod wants for itself.
pub(crate) fn host_ports(spec: &PodSpec) -> Vec<HostPort> {
    let containers = spec
        .containers
        .iter()
        .chain(spec.init_containers.iter().flatten().filter(|container| {
            // Sidecars run beside the containers; the others are gone by then.
            container.restart_policy.as_deref() == Some("Always")
        }));
    containers
        .flat_map(|container| container.ports.iter().flatten())
        .filter_map(|port| {
            Some(HostPort {
                address: port.host_ip.clone().unwrap_or_default(),
                protocol: port.protocol.clone().unwrap_or_else(|| "TCP".to_owned()),
                port: port.host_port.filter(|number| *number > 0)?,
            })
        })
        .collect()
}

fn claims(pod: &Pod, spec: &PodSpec) -> Vec<Claim> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or("");
    let pod_name = pod.metadata.name.as_deref().unwrap_or("");
    let mut claims = Vec::new();
    for volume in spec.volumes.iter().flatten() {
        if let Some(source) = &volume.persistent_volume_claim {
            claims.push(Claim {
                key: Key::new(namespace, &source.claim_name),
                origin: Origin::Named,
            });
        } else if volume.ephemeral.is_some() {
            claims.push(Claim {
                key: Key::new(namespace, &format!("{pod_name}-{}", volume.name)),
                origin: Origin::Ephemeral {
                    pod: pod.metadata.uid.clone(),
                },
            });
        }
    }
    claims
}
