//! The ready keys in the order in which they will run: one first-in first-out lane for each priority.
//!
//! A key whose priority is raised moves to the tail of the higher lane. Its entry in the lower lane becomes stale and is
//! skipped later, because its ticket is no longer the one that the key's slot names.

use std::collections::VecDeque;

use crate::priority::{Priority, PriorityPolicy};

/// More lanes than this and empty ones are removed. Few programs use more than three.
const LANES_KEPT: usize = 16;

/// A place in a lane. Tickets are unique and rise, so they also tell the age of an entry.
pub(crate) type Ticket = u64;

/// All lanes of one queue.
#[derive(Debug)]
pub(crate) struct Lanes<K> {
    policy: PriorityPolicy,
    /// Sorted from the most to the least urgent.
    lanes: Vec<Lane<K>>,
    next_ticket: Ticket,
    /// Turns in a row that passed over the oldest key.
    passed_over: u32,
}

#[derive(Debug)]
struct Lane<K> {
    priority: Priority,
    /// Keys of this priority that have yet to run: those in `entries` that are not stale, and those that will enter when
    /// their present run ends.
    depth: usize,
    /// How many of the entries belong to keys that moved to another lane.
    stale: usize,
    entries: VecDeque<(Ticket, K)>,
}

impl<K> Lanes<K> {
    pub(crate) fn new(policy: PriorityPolicy) -> Self {
        Self {
            policy,
            lanes: Vec::new(),
            next_ticket: 0,
            passed_over: 0,
        }
    }

    pub(crate) fn policy(&self) -> PriorityPolicy {
        self.policy
    }

    /// The priority under which a key is really kept.
    pub(crate) fn effective(&self, priority: Priority) -> Priority {
        match self.policy {
            PriorityPolicy::Ignore => Priority::NORMAL,
            PriorityPolicy::Strict | PriorityPolicy::Fair { .. } => priority,
        }
    }

    /// Puts a key at the tail of its lane, and returns the ticket that makes the entry valid.
    pub(crate) fn push(&mut self, priority: Priority, key: K) -> Ticket {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.lane(priority).entries.push_back((ticket, key));
        ticket
    }

    /// An entry of this lane is not valid any more.
    pub(crate) fn mark_stale(&mut self, priority: Priority) {
        self.lane(priority).stale += 1;
    }

    /// Takes the key whose turn it is. Stale entries are dropped on the way.
    pub(crate) fn pop(&mut self, is_valid: impl Fn(&K, Ticket) -> bool) -> Option<K> {
        let mut urgent: Option<usize> = None;
        let mut oldest: Option<(Ticket, usize)> = None;
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            let Some(front) = lane.front(&is_valid) else {
                continue;
            };
            urgent.get_or_insert(index);
            if oldest.is_none_or(|(ticket, _)| front < ticket) {
                oldest = Some((front, index));
            }
        }
        let chosen = self.choose(urgent?, oldest?.1);
        let entry = self.lanes[chosen].entries.pop_front();
        entry.map(|(_, key)| key)
    }

    /// Decides between the lane of the most urgent key and that of the oldest one.
    fn choose(&mut self, urgent: usize, oldest: usize) -> usize {
        let PriorityPolicy::Fair { passes } = self.policy else {
            return urgent;
        };
        if urgent == oldest || self.passed_over >= passes {
            self.passed_over = 0;
            return oldest;
        }
        self.passed_over += 1;
        urgent
    }

    /// One more key of this priority has yet to run.
    pub(crate) fn deepen(&mut self, priority: Priority) {
        self.lane(priority).depth += 1;
    }

    /// One key of this priority runs now, or has another priority from now on.
    pub(crate) fn lighten(&mut self, priority: Priority) {
        self.lane(priority).depth -= 1;
    }

    /// How many keys of each priority have yet to run, most urgent first.
    pub(crate) fn depths(&self) -> impl Iterator<Item = (Priority, usize)> {
        self.lanes.iter().map(|lane| (lane.priority, lane.depth))
    }

    /// All entries with the priority of their lane, stale ones too.
    #[cfg(test)]
    pub(crate) fn entries(&self) -> impl Iterator<Item = (Priority, Ticket, &K)> {
        self.lanes.iter().flat_map(|lane| {
            let entries = lane.entries.iter();
            entries.map(|(ticket, key)| (lane.priority, *ticket, key))
        })
    }

    /// Gives memory back. Only for when no key is ready: every entry that is left is stale.
    pub(crate) fn reset(&mut self) {
        self.lanes.clear();
    }

    fn lane(&mut self, priority: Priority) -> &mut Lane<K> {
        let found = |lane: &Lane<K>| priority.cmp(&lane.priority);
        let index = match self.lanes.binary_search_by(found) {
            Ok(index) => index,
            Err(_) => self.insert(priority),
        };
        &mut self.lanes[index]
    }

    fn insert(&mut self, priority: Priority) -> usize {
        if self.lanes.len() >= LANES_KEPT {
            self.lanes
                .retain(|lane| lane.depth > 0 || !lane.entries.is_empty());
        }
        let index = self.lanes.partition_point(|lane| lane.priority > priority);
        let lane = Lane {
            priority,
            depth: 0,
            stale: 0,
            entries: VecDeque::new(),
        };
        self.lanes.insert(index, lane);
        index
    }
}

