//! What holds for all objects.

use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::{
    Force, Set, compare, from_fields, merge, remove_items, to_field_set, to_fields,
};
use super::{Same, World, schema, typed};

fn letter() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c"]).prop_map(str::to_owned)
}

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3).prop_map(Value::from),
        letter().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            btree_map(letter(), inner, 0..3).prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    })
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(members) => members.values().any(has_null),
        _ => false,
    }
}

fn item() -> impl Strategy<Value = (Option<i32>, Vec<String>)> {
    let set = btree_set(letter(), 0..3).prop_map(|set| set.into_iter().collect());
    (prop::option::of(0..2), set)
}

/// Objects of the test schema, without nulls where a type is known: those come out of configurations alone.
fn object() -> impl Strategy<Value = Value> {
    let list = btree_map(letter(), item(), 0..3).prop_map(|items| -> Value {
        let item = |(name, (value, set)): (String, (Option<i32>, Vec<String>))| {
            let mut item = json!({ "name": name, "set": set });
            if let Some(value) = value {
                item["value"] = json!(value);
            }
            item
        };
        items.into_iter().map(item).collect()
    });
    let set = btree_set(letter(), 0..3).prop_map(|set| set.into_iter().collect::<Value>());
    let map = btree_map(letter(), letter(), 0..3)
        .prop_map(|m| Value::Object(m.into_iter().map(|(k, v)| (k, v.into())).collect()));
    let fields = (
        prop::option::of(letter()),
        prop::option::of(list),
        prop::option::of(set),
        prop::option::of(map),
        prop::option::of(vec(letter(), 0..3)),
        prop::option::of((letter(), letter())),
        prop::option::of(anything()),
    );
    fields.prop_map(|(text, list, set, map, sequence, inner, any)| {
        let inner = inner.map(|(a, b)| json!({ "text": a, "inner": { "text": b } }));
        let fields = [
            ("text", text.map(Value::from)),
            ("list", list),
            ("set", set),
            ("map", map),
            ("sequence", sequence.map(Value::from)),
            ("struct", inner),
            ("any", any),
        ];
        let given = fields
            .into_iter()
            .filter_map(|(k, v)| Some((k.to_owned(), v?)));
        Value::Object(given.collect::<Map<_, _>>())
    })
}

/// One write of one of three managers.
#[derive(Debug, Clone)]
enum Write {
    Apply(u8, Value),
    Update(u8, Value),
}

fn write() -> impl Strategy<Value = Write> {
    prop_oneof![
        (0..3u8, object()).prop_map(|(who, object)| Write::Apply(who, object)),
        (0..3u8, object()).prop_map(|(who, object)| Write::Update(who, object)),
    ]
}

fn run(world: &mut World<'_>, write: &Write) {
    match write {
        Write::Apply(who, config) => {
            world
                .apply(&format!("m{who}"), config, Force::Yes)
                .expect("is forced");
        }
        Write::Update(who, content) => world.update(&format!("m{who}"), content),
    }
}

