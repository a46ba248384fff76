use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use serde::Deserialize;

use parking_lot::Mutex;

use super::*;
use crate::index::IndexExists;
use crate::{Entries, Index, Shape, UnknownIndex};

#[derive(Deserialize)]
struct Thing {
    #[serde(default)]
    tags: Vec<String>,
}

fn thing(name: &str, version: u32, tags: &[&str]) -> Arc<Object> {
    let json = serde_json::json!({
        "metadata": {"name": name, "namespace": "n", "resourceVersion": version.to_string()},
        "tags": tags,
    });
    Object::parse(json.to_string().as_bytes(), &Shape::default()).expect("it is an object")
}

fn by_tag() -> Index<Thing> {
    Index::of(|thing: &Thing| thing.tags.clone())
}

fn names(keys: Vec<Key>) -> Vec<String> {
    keys.iter().map(|key| key.name().to_owned()).collect()
}

fn tagged(reader: &Reader<Thing>, tag: &str) -> Vec<String> {
    names(reader.keys_by_index("tag", tag).expect("there is an index"))
}

#[test]
fn object_is_found_by_key_and_by_each_of_its_values() {
    let (mut writer, reader) = new::<Thing>();
    reader.add_index("tag", by_tag()).expect("the name is free");
    writer.put(thing("a", 1, &["x", "y", "x"]));
    writer.put(thing("b", 2, &["y"]));
    assert_eq!(tagged(&reader, "x"), ["a"]);
    assert_eq!(tagged(&reader, "y"), ["a", "b"]);
    assert_eq!(reader.by_index("tag", "y").map(|found| found.len()), Ok(2));
    assert_eq!(
        reader.index_values("tag"),
        Ok(vec!["x".to_owned(), "y".to_owned()])
    );
    assert!(reader.get(&Key::new("n", "a")).is_some());
    assert!(reader.get(&Key::new("n", "c")).is_none());
}

#[test]
fn update_moves_an_object_and_empty_values_vanish() {
    let (mut writer, reader) = new::<Thing>();
    reader.add_index("tag", by_tag()).expect("the name is free");
    writer.put(thing("a", 1, &["x"]));
    let old = writer.put(thing("a", 2, &["y"]));
    assert_eq!(
        old.map(|old| old.resource_version().into_owned()),
        Some("1".to_owned())
    );
    assert_eq!(reader.index_values("tag"), Ok(vec!["y".to_owned()]));
    writer.remove(&Key::new("n", "a"));
    assert_eq!(reader.index_values("tag"), Ok(vec![]));
}

#[test]
fn list_of_a_value_is_shared_until_one_of_its_objects_changes() {
    let (mut writer, reader) = new::<Thing>();
    reader.add_index("tag", by_tag()).expect("the name is free");
    let list = |tag: &str| reader.entries_by_index("tag", tag).expect("it is there");
    let versions = |tag: &str| -> Vec<String> {
        let found = list(tag);
        let objects = found.objects().iter();
        objects.map(|object| format!("{object:?}")).collect()
    };
    let is_same = |a: &Entries<Thing>, b: &Entries<Thing>| std::ptr::eq(a.objects(), b.objects());
    writer.put(thing("a", 1, &["x"]));
    writer.put(thing("b", 1, &["y"]));
    let (x, y) = (list("x"), list("y"));
    assert!(is_same(&x, &list("x")));
    // Its values are as before, but it is another object.
    writer.put(thing("a", 2, &["x"]));
    assert_eq!(versions("x"), ["n/a@2"]);
    assert!(is_same(&y, &list("y")));
    writer.put(thing("b", 2, &["x"]));
    assert_eq!(
        (versions("x"), versions("y")),
        (vec!["n/a@2".to_owned(), "n/b@2".to_owned()], vec![])
    );
    writer.remove(&Key::new("n", "a"));
    assert_eq!(versions("x"), ["n/b@2"]);
    writer.replace(vec![thing("c", 3, &["x"])], "3");
    assert_eq!(versions("x"), ["n/c@3"]);
    assert_eq!((x.len(), y.len()), (1, 1), "who has a list keeps it");
}

#[test]
fn index_added_late_has_what_was_there() {
    let (mut writer, reader) = new::<Thing>();
    writer.put(thing("a", 1, &["x"]));
    reader.add_index("tag", by_tag()).expect("the name is free");
    assert_eq!(tagged(&reader, "x"), ["a"]);
    writer.put(thing("b", 2, &["x"]));
    assert_eq!(tagged(&reader, "x"), ["a", "b"]);
}

