use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::definitions::versions;
use crate::environment::Environment;
use crate::http::path::GroupVersion;
use crate::storage::HistoryLimits;

const GROUPS: [&str; 2] = ["a.example.com", "b.example.com"];
const PLURALS: [&str; 3] = ["widgets", "gadgets", "things"];

fn definition(group: &str, plural: &str, versions: &[&str]) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let versions: Vec<Value> = versions
        .iter()
        .map(|v| json!({"name": v, "served": true, "storage": *v == "v1", "schema": schema}))
        .collect();
    json!({
        "metadata": {"name": format!("{plural}.{group}"), "uid": plural},
        "spec": {"group": group, "scope": "Namespaced", "versions": versions, "names": {
            "plural": plural, "singular": plural.trim_end_matches('s'), "kind": plural.to_uppercase(),
            "listKind": format!("{plural}List"), "shortNames": [&plural[..1]],
        }},
    })
}

fn defined(store: &Store, definition: &Value) -> Arc<Defined> {
    let incarnation = Arc::new(Incarnation::of(definition));
    let versions = versions(definition, &incarnation, store).expect("it compiles");
    Arc::new(Defined {
        incarnation,
        versions: versions.into_iter().map(Arc::new).collect(),
    })
}

fn store() -> Store {
    Store::new(Environment::default(), HistoryLimits::default())
}

/// What is served as text, to be compared.
fn describe(resources: &Resources) -> (Vec<String>, NamesInUse) {
    let mut all: Vec<String> = resources
        .group_versions()
        .flat_map(|gv| resources.of(gv).map(move |served| (gv, served)))
        .map(|(gv, served)| format!("{gv:?} {}", served.resource.plural))
        .collect();
    all.extend(resources.all().map(|served| served.api_version.clone()));
    (all, resources.names().clone())
}

proptest! {
    /// Definitions that come, change and go leave what the last ones come to, and nothing of those that went.
    #[test]
    fn changes_add_up_to_what_is_defined(
        changes in prop::collection::vec((0..2_usize, 0..3_usize, 0..4_usize), 0..20)
    ) {
        let store = store();
        let registry = Registry::builtin(&store);
        let mut last = BTreeMap::new();
        for (group, plural, count) in changes {
            let (group, plural) = (GROUPS[group], PLURALS[plural]);
            let name = format!("{plural}.{group}");
            let versions = &["v1", "v1beta1", "v2"][..count];
            let next = (count > 0).then(|| defined(&store, &definition(group, plural, versions)));
            registry.define(&name, next.clone(), 1);
            match next {
                Some(next) => drop(last.insert(name, next)),
                None => drop(last.remove(&name)),
            }
        }
        let anew = Registry::builtin(&store);
        anew.replace_definitions(last, 1);
        prop_assert_eq!(describe(&registry.now()), describe(&anew.now()));
    }
}

#[test]
fn a_change_shares_the_groups_that_it_does_not_concern() {
    let store = store();
    let registry = Registry::builtin(&store);
    let define = |group: &str, plural: &str| {
        let definition = defined(&store, &definition(group, plural, &["v1"]));
        registry.define(&format!("{plural}.{group}"), Some(definition), 1);
    };
    define(GROUPS[0], "widgets");
    let before = registry.now();
    define(GROUPS[1], "widgets");
    let after = registry.now();
    let other = GroupVersion::new(GROUPS[0], "v1");
    let apps = GroupVersion::new("apps", "v1");
    for gv in [&other, &apps] {
        assert!(before.shares(&after, gv), "{gv:?} was copied");
    }
    assert!(!before.shares(&after, &GroupVersion::new(GROUPS[1], "v1")));
}

#[test]
fn a_name_is_free_for_its_owner_and_taken_for_others() {
    let store = store();
    let registry = Registry::builtin(&store);
    let (group, name) = (GROUPS[0], "widgets.a.example.com");
    let two = defined(&store, &definition(group, "widgets", &["v1", "v2"]));
    registry.define(name, Some(two), 1);
    let taken = |class, wanted: &str, by: &str| {
        let resources = registry.now();
        resources.names().is_taken(group, class, wanted, by)
    };
    for wanted in ["widgets", "widget", "w"] {
        assert!(taken(NameClass::Resource, wanted, "others.a.example.com"));
        assert!(!taken(NameClass::Resource, wanted, name));
        assert!(!taken(NameClass::Kind, wanted, "others.a.example.com"));
    }
    assert!(taken(NameClass::Kind, "WIDGETS", "others.a.example.com"));
    let one = defined(&store, &definition(group, "widgets", &["v1"]));
    registry.define(name, Some(one), 2);
    assert!(taken(NameClass::Resource, "w", "others.a.example.com"));
    registry.define(name, None, 3);
    assert!(!taken(NameClass::Resource, "w", "others.a.example.com"));
}
