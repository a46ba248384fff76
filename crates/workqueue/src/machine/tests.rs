//! The rules of the queue, one fact at a time, with a clock that is a number.

use super::*;
use crate::limiter::{ExponentialBackoff, RateLimiter, Retry};

type Word = &'static str;

/// A machine with a clock in milliseconds.
struct Bench {
    machine: Machine<Word, ()>,
    now: Moment,
}

impl Bench {
    fn new() -> Self {
        Self::with_policy(PriorityPolicy::FAIR)
    }

    fn with_policy(policy: PriorityPolicy) -> Self {
        Self {
            machine: machine(policy, "bench"),
            now: Moment::default(),
        }
    }

    fn add(&mut self, key: Word) {
        self.add_with(key, Add::now());
    }

    fn add_after(&mut self, key: Word, delay: u64) {
        self.add_with(key, Add::after(ms(delay)));
    }

    fn add_with(&mut self, key: Word, how: Add) {
        self.machine.add(key, (), how, self.now);
    }

    fn get(&mut self) -> Option<Run<Word, ()>> {
        match self.machine.get(self.now) {
            Next::Run(run) => Some(run),
            Next::Empty | Next::ShutDown => None,
        }
    }

    fn done(&mut self, run: &Run<Word, ()>) {
        self.finish(run, Finish::Ended);
    }

    fn finish(&mut self, run: &Run<Word, ()>, finish: Finish) {
        self.machine.done(run, finish.into(), self.now);
    }

    fn step(&mut self, milliseconds: u64) {
        self.now = self.now.after(ms(milliseconds));
    }

    fn requeues(&self, key: Word) -> u32 {
        self.machine.requeues(&key)
    }

    fn forget(&mut self, key: Word) {
        self.machine.forget(&key);
    }

    fn stats(&mut self) -> Stats {
        self.machine.stats("bench", self.now)
    }

    /// Takes and finishes keys until none is ready.
    fn drain(&mut self) -> Vec<Word> {
        let mut keys = Vec::new();
        while let Some(run) = self.get() {
            self.done(&run);
            keys.push(run.key);
        }
        keys
    }
}

/// A machine whose retries wait 1, 2, 4, … ms.
pub(super) fn machine<K: Request, N: Note>(policy: PriorityPolicy, name: &str) -> Machine<K, N> {
    let limiter = ExponentialBackoff::new(ms(1), ms(1000));
    Machine::new(
        Options::new()
            .name(name)
            .priorities(policy)
            .limiter(limiter),
    )
}

pub(super) fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

#[test]
fn keys_run_in_the_order_of_adding() {
    let mut bench = Bench::new();
    for key in ["d", "a", "c", "b"] {
        bench.add(key);
    }
    assert_eq!(bench.machine.len(), 4);
    assert_eq!(bench.drain(), ["d", "a", "c", "b"]);
}

#[test]
fn key_added_twice_runs_once() {
    let mut bench = Bench::new();
    bench.add("a");
    bench.add("a");
    assert_eq!(bench.machine.len(), 1);
    assert_eq!(bench.drain(), ["a"]);
}

#[test]
fn key_added_while_processing_runs_again() {
    let mut bench = Bench::new();
    bench.add("a");
    let run = bench.get().unwrap();
    bench.add("a");
    bench.add("a");
    assert_eq!(bench.machine.len(), 0);
    assert_eq!(bench.get(), None);
    bench.done(&run);
    assert_eq!(bench.drain(), ["a"]);
    assert_eq!(bench.stats().known, 0);
}

#[test]
fn key_added_while_processing_goes_to_the_tail() {
    let mut bench = Bench::new();
    bench.add("a");
    let run = bench.get().unwrap();
    bench.add("a");
    bench.add("b");
    bench.done(&run);
    assert_eq!(bench.drain(), ["b", "a"]);
}

#[test]
fn len_counts_ready_keys_only() {
    let mut bench = Bench::new();
    bench.add("running");
    bench.get().unwrap();
    bench.add("running");
    bench.add_after("delayed", 5);
    bench.add("ready");
    assert_eq!(bench.machine.len(), 1);
}

#[test]
fn key_that_is_done_is_dropped() {
    let key: std::sync::Arc<str> = "a".into();
    let mut machine: Machine<_, ()> = machine(PriorityPolicy::FAIR, "");
    machine.add(key.clone(), (), Add::now(), Moment::default());
    let Next::Run(run) = machine.get(Moment::default()) else {
        panic!("the key is ready");
    };
    machine.done(&run, Finish::Ended.into(), Moment::default());
    drop(run);
    assert_eq!(std::sync::Arc::strong_count(&key), 1);
}

