//! What is known of a connection: how far away its client is, and whether it is still a stranger.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// How far away a client is. Compression costs more than it saves on the same machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Distance {
    SameMachine,
    Network,
}

/// The connections that nobody has vouched for yet, oldest first.
pub(crate) struct Strangers {
    most: usize,
    next: AtomicU64,
    waiting: Mutex<VecDeque<(u64, CancellationToken)>>,
}

impl Strangers {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most: most.max(1),
            next: AtomicU64::new(0),
            waiting: Mutex::default(),
        }
    }

    pub(crate) fn arrive(self: &Arc<Self>) -> Stranger {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let evicted = CancellationToken::new();
        let mut waiting = self.waiting.lock();
        if waiting.len() >= self.most
            && let Some((_, oldest)) = waiting.pop_front()
        {
            oldest.cancel();
        }
        waiting.push_back((id, evicted.clone()));
        Stranger(Arc::new(Entry {
            id,
            evicted,
            vouched: AtomicBool::new(false),
            all: self.clone(),
        }))
    }

    /// Whether somebody would have to go if all places were taken.
    pub(crate) fn any(&self) -> bool {
        !self.waiting.lock().is_empty()
    }

    pub(crate) fn evict_oldest(&self) {
        if let Some((_, oldest)) = self.waiting.lock().pop_front() {
            oldest.cancel();
        }
    }

    fn forget(&self, id: u64) {
        let mut waiting = self.waiting.lock();
        if let Ok(at) = waiting.binary_search_by_key(&id, |(id, _)| *id) {
            waiting.remove(at);
        }
    }
}

/// A connection's place among the strangers; given up when it is vouched for or ends.
#[derive(Clone)]
pub(crate) struct Stranger(Arc<Entry>);

struct Entry {
    id: u64,
    evicted: CancellationToken,
    /// Whether a request was authenticated: the lock of all strangers is taken once for a connection, not for each request.
    vouched: AtomicBool,
    all: Arc<Strangers>,
}

impl Stranger {
    /// A request on the connection was authenticated.
    pub(crate) fn vouch(&self) {
        if !self.0.vouched.load(Ordering::Relaxed) {
            self.0.vouched.store(true, Ordering::Relaxed);
            self.0.all.forget(self.0.id);
        }
    }

    pub(crate) fn evicted(&self) -> CancellationToken {
        self.0.evicted.clone()
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.all.forget(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_stranger_leaves_when_there_are_too_many() {
        let all = Arc::new(Strangers::new(2));
        let [a, b] = [all.arrive(), all.arrive()];
        b.vouch();
        let c = all.arrive();
        assert!(!a.evicted().is_cancelled(), "two strangers are allowed");
        let d = all.arrive();
        assert!(a.evicted().is_cancelled(), "the oldest goes");
        assert!(
            !b.evicted().is_cancelled()
                && !c.evicted().is_cancelled()
                && !d.evicted().is_cancelled()
        );
        drop(c);
        assert_eq!(all.waiting.lock().len(), 1);
    }
}
