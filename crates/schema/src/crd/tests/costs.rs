//! What large schemas cost.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::*;

/// A CRD whose `spec` has a text for each of these patterns.
fn with_patterns(patterns: impl Iterator<Item = String>) -> Value {
    let property = |(n, pattern)| {
        let text = json!({"type": "string", "pattern": pattern});
        (format!("p{n:04}"), text)
    };
    let properties: Map<String, Value> = patterns.enumerate().map(property).collect();
    let mut crd = bars();
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] =
        json!({"type": "object", "properties": properties});
    crd
}

#[test]
fn a_schema_has_no_more_than_a_few_large_patterns() {
    let large = (0..40).map(|n| format!("^(.{{1,1000}}x){{1}}$|a{n}"));
    let crd = with_patterns(large);
    let (table, id) = object_meta();
    let version = &Definition::parse(&crd).versions[0];
    let compiled = CompiledVersion::new(version, Some((&table, id)));
    assert!(compiled.is_err(), "40 large patterns compile");
}

#[test]
fn a_definition_with_many_refused_patterns_is_not_tried_to_the_end() {
    let refused = (0..12).map(|n| format!(r"[\pL]{{130}}{n}"));
    let crd = with_patterns(refused.chain(["a".to_owned()]));
    let lines = lines(&validate_definition(&crd));
    let refused = lines.iter().filter(|line| line.contains("pattern"));
    assert_eq!(
        refused.count(),
        13,
        "nothing is left to compile even the last with: {lines:#?}"
    );
}

/// The shortest of three times that a schema with so many fields takes.
#[allow(
    clippy::disallowed_methods,
    reason = "what it really takes is what is asked"
)]
fn time_to_compile(count: usize, is_required: bool) -> Duration {
    let names = (0..count).map(|n| format!("p{n}"));
    let properties: Map<String, Value> = names
        .clone()
        .map(|name| (name, json!({"type": "string"})))
        .collect();
    let mut spec = json!({"type": "object", "properties": properties});
    if is_required {
        spec["required"] = names.rev().map(Value::from).collect();
    }
    let times = (0..3).map(|_| {
        let spec = spec.clone();
        let start = Instant::now();
        compile_spec(spec);
        start.elapsed()
    });
    times.min().expect("three times")
}

/// Looking up each of them in the list of all takes thirty times as long as everything else.
#[test]
fn required_fields_cost_no_more_than_others() {
    let (others, required) = (
        time_to_compile(20_000, false),
        time_to_compile(20_000, true),
    );
    assert!(
        required < others * 5,
        "{others:?} without required fields, {required:?} with them"
    );
}
