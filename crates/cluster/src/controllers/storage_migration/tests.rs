//! Whose turn it is.

use serde_json::{Value, json};

use super::*;

fn migration(
    name: &str,
    created: u32,
    plural: &str,
    conditions: &[&str],
) -> StorageVersionMigration {
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|kind| {
            json!({"type": kind, "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2030-01-01T00:00:00Z"})
        })
        .collect();
    serde_json::from_value(json!({
        "metadata": {"name": name, "creationTimestamp": format!("2030-01-01T00:00:{created:02}Z")},
        "spec": {"resource": {"group": "example.com", "resource": plural}},
        "status": {"conditions": conditions},
    }))
    .expect("it is a migration")
}

fn check(what: &str, all: &[StorageVersionMigration], steps: &[Step]) {
    let shared: Vec<_> = all.iter().cloned().map(Arc::new).collect();
    let found: Vec<Step> = all.iter().map(|one| step(one, &shared)).collect();
    assert_eq!(found, steps, "{what}");
}

#[test]
fn one_migration_of_a_resource_runs_at_a_time_the_oldest_first() {
    let waiting = |name, created| migration(name, created, "widgets", &[]);
    check(
        "the oldest begins",
        &[waiting("a", 2), waiting("b", 1)],
        &[Step::Rest, Step::Begin],
    );
    check(
        "of two that are as old the first by name",
        &[waiting("b", 1), waiting("a", 1)],
        &[Step::Rest, Step::Begin],
    );
    check(
        "others wait for one that runs, however old they are",
        &[waiting("a", 1), migration("b", 2, "widgets", &["Running"])],
        &[Step::Rest, Step::Go],
    );
    check(
        "other resources do not wait",
        &[migration("a", 1, "gears", &["Running"]), waiting("b", 2)],
        &[Step::Go, Step::Begin],
    );
    check(
        "one that has ended is closed before the next one begins",
        &[
            migration("a", 1, "widgets", &["Running", "Failed"]),
            waiting("b", 2),
        ],
        &[Step::Close(Ending::Failed), Step::Rest],
    );
    check(
        "one that is closed keeps nobody waiting",
        &[
            migration("a", 1, "widgets", &["Succeeded"]),
            waiting("b", 2),
        ],
        &[Step::Rest, Step::Begin],
    );
}

#[test]
fn conditions_tell_what_became_of_a_migration() {
    let now = "2030-01-01T00:01:00Z".parse().expect("a moment");
    let mut one = migration("a", 1, "widgets", &[]);
    rules::begin(&mut one, "40".to_owned(), now);
    assert_eq!(rules::began_at(&one), Some(40));
    rules::begin(&mut one, "50".to_owned(), now);
    assert_eq!(rules::began_at(&one), Some(40), "it goes on from there");
    rules::succeed(&mut one, now);
    rules::close(&mut one, now);
    let status = serde_json::to_value(&one.status).expect("json");
    let shown = status["conditions"].as_array().into_iter().flatten();
    let shown: Vec<_> = shown
        .map(|c| (&c["type"], &c["status"], &c["reason"]))
        .collect();
    let (running, succeeded) = (json!("Running"), json!("Succeeded"));
    let reasons = [
        json!("MigrationCompleted"),
        json!("StorageVersionMigrationSucceeded"),
    ];
    let expected = [
        (&running, &json!("False"), &reasons[0]),
        (&succeeded, &json!("True"), &reasons[1]),
    ];
    assert_eq!(shown, expected);
}
