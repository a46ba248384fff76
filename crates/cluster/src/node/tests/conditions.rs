//! What is written of a pod, and when: conditions, readiness gates, one write at a moment.

use serde_json::json;

use super::{Life, WRITTEN};

#[test]
fn what_happens_at_one_moment_is_one_write() {
    let spec = json!({"initContainers": [{"name": "a"}, {"name": "b"}]});
    let mut life = Life::new(json!({}), spec);
    life.until(60_000);
    assert_eq!(
        (life.summary().as_str(), life.writes),
        ("Running Ready [Completed=0 Completed=0 ready]", 1)
    );
    assert_eq!(life.notes, ["Pulled", "Created", "Started"].repeat(3));
}

/// The node lifecycle controller takes a node for silent that has just come back.
#[test]
fn a_condition_that_others_overwrite_is_written_again() {
    let mut life = Life::new(json!({}), json!({}));
    life.until(10);
    let is_ready = |life: &Life| {
        let mut conditions = life.status().conditions.iter().flatten();
        conditions.any(|it| it.type_ == "Ready" && it.status == "True")
    };
    assert!(is_ready(&life));
    let overwrite = |life: &mut Life, version: u64| {
        life.pod.metadata.resource_version = Some(version.to_string());
        let status = life.pod.status.as_mut().expect("a status");
        let mut conditions = status.conditions.iter_mut().flatten();
        let ready = conditions.find(|it| it.type_ == "Ready").expect("there");
        ready.status = "False".to_owned();
    };
    let writes = life.writes;
    // A view from before the last write is not news.
    overwrite(&mut life, WRITTEN - 1);
    life.step();
    assert_eq!(life.writes, writes);
    overwrite(&mut life, WRITTEN + 1);
    life.step();
    assert_eq!(life.writes, writes + 1);
    assert!(is_ready(&life));
}

#[test]
fn readiness_gates_keep_a_pod_from_being_ready() {
    let mut life = Life::new(
        json!({}),
        json!({"readinessGates": [{"conditionType": "example.com/open"}]}),
    );
    life.until(10);
    let message = |life: &Life, type_: &str| {
        let mut conditions = life.status().conditions.iter().flatten();
        let found = conditions.find(|c| c.type_ == type_).expect("there");
        (
            found.status.clone(),
            found.message.clone().unwrap_or_default(),
        )
    };
    let text = "corresponding condition of pod readiness gate \"example.com/open\" does not exist.";
    assert_eq!(
        message(&life, "Ready"),
        ("False".to_owned(), text.to_owned())
    );
    assert_eq!(message(&life, "ContainersReady").0, "True");
    let open = json!({"type": "example.com/open", "status": "True"});
    let open = serde_json::from_value(open).expect("a condition");
    let status = life.pod.status.as_mut().expect("a status");
    status.conditions.get_or_insert_default().push(open);
    life.step();
    assert_eq!(message(&life, "Ready").0, "True");
}
