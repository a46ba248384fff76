//! A definition as a list of facts, one for each place of its schemas, and the comparison of two such lists.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Map, Value, json};

/// Places and what the schema has there, descriptions left out.
pub type Facts = BTreeMap<String, Value>;

/// A difference that is accepted: the place, what we say, and why.
pub type Accepted = (&'static str, &'static str, &'static str);

/// Reads `place = JSON` lines.
pub fn read(text: &str) -> Facts {
    let line = |line: &str| {
        let (place, fact) = line.split_once(" = ").expect("a line of facts");
        (
            place.to_owned(),
            serde_json::from_str(fact).expect("a fact in JSON"),
        )
    };
    text.lines().map(line).collect()
}

/// The facts of a definition.
pub fn of(definition: &CustomResourceDefinition) -> Facts {
    let definition = whole(serde_json::to_value(definition).expect("JSON"));
    let spec = &definition["spec"];
    let mut facts = Facts::from([(
        "definition".to_owned(),
        json!({"name": definition["metadata"]["name"], "group": spec["group"], "names": spec["names"], "scope": spec["scope"]}),
    )]);
    for version in spec["versions"].as_array().into_iter().flatten() {
        let name = version["name"].as_str().unwrap_or_default();
        let mut own = version.as_object().cloned().unwrap_or_default();
        own.retain(|key, _| key != "schema" && key != "name");
        facts.insert(name.to_owned(), Value::Object(own));
        schema(name, "", &version["schema"]["openAPIV3Schema"], &mut facts);
    }
    facts
}

fn schema(version: &str, path: &str, node: &Value, facts: &mut Facts) {
    let mut own = node.as_object().cloned().unwrap_or_default();
    own.retain(|key, _| {
        !["properties", "items", "additionalProperties", "description"].contains(&key.as_str())
    });
    if path.starts_with("spec.jobTemplate") {
        only_topology(&mut own);
    }
    if !own.is_empty() {
        let place = if path.is_empty() { "." } else { path };
        facts.insert(format!("{version} {place}"), Value::Object(own));
    }
    for (name, property) in node["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        schema(version, &path, property, facts);
    }
    for (key, suffix) in [("items", "[]"), ("additionalProperties", "{}")] {
        if node[key].is_object() {
            schema(version, &format!("{path}{suffix}"), &node[key], facts);
        }
    }
}

/// Of Kubernetes' own types only what decides how they merge: the rest is another version of theirs.
fn only_topology(own: &mut Map<String, Value>) {
    own.retain(|key, value| match key.as_str() {
        "x-kubernetes-list-map-keys" | "x-kubernetes-map-type" => true,
        "x-kubernetes-list-type" => value != "atomic",
        _ => false,
    });
}

/// Numbers of the API's type are floats; documents have whole numbers.
fn whole(value: Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 => json!(float as i64),
            _ => Value::Number(number),
        },
        Value::Array(list) => list.into_iter().map(whole).collect(),
        Value::Object(map) => map
            .into_iter()
            .map(|(key, value)| (key, whole(value)))
            .collect(),
        other => other,
    }
}

/// Compares facts with what controller-gen writes. Every difference is accepted by name, and every name is needed.
#[track_caller]
pub fn compare(theirs: &Facts, ours: &Facts, accepted: &[Accepted]) {
    let mut problems = Vec::new();
    let places = theirs
        .keys()
        .chain(ours.keys().filter(|place| !theirs.contains_key(*place)));
    for place in places {
        let (left, right) = (theirs.get(place), ours.get(place));
        let known = accepted.iter().find(|(known, ..)| known == place);
        let expected = known.map(|(_, ours, _)| match *ours {
            "" => None,
            ours => Some(serde_json::from_str::<Value>(ours).expect("an accepted fact in JSON")),
        });
        match expected {
            None if left != right => problems.push(format!(
                "{place}\n  theirs {}\n  ours   {}",
                show(left),
                show(right)
            )),
            Some(_) if left == right => {
                problems.push(format!("{place}\n  is not a difference any more"))
            }
            Some(expected) if expected.as_ref() != right => {
                problems.push(format!(
                    "{place}\n  accepted {}\n  ours     {}",
                    show(expected.as_ref()),
                    show(right)
                ));
            }
            _ => {}
        }
    }
    assert!(
        problems.is_empty(),
        "{} differences:\n{}",
        problems.len(),
        problems.join("\n")
    );
}

fn show(fact: Option<&Value>) -> String {
    fact.map_or_else(|| "(nothing)".to_owned(), ToString::to_string)
}
