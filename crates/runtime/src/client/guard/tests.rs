use super::*;

const ONE: InformerId = InformerId(1);
const OTHER: InformerId = InformerId(2);

/// Shows the same of every key.
#[derive(Debug)]
struct Shown {
    reached: u64,
    object: Option<Seen>,
}

impl View for Shown {
    fn reached(&self) -> u64 {
        self.reached
    }

    fn object(&self, _: &Key) -> Option<Seen> {
        self.object.clone()
    }
}

fn view(reached: u64, object: Option<(&str, u64)>) -> Shown {
    Shown {
        reached,
        object: object.map(|(uid, version)| Seen {
            uid: uid.trim_end_matches('!').to_owned(),
            version,
            terminating: uid.ends_with('!'),
        }),
    }
}

const TELLING: &[(InformerId, Absence)] = &[(ONE, Absence::Telling), (OTHER, Absence::Telling)];

fn key() -> Key {
    Key::new("default", "a")
}

fn check(write: impl Fn(&mut Guard, &Key), cases: &[(Shown, bool)]) {
    for (view, behind) in cases {
        let mut guard = Guard::default();
        guard.join(ONE);
        guard.join(OTHER);
        write(&mut guard, &key());
        for id in [ONE, OTHER] {
            let is_behind = guard.is_behind(id, &key(), view);
            assert_eq!(is_behind, *behind, "{guard:?} {view:?}");
        }
        assert!(!guard.is_behind(ONE, &Key::new("default", "b"), view));
        assert_eq!(guard.remembered() == 0, !behind, "{guard:?} {view:?}");
    }
}

#[test]
fn write_is_seen_once_the_informer_has_reached_its_version() {
    check(
        |guard, key| guard.wrote(key, "7", TELLING),
        &[
            (view(6, None), true),
            (view(6, Some(("u", 6))), true),
            (view(7, None), false),
            (view(6, Some(("u", 7))), false),
            (view(8, Some(("u", 6))), false),
        ],
    );
}

#[test]
fn deletion_is_seen_when_the_object_is_gone_or_going() {
    check(
        |guard, key| guard.deleted(key, "u", None, TELLING),
        &[
            (view(9, Some(("u", 6))), true),
            (view(9, Some(("u!", 7))), false),
            (view(9, Some(("other", 9))), false),
            (view(9, None), false),
        ],
    );
}

#[test]
fn deletion_right_after_creation_needs_both_to_be_seen() {
    check(
        |guard, key| {
            guard.wrote(key, "7", TELLING);
            let expected = [(ONE, Absence::Expected), (OTHER, Absence::Telling)];
            guard.deleted(key, "u", None, &expected);
        },
        &[
            (view(6, None), true),
            (view(7, Some(("u", 7))), true),
            (view(8, None), false),
        ],
    );
}

#[test]
fn late_answer_of_an_earlier_write_lowers_nothing() {
    check(
        |guard, key| {
            guard.wrote(key, "9", TELLING);
            guard.wrote(key, "7", TELLING);
        },
        &[(view(8, Some(("u", 8))), true), (view(9, None), false)],
    );
}

#[test]
fn creation_after_a_deletion_replaces_it() {
    check(
        |guard, key| {
            guard.deleted(key, "u", None, TELLING);
            guard.wrote(key, "9", TELLING);
        },
        &[(view(9, Some(("v", 9))), false), (view(8, None), true)],
    );
}

#[test]
fn versions_that_are_not_numbers_are_not_waited_for() {
    check(
        |guard, key| guard.wrote(key, "abc", TELLING),
        &[(view(0, None), false)],
    );
}

#[test]
fn informer_that_caught_up_leaves_the_write_to_the_others() {
    let mut guard = Guard::default();
    guard.join(ONE);
    guard.join(OTHER);
    guard.wrote(&key(), "7", TELLING);
    assert!(!guard.is_behind(ONE, &key(), &view(7, Some(("u", 7)))));
    assert!(guard.is_behind(OTHER, &key(), &view(6, Some(("u", 6)))));
    let behind = guard.behind(OTHER, |_| true, &view(6, Some(("u", 6))));
    assert_eq!(behind, Some(Behind::Key(key())));
    assert!(!guard.is_behind(OTHER, &key(), &view(7, Some(("u", 7)))));
    assert_eq!(guard.remembered(), 0);
}

