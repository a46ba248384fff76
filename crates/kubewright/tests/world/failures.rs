//! What a failing wait says.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kubewright::prelude::*;
use kubewright::runtime::manager::Task;
use kubewright::testing::World;
use serde_json::json;

use crate::operator::{Mistake, Note, assert_has, create, key, panic_of};

const FILE: &str = "tests/world/failures.rs:";

fn is_there<K>(object: Option<&K>) -> bool {
    object.is_some()
}

#[tokio::test(start_paused = true)]
async fn time_out_shows_the_object_its_conditions_events_and_reconciles() {
    let world = World::builder().seed(7).without_controllers().start().await;
    create(&world, "a", Mistake::Fail).await;
    let is_ready = |note: Option<&Note>| note.is_some_and(|note| note.spec.text == "bye");
    let text = panic_of(world.until(&key("a"), is_ready)).await;
    assert_has(
        &text,
        &[
            "timed out after 30s waiting for Note default/a at ",
            FILE,
            "Note default/a as it is:\n  apiVersion: notes.example.com/v1\n",
            "  text: hello\n",
            "its conditions:\n  Ready=False Unreachable: the bell is broken\n",
            "events about it:\n",
            "Warning Unreachable: nobody is at home (x",
            "the last reconciles:\n",
            " notes default/a (retry): the registry does not answer, ",
            "to run it again: World::builder().seed(7)",
        ],
    );
    assert!(!text.contains("managedFields"), "{text}");
    assert_eq!(
        text.matches("the registry does not answer").count(),
        10,
        "the last ones:\n{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn first_reconcile_is_shown_with_its_cause_and_writes() {
    let limit = Duration::from_secs(1);
    let world = World::builder()
        .time_limit(limit)
        .without_controllers()
        .start()
        .await;
    create(&world, "a", Mistake::None).await;
    let never = |_: Option<&Note>| false;
    let text = panic_of(world.until(&key("a"), never)).await;
    let ran = "#1 notes default/a (Note default/a added): done, ";
    assert_has(
        &text,
        &[
            "timed out after 1s",
            ran,
            "; wrote patch configmaps default/a",
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn object_that_does_not_exist_is_said_not_to() {
    let world = World::builder().without_controllers().start().await;
    let text = panic_of(world.until(&key("a"), is_there::<Note>)).await;
    assert_has(
        &text,
        &[
            "Note default/a does not exist",
            "the last reconciles:\n  none",
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn values_of_secrets_are_not_shown() {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "default"},
        "stringData": {"token": "open sesame"},
    });
    let world = World::builder()
        .object(&secret)
        .without_controllers()
        .start()
        .await;
    let never = |_: Option<&Secret>| false;
    let text = panic_of(world.until(&key("a"), never)).await;
    assert_has(
        &text,
        &["Secret default/a as it is:", "token: <16 characters>"],
    );
    assert!(!text.contains("b3BlbiBzZXNhbWU"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn event_that_does_not_come_is_named() {
    let world = World::builder().without_controllers().start().await;
    create(&world, "a", Mistake::Fail).await;
    let text = panic_of(world.until_event("Reconciled")).await;
    assert_has(
        &text,
        &[
            "waiting for an event with reason \"Reconciled\" at ",
            FILE,
            "the registry does not answer",
        ],
    );
    assert!(world.until_event("Unreachable").await.message.is_some());
}

#[tokio::test(start_paused = true)]
async fn refused_request_ends_a_wait_at_once_and_names_the_rule() {
    let world = World::builder().without_controllers().start().await;
    let began = tokio::time::Instant::now();
    create(&world, "a", Mistake::Read).await;
    let text = panic_of(world.until(&key("a"), is_there::<ConfigMap>)).await;
    let rule = "#[kubewright::rbac(groups = \"\", resources = \"secrets\", verbs = \"get\")]";
    assert_has(
        &text,
        &[
            "the operator may not get secrets default/a (while ",
            FILE,
            rule,
            "tolerate_refusals",
        ],
    );
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "it does not wait: {:?}",
        began.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn refused_requests_are_listed_when_they_are_tolerated() {
    let world = World::builder()
        .tolerate_refusals()
        .without_controllers()
        .start()
        .await;
    create(&world, "a", Mistake::Read).await;
    let text = panic_of(world.until(&key("a"), is_there::<ConfigMap>)).await;
    assert_has(
        &text,
        &[
            "timed out after 30s",
            "refused requests:\n  get secrets default/a: 403 ",
            "; add #[kubewright::rbac(",
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn end_of_the_operator_ends_a_wait_with_its_cause() {
    let began = tokio::time::Instant::now();
    let failing = |manager: Manager| {
        manager.runnable(Task::new("migration", |_| async {
            Err(Error::msg("no such table"))
        }))
    };
    let world = World::builder()
        .manager(failing)
        .without_controllers()
        .start()
        .await;
    let text = panic_of(world.until(&key("a"), is_there::<Note>)).await;
    assert_has(
        &text,
        &[
            "the operator ended while ",
            FILE,
            "migration",
            "no such table",
        ],
    );
    let panicking = |manager: Manager| {
        manager.runnable(Task::new("migration", |_| async {
            panic!("no such column")
        }))
    };
    let world = World::builder()
        .manager(panicking)
        .without_controllers()
        .start()
        .await;
    let text = panic_of(world.settled()).await;
    assert_has(
        &text,
        &["the operator ended while ", "migration", "no such column"],
    );
    assert!(
        began.elapsed() < Duration::from_secs(25),
        "it does not wait: {:?}",
        began.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn operator_that_does_not_come_to_rest_is_shown_at_its_work() {
    let world = World::builder().without_controllers().start().await;
    create(&world, "a", Mistake::Loop).await;
    let text = panic_of(world.settled()).await;
    assert_has(
        &text,
        &[
            "timed out after 31s waiting for the operator to come to rest at ",
            FILE,
            "the operator's writes:\n  patch configmaps default/a: 200",
            "(requeue)",
        ],
    );
    let text = panic_of(world.assert_no_writes(Duration::from_secs(1))).await;
    assert_has(
        &text,
        &[
            " writes within 1s although nothing changed, at ",
            FILE,
            "patch configmaps default/a",
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_looked_for_by_hand_is_named() {
    let world = World::builder().without_controllers().start().await;
    let text = panic_of(world.until_some("a letter", async || None::<()>)).await;
    assert_has(
        &text,
        &["timed out after 30s waiting for a letter at ", FILE],
    );
    assert_eq!(world.until_some("a number", async || Some(7)).await, 7);
}