fn owned(world: &World<'_>) -> Vec<Set> {
    let managed = super::Managed::of(&world.live).expect("was written by us");
    managed.0.into_iter().map(|entry| entry.fields).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn an_object_does_not_differ_from_itself(a in object()) {
        let version = schema();
        prop_assert!(compare(typed(&version), &a, &a).is_same());
        prop_assert_eq!(merge(typed(&version), &a, &a), a);
    }

    #[test]
    fn a_comparison_says_how_to_undo_a_merge(live in object(), config in object()) {
        let version = schema();
        let merged = merge(typed(&version), &live, &config);
        let changes = compare(typed(&version), &live, &merged);
        // Nothing is removed but values that are now of another kind.
        let fields = to_field_set(typed(&version), &merged);
        prop_assert!(!changes.removed.intersects(&fields));
        // All that is wanted is there.
        let wanted = to_field_set(typed(&version), &config);
        let there = compare(typed(&version), &json!({}), &merged).added;
        prop_assert!(wanted.difference(&there).is_empty(), "{} in {}", config, merged);
        prop_assert_eq!(merge(typed(&version), &merged, &config), merged);
    }

    #[test]
    fn sets_are_the_same_when_read_again(a in object(), b in object()) {
        let version = schema();
        let (a, b) = (to_field_set(typed(&version), &a), to_field_set(typed(&version), &b));
        prop_assert_eq!(&from_fields(&to_fields(&a)).expect("was written"), &a);
        prop_assert_eq!(&a.difference(&b).union(&a.intersection(&b)), &a);
        prop_assert_eq!(a.intersects(&b), !a.intersection(&b).is_empty());
        prop_assert_eq!(a.union(&b), b.union(&a));
        prop_assert!(a.difference(&a).is_empty() && a.recursive_difference(&a).is_empty());
    }

    #[test]
    fn what_is_taken_out_is_gone(a in object(), b in object()) {
        let version = schema();
        let gone = to_field_set(typed(&version), &b);
        let left = remove_items(typed(&version), &a, &gone);
        let fields = to_field_set(typed(&version), &left);
        prop_assert!(!fields.intersects(&gone), "{} without {}", a, b);
        prop_assert!(compare(typed(&version), &a, &left).added.is_empty());
    }

    #[test]
    fn applying_twice_changes_nothing(writes in vec(write(), 0..5), config in object()) {
        // A null over a container that the same apply empties is reported the second time only, as by the real server.
        prop_assume!(!has_null(&config));
        let version = schema();
        let versions = Same(typed(&version));
        let mut world = World::new(&versions);
        for write in &writes {
            run(&mut world, write);
        }
        let config = with_owner(config);
        world.apply("m0", &config, Force::Yes).expect("is forced");
        let once = world.live.clone();
        world.apply("m0", &config, Force::No).expect("is all its own");
        prop_assert_eq!(world.live, once);
    }

    #[test]
    fn managers_own_only_what_is_there(writes in vec(write(), 1..6)) {
        let version = schema();
        let versions = Same(typed(&version));
        let mut world = World::new(&versions);
        for write in &writes {
            run(&mut world, write);
            let there = compare(typed(&version), &json!({}), &world.content()).added;
            for fields in owned(&world) {
                let more = fields.difference(&there);
                prop_assert!(more.is_empty(), "{:?} in {}", to_fields(&more), world.live);
            }
        }
    }

    #[test]
    fn what_nobody_owns_is_never_removed(configs in vec((0..2u8, object()), 1..6)) {
        let version = schema();
        let versions = Same(typed(&version));
        let mut world = World::new(&versions);
        world.update("base", &json!({ "text": "a" }));
        // Nobody has written these, and no configuration names them.
        world.live["flag"] = json!(true);
        world.live["map"] = json!({ "z": "1" });
        world.live["set"] = json!(["z"]);
        world.live["list"] = json!([{ "name": "z", "value": 1 }]);
        for (who, config) in &configs {
            world.apply(&format!("m{who}"), &with_containers(config), Force::Yes).expect("is forced");
            let has = |list: &str, item: &Value| {
                world.live[list].as_array().is_some_and(|items| items.contains(item))
            };
            let item = json!({ "name": "z", "value": 1 });
            prop_assert!(has("set", &json!("z")) && has("list", &item), "{}", world.live);
            prop_assert!(world.live["map"]["z"] == "1" && world.live["flag"] == true, "{}", world.live);
        }
    }

    #[test]
    fn what_another_applies_is_never_removed(first in object(), second in object(), third in object()) {
        let version = schema();
        let versions = Same(typed(&version));
        let mut world = World::new(&versions);
        let [first, second, third] = [first, second, third].map(without_kinds);
        world.apply("m0", &first, Force::Yes).expect("is forced");
        world.apply("m1", &second, Force::Yes).expect("is forced");
        if world.apply("m0", &third, Force::No).is_ok() {
            let wanted = to_field_set(typed(&version), &second);
            let there = compare(typed(&version), &json!({}), &world.content()).added;
            let lost = wanted.difference(&there);
            prop_assert!(lost.is_empty(), "{:?} in {}", to_fields(&lost), world.live);
        }
    }
}

/// An object or list that a manager no longer applies goes as a whole, with what nobody owns in it; so something of
/// each is always applied.
fn with_containers(config: &Value) -> Value {
    let mut config = config.clone();
    config["map"]["a"] = json!("1");
    let items = [("set", json!("a")), ("list", json!({ "name": "a" }))];
    for (list, item) in items {
        match config[list].as_array_mut() {
            Some(there) if there.iter().any(|i| i == &item || i["name"] == "a") => {}
            Some(there) => there.push(item),
            None => config[list] = json!([item]),
        }
    }
    config
}

/// Nobody owns an empty list, so it goes and comes again; and without any field nobody would keep account.
fn with_owner(mut config: Value) -> Value {
    if let Some(fields) = config.as_object_mut() {
        let lists = ["set", "list"];
        fields.retain(|name, value| !lists.contains(&name.as_str()) || *value != json!([]));
        let items = fields.get_mut("list").and_then(Value::as_array_mut);
        for item in items.into_iter().flatten().filter_map(Value::as_object_mut) {
            item.retain(|_, value| *value != json!([]));
        }
    }
    config["text"] = json!("a");
    config
}

/// A value of another kind replaces what others own in it, and that is not a conflict.
fn without_kinds(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("any");
    }
    object
}
