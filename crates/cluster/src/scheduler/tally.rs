//! Counts of pods by node, for those sets of pods that rules of distribution ask about.
//!
//! A set is counted once when it is first asked about and kept up from then on. Their number is bounded: the one that
//! was not asked about for longest makes room.

use std::collections::BTreeMap;

use kubewright_cache::Key;

use super::board::{NodeName, Placed, decrement};
use super::demand::Pods;
use super::selector::Labels;

/// Most sets that are kept up.
const MOST: usize = 512;

/// Counts of many sets of pods.
#[derive(Debug, Default)]
pub(crate) struct Tallies {
    by_set: BTreeMap<Pods, Tally>,
    /// Counts the questions, to know which were asked lately.
    clock: u64,
}

/// How many pods of a set are on each node; nodes without any are not listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) by_node: BTreeMap<NodeName, u32>,
    asked: u64,
}

impl Tallies {
    /// Counts a pod that was placed.
    pub(super) fn add(&mut self, placed: &Placed, namespaces: &BTreeMap<String, Labels>) {
        for (pods, tally) in &mut self.by_set {
            if pods.counts(placed, namespaces) {
                *tally.by_node.entry(placed.node.clone()).or_default() += 1;
            }
        }
    }

    /// Counts a pod no more.
    pub(super) fn subtract(&mut self, placed: &Placed, namespaces: &BTreeMap<String, Labels>) {
        for (pods, tally) in &mut self.by_set {
            if pods.counts(placed, namespaces) {
                decrement(&mut tally.by_node, &placed.node);
            }
        }
    }

    /// The count of a set.
    pub(super) fn get(
        &mut self,
        pods: &Pods,
        placed: &BTreeMap<Key, Placed>,
        namespaces: &BTreeMap<String, Labels>,
    ) -> &Tally {
        self.clock += 1;
        if !self.by_set.contains_key(pods) {
            self.make_room();
        }
        let tally = self
            .by_set
            .entry(pods.clone())
            .or_insert_with(|| Tally::count(pods, placed, namespaces));
        tally.asked = self.clock;
        tally
    }

    /// Forgets all counts.
    pub(super) fn clear(&mut self) {
        self.by_set.clear();
    }

    fn make_room(&mut self) {
        if self.by_set.len() < MOST {
            return;
        }
        let oldest = self.by_set.iter().min_by_key(|(_, tally)| tally.asked);
        if let Some(pods) = oldest.map(|(pods, _)| pods.clone()) {
            self.by_set.remove(&pods);
        }
    }
}

impl Tally {
    /// Counts a set from scratch.
    pub(super) fn count(
        pods: &Pods,
        placed: &BTreeMap<Key, Placed>,
        namespaces: &BTreeMap<String, Labels>,
    ) -> Self {
        let mut by_node: BTreeMap<NodeName, u32> = BTreeMap::new();
        for one in placed.values() {
            if pods.counts(one, namespaces) {
                *by_node.entry(one.node.clone()).or_default() += 1;
            }
        }
        Self { by_node, asked: 0 }
    }
}
