//! Finds hot loops: keys that an operator reconciles repeatedly because of what it writes itself. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

/// Reconciles of one key that make a loop: each was caused by a write of the same controller, and wrote the same object again.
const OWN: usize = 5;
/// Reconciles of one key within [`WINDOW`] that are too many, whatever their causes.
const MANY: usize = 40;
/// Seconds that are looked at, back from the last reconcile of the controller.
const WINDOW: i64 = 10;

#[derive(Default)]
struct Seen {
    runs: usize,
    own: usize,
}

/// The keys that run in a loop, of all controllers, with the number of runs and why that is too many.
pub(crate) fn loops(controllers: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    for (controller, runs) in controllers.as_object().into_iter().flatten() {
        let runs = runs.as_array().map(Vec::as_slice).unwrap_or_default();
        for (key, seen) in count(runs) {
            let why = if seen.own >= OWN {
                "its own writes make it run again"
            } else if seen.runs >= MANY {
                "it runs much more often than anything else needs"
            } else {
                continue;
            };
            found.push(json!({
                "controller": controller, "key": key, "runs": seen.runs, "own": seen.own,
                "seconds": WINDOW, "why": why,
            }));
        }
    }
    found
}

/// Counts the last reconciles of each key.
fn count(runs: &[Value]) -> BTreeMap<&str, Seen> {
    let written: BTreeMap<&str, Place<'_>> = runs.iter().flat_map(writes).collect();
    let last = runs.iter().filter_map(started).max().unwrap_or_default();
    let mut counts: BTreeMap<&str, Seen> = BTreeMap::new();
    for run in runs {
        let (Some(key), Some(at)) = (run["key"].as_str(), started(run)) else {
            continue;
        };
        if last - at > WINDOW * 1_000 {
            continue;
        }
        let seen = counts.entry(key).or_default();
        seen.runs += 1;
        let causes = run["causes"].as_array().into_iter().flatten();
        let mut caused = causes
            .filter_map(|cause| cause["resourceVersion"].as_str())
            .filter_map(|version| written.get(version));
        if caused.any(|place| writes(run).any(|(_, own)| own == *place)) {
            seen.own += 1;
        }
    }
    counts
}

/// The resource and the key of an object.
type Place<'a> = (&'a str, &'a str);

/// The versions that a reconcile wrote, and of what.
fn writes(run: &Value) -> impl Iterator<Item = (&str, Place<'_>)> {
    let list = run["written"].as_array().into_iter().flatten();
    list.filter_map(|write| {
        let text = |field: &str| write[field].as_str().filter(|text| !text.is_empty());
        Some((text("resourceVersion")?, (text("resource")?, text("key")?)))
    })
}

fn started(run: &Value) -> Option<i64> {
    let at: Timestamp = run["started"].as_str()?.parse().ok()?;
    Some(at.as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(key: &str, second: u32, cause: &str, wrote: &str) -> Value {
        json!({"key": key, "started": format!("2026-01-01T00:00:{second:02}Z"),
            "causes": [{"resourceVersion": cause}], "written": [{"resourceVersion": wrote, "resource": "maps", "key": key}]})
    }

    #[test]
    fn key_that_runs_because_of_its_own_writes_is_a_loop_and_others_are_not() {
        let mut runs: Vec<Value> = (0..6)
            .map(|n: u32| run("a/hot", n, &n.to_string(), &(n + 1).to_string()))
            .collect();
        runs.extend((0..6).map(|n: u32| run("a/calm", n, &format!("x{n}"), "")));
        let found = loops(&json!({"web": runs}));
        let keys: Vec<&str> = found.iter().filter_map(|one| one["key"].as_str()).collect();
        assert_eq!(keys, ["a/hot"]);
    }

    #[test]
    fn key_that_comes_to_rest_after_its_own_writes_is_not_a_loop() {
        let write = |n: u32| run("a/b", n, &format!("other{n}"), &n.to_string());
        let echo = |n: u32| run("a/b", n, &n.to_string(), "");
        let runs: Vec<Value> = (0..9).flat_map(|n| [write(n), echo(n)]).collect();
        assert!(loops(&json!({"web": runs})).is_empty());
    }

    #[test]
    fn old_reconciles_do_not_count() {
        let runs: Vec<Value> = (0..6)
            .map(|n: u32| run("a/b", n * 9, &n.to_string(), &(n + 1).to_string()))
            .collect();
        assert!(loops(&json!({"web": runs})).is_empty());
    }
}
