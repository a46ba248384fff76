//! Why nodes were refused, and the sentence that tells it.

use std::collections::BTreeMap;
use std::fmt;

/// Why a node cannot take a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    Unschedulable,
    /// Key and value of a taint that the pod does not tolerate.
    Taint(String, String),
    NodeAffinity,
    Ports,
    TooManyPods,
    /// There is not enough of a resource, now or ever.
    Insufficient(String, Lack),
    /// Another pod uses a claim that only one pod may use.
    ExclusiveClaim,
    VolumeAffinity,
    /// A claim that waits for its first pod would get no volume.
    NoVolume,
    SpreadLabel,
    Spread,
    PodAffinity,
    PodAntiAffinity,
    ExistingAntiAffinity,
}

/// Whether others have what is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lack {
    /// Other pods use it at the moment.
    Now,
    /// The node never had that much.
    Ever,
}

impl From<bool> for Lack {
    fn from(forever: bool) -> Self {
        if forever { Self::Ever } else { Self::Now }
    }
}

impl Reason {
    /// Whether the node could take the pod if others left it.
    pub(super) fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::Ports
                | Self::TooManyPods
                | Self::Insufficient(_, Lack::Now)
                | Self::ExclusiveClaim
                | Self::Spread
                | Self::PodAntiAffinity
                | Self::ExistingAntiAffinity
        )
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unschedulable => f.write_str("node(s) were unschedulable"),
            Self::Taint(key, value) => {
                write!(f, "node(s) had untolerated taint {{{key}: {value}}}")
            }
            Self::NodeAffinity => f.write_str("node(s) didn't match Pod's node affinity/selector"),
            Self::Ports => {
                f.write_str("node(s) didn't have free ports for the requested pod ports")
            }
            Self::TooManyPods => f.write_str("Too many pods"),
            Self::Insufficient(resource, _) => write!(f, "Insufficient {resource}"),
            Self::ExclusiveClaim => f.write_str(
                "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode",
            ),
            Self::NoVolume => {
                f.write_str("node(s) didn't find available persistent volumes to bind")
            }
            Self::VolumeAffinity => {
                f.write_str("node(s) didn't match PersistentVolume's node affinity")
            }
            Self::SpreadLabel => f.write_str(
                "node(s) didn't match pod topology spread constraints (missing required label)",
            ),
            Self::Spread => f.write_str("node(s) didn't match pod topology spread constraints"),
            Self::PodAffinity => f.write_str("node(s) didn't match pod affinity rules"),
            Self::PodAntiAffinity => f.write_str("node(s) didn't match pod anti-affinity rules"),
            Self::ExistingAntiAffinity => {
                f.write_str("node(s) didn't satisfy existing pods anti-affinity rules")
            }
        }
    }
}

/// Collects the reasons of all nodes. `Display` is the sentence for the pod's condition and event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Refusals {
    nodes: usize,
    by_reason: BTreeMap<String, usize>,
    passing: usize,
}

impl Refusals {
    /// Notes why one node was refused.
    pub(crate) fn note(&mut self, reasons: &[Reason]) {
        self.nodes += 1;
        self.passing += usize::from(reasons.iter().all(Reason::may_pass));
        for reason in reasons {
            *self.by_reason.entry(reason.to_string()).or_default() += 1;
        }
    }

    fn sentence(&self, reasons: &str) -> String {
        let nodes = self.nodes;
        let stuck = nodes - self.passing;
        let preemption = histogram([
            ("No preemption victims found for incoming pod", self.passing),
            ("Preemption is not helpful for scheduling", stuck),
        ]);
        format!(
            "0/{nodes} nodes are available: {reasons}. preemption: 0/{nodes} nodes are available: {preemption}."
        )
    }
}

impl std::error::Error for Refusals {}

impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nodes == 0 {
            return f.write_str("no nodes available to schedule pods");
        }
        let reasons = self.by_reason.iter();
        let reasons = histogram(reasons.map(|(reason, count)| (reason.as_str(), *count)));
        f.write_str(&self.sentence(&reasons))
    }
}

/// The sentence when something about the pod itself keeps it from every node.
pub(crate) fn refused_everywhere(nodes: usize, why: &str) -> String {
    if nodes == 0 {
        return Refusals::default().to_string();
    }
    let refusals = Refusals {
        nodes,
        ..Refusals::default()
    };
    refusals.sentence(why)
}

/// The sentence without what it says of preemption: it takes place.
pub(crate) fn without_preemption(message: &str) -> String {
    let found = message.split_once(" preemption: ");
    found.map_or(message, |(reasons, _)| reasons).to_owned()
}

/// The sentence when a pod may not preempt others.
pub(crate) fn ineligible(message: &str, why: &str) -> String {
    format!("{} preemption: {why}", without_preemption(message))
}

/// `2 of this, 5 of that`, in the order of the texts as the real scheduler sorts them.
fn histogram<'a>(counts: impl IntoIterator<Item = (&'a str, usize)>) -> String {
    let counts = counts.into_iter().filter(|(_, count)| *count > 0);
    let mut texts: Vec<String> = counts
        .map(|(text, count)| format!("{count} {text}"))
        .collect();
    texts.sort();
    texts.join(", ")
}
