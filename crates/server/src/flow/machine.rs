//! The seats of all priority levels and the requests that wait for one: a pure state machine.
//!
//! A request of width `n` takes `n` seats of its level. Within a level the next free seat goes to the flow that has
//! the fewest, and among equals to the one that was served longest ago: a flow that waits and has no seat is served
//! before any other flow is served twice. Kubernetes deals flows onto a fixed number of queues (shuffle sharding) and
//! keeps virtual time; here each flow has a queue of its own, which gives each its share exactly and needs no clock.
//!
//! A level may use more seats than its own while other levels leave seats unused that they lend. A level that wants
//! its own seats back never waits for those it has lent.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

/// How many seats a priority level has, and what happens when they are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// The level's own seats.
    pub(super) nominal: usize,
    /// How many of them others may use while the level does not.
    pub(super) lendable: usize,
    /// How many seats of others the level may use.
    pub(super) borrowing: usize,
    /// How many requests may wait; none when the level refuses what it cannot run.
    pub(super) queuing: Option<Queuing>,
}

/// How many requests may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Queuing {
    /// Requests of one flow.
    pub(super) per_flow: usize,
    /// Requests of all flows of the level.
    pub(super) total: usize,
}

/// A flow of a priority level.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FlowId {
    /// Name of the priority level.
    pub(crate) level: Arc<str>,
    /// Name of the flow schema and what distinguishes the flow among those of the schema.
    pub(crate) flow: Arc<str>,
}

/// Names a request that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Ticket(u64);

/// What becomes of a request that asks for seats.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// It has so many seats and runs.
    Running {
        width: usize,
    },
    /// It waits until [`Machine::dispatch`] names its ticket; it has so many seats then.
    Waiting {
        ticket: Ticket,
        width: usize,
    },
    Rejected(Rejection),
}

/// Why a request was turned away, in the words of the metrics of Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Rejection {
    ConcurrencyLimit,
    QueueFull,
    TimeOut,
}

impl Rejection {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::ConcurrencyLimit => "concurrency-limit",
            Self::QueueFull => "queue-full",
            Self::TimeOut => "time-out",
        }
    }
}

/// Load of a priority level at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) nominal: usize,
    pub(super) executing: usize,
    pub(super) waiting: usize,
}

/// The seats of all priority levels.
#[derive(Debug, Default)]
pub(super) struct Machine {
    levels: BTreeMap<Arc<str>, Level>,
    /// Counts requests, which gives them their tickets.
    tickets: u64,
    /// Counts turns: one for each flow that appears and each request that is dispatched.
    turns: u64,
}

#[derive(Debug)]
struct Level {
    limits: Limits,
    /// Sum of the seats of `flows`.
    executing: usize,
    /// Sum of the requests that wait in `flows`.
    waiting: usize,
    /// Flows with a seat or a request that waits, no others.
    flows: HashMap<Arc<str>, Flow>,
}

#[derive(Debug, Default)]
struct Flow {
    executing: usize,
    waiting: VecDeque<Waiter>,
    /// The turn at which the flow appeared or was last served.
    turn: u64,
}

#[derive(Debug)]
struct Waiter {
    ticket: Ticket,
    width: usize,
}

impl Machine {
    /// Replaces the levels. A level that is gone keeps its limits until its last request has left.
    pub(super) fn configure(&mut self, limits: impl IntoIterator<Item = (Arc<str>, Limits)>) {
        let mut old = std::mem::take(&mut self.levels);
        for (name, limits) in limits {
            let level = match old.remove(&name) {
                Some(level) => Level { limits, ..level },
                None => Level::new(limits),
            };
            self.levels.insert(name, level);
        }
        old.retain(|_, level| !level.flows.is_empty());
        self.levels.extend(old);
    }

    /// A request asks for seats. One that is wider than its level becomes as wide as the level.
    pub(super) fn arrive(&mut self, id: &FlowId, width: usize) -> Arrival {
        let Some(level) = self.levels.get(&id.level) else {
            return Arrival::Rejected(Rejection::ConcurrencyLimit);
        };
        let width = width.clamp(1, level.limits.nominal.max(1));
        if level.waiting == 0 && self.fits(level, width) {
            let turn = self.next_turn();
            if let Some(level) = self.levels.get_mut(&id.level) {
                level.run(&id.flow, turn, width);
            }
            return Arrival::Running { width };
        }
        if let Some(rejection) = level.rejects(&id.flow) {
            return Arrival::Rejected(rejection);
        }
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let turn = self.next_turn();
        if let Some(level) = self.levels.get_mut(&id.level) {
            level.enqueue(&id.flow, turn, Waiter { ticket, width });
        }
        Arrival::Waiting { ticket, width }
    }

    /// A request that runs gives its seats back, for good or while it waits for something else.
    pub(super) fn release(&mut self, id: &FlowId, width: usize) {
        if let Some(level) = self.levels.get_mut(&id.level) {
            level.executing -= width;
            level.change(&id.flow, |flow| flow.executing -= width);
        }
    }

    /// A request takes up again the seats that it gave back for a while; false when its level is gone. It never waits,
    /// whatever the limits are: it may hold a lock that those who have the seats are waiting for.
    pub(super) fn retake(&mut self, id: &FlowId, width: usize) -> bool {
        let turn = self.next_turn();
        let level = self.levels.get_mut(&id.level);
        level.is_some_and(|level| {
            level.run(&id.flow, turn, width);
            true
        })
    }

