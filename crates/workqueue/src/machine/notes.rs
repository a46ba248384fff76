//! Notes: what is left with a key, and which run gets it.

use super::tests::{machine, ms};
use super::*;

impl Note for Vec<u32> {
    fn merge(&mut self, later: Self) {
        self.extend(later);
    }
}

struct Desk(Machine<&'static str, Vec<u32>>);

impl Desk {
    fn new() -> Self {
        Self(machine(PriorityPolicy::FAIR, "desk"))
    }

    fn add(&mut self, note: u32, how: Add) {
        self.0.add("a", vec![note], how, Moment::default());
    }

    fn get_at(&mut self, milliseconds: u64) -> Run<&'static str, Vec<u32>> {
        match self.0.get(Moment::at(ms(milliseconds))) {
            Next::Run(run) => run,
            Next::Empty | Next::ShutDown => panic!("a key is ready"),
        }
    }

    fn done(&mut self, run: &Run<&'static str, Vec<u32>>, finish: Finish, left: u32) {
        let mut end = End::from(finish);
        end.left = vec![left];
        self.0.done(run, end, Moment::default());
    }
}

#[test]
fn notes_of_all_adds_come_with_the_one_run() {
    let mut desk = Desk::new();
    (1..=3).for_each(|note| desk.add(note, Add::now()));
    assert_eq!(desk.get_at(0).note, [1, 2, 3]);
}

#[test]
fn note_of_an_add_while_the_key_runs_is_for_the_next_run() {
    let mut desk = Desk::new();
    desk.add(1, Add::now());
    let run = desk.get_at(0);
    desk.add(2, Add::now());
    desk.done(&run, Finish::Succeeded, 9);
    assert_eq!((run.note, desk.get_at(0).note), (vec![1], vec![2]));
}

#[test]
fn note_of_a_delayed_add_waits_for_the_run_that_falls_due() {
    let mut desk = Desk::new();
    desk.add(1, Add::after(ms(5)));
    desk.add(2, Add::now());
    let run = desk.get_at(0);
    assert_eq!(run.note, [2]);
    desk.done(&run, Finish::Succeeded, 9);
    assert_eq!(desk.get_at(5).note, [1]);
}

#[test]
fn note_of_the_earliest_delay_is_kept() {
    for (first, second, expected) in [(5, 9, 1), (9, 5, 2), (5, 5, 1)] {
        let mut desk = Desk::new();
        desk.add(1, Add::after(ms(first)));
        desk.add(2, Add::after(ms(second)));
        assert_eq!(desk.get_at(5).note, [expected], "{first} {second}");
    }
}

#[test]
fn note_of_a_delay_joins_a_run_that_has_not_begun() {
    let mut desk = Desk::new();
    desk.add(1, Add::after(ms(5)));
    desk.add(2, Add::now());
    assert_eq!(desk.get_at(5).note, [2, 1]);
}

#[test]
fn note_is_left_for_the_run_that_a_run_asks_for() {
    for (finish, expected) in [
        (Finish::Failed, vec![1]),
        (Finish::Again(ms(1)), vec![1]),
        (Finish::Succeeded, vec![]),
        (Finish::Ended, vec![]),
    ] {
        let mut desk = Desk::new();
        desk.add(0, Add::now());
        let run = desk.get_at(0);
        desk.done(&run, finish, 1);
        if expected.is_empty() {
            desk.add(7, Add::now());
            assert_eq!(desk.get_at(0).note, [7]);
        } else {
            assert_eq!(desk.get_at(1).note, expected);
        }
    }
}
