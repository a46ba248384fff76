//! The machine against random sequences of arrivals, ends, waits and cancellations, and a few facts one by one.

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn limits(nominal: usize, lendable: usize, borrowing: usize) -> Limits {
    let queuing = Queuing {
        per_flow: 20,
        total: 60,
    };
    Limits {
        nominal,
        lendable,
        borrowing,
        queuing: Some(queuing),
    }
}

fn id(level: &str, flow: &str) -> FlowId {
    FlowId {
        level: level.into(),
        flow: flow.into(),
    }
}

fn machine(levels: &[(&str, Limits)]) -> Machine {
    let mut machine = Machine::default();
    machine.configure(
        levels
            .iter()
            .map(|(name, limits)| ((*name).into(), *limits)),
    );
    machine
}

fn ticket(arrival: Arrival) -> Ticket {
    match arrival {
        Arrival::Waiting { ticket, .. } => ticket,
        other => panic!("expected to wait: {other:?}"),
    }
}

#[test]
fn the_flow_with_fewest_seats_is_served_next() {
    let mut machine = machine(&[("l", limits(2, 0, 0))]);
    let (elephant, mouse) = (id("l", "elephant"), id("l", "mouse"));
    let running = Arrival::Running { width: 1 };
    assert_eq!(machine.arrive(&elephant, 1), running);
    assert_eq!(machine.arrive(&elephant, 1), running);
    let more: Vec<Ticket> = (0..5)
        .map(|_| ticket(machine.arrive(&elephant, 1)))
        .collect();
    let small = ticket(machine.arrive(&mouse, 1));
    machine.release(&elephant, 1);
    assert_eq!(
        machine.dispatch(),
        [small],
        "the mouse did not queue behind"
    );
    machine.release(&mouse, 1);
    assert_eq!(machine.dispatch(), [more[0]]);
}

#[test]
fn a_wide_request_is_not_overtaken_by_narrow_ones() {
    let mut machine = machine(&[("l", limits(4, 0, 0))]);
    let (other, wide, narrow) = (id("l", "other"), id("l", "wide"), id("l", "narrow"));
    assert_eq!(machine.arrive(&other, 2), Arrival::Running { width: 2 });
    let first = ticket(machine.arrive(&wide, 9));
    let second = ticket(machine.arrive(&narrow, 1));
    assert!(
        machine.dispatch().is_empty(),
        "two seats are free, four are wanted"
    );
    machine.release(&other, 2);
    assert_eq!(machine.dispatch(), [first]);
    machine.release(&wide, 4);
    assert_eq!(machine.dispatch(), [second]);
}

#[test]
fn levels_borrow_what_others_leave_and_owners_never_wait() {
    let mut machine = machine(&[("busy", limits(2, 0, 9)), ("idle", limits(4, 3, 0))]);
    let (busy, idle) = (id("busy", "a"), id("idle", "b"));
    for _ in 0..5 {
        assert_eq!(machine.arrive(&busy, 1), Arrival::Running { width: 1 });
    }
    let sixth = ticket(machine.arrive(&busy, 1));
    for _ in 0..4 {
        assert_eq!(machine.arrive(&idle, 1), Arrival::Running { width: 1 });
    }
    machine.release(&busy, 1);
    assert!(machine.dispatch().is_empty(), "nothing is lent any more");
    machine.release(&idle, 4);
    assert_eq!(machine.dispatch(), [sixth]);
}

#[test]
fn without_queues_a_full_level_refuses_and_full_queues_do() {
    let reject = Limits {
        queuing: None,
        ..limits(1, 0, 0)
    };
    let mut machine = machine(&[("reject", reject), ("queue", limits(1, 0, 0))]);
    let (a, b) = (id("reject", "a"), id("queue", "b"));
    machine.arrive(&a, 1);
    let refused = Arrival::Rejected(Rejection::ConcurrencyLimit);
    assert_eq!(machine.arrive(&a, 1), refused);
    machine.arrive(&b, 1);
    for _ in 0..20 {
        ticket(machine.arrive(&b, 1));
    }
    assert_eq!(
        machine.arrive(&b, 1),
        Arrival::Rejected(Rejection::QueueFull)
    );
    ticket(machine.arrive(&id("queue", "c"), 1));
    assert_eq!(machine.arrive(&id("gone", "c"), 1), refused);
}

