//! Random histories against a model that keeps the sets client-go keeps, as simply as they can be written.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::tests::{machine, ms};
use super::*;

#[derive(Debug, Clone)]
enum Operation {
    Add(usize),
    AddAfter(usize, u64),
    AddRateLimited(usize),
    Forget(usize),
    Get,
    /// The n-th of those running, and whether it succeeded.
    Done(usize, Finish),
    Advance(u64),
    ShutDown,
}

const KEYS: [&str; 6] = ["a", "b", "c", "d", "e", "aa"];

/// The queue with one line of code for each rule.
#[derive(Default)]
struct Model {
    /// By the number of their place in the line.
    ready: BTreeMap<u64, usize>,
    dirty: BTreeSet<usize>,
    processing: BTreeSet<usize>,
    /// Due time and order of setting.
    waiting: BTreeMap<usize, (u64, u64)>,
    requeues: BTreeMap<usize, u32>,
    now: u64,
    sequence: u64,
    shut: bool,
}

impl Model {
    fn add(&mut self, key: usize) {
        if !self.shut && self.dirty.insert(key) && !self.processing.contains(&key) {
            self.line_up(key);
        }
    }

    fn line_up(&mut self, key: usize) {
        self.ready.insert(self.sequence, key);
        self.sequence += 1;
    }

    fn add_after(&mut self, key: usize, delay: u64) {
        let due = (self.now + delay, self.sequence);
        self.sequence += 1;
        match self.waiting.get(&key) {
            _ if self.shut => {}
            _ if delay == 0 => self.add(key),
            Some(earlier) if earlier.0 <= due.0 => {}
            _ => drop(self.waiting.insert(key, due)),
        }
    }

    fn add_rate_limited(&mut self, key: usize) {
        if !self.shut {
            let earlier = self.requeues.entry(key).or_default();
            let delay = 1_u64.checked_shl(*earlier).unwrap_or(1000).min(1000);
            *earlier += 1;
            self.add_after(key, delay);
        }
    }

    fn get(&mut self) -> Option<usize> {
        let (_, key) = self.ready.pop_first()?;
        self.dirty.remove(&key);
        self.processing.insert(key);
        Some(key)
    }

    fn done(&mut self, key: usize, finish: Finish) {
        match finish {
            Finish::Ended => {}
            Finish::Succeeded => drop(self.requeues.remove(&key)),
            Finish::Failed => self.add_rate_limited(key),
            Finish::Again(delay) => {
                self.requeues.remove(&key);
                self.add_after(key, delay.as_millis() as u64);
            }
        }
        self.processing.remove(&key);
        if self.dirty.contains(&key) {
            self.line_up(key);
        }
    }

    fn advance(&mut self, milliseconds: u64) {
        self.now += milliseconds;
        let mut due: Vec<_> = self.waiting.iter().map(|(k, at)| (*at, *k)).collect();
        due.retain(|(at, _)| at.0 <= self.now);
        due.sort();
        for (_, key) in due {
            self.waiting.remove(&key);
            self.add(key);
        }
    }

    fn shut_down(&mut self) {
        self.shut = true;
        self.waiting.clear();
    }
}

/// Both, with the runs that are under way.
struct Pair {
    machine: Machine<&'static str, ()>,
    model: Model,
    runs: Vec<Run<&'static str, ()>>,
}

impl Pair {
    fn new(policy: PriorityPolicy, name: &str) -> Self {
        Self {
            machine: machine(policy, name),
            model: Model::default(),
            runs: Vec::new(),
        }
    }

    fn now(&self) -> Moment {
        Moment::at(ms(self.model.now))
    }

    fn add(&mut self, key: usize, how: Add) {
        let now = self.now();
        self.machine.add(KEYS[key], (), how, now);
    }

    /// Does the same to both, and compares what they answer.
    fn apply(&mut self, operation: &Operation) {
        match *operation {
            Operation::Add(key) => {
                self.add(key, Add::now());
                self.model.add(key);
            }
            Operation::AddAfter(key, delay) => {
                self.add(key, Add::after(ms(delay)));
                self.model.add_after(key, delay);
            }
            Operation::AddRateLimited(key) => {
                self.add(key, Add::rate_limited());
                self.model.add_rate_limited(key);
            }
            Operation::Forget(key) => {
                self.machine.forget(&KEYS[key]);
                self.model.requeues.remove(&key);
            }
            Operation::Get => self.get(),
            Operation::Done(index, finish) => self.done(index, finish),
            Operation::Advance(milliseconds) => self.model.advance(milliseconds),
            Operation::ShutDown => {
                self.machine.shut_down(Life::ShutDown, self.now());
                self.model.shut_down();
            }
        }
    }

    fn get(&mut self) {
        let expected = self.model.get().map(|key| KEYS[key]);
        let now = self.now();
        match self.machine.get(now) {
            Next::Run(run) => {
                assert_eq!(Some(run.key), expected);
                assert!(self.runs.iter().all(|other| other.key != run.key));
                self.runs.push(run);
            }
            Next::Empty => assert_eq!((expected, self.model.shut), (None, false)),
            Next::ShutDown => assert_eq!((expected, self.model.shut), (None, true)),
        }
    }