#[test]
fn write_during_the_back_fill_is_indexed() {
    let (writer, reader) = new::<Thing>();
    let writer = Mutex::new(writer);
    for name in ["a", "b", "c"] {
        writer.lock().put(thing(name, 1, &["x"]));
    }
    let writer = Arc::new(writer);
    let inside = writer.clone();
    let wrote = AtomicBool::new(false);
    let index = Index::of(move |thing: &Thing| {
        // The writes call this function as well.
        if !wrote.swap(true, Ordering::Relaxed) {
            let mut writer = inside.lock();
            writer.put(super::tests::thing("a", 2, &["z"]));
            writer.remove(&Key::new("n", "b"));
            writer.put(super::tests::thing("d", 3, &["z"]));
        }
        thing.tags.clone()
    });
    reader.add_index("tag", index).expect("the name is free");
    assert_eq!(tagged(&reader, "x"), ["c"]);
    assert_eq!(tagged(&reader, "z"), ["a", "d"]);
}

#[test]
fn index_function_may_use_the_store_itself() {
    let (mut writer, reader) = new::<Thing>();
    writer.put(thing("a", 1, &["x"]));
    let inside = reader.clone();
    let index = Index::of_metadata(move |_| {
        let name = format!("index {}", inside.len());
        // The first call adds it, later ones find it taken.
        let _ = inside.add_index(&name, by_tag());
        inside.indexes()
    });
    reader.add_index("outer", index).expect("the name is free");
    writer.put(thing("b", 2, &["x"]));
    writer.replace(vec![thing("c", 3, &["x"])], "3");
    assert_eq!(reader.indexes(), ["outer", "index 1", "index 2"]);
    for index in ["index 1", "index 2"] {
        let found = reader.keys_by_index(index, "x").map(names);
        assert_eq!(found, Ok(vec!["c".to_owned()]));
    }
}

#[test]
fn index_is_not_seen_before_it_is_filled() {
    let (mut writer, reader) = new::<Thing>();
    writer.put(thing("a", 1, &["x"]));
    let inside = reader.clone();
    let index = Index::of_metadata(move |_| {
        let seen = inside.keys_by_index("tag", "x");
        assert_eq!(seen, Err(UnknownIndex("tag".to_owned())));
        // Another of the same name that is ready sooner stays.
        inside.add_index("tag", by_tag()).expect("the name is free");
        vec!["never".to_owned()]
    });
    let taken = reader.add_index("tag", index);
    assert_eq!(taken, Err(IndexExists("tag".to_owned())));
    assert_eq!(tagged(&reader, "x"), ["a"]);
    writer.put(thing("b", 2, &["x"]));
    assert_eq!(tagged(&reader, "x"), ["a", "b"]);
    assert_eq!(reader.indexes(), ["tag"]);
}

#[test]
fn taken_and_unknown_names_are_refused() {
    let (_writer, reader) = new::<Thing>();
    assert_eq!(reader.add_index("tag", by_tag()), Ok(()));
    assert_eq!(
        reader.add_index("tag", by_tag()),
        Err(IndexExists("tag".to_owned()))
    );
    let says = |name: &str| IndexExists(name.to_owned()).to_string();
    assert_eq!(says("tag"), "there is an index \"tag\" already");
    assert_eq!(
        says("namespace"),
        "there is an index \"namespace\" already: every kind has it"
    );
    assert_eq!(
        reader.keys_by_index("none", "x"),
        Err(UnknownIndex("none".to_owned()))
    );
}

#[test]
fn index_function_that_panics_is_reported_and_the_store_goes_on() {
    let (reporter, reports) = Reporter::recording();
    let (mut writer, reader) = with_reporter::<Thing>(reporter);
    let index = Index::of_metadata(|object| match object.key().name() {
        "bad" => panic!("on purpose"),
        name => vec![name.to_owned()],
    });
    reader.add_index("name", index).expect("the name is free");
    writer.put(thing("bad", 1, &[]));
    writer.put(thing("good", 1, &[]));
    assert_eq!(reader.index_values("name"), Ok(vec!["good".to_owned()]));
    assert_eq!(reader.len(), 2);
    assert_eq!(*reports.lock(), ["index name panicked at n/bad"]);
}