#[test]
fn informer_that_stops_is_not_waited_for() {
    let mut guard = Guard::default();
    guard.join(ONE);
    guard.wrote(&key(), "7", &[(ONE, Absence::Telling)]);
    guard.leave(ONE);
    assert_eq!(guard.remembered(), 0);
}

#[test]
fn absence_is_expected_of_an_informer_that_chooses_others() {
    let mut guard = Guard::default();
    guard.join(ONE);
    let write = |guard: &mut Guard| guard.wrote(&key(), "7", &[(ONE, Absence::Expected)]);
    write(&mut guard);
    assert!(!guard.is_behind(ONE, &key(), &view(3, None)));
    write(&mut guard);
    assert!(
        guard.is_behind(ONE, &key(), &view(3, Some(("u", 6)))),
        "it shows a state from before it left"
    );
}

#[test]
fn nothing_is_remembered_by_key_where_nobody_reads_and_later_informers_reach_it() {
    let mut guard = Guard::default();
    for number in 1..100_u64 {
        let key = Key::new("default", &number.to_string());
        guard.wrote(&key, &number.to_string(), &[]);
        guard.deleted(&key, "u", None, &[]);
    }
    assert_eq!(guard.remembered(), 0);
    guard.join(ONE);
    let list = |guard: &mut Guard, reached| guard.behind(ONE, |_| true, &view(reached, None));
    assert_eq!(list(&mut guard, 98), Some(Behind::All));
    assert!(guard.is_behind(ONE, &key(), &view(98, None)));
    assert!(!guard.is_behind(ONE, &key(), &view(99, None)));
    assert_eq!(list(&mut guard, 0), None, "it has been reached once");
}

#[test]
fn writes_that_nobody_reads_back_are_swept_out() {
    let mut guard = Guard::default();
    guard.join(ONE);
    for number in 0..=SWEEP {
        let key = Key::new("default", &number.to_string());
        guard.wrote(&key, "5", &[(ONE, Absence::Telling)]);
    }
    assert!(guard.is_full());
    guard.sweep(|_| Some(view(5, None)));
    assert_eq!(guard.remembered(), 0);
    assert!(!guard.is_full());
}

#[test]
fn memory_is_bounded_when_an_informer_stands_still() {
    let mut guard = Guard::default();
    guard.join(ONE);
    for number in 1..=(4 * MOST) {
        let key = Key::new("default", &number.to_string());
        guard.wrote(&key, &number.to_string(), &[(ONE, Absence::Telling)]);
        if guard.is_full() {
            guard.sweep(|_| Some(view(0, None)));
        }
        assert!(guard.remembered() <= 2 * MOST + 1);
    }
    assert!(guard.is_behind(ONE, &key(), &view(MOST as u64 / 2, None)));
    assert!(!guard.is_behind(ONE, &key(), &view(4 * MOST as u64, None)));
}

#[test]
fn list_looks_at_no_object_whose_version_the_informer_has_reached() {
    struct Counting(std::cell::Cell<usize>);

    impl View for Counting {
        fn reached(&self) -> u64 {
            100
        }

        fn object(&self, _: &Key) -> Option<Seen> {
            self.0.set(self.0.get() + 1);
            None
        }
    }

    let mut guard = Guard::default();
    guard.join(ONE);
    guard.join(OTHER);
    for number in 1..=100_u64 {
        let key = Key::new("default", &number.to_string());
        guard.wrote(&key, &number.to_string(), TELLING);
    }
    guard.deleted(&key(), "u", None, TELLING);
    let view = Counting(std::cell::Cell::default());
    for _ in 0..10 {
        assert_eq!(guard.behind(ONE, |_| true, &view), None);
    }
    assert_eq!(view.0.get(), 1, "only the deletion needs a look, and once");
    assert_eq!(guard.remembered(), 101, "the other informer's");
}
