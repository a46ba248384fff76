//! The model: every state there ever was, and the events between them.

use std::collections::BTreeMap;

pub(crate) const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
/// The first one is no label at all.
pub(crate) const COLORS: [&str; 3] = ["", "red", "blue"];

/// An object as far as it matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Thing {
    pub(crate) name: usize,
    pub(crate) color: usize,
    pub(crate) value: u8,
    pub(crate) version: u64,
}

/// An event as a watcher must see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) kind: &'static str,
    pub(crate) revision: u64,
    pub(crate) thing: Thing,
}

type State = BTreeMap<usize, Thing>;

/// Every state by its revision. Each revision from the first to the last is there.
pub(crate) struct Model {
    states: BTreeMap<u64, State>,
    forgotten_before: u64,
}

impl Model {
    pub(crate) fn new(revision: u64) -> Self {
        Self {
            states: BTreeMap::from([(revision, State::new())]),
            forgotten_before: 0,
        }
    }

    pub(crate) fn revision(&self) -> u64 {
        *self.states.keys().next_back().expect("never empty")
    }

    fn now(&self) -> &State {
        &self.states[&self.revision()]
    }

    pub(crate) fn get(&self, name: usize) -> Option<Thing> {
        self.now().get(&name).cloned()
    }

    /// Stores an object; gives its version.
    pub(crate) fn put(&mut self, thing: Thing) -> u64 {
        let (mut state, version) = (self.now().clone(), self.revision() + 1);
        state.insert(thing.name, Thing { version, ..thing });
        self.states.insert(version, state);
        version
    }

    pub(crate) fn remove(&mut self, name: usize) {
        let (mut state, version) = (self.now().clone(), self.revision() + 1);
        state.remove(&name);
        self.states.insert(version, state);
    }

    /// One of the revisions there have been.
    pub(crate) fn pick(&self, number: u16) -> u64 {
        let first = *self.states.keys().next().expect("never empty");
        first + u64::from(number) % self.states.len() as u64
    }

    pub(crate) fn compact(&mut self, revision: u64) {
        self.forgotten_before = self.forgotten_before.max(revision);
    }

    /// Whether a client at this revision may have to list again.
    pub(crate) fn is_forgotten(&self, revision: u64) -> bool {
        revision < self.forgotten_before
    }

    pub(crate) fn list(&self, revision: u64, color: Option<usize>) -> Vec<Thing> {
        let all = self.states[&revision].values();
        all.filter(|thing| matches(thing, color)).cloned().collect()
    }

    /// The events that a watcher which has seen everything up to a revision must get next.
    pub(crate) fn events(&self, after: u64, color: Option<usize>) -> Vec<Expected> {
        let later = self.states.range(after + 1..);
        later
            .filter_map(|(revision, state)| self.event(*revision, state, color))
            .collect()
    }

    fn event(&self, revision: u64, new: &State, color: Option<usize>) -> Option<Expected> {
        let old = &self.states[&(revision - 1)];
        let name = (0..NAMES.len()).find(|name| old.get(name) != new.get(name))?;
        let visible = |state: &State| state.get(&name).filter(|t| matches(t, color)).cloned();
        let (kind, thing) = match (visible(old), visible(new)) {
            (None, None) => return None,
            (None, Some(new)) => ("ADDED", new),
            (Some(_), Some(new)) => ("MODIFIED", new),
            (Some(old), None) => ("DELETED", old),
        };
        Some(Expected {
            kind,
            revision,
            thing: Thing {
                version: revision,
                ..thing
            },
        })
    }
}

fn matches(thing: &Thing, color: Option<usize>) -> bool {
    color.is_none_or(|color| thing.color == color)
}