impl<K> Lane<K> {
    /// The ticket of the first valid entry. Those before it are dropped.
    fn front(&mut self, is_valid: impl Fn(&K, Ticket) -> bool) -> Option<Ticket> {
        while let Some((ticket, key)) = self.entries.front() {
            // Most lanes have no stale entry, and then no slot needs to be looked up.
            if self.stale == 0 || is_valid(key, *ticket) {
                return Some(*ticket);
            }
            self.entries.pop_front();
            self.stale -= 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pushes every key of `waiting` in order, then takes all of them.
    fn order(policy: PriorityPolicy, waiting: &[(u32, i32)]) -> Vec<u32> {
        let mut lanes = Lanes::new(policy);
        for &(key, priority) in waiting {
            lanes.push(lanes.effective(Priority(priority)), key);
        }
        std::iter::from_fn(|| lanes.pop(|_, _| true)).collect()
    }

    #[test]
    fn policy_decides_the_order() {
        let waiting = [(1, -100), (2, -100), (3, 0), (4, 0), (5, 0), (6, 7)];
        let cases = [
            (PriorityPolicy::Ignore, vec![1, 2, 3, 4, 5, 6]),
            (PriorityPolicy::Strict, vec![6, 3, 4, 5, 1, 2]),
            (PriorityPolicy::FAIR, vec![6, 3, 4, 5, 1, 2]),
            (PriorityPolicy::Fair { passes: 2 }, vec![6, 3, 1, 4, 5, 2]),
            (PriorityPolicy::Fair { passes: 0 }, vec![1, 2, 3, 4, 5, 6]),
        ];
        for (policy, expected) in cases {
            assert_eq!(order(policy, &waiting), expected, "{policy:?}");
        }
    }

    #[test]
    fn oldest_key_runs_within_its_turns_whatever_arrives() {
        let mut lanes = Lanes::new(PriorityPolicy::Fair { passes: 3 });
        lanes.push(Priority::LOW, 1);
        let mut turns = 0;
        loop {
            lanes.push(Priority::NORMAL, 2);
            turns += 1;
            if lanes.pop(|_, _| true) == Some(1) {
                break;
            }
        }
        assert_eq!(turns, 4);
    }

    #[test]
    fn many_priorities_do_not_pile_up_empty_lanes() {
        let mut lanes = Lanes::new(PriorityPolicy::Strict);
        for priority in 0..1000 {
            lanes.push(Priority(priority), 1);
            lanes.pop(|_, _| true);
        }
        assert!(lanes.lanes.len() <= LANES_KEPT);
    }
}
