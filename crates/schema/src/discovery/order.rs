//! The order of groups and versions in discovery.

use std::cmp::{Ordering, Reverse};

use crate::catalog::{Resource, builtin};

/// Orders API versions as Kubernetes prefers them: stable before beta before alpha, newer before older, and names
/// that are no Kubernetes versions last, in alphabetical order. The preferred version comes first.
///
/// ```
/// use kubewright_schema::discovery::version_order;
///
/// let mut versions = ["v1alpha1", "foo", "v1beta2", "v1", "v2beta1", "v10", "v2"];
/// versions.sort_by(|a, b| version_order(a, b));
/// assert_eq!(versions, ["v10", "v2", "v1", "v2beta1", "v1beta2", "v1alpha1", "foo"]);
/// ```
pub fn version_order(a: &str, b: &str) -> Ordering {
    Rank::of(a).cmp(&Rank::of(b))
}

/// Where a version stands; the preferred one is the least.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank<'a> {
    Kubernetes(Reverse<KubernetesVersion>),
    Other(&'a str),
}

impl<'a> Rank<'a> {
    fn of(version: &'a str) -> Self {
        match KubernetesVersion::parse(version) {
            Some(parsed) => Rank::Kubernetes(Reverse(parsed)),
            None => Rank::Other(version),
        }
    }
}

/// `v2beta1` is `{Beta, 2, 1}`. The order of the fields is the order of preference.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct KubernetesVersion {
    stability: Stability,
    major: u64,
    minor: u64,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stability {
    Alpha,
    Beta,
    Stable,
}

impl KubernetesVersion {
    fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix('v')?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (major, rest) = rest.split_at(digits);
        let (stability, minor) = if rest.is_empty() {
            (Stability::Stable, "0")
        } else if let Some(minor) = rest.strip_prefix("beta") {
            (Stability::Beta, minor)
        } else {
            (Stability::Alpha, rest.strip_prefix("alpha")?)
        };
        Some(Self {
            stability,
            major: number(major)?,
            minor: number(minor)?,
        })
    }
}

/// `parse` alone would take `+1`.
fn number(text: &str) -> Option<u64> {
    if text.bytes().all(|b| b.is_ascii_digit()) {
        text.parse().ok()
    } else {
        None
    }
}

/// Where a group stands: the built-in groups by their priority, all others after them.
pub(super) fn group_rank(group: &str) -> usize {
    builtin()
        .iter()
        .position(|r| *r.group == *group)
        .unwrap_or(usize::MAX)
}

/// The whole order of discovery: groups by rank and name, versions preferred first, resources by name.
pub(super) fn sorted<'a>(resources: &[&'a Resource]) -> Vec<&'a Resource> {
    let mut sorted = resources.to_vec();
    sorted.sort_by_cached_key(|r| {
        let rank = group_rank(&r.group);
        (rank, &*r.group, Rank::of(&r.version), &*r.plural)
    });
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_stability_then_age() {
        let ordered = [
            "v10",
            "v2",
            "v1",
            "v11beta2",
            "v10beta3",
            "v3beta1",
            "v12alpha1",
            "v11alpha2",
            "foo1",
            "foo10",
            "v",
            "v1beta",
            "v1gamma1",
            "vbeta1",
        ];
        for (i, a) in ordered.iter().enumerate() {
            for (j, b) in ordered.iter().enumerate() {
                assert_eq!(version_order(a, b), i.cmp(&j), "{a} {b}");
            }
        }
    }
}