#[test]
fn delayed_key_runs_when_due() {
    let mut bench = Bench::new();
    bench.add_after("a", 50);
    bench.step(49);
    assert_eq!(bench.get(), None);
    bench.step(1);
    assert_eq!(bench.drain(), ["a"]);
    bench.step(1000);
    assert_eq!(bench.drain(), [] as [Word; 0]);
}

#[test]
fn delay_of_nothing_is_an_add() {
    let mut bench = Bench::new();
    bench.add_after("a", 0);
    assert_eq!(bench.machine.len(), 1);
    assert_eq!(bench.stats().retries, 1);
}

#[test]
fn earliest_delay_wins_in_either_order() {
    for delays in [[50, 70], [70, 50]] {
        let mut bench = Bench::new();
        for delay in delays {
            bench.add_after("a", delay);
        }
        bench.step(60);
        assert_eq!(bench.drain(), ["a"], "{delays:?}");
        bench.step(60);
        assert_eq!(bench.drain(), [] as [Word; 0], "{delays:?}");
    }
}

#[test]
fn delayed_keys_run_in_the_order_in_which_they_are_due() {
    let mut bench = Bench::new();
    bench.add_after("first", 1000);
    bench.add_after("second", 500);
    bench.add_after("third", 250);
    bench.add_after("also third", 250);
    bench.step(2000);
    let expected = ["third", "also third", "second", "first"];
    assert_eq!(bench.drain(), expected);
}

#[test]
fn key_due_before_an_add_runs_before_it() {
    let mut bench = Bench::new();
    bench.add_after("due", 5);
    bench.step(6);
    bench.add("added");
    assert_eq!(bench.drain(), ["due", "added"]);
}

#[test]
fn key_can_be_ready_now_and_due_later() {
    let mut bench = Bench::new();
    bench.add_after("a", 50);
    bench.add("a");
    assert_eq!(bench.drain(), ["a"]);
    bench.step(50);
    assert_eq!(bench.drain(), ["a"]);
}

#[test]
fn key_that_falls_due_while_processing_runs_again() {
    let mut bench = Bench::new();
    bench.add("a");
    let run = bench.get().unwrap();
    bench.add_after("a", 5);
    bench.step(10);
    assert_eq!(bench.get(), None);
    bench.done(&run);
    assert_eq!(bench.drain(), ["a"]);
}

#[test]
fn replaced_delays_do_not_pile_up() {
    let mut bench = Bench::new();
    for _ in 0..10_000 {
        bench.add_after("a", 1_000_000);
        bench.add_after("a", 1);
        bench.step(1);
        assert_eq!(bench.drain(), ["a"]);
    }
    let stats = bench.stats();
    assert_eq!((stats.waiting, stats.known), (0, 0));
}

#[test]
fn burst_of_due_keys_is_handed_out_whole() {
    let mut bench = Bench::new();
    let names: Vec<Word> = (0..3 * RINGS_PER_CALL)
        .map(|i| &*format!("{i}").leak())
        .collect();
    for name in &names {
        bench.add_after(name, 5);
    }
    bench.step(5);
    assert_eq!(bench.drain(), names);
}

#[test]
fn rate_limited_key_waits_longer_each_time_until_forgotten() {
    let mut bench = Bench::new();
    for (earlier, wait) in [1, 2, 4, 8].into_iter().enumerate() {
        assert_eq!(bench.requeues("a"), earlier as u32);
        bench.add_with("a", Add::rate_limited());
        bench.step(wait - 1);
        assert_eq!(bench.get(), None);
        bench.step(1);
        assert_eq!(bench.drain(), ["a"]);
    }
    bench.forget("a");
    assert_eq!((bench.requeues("a"), bench.stats().known), (0, 0));
}

#[test]
fn requeues_are_counted_for_each_key() {
    let mut bench = Bench::new();
    for key in ["a", "b", "b"] {
        bench.add_with(key, Add::rate_limited());
    }
    bench.forget("a");
    assert_eq!((bench.requeues("a"), bench.requeues("b")), (0, 2));
}

#[test]
fn finish_decides_what_comes_next() {
    let cases = [
        (Finish::Ended, 1, None),
        (Finish::Succeeded, 0, None),
        (Finish::Failed, 2, Some(2)),
        (Finish::Again(ms(7)), 0, Some(7)),
        (Finish::Again(Duration::ZERO), 0, Some(0)),
    ];
    for (finish, requeues, wait) in cases {
        let mut bench = Bench::new();
        bench.add_with("a", Add::rate_limited());
        bench.step(1);
        let run = bench.get().unwrap();
        bench.finish(&run, finish);
        assert_eq!(bench.requeues("a"), requeues, "{finish:?}");
        let due = bench.machine.next_due();
        let ready = (bench.machine.len() == 1).then_some(0);
        let waits = due.map(|due| due.since(bench.now).as_millis() as u64);
        assert_eq!(waits.or(ready), wait, "{finish:?}");
    }
}

