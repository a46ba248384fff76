//! Which nodes can take a pod, and why the others cannot, in the words of the real scheduler.

use std::collections::{BTreeMap, BTreeSet};

use super::board::{Board, Cordon, Place};
use super::demand::{Demand, Policy, Spread, Strictness, Term};
use super::selector::term_matches;
use super::taints;
use super::verdict::Reason;
use super::volumes::Volumes;

/// A question about one pod, with what is the same for all nodes worked out.
#[derive(Debug)]
pub(crate) struct Question<'a> {
    demand: &'a Demand,
    near: Near,
    apart: Vec<Domains>,
    /// Domains where a pod is that wants this one away.
    repelled: Vec<Domains>,
    pub(super) spread: Vec<SpreadState>,
    volumes: &'a Volumes,
    /// Whether another pod uses a claim that only one pod may use.
    exclusive_claim_in_use: bool,
}

/// Values of a topology key.
#[derive(Debug)]
struct Domains {
    key: String,
    values: BTreeSet<String>,
}

#[derive(Debug)]
enum Near {
    /// Each of these must include the node's domain.
    These(Vec<Domains>),
    /// The pod asks for pods like itself and is the first of them: any node with these keys will do.
    First(Vec<String>),
}

/// Where the pods of a spread rule are.
#[derive(Debug)]
pub(super) struct SpreadState {
    pub(super) rule: Spread,
    pub(super) by_domain: BTreeMap<String, i64>,
    least: i64,
    /// One if the pod itself counts.
    own: i64,
}

impl<'a> Question<'a> {
    /// Works out what is the same for all nodes.
    pub(crate) fn new(board: &mut Board, demand: &'a Demand, volumes: &'a Volumes) -> Self {
        let spread = demand.spread.iter();
        let spread = spread.map(|rule| SpreadState::new(board, demand, rule));
        let spread = spread.collect();
        let apart = demand.apart.iter();
        let apart = apart.map(|term| domains_of(board, term)).collect();
        Self {
            near: near(board, demand),
            apart,
            repelled: repelled(board, demand),
            spread,
            exclusive_claim_in_use: volumes.exclusive.iter().any(|claim| board.uses(claim)),
            volumes,
            demand,
        }
    }

    /// Why a node cannot take the pod; nothing if it can. As in the real scheduler the first rule that fails speaks.
    pub(crate) fn reasons(&self, place: &Place) -> Vec<Reason> {
        if place.cordon == Cordon::Closed && !self.tolerates_cordon() {
            return vec![Reason::Unschedulable];
        }
        if let Some(taint) = taints::first_untolerated(&place.taints, &self.demand.tolerations) {
            let value = taint.value.clone().unwrap_or_default();
            return vec![Reason::Taint(taint.key.clone(), value)];
        }
        if !matches_nodes(self.demand, place) {
            return vec![Reason::NodeAffinity];
        }
        if self.port_clash(place) {
            return vec![Reason::Ports];
        }
        let missing = self.missing_resources(place);
        if !missing.is_empty() {
            return missing;
        }
        let reason = self
            .volume_conflict(place)
            .or_else(|| self.spread_conflict(place))
            .or_else(|| self.affinity_conflict(place));
        reason.into_iter().collect()
    }

    fn tolerates_cordon(&self) -> bool {
        let taint = k8s_openapi::api::core::v1::Taint {
            key: "node.kubernetes.io/unschedulable".to_owned(),
            effect: "NoSchedule".to_owned(),
            ..Default::default()
        };
        let tolerations = &self.demand.tolerations;
        tolerations.iter().any(|one| taints::covers(one, &taint))
    }

    fn port_clash(&self, place: &Place) -> bool {
        let wanted = &self.demand.ports;
        !wanted.is_empty()
            && place
                .ports
                .keys()
                .any(|used| wanted.iter().any(|port| port.clashes(used)))
    }

    fn missing_resources(&self, place: &Place) -> Vec<Reason> {
        let mut reasons = Vec::new();
        if place.pods + 1 > place.pod_limit {
            reasons.push(Reason::TooManyPods);
        }
        let (wanted, used) = (&self.demand.requests.exact, &place.used);
        let mut check = |name: &str, wanted: i64, used: i64, all: i64| {
            if wanted > 0 && wanted > all.saturating_sub(used) {
                let forever = wanted > all;
                reasons.push(Reason::Insufficient(name.to_owned(), forever.into()));
            }
        };
        check("cpu", wanted.cpu, used.cpu, place.allocatable.cpu);
        check(
            "memory",
            wanted.memory,
            used.memory,
            place.allocatable.memory,
        );
        for (name, value) in &wanted.others {
            let of = |amounts: &BTreeMap<Box<str>, i64>| amounts.get(name).copied().unwrap_or(0);
            check(
                name,
                *value,
                of(&used.others),
                of(&place.allocatable.others),
            );
        }
        reasons
    }

    fn volume_conflict(&self, place: &Place) -> Option<Reason> {
        if self.exclusive_claim_in_use {
            return Some(Reason::ExclusiveClaim);
        }
        if !self.volumes.are_usable_on(place) {
            return Some(Reason::VolumeAffinity);
        }
        self.volumes
            .choose(place)
            .is_none()
            .then_some(Reason::NoVolume)
    }