#[test]
fn a_level_that_is_gone_runs_dry() {
    let mut machine = machine(&[("old", limits(1, 0, 0))]);
    let old = id("old", "a");
    machine.arrive(&old, 1);
    let waiting = ticket(machine.arrive(&old, 1));
    machine.configure([("new".into(), limits(1, 0, 0))]);
    machine.release(&old, 1);
    assert_eq!(machine.dispatch(), [waiting]);
    machine.release(&old, 1);
    machine.configure([("new".into(), limits(1, 0, 0))]);
    assert_eq!(
        machine.loads().map(|(name, _)| name).collect::<Vec<_>>(),
        ["new"]
    );
    assert!(
        !machine.retake(&old, 1),
        "there is nothing to take any more"
    );
}

/// One step of a random life; numbers choose among what there is.
#[derive(Debug, Clone)]
enum Step {
    Arrive {
        level: usize,
        flow: usize,
        width: usize,
    },
    Finish(usize),
    Suspend(usize),
    Resume(usize),
    Cancel(usize),
    Configure {
        nominal: usize,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..3usize, 0..4usize, 1..4usize)
            .prop_map(|(level, flow, width)| Step::Arrive { level, flow, width }),
        4 => any::<usize>().prop_map(Step::Finish),
        2 => any::<usize>().prop_map(Step::Suspend),
        2 => any::<usize>().prop_map(Step::Resume),
        2 => any::<usize>().prop_map(Step::Cancel),
        1 => (0..6usize).prop_map(|nominal| Step::Configure { nominal }),
    ];
    vec(step, 1..200)
}

/// What must be true of the machine, kept beside it in lists.
#[derive(Default)]
struct Model {
    running: Vec<(FlowId, usize)>,
    suspended: Vec<(FlowId, usize)>,
    waiting: Vec<(FlowId, usize, Ticket)>,
    /// For each flow that waits without a seat: how often each other flow of its level was served meanwhile.
    overtaken: BTreeMap<(FlowId, FlowId), usize>,
}

impl Model {
    /// Moves requests to those that run, and checks that none of them overtook a flow without a seat twice.
    fn dispatched(&mut self, tickets: Vec<Ticket>) -> Vec<FlowId> {
        let mut all = Vec::new();
        for ticket in tickets {
            let at = self.waiting.iter().position(|(_, _, t)| *t == ticket);
            let (served, width, _) = self.waiting.remove(at.expect("it was waiting"));
            let others = self.hungry().filter(|id| **id != served).cloned();
            let hungry: BTreeSet<FlowId> = others.collect();
            for id in hungry.into_iter().filter(|id| id.level == served.level) {
                let count = self
                    .overtaken
                    .entry((id.clone(), served.clone()))
                    .or_default();
                *count += 1;
                assert!(
                    *count <= 1,
                    "{served:?} was served twice while {id:?} had nothing"
                );
            }
            self.running.push((served.clone(), width));
            all.push(served);
            self.forget_fed();
        }
        all
    }

    /// A level that was granted seats has no more than its limit, unless a single request is all that it runs.
    fn check_limits(&self, machine: &Machine, granted: &[FlowId]) {
        for id in granted {
            let level = &machine.levels[&id.level];
            let alone = self
                .running
                .iter()
                .filter(|(r, _)| r.level == id.level)
                .count()
                == 1;
            let most = level.limits.nominal + level.limits.borrowing;
            assert!(
                alone || level.executing <= most,
                "{} of {most} seats",
                level.executing
            );
        }
        if let [id] = granted
            && machine.levels[&id.level].executing > machine.levels[&id.level].limits.nominal
        {
            let borrowed: usize = machine.levels.values().map(Level::borrowed).sum();
            let unused: usize = machine.levels.values().map(Level::unused).sum();
            let alone = self
                .running
                .iter()
                .filter(|(r, _)| r.level == id.level)
                .count()
                == 1;
            assert!(
                alone || borrowed <= unused,
                "{borrowed} seats are borrowed, {unused} are lent"
            );
        }
    }