#[test]
fn raised_key_moves_to_the_tail_of_the_higher_priority() {
    let mut bench = Bench::with_policy(PriorityPolicy::Strict);
    for key in ["a", "b", "c"] {
        bench.add_with(key, Add::now().priority(Priority::LOW));
    }
    bench.add("d");
    bench.add("b");
    bench.add_with("b", Add::now().priority(Priority::LOW));
    assert_eq!(bench.machine.len(), 4);
    assert_eq!(bench.drain(), ["d", "b", "a", "c"]);
    assert_eq!(bench.machine.len(), 0);
}

#[test]
fn key_added_while_processing_takes_the_highest_priority() {
    let mut bench = Bench::with_policy(PriorityPolicy::Strict);
    bench.add_with("a", Add::now().priority(Priority::LOW));
    let run = bench.get().unwrap();
    assert_eq!(run.priority, Priority::LOW);
    bench.add_with("a", Add::now().priority(Priority::LOW));
    bench.add_with("a", Add::now().priority(Priority(5)));
    bench.add("b");
    bench.done(&run);
    let next = bench.get().unwrap();
    assert_eq!((next.key, next.priority), ("a", Priority(5)));
}

#[test]
fn delayed_key_keeps_its_highest_priority_in_either_order() {
    for priorities in [[-100, 3], [3, -100]] {
        let mut bench = Bench::with_policy(PriorityPolicy::Strict);
        for (priority, delay) in priorities.into_iter().zip([9, 5]) {
            bench.add_with("a", Add::after(ms(delay)).priority(Priority(priority)));
        }
        bench.step(5);
        let priority = bench.get().map(|run| run.priority);
        assert_eq!(priority, Some(Priority(3)), "{priorities:?}");
    }
}

#[test]
fn retry_is_as_urgent_as_the_run() {
    let mut bench = Bench::new();
    bench.add_with("a", Add::now().priority(Priority::LOW));
    let run = bench.get().unwrap();
    bench.finish(&run, Finish::Failed);
    bench.step(1);
    assert_eq!(bench.get().map(|run| run.priority), Some(Priority::LOW));
}

#[test]
fn live_changes_overtake_the_initial_list_without_starving_it() {
    let mut bench = Bench::new();
    bench.add_with("listed", Add::now().priority(Priority::LOW));
    let mut turns = 0;
    loop {
        bench.add("live");
        turns += 1;
        let run = bench.get().unwrap();
        bench.done(&run);
        if run.key == "listed" {
            break;
        }
    }
    assert_eq!(turns, 10);
}

#[test]
fn ignored_priorities_leave_one_line() {
    let mut bench = Bench::with_policy(PriorityPolicy::Ignore);
    bench.add_with("a", Add::now().priority(Priority::LOW));
    bench.add_with("b", Add::now().priority(Priority(9)));
    assert_eq!(bench.drain(), ["a", "b"]);
    assert_eq!(bench.stats().depth_by_priority, []);
}

#[test]
fn shutdown_hands_out_what_is_ready_and_drops_the_rest() {
    let mut bench = Bench::new();
    bench.add("running");
    let run = bench.get().unwrap();
    bench.add("running");
    bench.add("ready");
    bench.add_after("delayed", 5);
    bench.machine.shut_down(Life::ShutDown, bench.now);
    bench.add("late");
    bench.add_after("late", 1);
    bench.step(10);
    bench.finish(&run, Finish::Failed);
    assert_eq!(bench.drain(), ["ready", "running"]);
    assert_eq!(bench.machine.get(bench.now), Next::ShutDown);
    assert_eq!(bench.stats().known, 0);
}

#[test]
fn key_due_at_shutdown_is_not_dropped() {
    let mut bench = Bench::new();
    bench.add_after("due", 5);
    bench.add_after("early", 6);
    bench.step(5);
    bench.machine.shut_down(Life::ShutDown, bench.now);
    bench.step(5);
    assert_eq!(bench.drain(), ["due"]);
}

#[test]
fn drain_waits_for_ready_and_running_keys() {
    let mut bench = Bench::new();
    bench.add("a");
    bench.add("b");
    let a = bench.get().unwrap();
    bench.add("a");
    bench.machine.shut_down(Life::Draining, bench.now);
    let _ = bench.machine.take_wake();
    bench.done(&a);
    assert!(!bench.machine.is_drained());
    assert!(!bench.machine.take_wake().everybody);
    assert_eq!(bench.drain(), ["b", "a"]);
    assert!(bench.machine.is_drained());
    assert!(bench.machine.take_wake().everybody);
}