    /// A request stops waiting. False when it was dispatched before, and has seats to give back.
    pub(super) fn cancel(&mut self, id: &FlowId, ticket: Ticket) -> bool {
        let Some(level) = self.levels.get_mut(&id.level) else {
            return false;
        };
        let mut waited = false;
        level.change(&id.flow, |flow| {
            let at = flow.waiting.iter().position(|w| w.ticket == ticket);
            waited = at.and_then(|at| flow.waiting.remove(at)).is_some();
        });
        level.waiting -= usize::from(waited);
        waited
    }

    /// Gives free seats to requests that wait, and names them. To be called after every change but an arrival.
    pub(super) fn dispatch(&mut self) -> Vec<Ticket> {
        let waiting = self.levels.iter().filter(|(_, level)| level.waiting > 0);
        let names: Vec<Arc<str>> = waiting.map(|(name, _)| name.clone()).collect();
        let mut dispatched = Vec::new();
        for name in names {
            while let Some(ticket) = self.dispatch_one(&name) {
                dispatched.push(ticket);
            }
        }
        dispatched
    }

    fn dispatch_one(&mut self, name: &Arc<str>) -> Option<Ticket> {
        let level = self.levels.get(name)?;
        let (flow, width) = level.next()?;
        // One that does not fit holds up those behind it: a wide request would starve otherwise.
        if !self.fits(level, width) {
            return None;
        }
        let flow = flow.clone();
        let turn = self.next_turn();
        self.levels.get_mut(name)?.dispatch(&flow, turn)
    }

    /// Whether a level can run a request of this width now: with its own seats, or with those that others lend. A level
    /// that runs nothing runs any request.
    fn fits(&self, level: &Level, width: usize) -> bool {
        let (after, limits) = (level.executing + width, &level.limits);
        if after <= limits.nominal || level.executing == 0 {
            return true;
        }
        if after > limits.nominal + limits.borrowing {
            return false;
        }
        let borrowed: usize = self.levels.values().map(Level::borrowed).sum();
        let unused: usize = self.levels.values().map(Level::unused).sum();
        borrowed - level.borrowed() + (after - limits.nominal) <= unused - level.unused()
    }

    /// The load of each level.
    pub(super) fn loads(&self) -> impl Iterator<Item = (&str, Load)> {
        self.levels.iter().map(|(name, level)| {
            let load = Load {
                nominal: level.limits.nominal,
                executing: level.executing,
                waiting: level.waiting,
            };
            (&**name, load)
        })
    }

    fn next_turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }
}

impl Level {
    fn new(limits: Limits) -> Self {
        Self {
            limits,
            executing: 0,
            waiting: 0,
            flows: HashMap::new(),
        }
    }

    /// Seats of others that the level uses.
    fn borrowed(&self) -> usize {
        self.executing.saturating_sub(self.limits.nominal)
    }

    /// Seats that the level lends and does not use.
    fn unused(&self) -> usize {
        let free = self.limits.nominal.saturating_sub(self.executing);
        free.min(self.limits.lendable)
    }

    /// Why a request of this flow cannot wait, if so.
    fn rejects(&self, flow: &str) -> Option<Rejection> {
        let Some(queuing) = self.limits.queuing else {
            return Some(Rejection::ConcurrencyLimit);
        };
        let of_flow = self.flows.get(flow).map_or(0, |flow| flow.waiting.len());
        let full = of_flow >= queuing.per_flow || self.waiting >= queuing.total;
        full.then_some(Rejection::QueueFull)
    }

    /// The flow that is served next, and the width of its first request.
    fn next(&self) -> Option<(&Arc<str>, usize)> {
        let heads = self.flows.iter().filter_map(|(name, flow)| {
            let width = flow.waiting.front()?.width;
            Some(((flow.executing, flow.turn), (name, width)))
        });
        heads.min_by_key(|(order, _)| *order).map(|(_, next)| next)
    }

    fn run(&mut self, flow: &Arc<str>, turn: u64, width: usize) {
        self.executing += width;
        let flow = self.flow(flow, turn);
        flow.executing += width;
        flow.turn = turn;
    }

    fn enqueue(&mut self, flow: &Arc<str>, turn: u64, waiter: Waiter) {
        self.waiting += 1;
        self.flow(flow, turn).waiting.push_back(waiter);
    }

    fn dispatch(&mut self, flow: &Arc<str>, turn: u64) -> Option<Ticket> {
        let flow = self.flows.get_mut(flow)?;
        let waiter = flow.waiting.pop_front()?;
        flow.turn = turn;
        flow.executing += waiter.width;
        self.executing += waiter.width;
        self.waiting -= 1;
        Some(waiter.ticket)
    }

    /// A flow, which appears at this turn if it is not there.
    fn flow(&mut self, name: &Arc<str>, turn: u64) -> &mut Flow {
        let appears = || Flow {
            turn,
            ..Flow::default()
        };
        self.flows.entry(name.clone()).or_insert_with(appears)
    }

    /// Changes a flow and forgets it when nothing of it is left.
    fn change(&mut self, name: &Arc<str>, change: impl FnOnce(&mut Flow)) {
        if let Some(flow) = self.flows.get_mut(name) {
            change(flow);
            if flow.executing == 0 && flow.waiting.is_empty() {
                self.flows.remove(name);
            }
        }
    }
}

#[cfg(test)]
mod tests;
