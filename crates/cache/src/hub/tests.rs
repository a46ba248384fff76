use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::delta::Delta;
use crate::store;
use crate::{Index, Reader, Shape};

fn object(name: &str, uid: u32, version: u32) -> Arc<Object> {
    let json = format!(
        r#"{{"metadata":{{"name":"{name}","uid":"{uid}","resourceVersion":"{version}"}}}}"#
    );
    Object::parse(json.as_bytes(), &Shape::default()).expect("it is an object")
}

fn everything(objects: &[Arc<Object>]) -> Delta {
    Delta::Replace {
        objects: objects.to_vec(),
        resource_version: "1".to_owned(),
    }
}

fn apply(hub: &mut Hub, reader: &Reader<Value>, delta: Delta, tell: impl FnMut(Change)) {
    let store = reader.shared();
    let prepared = Prepared::new(delta, store, &store.indexers());
    hub.apply(prepared, tell).expect("no index came meanwhile");
}

fn check(script: Vec<(Delta, &[&str])>) {
    let (writer, reader) = store::new::<Value>();
    let mut hub = Hub::new(writer);
    for (delta, expected) in script {
        let mut record = Vec::new();
        let shown = format!("{delta:?}");
        apply(&mut hub, &reader, delta, |change| {
            record.push(show(&change))
        });
        assert_eq!(record, expected, "{shown}");
    }
}

fn show(change: &Change) -> String {
    match change {
        Change::Added {
            object,
            initial: true,
        } => format!("initial {object:?}"),
        Change::Added { object, .. } => format!("added {object:?}"),
        Change::Updated { old, new } => format!("updated {old:?} {new:?}"),
        Change::Deleted {
            last,
            observed: true,
        } => format!("deleted {last:?}"),
        Change::Deleted { last, .. } => format!("missed {last:?}"),
    }
}

#[test]
fn deltas_become_changes() {
    check(vec![
        (
            everything(&[object("a", 1, 1), object("b", 2, 2)]),
            &["initial a@1", "initial b@2"],
        ),
        (Delta::Apply(object("a", 1, 3)), &["updated a@1 a@3"]),
        (Delta::Apply(object("c", 3, 4)), &["added c@4"]),
        (Delta::Delete(object("c", 3, 5)), &["deleted c@5"]),
        (Delta::Delete(object("c", 3, 5)), &[]),
        (Delta::Bookmark("9".to_owned()), &[]),
    ]);
}

#[test]
fn store_knows_how_far_it_is() {
    let (writer, reader) = store::new::<Value>();
    let mut hub = Hub::new(writer);
    for (delta, expected) in [
        (everything(&[object("a", 1, 1)]), "1"),
        (Delta::Apply(object("a", 1, 3)), "3"),
        (Delta::Delete(object("a", 1, 4)), "4"),
        (Delta::Bookmark("9".to_owned()), "9"),
    ] {
        apply(&mut hub, &reader, delta, |_| {});
        assert_eq!(reader.resource_version(), expected);
    }
}

#[test]
fn relist_tells_deletions_that_nobody_saw_first() {
    check(vec![
        (
            everything(&[object("a", 1, 1), object("b", 2, 2)]),
            &["initial a@1", "initial b@2"],
        ),
        (
            everything(&[object("c", 3, 5), object("b", 2, 4)]),
            &["missed a@1", "added c@5", "updated b@2 b@4"],
        ),
    ]);
}

#[test]
fn state_that_is_known_is_not_reported_again() {
    check(vec![
        (everything(&[object("a", 1, 1)]), &["initial a@1"]),
        (Delta::Apply(object("a", 1, 1)), &[]),
        (everything(&[object("a", 1, 1)]), &[]),
    ]);
}

#[test]
fn another_object_of_the_same_name_is_a_deletion_and_an_addition() {
    check(vec![
        (everything(&[object("a", 1, 1)]), &["initial a@1"]),
        (
            Delta::Apply(object("a", 2, 3)),
            &["missed a@1", "added a@3"],
        ),
        (
            everything(&[object("a", 3, 7)]),
            &["missed a@3", "added a@7"],
        ),
    ]);
}

