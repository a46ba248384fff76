//! Which pods wait for which claims, so that news of a claim reaches those alone whom it concerns. Pure.

use std::collections::{BTreeMap, BTreeSet};

use kubewright_cache::Key;

/// Pods by the claims that they name. `by_claim` and `by_pod` say the same; no set in them is empty.
#[derive(Debug, Default)]
pub(super) struct Claimants {
    by_claim: BTreeMap<Key, BTreeSet<Key>>,
    by_pod: BTreeMap<Key, BTreeSet<Key>>,
}

impl Claimants {
    /// A pod waits, and these are its claims.
    pub(super) fn put(&mut self, pod: &Key, claims: impl IntoIterator<Item = Key>) {
        self.remove(pod);
        let claims: BTreeSet<Key> = claims.into_iter().collect();
        if claims.is_empty() {
            return;
        }
        for claim in &claims {
            let pods = self.by_claim.entry(claim.clone()).or_default();
            pods.insert(pod.clone());
        }
        self.by_pod.insert(pod.clone(), claims);
    }

    /// A pod does not wait any more.
    pub(super) fn remove(&mut self, pod: &Key) {
        for claim in self.by_pod.remove(pod).into_iter().flatten() {
            let Some(pods) = self.by_claim.get_mut(&claim) else {
                continue;
            };
            pods.remove(pod);
            if pods.is_empty() {
                self.by_claim.remove(&claim);
            }
        }
    }

    /// The pods that wait for a claim.
    pub(super) fn of(&self, claim: &Key) -> Vec<Key> {
        self.by_claim
            .get(claim)
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }

    /// The pods that wait for any claim.
    pub(super) fn all(&self) -> Vec<Key> {
        self.by_pod.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key::new("d", name)
    }

    #[test]
    fn news_of_a_claim_is_for_those_who_name_it() {
        let mut claimants = Claimants::default();
        claimants.put(&key("a"), [key("x"), key("y")]);
        claimants.put(&key("b"), [key("x")]);
        claimants.put(&key("c"), []);
        assert_eq!(claimants.of(&key("x")), [key("a"), key("b")]);
        assert_eq!(claimants.of(&key("y")), [key("a")]);
        assert_eq!(claimants.all(), [key("a"), key("b")]);
        claimants.put(&key("a"), [key("z")]);
        assert_eq!(claimants.of(&key("x")), [key("b")]);
        claimants.remove(&key("a"));
        claimants.remove(&key("b"));
        assert!(claimants.by_claim.is_empty() && claimants.by_pod.is_empty());
    }
}