#[test]
fn each_ready_key_wakes_one_worker() {
    let mut bench = Bench::new();
    let wakes = |bench: &mut Bench| bench.machine.take_wake().workers;
    bench.add("a");
    assert_eq!(wakes(&mut bench), 1);
    bench.add("a");
    assert_eq!(wakes(&mut bench), 0);
    let run = bench.get().unwrap();
    bench.add("a");
    assert_eq!(wakes(&mut bench), 0);
    bench.done(&run);
    assert_eq!(wakes(&mut bench), 1);
    bench.add_after("b", 1);
    bench.add_after("c", 1);
    bench.step(1);
    assert_eq!(bench.drain(), ["a", "b", "c"]);
    assert_eq!(wakes(&mut bench), 0);
}

#[test]
fn only_an_earlier_alarm_wakes_the_timer() {
    let mut bench = Bench::new();
    for (delay, expected) in [(50, true), (60, false), (40, true)] {
        let key: Word = format!("{delay}").leak();
        bench.add_after(key, delay);
        assert_eq!(bench.machine.take_wake().timer, expected, "{delay}");
    }
}

#[test]
fn time_that_goes_back_is_not_believed() {
    let mut bench = Bench::new();
    bench.step(100);
    bench.add_after("a", 10);
    bench.now = Moment::default();
    bench.add_after("b", 5);
    bench.step(105);
    assert_eq!(bench.drain(), ["b"]);
}

#[test]
fn memory_of_a_burst_is_given_back() {
    let mut machine: Machine<u32, ()> = machine(PriorityPolicy::Strict, "");
    let now = Moment::default();
    for key in 0..3 * ROOM_KEPT as u32 {
        machine.add(key, (), Add::now().priority(Priority::LOW), now);
    }
    while let Next::Run(run) = machine.get(now) {
        machine.done(&run, Finish::Ended.into(), now);
    }
    assert!(machine.capacity() <= 2 * ROOM_KEPT);
    machine.check_invariants();
}

/// A limiter that always panics, without a word on stderr.
struct Broken;

impl<K> RateLimiter<K> for Broken {
    fn delay(&mut self, _retry: &Retry<'_, K>) -> Duration {
        std::panic::resume_unwind(Box::new("broken"))
    }

    fn forget(&mut self, _key: &K) {
        std::panic::resume_unwind(Box::new("broken"))
    }
}

#[test]
fn key_of_a_limiter_that_panics_waits_as_by_default_and_is_not_kept_running() {
    let mut machine: Machine<Word, ()> = Machine::new(Options::new().limiter(Broken));
    machine.add("a", (), Add::now(), Moment::default());
    for delay in [5, 10, 20] {
        let now = machine.next_due().unwrap_or_default();
        let Next::Run(run) = machine.get(now) else {
            panic!("the key is ready");
        };
        machine.done(&run, Finish::Failed.into(), now);
        machine.check_invariants();
        assert_eq!(machine.next_due(), Some(now.after(ms(delay))));
    }
    let now = machine.next_due().unwrap_or_default();
    let Next::Run(run) = machine.get(now) else {
        panic!("the key is ready");
    };
    machine.done(&run, Finish::Succeeded.into(), now);
    let stats = machine.stats("", now);
    assert_eq!(
        (stats.running, stats.known, stats.limiter_panics),
        (0, 0, 4)
    );
}

#[test]
fn run_decides_how_urgent_the_next_one_is() {
    let mut bench = Bench::new();
    bench.add("a");
    let run = bench.get().unwrap();
    let mut end = End::from(Finish::Again(ms(5)));
    end.priority = Some(Priority(7));
    bench.machine.done(&run, end, bench.now);
    bench.step(5);
    assert_eq!(bench.get().map(|run| run.priority), Some(Priority(7)));
}

#[test]
fn statistics_follow_the_keys() {
    let mut bench = Bench::new();
    bench.add("a");
    bench.add("a");
    bench.add_with("b", Add::now().priority(Priority::LOW));
    bench.step(50);
    let a = bench.get().unwrap();
    bench.add("a");
    let depths = vec![(Priority::NORMAL, 1), (Priority::LOW, 1)];
    assert_eq!(bench.stats().depth_by_priority, depths);
    bench.step(25);
    let b = bench.get().unwrap();
    bench.step(5);
    let stats = bench.stats();
    assert_eq!((stats.depth, stats.running, stats.adds), (1, 2, 3));
    assert_eq!(stats.queue_duration.sum(), ms(50 + 75));
    assert_eq!(stats.unfinished_work, ms(30 + 5));
    assert_eq!(stats.longest_running, ms(30));
    bench.finish(&a, Finish::Failed);
    bench.done(&b);
    let stats = bench.stats();
    assert_eq!(stats.work_duration.sum(), ms(35));
    assert_eq!(stats.work_duration.count(), 2);
    assert_eq!((stats.depth, stats.waiting, stats.retries), (1, 1, 1));
    assert_eq!(stats.unfinished_work, Duration::ZERO);
}
