//! The ready keys in the order in which they will run: one first-in first-out lane for each priority.
//!
//! A key whose priority is raised moves to the tail of the higher lane; its entry in the lower lane stays behind
//! and is skipped, because its ticket is no longer the one its slot holds.

use std::collections::VecDeque;

use crate::priority::{Priority, PriorityPolicy};

/// More lanes than this and empty ones are thrown away. Few programs use more than three.
const LANES_KEPT: usize = 16;

/// One place in a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) slot: u32,
    /// Unique and rising: also the age of the entry.
    ticket: u64,
}

impl Entry {
    /// The ticket as slots keep it. Should an invalid entry live for 2^32 turns and meet its like, a key runs early.
    pub(crate) fn ticket(self) -> u32 {
        self.ticket as u32
    }
}

/// All lanes of one queue.
#[derive(Debug)]
pub(crate) struct Lanes {
    policy: PriorityPolicy,
    /// Sorted from the most to the least urgent.
    lanes: Vec<Lane>,
    next_ticket: u64,
    /// Turns in a row that passed over the oldest key.
    passed_over: u32,
}

#[derive(Debug)]
struct Lane {
    priority: Priority,
    /// Keys of this priority that have yet to run: those in `entries`, and those that will enter when their
    /// present run ends.
    depth: usize,
    entries: VecDeque<Entry>,
}

impl Lanes {
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

    /// Puts a slot at the tail of its lane and returns the ticket that makes the entry valid.
    pub(crate) fn push(&mut self, priority: Priority, slot: u32) -> u32 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let entry = Entry { slot, ticket };
        self.lane(priority).entries.push_back(entry);
        entry.ticket()
    }

    /// Puts an entry that was taken where it was: entries of a lane are sorted by age.
    pub(crate) fn put_back(&mut self, priority: Priority, entry: Entry) {
        let entries = &mut self.lane(priority).entries;
        let younger = entries.partition_point(|other| other.ticket < entry.ticket);
        entries.insert(younger, entry);
    }

    /// Takes the entry whose turn it is. Entries that are not `valid` are dropped on the way.
    pub(crate) fn pop(&mut self, valid: impl Fn(Entry) -> bool) -> Option<Entry> {
        let mut urgent: Option<usize> = None;
        let mut oldest: Option<(u64, usize)> = None;
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            let Some(front) = lane.front(&valid) else {
                continue;
            };
            urgent.get_or_insert(index);
            if oldest.is_none_or(|(ticket, _)| front.ticket < ticket) {
                oldest = Some((front.ticket, index));
            }
        }
        let chosen = self.choose(urgent?, oldest?.1);
        self.lanes[chosen].entries.pop_front()
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

    /// All entries with the priority of their lane, invalid ones too.
    #[cfg(test)]
    pub(crate) fn entries(&self) -> impl Iterator<Item = (Priority, Entry)> {
        let entries = |lane: &Lane| (lane.priority, lane.entries.clone());
        let lanes = self.lanes.iter().map(entries);
        lanes.flat_map(|(priority, entries)| entries.into_iter().map(move |e| (priority, e)))
    }

    /// Drops entries and their memory. Only for when every entry left is invalid.
    pub(crate) fn reset(&mut self) {
        self.lanes.clear();
    }

    fn lane(&mut self, priority: Priority) -> &mut Lane {
        let found = |lane: &Lane| priority.cmp(&lane.priority);
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
            entries: VecDeque::new(),
        };
        self.lanes.insert(index, lane);
        index
    }
}

impl Lane {
    /// The first valid entry. Those before it are dropped.
    fn front(&mut self, valid: impl Fn(Entry) -> bool) -> Option<Entry> {
        while let Some(&entry) = self.entries.front() {
            if valid(entry) {
                return Some(entry);
            }
            self.entries.pop_front();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pushes every slot of `waiting` in order, then takes all of them.
    fn order(policy: PriorityPolicy, waiting: &[(u32, i32)]) -> Vec<u32> {
        let mut lanes = Lanes::new(policy);
        for &(slot, priority) in waiting {
            lanes.push(lanes.effective(Priority(priority)), slot);
        }
        std::iter::from_fn(|| lanes.pop(|_| true).map(|entry| entry.slot)).collect()
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
            if lanes.pop(|_| true).is_some_and(|entry| entry.slot == 1) {
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
            lanes.pop(|_| true);
        }
        assert!(lanes.lanes.len() <= LANES_KEPT);
    }
}
