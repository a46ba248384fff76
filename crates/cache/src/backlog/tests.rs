use std::collections::BTreeMap as Model;

use proptest::prelude::*;

use super::*;
use crate::Shape;
use crate::table::Table;

fn object(name: &str, uid: u32, version: u32) -> Arc<Object> {
    let json = format!(
        r#"{{"metadata":{{"name":"{name}","uid":"{uid}","resourceVersion":"{version}"}}}}"#
    );
    Object::parse(json.as_bytes(), &Shape::default()).expect("it is an object")
}

fn show(next: &Next) -> String {
    match next {
        Next::Synced => "synced".to_owned(),
        Next::Change(Change::Added {
            object,
            initial: true,
        }) => format!("initial {object:?}"),
        Next::Change(Change::Added { object, .. }) => format!("added {object:?}"),
        Next::Change(Change::Updated { old, new }) => format!("updated {old:?} {new:?}"),
        Next::Change(Change::Deleted {
            last,
            observed: true,
        }) => format!("deleted {last:?}"),
        Next::Change(Change::Deleted { last, .. }) => format!("missed {last:?}"),
    }
}

fn drain(backlog: &mut Backlog) -> Vec<String> {
    std::iter::from_fn(|| backlog.pop())
        .map(|next| show(&next))
        .collect()
}

fn added(object: &Arc<Object>) -> Change {
    Change::Added {
        object: object.clone(),
        initial: false,
    }
}

fn updated(old: &Arc<Object>, new: &Arc<Object>) -> Change {
    Change::Updated {
        old: old.clone(),
        new: new.clone(),
    }
}

fn deleted(last: &Arc<Object>) -> Change {
    Change::Deleted {
        last: last.clone(),
        observed: true,
    }
}

#[test]
fn every_change_is_reported_while_there_is_room() {
    let mut backlog = Backlog::new(10);
    let (a1, a2) = (object("a", 1, 1), object("a", 1, 2));
    for change in [added(&a1), updated(&a1, &a2), deleted(&a2)] {
        backlog.push(change);
    }
    assert_eq!(
        drain(&mut backlog),
        ["added a@1", "updated a@1 a@2", "deleted a@2"]
    );
}

#[test]
fn changes_beyond_the_capacity_are_merged_by_key() {
    let mut backlog = Backlog::new(1);
    let a: Vec<_> = (1..5).map(|version| object("a", 1, version)).collect();
    let (b, c) = (object("b", 1, 1), object("c", 1, 1));
    for change in [
        added(&a[0]),
        updated(&a[0], &a[1]),
        added(&b),
        updated(&a[1], &a[2]),
        added(&c),
        deleted(&c),
        updated(&a[2], &a[3]),
    ] {
        backlog.push(change);
    }
    backlog.push_synced();
    assert_eq!(backlog.len(), 3);
    assert_eq!(
        drain(&mut backlog),
        ["added a@1", "updated a@1 a@4", "added b@1", "synced"]
    );
}

#[test]
fn recreated_object_is_reported_as_deleted_and_added() {
    let mut backlog = Backlog::new(1);
    let (a1, a2, other) = (object("a", 1, 1), object("a", 1, 2), object("a", 2, 3));
    for change in [added(&a1), updated(&a1, &a2), deleted(&a2), added(&other)] {
        backlog.push(change);
    }
    assert_eq!(
        drain(&mut backlog),
        ["added a@1", "deleted a@2", "added a@3"]
    );
}

#[test]
fn initial_state_comes_first_and_is_marked() {
    let mut table = Table::default();
    table.put(object("a", 1, 1));
    table.put(object("b", 1, 1));
    let mut backlog = Backlog::new(4);
    backlog.push_initial(table.blocks());
    backlog.push_synced();
    backlog.push(added(&object("c", 1, 1)));
    assert_eq!(backlog.len(), 3);
    assert_eq!(
        drain(&mut backlog),
        ["initial a@1", "initial b@1", "synced", "added c@1"]
    );
}

#[test]
fn resync_waits_for_its_turn_and_is_not_repeated_while_it_waits() {
    let mut table = Table::default();
    let a = object("a", 1, 1);
    table.put(a.clone());
    let mut backlog = Backlog::new(2);
    backlog.push(added(&a));
    backlog.push_resync(table.blocks());
    backlog.push_resync(table.blocks());
    assert_eq!(drain(&mut backlog), ["added a@1", "updated a@1 a@1"]);
}

#[test]
fn handler_that_is_far_behind_gets_no_resync() {
    let mut table = Table::default();
    let (a, b) = (object("a", 1, 1), object("b", 1, 1));
    table.put(a.clone());
    let mut backlog = Backlog::new(1);
    backlog.push(added(&a));
    backlog.push(added(&b));
    backlog.push_resync(table.blocks());
    assert_eq!(drain(&mut backlog), ["added a@1", "added b@1"]);
}

#[derive(Debug, Clone)]
enum Step {
    Put(u8),
    Remove(u8),
    Pop,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever is merged: the events lead a handler, without a gap, to the present state.
    #[test]
    fn handler_ends_with_the_true_state(
        steps in prop::collection::vec(prop_oneof![
            4 => (0_u8..4).prop_map(Step::Put),
            2 => (0_u8..4).prop_map(Step::Remove),
            2 => Just(Step::Pop),
        ], 0..80),
        capacity in 1_usize..4,
    ) {
        let mut backlog = Backlog::new(capacity);
        let mut truth: Model<Key, Arc<Object>> = Model::new();
        let mut record: Model<Key, Arc<Object>> = Model::new();
        let (mut uid, mut version) = (0, 0);
        for step in steps {
            version += 1;
            match step {
                Step::Put(name) => {
                    let key = Key::cluster(&name.to_string());
                    let change = match truth.get(&key) {
                        None => {
                            uid += 1;
                            added(&object(key.as_str(), uid, version))
                        }
                        Some(old) => updated(old, &object(key.as_str(), old.uid().parse().expect("a number"), version)),
                    };
                    truth.insert(key, change.object().clone());
                    backlog.push(change);
                }
                Step::Remove(name) => {
                    if let Some(last) = truth.remove(&Key::cluster(&name.to_string())) {
                        backlog.push(deleted(&last));
                    }
                }
                Step::Pop => hear(&mut record, backlog.pop())?,
            }
            prop_assert!(backlog.len() <= capacity + 4 + 1);
        }
        while let Some(next) = backlog.pop() {
            hear(&mut record, Some(next))?;
        }
        prop_assert_eq!(format!("{record:?}"), format!("{truth:?}"));
    }
}

/// A handler that insists on a sound story.
fn hear(record: &mut Model<Key, Arc<Object>>, next: Option<Next>) -> Result<(), TestCaseError> {
    match next {
        Some(Next::Change(Change::Added { object, .. })) => {
            prop_assert!(record.insert(object.key().clone(), object).is_none());
        }
        Some(Next::Change(Change::Updated { old, new })) => {
            prop_assert!(old.is_same_object(&new));
            let before = record.insert(new.key().clone(), new);
            prop_assert!(before.is_some_and(|before| Arc::ptr_eq(&before, &old)));
        }
        Some(Next::Change(Change::Deleted { last, .. })) => {
            let before = record.remove(last.key());
            prop_assert!(before.is_some_and(|before| before.is_same_object(&last)));
        }
        Some(Next::Synced) | None => {}
    }
    Ok(())
}