    fn load_of(&self, level: &str) -> (usize, usize) {
        let running = self.running.iter().filter(|(id, _)| &*id.level == level);
        let waiting = self.waiting.iter().filter(|(id, _, _)| &*id.level == level);
        (running.map(|(_, width)| width).sum(), waiting.count())
    }

    /// Flows that wait and have no seat.
    fn hungry(&self) -> impl Iterator<Item = &FlowId> {
        let waiting = self.waiting.iter().map(|(id, _, _)| id);
        waiting.filter(|id| !self.running.iter().any(|(running, _)| running == *id))
    }

    fn forget_fed(&mut self) {
        let hungry: Vec<FlowId> = self.hungry().cloned().collect();
        self.overtaken.retain(|(id, _), _| hungry.contains(id));
    }

    fn take<T>(list: &mut Vec<T>, number: usize) -> Option<T> {
        (!list.is_empty()).then(|| list.remove(number % list.len()))
    }

    /// Does a step; gives the flow of a request that ran at once.
    fn apply(&mut self, machine: &mut Machine, step: Step) -> Option<FlowId> {
        match step {
            Step::Arrive { level, flow, width } => {
                let id = id(["a", "b", "c"][level], ["w", "x", "y", "z"][flow]);
                match machine.arrive(&id, width) {
                    Arrival::Running { width } => {
                        self.running.push((id.clone(), width));
                        return Some(id);
                    }
                    Arrival::Waiting { ticket, width } => self.waiting.push((id, width, ticket)),
                    Arrival::Rejected(_) => {}
                }
            }
            Step::Finish(n) => {
                if let Some((id, width)) = Self::take(&mut self.running, n) {
                    machine.release(&id, width);
                }
            }
            Step::Suspend(n) => {
                if let Some((id, width)) = Self::take(&mut self.running, n) {
                    machine.release(&id, width);
                    self.suspended.push((id, width));
                }
            }
            Step::Resume(n) => {
                if let Some((id, width)) = Self::take(&mut self.suspended, n) {
                    machine.retake(&id, width);
                    self.running.push((id, width));
                }
            }
            Step::Cancel(n) => {
                if let Some((id, _, ticket)) = Self::take(&mut self.waiting, n) {
                    assert!(machine.cancel(&id, ticket), "it was waiting");
                    assert!(!machine.cancel(&id, ticket), "it is gone");
                }
            }
            Step::Configure { nominal } => machine.configure(three_levels(nominal)),
        }
        None
    }
}

fn three_levels(nominal: usize) -> [(Arc<str>, Limits); 3] {
    [
        ("a".into(), limits(nominal, nominal / 2, 3)),
        ("b".into(), limits(4, 2, 0)),
        ("c".into(), limits(2, 2, 100)),
    ]
}

proptest! {
    #[test]
    fn seats_are_counted_no_flow_starves_and_nothing_is_left_behind(steps in steps()) {
        let mut machine = Machine::default();
        machine.configure(three_levels(3));
        let mut model = Model::default();
        for step in steps {
            let granted = model.apply(&mut machine, step);
            model.forget_fed();
            let dispatched = machine.dispatch();
            let granted: Vec<FlowId> = granted.into_iter().chain(model.dispatched(dispatched)).collect();
            model.check_limits(&machine, &granted);
            for (name, load) in machine.loads() {
                let (executing, waiting) = model.load_of(name);
                prop_assert_eq!((load.executing, load.waiting), (executing, waiting));
                prop_assert!(load.waiting == 0 || load.executing > 0, "nobody waits in an empty level");
            }
        }
        for (id, _, ticket) in std::mem::take(&mut model.waiting) {
            machine.cancel(&id, ticket);
        }
        for (id, width) in model.running.drain(..) {
            machine.release(&id, width);
        }
        prop_assert!(machine.levels.values().all(|l| l.flows.is_empty() && l.executing == 0 && l.waiting == 0));
    }
}