#[test]
fn delta_that_was_prepared_before_an_index_came_is_prepared_again() {
    for delta in [
        Delta::Apply(object("a", 1, 1)),
        everything(&[object("a", 1, 1)]),
    ] {
        let (writer, reader) = store::new::<Value>();
        let mut hub = Hub::new(writer);
        let store = reader.shared();
        let prepared = Prepared::new(delta, store, &store.indexers());
        let by_name = Index::of_metadata(|object| vec![object.key().name().to_owned()]);
        reader.add_index("name", by_name).expect("the name is free");
        let stale = hub.apply(prepared, |_| {}).expect_err("an index came");
        assert!(reader.is_empty());
        let applied = hub.apply(stale.renew(store), |_| {});
        applied.expect("no index came meanwhile");
        assert_eq!(
            reader.keys_by_index("name", "a").map(|keys| keys.len()),
            Ok(1)
        );
    }
}

#[test]
fn object_that_came_before_the_first_list_and_is_not_in_it_is_reported_as_gone() {
    check(vec![
        (Delta::Apply(object("a", 1, 1)), &["added a@1"]),
        (Delta::Delete(object("b", 2, 2)), &[]),
        (
            everything(&[object("b", 3, 4)]),
            &["missed a@1", "initial b@4"],
        ),
    ]);
}

#[derive(Debug, Clone)]
enum Step {
    Apply(u8),
    Recreate(u8),
    Delete(u8),
    Replace(Vec<u8>),
}

/// Names and versions.
type Model = BTreeMap<String, (u32, u32)>;

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_u8..5).prop_map(Step::Apply),
        1 => (0_u8..5).prop_map(Step::Recreate),
        2 => (0_u8..5).prop_map(Step::Delete),
        1 => prop::collection::vec(0_u8..5, 0..5).prop_map(Step::Replace),
    ]
}

/// A delta as a server would send it, and what is there after it.
fn delta(step: &Step, version: u32, model: &mut Model) -> Delta {
    let uid = |model: &Model, name: &str| model.get(name).map_or(version, |(uid, _)| *uid);
    match step {
        Step::Apply(name) | Step::Recreate(name) => {
            let name = name.to_string();
            let same = matches!(step, Step::Apply(_));
            let uid = if same { uid(model, &name) } else { version };
            model.insert(name.clone(), (uid, version));
            Delta::Apply(object(&name, uid, version))
        }
        Step::Delete(name) => {
            let name = name.to_string();
            let uid = uid(model, &name);
            model.remove(&name);
            Delta::Delete(object(&name, uid, version))
        }
        Step::Replace(names) => {
            let state = names.iter().map(|name| {
                let name = name.to_string();
                let state = model.get(&name).copied().unwrap_or((version, version));
                (name, state)
            });
            *model = state.collect();
            let objects = model
                .iter()
                .map(|(name, (uid, version))| object(name, *uid, *version));
            Delta::Replace {
                objects: objects.collect(),
                resource_version: version.to_string(),
            }
        }
    }
}

/// Follows a change, insisting that it continues from the changes before.
fn hear(record: &mut Model, change: &Change) {
    let state = |object: &Object| {
        let number = |text: &str| text.parse().expect("a number");
        (number(&object.uid()), number(&object.resource_version()))
    };
    let name = change.object().key().name().to_owned();
    match change {
        Change::Added { object, .. } => assert_eq!(record.insert(name, state(object)), None),
        Change::Updated { old, new } => {
            assert_eq!(record.insert(name, state(new)), Some(state(old)));
            assert_eq!(
                state(old).0,
                state(new).0,
                "another object is not an update"
            );
        }
        Change::Deleted { last, .. } => {
            let before = record.remove(&name).map(|(uid, _)| uid);
            assert_eq!(before, Some(state(last).0));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever comes: the store is as the server reported last, and the changes lead there without a gap.
    #[test]
    fn changes_lead_to_what_the_deltas_say(steps in prop::collection::vec(step(), 0..60)) {
        let (writer, reader) = store::new::<Value>();
        let mut hub = Hub::new(writer);
        let (mut model, mut record) = (Model::new(), Model::new());
        for (step, version) in steps.iter().zip(1..) {
            let delta = delta(step, version, &mut model);
            apply(&mut hub, &reader, delta, |change| hear(&mut record, &change));
            prop_assert_eq!(&record, &model);
            let keys: Vec<String> = reader.keys().iter().map(ToString::to_string).collect();
            prop_assert_eq!(keys, model.keys().cloned().collect::<Vec<_>>());
            prop_assert_eq!(reader.resource_version(), version.to_string());
        }
    }
}