#[test]
fn replace_tells_what_went_and_what_changed() {
    let (mut writer, reader) = new::<Thing>();
    for name in ["a", "b", "c"] {
        writer.put(thing(name, 1, &[]));
    }
    let replaced = writer.replace(
        vec![
            thing("c", 2, &[]),
            thing("a", 1, &[]),
            thing("d", 1, &[]),
            thing("d", 3, &[]),
        ],
        "7",
    );
    let removed: Vec<_> = replaced
        .removed
        .iter()
        .map(|o| o.key().name().to_owned())
        .collect();
    assert_eq!(removed, ["b"]);
    let put: Vec<_> = replaced
        .put
        .iter()
        .map(|(old, new)| (old.is_some(), format!("{new:?}")))
        .collect();
    assert_eq!(
        put,
        [(true, "n/c@2".to_owned()), (false, "n/d@3".to_owned())]
    );
    assert_eq!(names(reader.keys()), ["a", "c", "d"]);
    assert_eq!(reader.resource_version(), "7");
}

#[test]
fn replacement_is_seen_whole() {
    let (mut writer, reader) = new::<Thing>();
    reader.add_index("tag", by_tag()).expect("the name is free");
    let state = |round: u32| {
        let names = (0..20).map(|n| format!("{round}-{n}"));
        names.map(|name| thing(&name, round, &["x"])).collect()
    };
    writer.replace(state(0), "0");
    std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            while reader.resource_version() != "200" {
                let keys = tagged(&reader, "x");
                let round = |name: &String| name.split('-').next().map(str::to_owned);
                let rounds: BTreeSet<_> = keys.iter().map(round).collect();
                assert_eq!((keys.len(), rounds.len()), (20, 1));
            }
        });
        for round in 1..=200 {
            writer.replace(state(round), &round.to_string());
        }
        watching.join().expect("every state was whole");
    });
}

#[test]
fn snapshot_does_not_see_later_writes() {
    let (mut writer, reader) = new::<Thing>();
    for name in 0..300 {
        writer.put(thing(&name.to_string(), 1, &[]));
    }
    let snapshot = reader.snapshot();
    writer.remove(&Key::new("n", "7"));
    writer.put(thing("8", 2, &[]));
    assert_eq!(snapshot.iter().count(), 300);
    assert!(
        snapshot
            .iter()
            .all(|object| object.resource_version() == "1")
    );
    assert_eq!(reader.len(), 299);
}

#[derive(Debug, Clone)]
enum Step {
    Put(u8, Vec<u8>),
    Remove(u8),
    Replace(Vec<(u8, Vec<u8>)>),
    AddIndex,
}

fn step() -> impl Strategy<Value = Step> {
    let tags = || prop::collection::vec(0_u8..4, 0..3);
    prop_oneof![
        4 => (0_u8..8, tags()).prop_map(|(name, tags)| Step::Put(name, tags)),
        2 => (0_u8..8).prop_map(Step::Remove),
        1 => prop::collection::vec((0_u8..8, tags()), 0..6).prop_map(Step::Replace),
        1 => Just(Step::AddIndex),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn store_agrees_with_a_map(steps in prop::collection::vec(step(), 0..40)) {
        let (mut writer, reader) = new::<Thing>();
        let mut model: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut version = 0;
        let mut make = |name: u8, tags: &[u8]| {
            version += 1;
            let tags: Vec<String> = tags.iter().map(u8::to_string).collect();
            let texts: Vec<&str> = tags.iter().map(String::as_str).collect();
            (thing(&name.to_string(), version, &texts), tags.iter().cloned().collect())
        };
        for step in steps {
            match step {
                Step::Put(name, tags) => {
                    let (object, tags) = make(name, &tags);
                    writer.put(object);
                    model.insert(name.to_string(), tags);
                }
                Step::Remove(name) => {
                    let removed = writer.remove(&Key::new("n", &name.to_string()));
                    prop_assert_eq!(removed.is_some(), model.remove(&name.to_string()).is_some());
                }
                Step::Replace(all) => {
                    model.clear();
                    let mut objects = Vec::new();
                    for (name, tags) in all {
                        let (object, tags) = make(name, &tags);
                        objects.push(object);
                        model.insert(name.to_string(), tags);
                    }
                    writer.replace(objects, "1");
                }
                Step::AddIndex => {
                    let _ = reader.add_index("tag", by_tag());
                }
            }
            prop_assert_eq!(names(reader.keys()), model.keys().cloned().collect::<Vec<_>>());
            if reader.indexes().is_empty() {
                continue;
            }
            let values: BTreeSet<String> = model.values().flatten().cloned().collect();
            prop_assert_eq!(reader.index_values("tag"), Ok(values.iter().cloned().collect()));
            for value in values {
                let expected: Vec<_> = model.iter().filter(|(_, tags)| tags.contains(&value)).map(|(name, _)| name.clone()).collect();
                prop_assert_eq!(tagged(&reader, &value), expected);
            }
        }
    }
}
