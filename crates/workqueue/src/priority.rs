//! How urgent a run is, and how much say that has in the order.

/// How urgent one run of a key is. Larger is more urgent; the numbers mean nothing beyond their order.
///
/// A key that is added again before it runs keeps the higher of the two priorities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(pub i32);

impl Priority {
    /// For work nobody waits for: the initial list, a periodic resync.
    pub const LOW: Self = Self(-100);
    /// For changes that happen now.
    pub const NORMAL: Self = Self(0);
}

impl Default for Priority {
    fn default() -> Self {
        Self::NORMAL
    }
}

/// What priorities do to the order. Keys of the same priority are always first in, first out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PriorityPolicy {
    /// Nothing: one line for all.
    Ignore,
    /// The more urgent key always goes first, even if the others never get a turn.
    Strict,
    /// The more urgent key goes first, but after it has passed over an older key `passes` times in a row the key
    /// that has waited longest gets its turn. A key with `n` older keys before it therefore runs within
    /// `(passes + 1) * (n + 1)` turns, whatever else arrives.
    Fair {
        /// How many turns in a row may pass over the oldest key.
        passes: u32,
    },
}

impl PriorityPolicy {
    /// One turn in ten belongs to the key that has waited longest.
    pub const FAIR: Self = Self::Fair { passes: 9 };
}

impl Default for PriorityPolicy {
    fn default() -> Self {
        Self::FAIR
    }
}
