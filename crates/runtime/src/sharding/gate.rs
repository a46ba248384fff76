//! Which keys this replica may work on, and what it works on now.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use kubewright_cache::{Key, Selection};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::assignment::Shard;
use super::machine::Holding;

/// The shards of this replica. Cheap to clone.
#[derive(Clone)]
pub struct Shards(Arc<Inner>);

struct Inner {
    count: u32,
    state: Mutex<State>,
    /// Rises whenever shards were taken or given up.
    changes: watch::Sender<u64>,
    /// Rises whenever a shard came, or is gone for good.
    kept: watch::Sender<u64>,
    /// Wakes the sharder when nothing runs any more in a shard that is to be given up.
    drained: Notify,
}

#[derive(Default)]
struct State {
    shards: BTreeMap<Shard, Entry>,
    /// Nothing begins after this, whatever the shards say.
    deadline: Option<Instant>,
}

struct Entry {
    token: u64,
    running: usize,
    /// Whether it is to be given up.
    revoked: bool,
}

/// The right to work on a key, which keeps its shard here until it is dropped.
#[must_use]
pub(crate) struct Permit {
    shards: Shards,
    shard: Shard,
}

impl Shards {
    pub(crate) fn new(count: u32) -> Self {
        Self(Arc::new(Inner {
            count,
            state: Mutex::default(),
            changes: watch::Sender::new(0),
            kept: watch::Sender::new(0),
            drained: Notify::new(),
        }))
    }

    /// The shard of a key.
    pub fn of(&self, key: &Key) -> Shard {
        Shard::of(key.as_str(), self.0.count)
    }

    /// Whether this replica reconciles the key now.
    pub fn owns(&self, key: &Key) -> bool {
        self.token(key).is_some()
    }

    /// The fencing token for writes on behalf of a key; none if another replica has it. Whoever has the key later has a
    /// higher one.
    pub fn token(&self, key: &Key) -> Option<u64> {
        let state = self.0.state.lock();
        let entry = state.shards.get(&self.of(key))?;
        state.is_alive().then_some(entry.token)
    }

    /// The shards that this replica has now.
    pub fn held(&self) -> BTreeSet<Shard> {
        let state = self.0.state.lock();
        if !state.is_alive() {
            return BTreeSet::new();
        }
        state.held()
    }

    /// Tells of every change of the shards that this replica has.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// Selects the objects of this replica's shards, those that it is about to give up included.
    pub(crate) fn selection(&self) -> Selection {
        let shards = self.clone();
        Selection::new(self.0.kept.subscribe(), move |key| {
            let state = shards.0.state.lock();
            state.shards.contains_key(&shards.of(key))
        })
    }

    /// The right to work on a key, if its shard is here, is to stay here, and the lease has been renewed in time.
    pub(crate) fn enter(&self, key: &Key) -> Option<Permit> {
        let shard = self.of(key);
        let mut state = self.0.state.lock();
        if !state.is_alive() {
            return None;
        }
        let entry = state.shards.get_mut(&shard);
        let entry = entry.filter(|entry| !entry.revoked)?;
        entry.running += 1;
        Some(Permit {
            shards: self.clone(),
            shard,
        })
    }

    /// Takes in what the rules say. Shards that are not held any more are closed at once.
    pub(crate) fn apply(&self, holdings: &BTreeMap<Shard, Holding>, deadline: Option<Instant>) {
        let mut state = self.0.state.lock();
        state.deadline = deadline;
        let (before, kept) = (state.held(), state.kept());
        state.shards.retain(|shard, _| {
            let holding = holdings.get(shard);
            holding.is_some_and(|holding| *holding != Holding::Claimed)
        });
        for (shard, holding) in holdings {
            let (token, revoked) = match holding {
                Holding::Claimed => continue,
                Holding::Held { token } => (*token, false),
                Holding::Revoked { token } => (*token, true),
            };
            let entry = state.shards.entry(*shard).or_insert(Entry {
                token,
                running: 0,
                revoked,
            });
            (entry.token, entry.revoked) = (token, revoked);
        }
        let (changed, moved) = (state.held() != before, state.kept() != kept);
        drop(state);
        if moved {
            self.0.kept.send_modify(|count| *count += 1);
        }
        if changed {
            self.0.changes.send_modify(|count| *count += 1);
        }
    }

    /// Shards that are to be given up, and in which nothing runs.
    pub(crate) fn drained(&self) -> Vec<Shard> {
        let state = self.0.state.lock();
        let idle = state.shards.iter();
        let idle = idle.filter(|(_, entry)| entry.revoked && entry.running == 0);
        idle.map(|(shard, _)| *shard).collect()
    }

    /// Completes when a shard that is to be given up may have become idle.
    pub(crate) async fn wait_for_drain(&self) {
        self.0.drained.notified().await;
    }
}

impl State {
    fn is_alive(&self) -> bool {
        self.deadline
            .is_some_and(|deadline| Instant::now() < deadline)
    }

    /// The shards that are to stay.
    fn held(&self) -> BTreeSet<Shard> {
        let held = self.shards.iter().filter(|(_, entry)| !entry.revoked);
        held.map(|(shard, _)| *shard).collect()
    }

    /// All shards that something may run in.
    fn kept(&self) -> BTreeSet<Shard> {
        self.shards.keys().copied().collect()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.shards.0.state.lock();
        let Some(entry) = state.shards.get_mut(&self.shard) else {
            return;
        };
        entry.running = entry.running.saturating_sub(1);
        if entry.revoked && entry.running == 0 {
            self.shards.0.drained.notify_one();
        }
    }
}

impl fmt::Debug for Shards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shards({} of {})", self.held().len(), self.0.count)
    }
}