    fn done(&mut self, index: usize, finish: Finish) {
        let Some((key, run)) = self.take_run(index) else {
            return;
        };
        let now = self.now();
        self.machine.done(&run, finish.into(), now);
        self.model.done(key, finish);
    }

    fn take_run(&mut self, index: usize) -> Option<(usize, Run<&'static str, ()>)> {
        let index = index.checked_rem(self.runs.len())?;
        let run = self.runs.swap_remove(index);
        let key = KEYS.iter().position(|key| *key == run.key);
        Some((key.expect("runs are of known keys"), run))
    }

    /// The invariants, and that both know the same.
    fn check(&mut self) {
        let stats = self.machine.stats("", self.now());
        assert_eq!(self.machine.len(), self.model.ready.len());
        assert_eq!(stats.depth, self.model.dirty.len());
        assert_eq!(stats.running, self.model.processing.len());
        assert_eq!(stats.waiting, self.model.waiting.len());
        for (key, name) in KEYS.iter().enumerate() {
            let requeues = self.machine.requeues(name);
            let expected = self.model.requeues.get(&key).copied();
            assert_eq!(requeues, expected.unwrap_or(0), "{name}");
        }
        let next = self.model.waiting.values().map(|at| at.0).min();
        let expected = next.map(|at| Moment::at(ms(at)));
        assert_eq!(self.machine.next_due(), expected);
        self.machine.check_invariants();
    }

    /// Runs everything to its end: nothing may be left, and nothing may be remembered.
    fn wind_up(&mut self) {
        while !self.runs.is_empty() {
            self.apply(&Operation::Done(0, Finish::Ended));
        }
        self.apply(&Operation::Advance(1_000_000));
        while !self.model.ready.is_empty() {
            self.apply(&Operation::Get);
            self.apply(&Operation::Done(0, Finish::Ended));
        }
        (0..KEYS.len()).for_each(|key| self.apply(&Operation::Forget(key)));
        self.check();
        let now = self.now();
        assert_eq!(
            self.machine.get(now),
            if self.model.shut {
                Next::ShutDown
            } else {
                Next::Empty
            }
        );
        assert_eq!(self.machine.stats("", self.now()).known, 0);
    }
}

fn operation() -> impl Strategy<Value = Operation> {
    let key = 0..KEYS.len();
    let finish = prop_oneof![
        Just(Finish::Ended),
        Just(Finish::Succeeded),
        Just(Finish::Failed),
        (0u64..20).prop_map(|delay| Finish::Again(ms(delay))),
    ];
    prop_oneof![
        12 => key.clone().prop_map(Operation::Add),
        8 => (key.clone(), 0u64..30).prop_map(|(key, delay)| Operation::AddAfter(key, delay)),
        4 => key.clone().prop_map(Operation::AddRateLimited),
        2 => key.prop_map(Operation::Forget),
        12 => Just(Operation::Get),
        10 => (0usize..6, finish).prop_map(|(index, finish)| Operation::Done(index, finish)),
        6 => (0u64..20).prop_map(Operation::Advance),
        1 => Just(Operation::ShutDown),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_history_agrees_with_the_model(
        history in prop::collection::vec(operation(), 1..120),
        name in prop_oneof![Just("named"), Just("")],
    ) {
        let mut pair = Pair::new(PriorityPolicy::FAIR, name);
        for operation in &history {
            pair.apply(operation);
            pair.check();
        }
        pair.wind_up();
    }

    #[test]
    fn priorities_lose_nothing_and_never_run_a_key_twice_at_once(
        history in prop::collection::vec((operation(), -2i32..3), 1..120),
        passes in 0u32..4,
    ) {
        let mut machine = Pair::new(PriorityPolicy::Fair { passes }, "").machine;
        let (mut now, mut runs, mut dirty) = (Moment::default(), Vec::<Run<_, ()>>::new(), BTreeSet::new());
        for (operation, priority) in history {
            match operation {
                Operation::Add(key) => {
                    machine.add(KEYS[key], (), Add::now().priority(Priority(priority)), now);
                    dirty.insert(KEYS[key]);
                }
                Operation::Get => if let Next::Run(run) = machine.get(now) {
                    prop_assert!(dirty.remove(run.key));
                    prop_assert!(runs.iter().all(|other| other.key != run.key));
                    runs.push(run);
                },
                Operation::Done(index, _) if !runs.is_empty() => {
                    let run = runs.swap_remove(index % runs.len());
                    machine.done(&run, Finish::Ended.into(), now);
                }
                Operation::Advance(milliseconds) => now = now.after(ms(milliseconds)),
                _ => {}
            }
            machine.check_invariants();
            prop_assert_eq!(machine.stats("", now).depth, dirty.len());
        }
        for run in runs {
            machine.done(&run, Finish::Ended.into(), now);
        }
        while let Next::Run(run) = machine.get(now) {
            prop_assert!(dirty.remove(run.key));
            machine.done(&run, Finish::Ended.into(), now);
        }
        prop_assert!(dirty.is_empty());
        prop_assert_eq!(machine.stats("", now).known, 0);
    }
}