    fn spread_conflict(&self, place: &Place) -> Option<Reason> {
        let required = |state: &&SpreadState| state.rule.strictness == Strictness::Required;
        for state in self.spread.iter().filter(required) {
            let Some(domain) = place.labels.get(&state.rule.topology_key) else {
                return Some(Reason::SpreadLabel);
            };
            let here = state.by_domain.get(domain).copied().unwrap_or(0);
            if here + state.own - state.least > state.rule.max_skew {
                return Some(Reason::Spread);
            }
        }
        None
    }

    fn affinity_conflict(&self, place: &Place) -> Option<Reason> {
        let within = |domains: &Domains| {
            let domain = place.labels.get(&domains.key);
            domain.is_some_and(|value| domains.values.contains(value))
        };
        let near = match &self.near {
            Near::These(all) => all.iter().all(within),
            Near::First(keys) => keys.iter().all(|key| place.labels.contains_key(key)),
        };
        if !near {
            return Some(Reason::PodAffinity);
        }
        if self.apart.iter().any(within) {
            return Some(Reason::PodAntiAffinity);
        }
        self.repelled
            .iter()
            .any(within)
            .then_some(Reason::ExistingAntiAffinity)
    }
}

impl SpreadState {
    fn new(board: &mut Board, demand: &Demand, rule: &Spread) -> Self {
        // A selector without requirements counts nobody (`podtopologyspread/common.go: countPodsMatchSelector`).
        let tally = if rule.pods.selector.is_everything() {
            BTreeMap::new()
        } else {
            board.tally(&rule.pods).by_node.clone()
        };
        let mut by_domain: BTreeMap<String, i64> = BTreeMap::new();
        for (name, place) in board.nodes() {
            let Some(domain) = place.labels.get(&rule.topology_key) else {
                continue;
            };
            if !has_all_keys(rule.strictness, demand, place) || !counts(rule, demand, place) {
                continue;
            }
            let here = i64::from(tally.get(name).copied().unwrap_or(0));
            *by_domain.entry(domain.clone()).or_default() += here;
        }
        let enough = i64::try_from(by_domain.len()).unwrap_or(i64::MAX) >= rule.min_domains;
        let least = if enough {
            by_domain.values().min().copied().unwrap_or(0)
        } else {
            0
        };
        Self {
            own: i64::from(board.includes(&rule.pods, demand)),
            rule: rule.clone(),
            by_domain,
            least,
        }
    }
}

/// Whether a node has the topology keys of all rules that are as strict as this one: a node that lacks one of them is in
/// no domain (`podtopologyspread/common.go: nodeLabelsMatchSpreadConstraints`).
pub(super) fn has_all_keys(strictness: Strictness, demand: &Demand, place: &Place) -> bool {
    let rules = demand.spread.iter();
    let mut rules = rules.filter(|rule| rule.strictness == strictness);
    rules.all(|rule| place.labels.contains_key(&rule.topology_key))
}

/// Whether a node is one of those that a spread looks at.
fn counts(rule: &Spread, demand: &Demand, place: &Place) -> bool {
    let affinity = rule.counts.node_affinity == Policy::Ignore || matches_nodes(demand, place);
    let taints = rule.counts.taints == Policy::Ignore
        || taints::first_untolerated(&place.taints, &demand.tolerations).is_none();
    affinity && taints
}

/// Whether a node is one that the pod's selector and affinity name.
fn matches_nodes(demand: &Demand, place: &Place) -> bool {
    let has = |(key, value): (&String, &String)| place.labels.get(key) == Some(value);
    demand.node_selector.iter().all(has)
        && demand.node_terms.as_ref().is_none_or(|terms| {
            let mut terms = terms.iter();
            terms.any(|term| term_matches(term, &place.name, &place.labels))
        })
}

fn near(board: &mut Board, demand: &Demand) -> Near {
    let all: Vec<Domains> = demand
        .near
        .iter()
        .map(|term| domains_of(board, term))
        .collect();
    let nobody = !all.is_empty() && all.iter().all(|domains| domains.values.is_empty());
    let own = |term: &Term| board.includes(&term.pods, demand);
    if nobody && demand.near.iter().all(own) {
        return Near::First(all.into_iter().map(|domains| domains.key).collect());
    }
    Near::These(all)
}

fn repelled(board: &Board, demand: &Demand) -> Vec<Domains> {
    board
        .repelling(demand)
        .map(|(term, nodes)| Domains {
            key: term.topology_key.clone(),
            values: nodes
                .filter_map(|node| board.domain(node, &term.topology_key))
                .map(str::to_owned)
                .collect(),
        })
        .collect()
}

fn domains_of(board: &mut Board, term: &Term) -> Domains {
    let nodes: Vec<_> = board.tally(&term.pods).by_node.keys().cloned().collect();
    let values = nodes
        .iter()
        .filter_map(|node| board.domain(node, &term.topology_key));
    Domains {
        key: term.topology_key.clone(),
        values: values.map(str::to_owned).collect(),
    }
}
