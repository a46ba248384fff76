//! The same programs over TLS and a socket, until they are interrupted. They only look; the changes are made here.

use crate::program::{Program, count};
use crate::remote::Remote;

#[tokio::test]
async fn client_lists_namespaces_by_kubeconfig() {
    let remote = Remote::start().await;
    let program = Program::by(env!("CARGO_BIN_EXE_s1-client"), &remote.kubeconfig());
    let said = program.end().await.well();
    for namespace in ["default", "kube-system"] {
        assert_eq!(count(&said, namespace), 1, "{said:#?}");
    }
}

#[tokio::test]
async fn list_watch_tells_changes_until_it_is_interrupted() {
    let remote = Remote::start().await;
    remote.create("first", "red").await;
    let mut program = Program::by(env!("CARGO_BIN_EXE_s2-list-watch"), &remote.kubeconfig());
    program.says("Exists: first").await;
    remote.create("second", "red").await;
    program.says("Applied: second").await;
    remote.delete("first").await;
    program.says("Deleted: first").await;
    let said = program.interrupt().await.well();
    assert_eq!(count(&said, "Exists: first"), 1);
    assert_eq!(count(&said, "Applied: first"), 0);
    assert_eq!(count(&said, "Applied: second"), 1);
}

#[tokio::test]
async fn list_watch_reports_a_broken_stream() {
    let remote = Remote::start().await;
    let mut program = Program::by(env!("CARGO_BIN_EXE_s2-list-watch"), &remote.kubeconfig());
    remote.create("first", "red").await;
    program.says("").await;
    remote.create("second", "red").await;
    program.says("Applied: second").await;
    remote.cut();
    let ended = program.end().await;
    assert!(!ended.status.success());
    assert!(
        ended.errors.contains("the connection broke"),
        "{}",
        ended.errors
    );
}

/// Both examples, over a connection that is dropped and a version that expires.
#[tokio::test]
async fn reflector_loses_and_doubles_nothing() {
    for program in [
        env!("CARGO_BIN_EXE_s3-reflector"),
        env!("CARGO_BIN_EXE_s4-controller"),
    ] {
        let remote = Remote::start().await;
        remote.create("first", "red").await;
        let mut program = Program::by(program, &remote.kubeconfig());
        program.says("Replaced: first").await;
        remote.create("second", "red").await;
        program.says("Added: second").await;
        program.says("Sync: second").await;

        remote.cut();
        remote.move_to("second", "blue").await;
        program.says("Updated: second").await;

        remote.down();
        remote.delete("first").await;
        remote.create("third", "red").await;
        remote.forget();
        remote.up();
        program.says("Replaced: third").await;
        program.says("Deleted: first").await;
        remote.create("fourth", "red").await;
        program.says("Added: fourth").await;

        let said = program.interrupt().await.well();
        for line in [
            "Replaced: first",
            "Added: second",
            "Updated: second",
            "Replaced: third",
            "Deleted: first",
            "Added: fourth",
        ] {
            assert_eq!(count(&said, line), 1, "{line:?} in {said:#?}");
        }
        let last = said.last().map(String::as_str);
        assert_eq!(last, Some("3 in the store"), "{said:#?}");
    }
}

#[tokio::test]
async fn informer_calls_three_functions_by_kubeconfig() {
    let remote = Remote::start().await;
    let mut program = Program::by(env!("CARGO_BIN_EXE_s5-informer"), &remote.kubeconfig());
    remote.create("first", "red").await;
    program.says("created: first").await;
    remote.move_to("first", "blue").await;
    program
        .says("updated: first {\"team\": \"red\"} -> {\"team\": \"blue\"}")
        .await;
    remote.delete("first").await;
    program.says("deleted: first").await;
    program.interrupt().await.well();
}

#[tokio::test]
async fn shared_informer_asks_once_for_all_its_handlers() {
    let remote = Remote::start().await;
    remote.create("first", "red").await;
    let program = env!("CARGO_BIN_EXE_s6-shared-informer");
    let mut program = Program::by(program, &remote.kubeconfig());
    program.says("early: found first").await;
    program.says("late: found first").await;
    program.says("early: resync first").await;
    remote.create("second", "red").await;
    program.says("late: created second").await;
    let said = program.interrupt().await.well();
    for line in ["early: created second", "late: created second"] {
        assert_eq!(count(&said, line), 1, "{line:?} in {said:#?}");
    }
    assert_eq!(count(&said, "late: resync first"), 0);
    assert_eq!(remote.asked("configmaps").await, ["watch"]);
}

#[tokio::test]
async fn indexer_is_right_after_every_change() {
    let remote = Remote::start().await;
    remote.create("first", "blue").await;
    let mut program = Program::by(env!("CARGO_BIN_EXE_s7-indexer"), &remote.kubeconfig());
    program
        .says("team blue [\"default/first\"], team red []")
        .await;
    remote.create("second", "red").await;
    program
        .says("second changed: team blue [\"default/first\"], team red [\"default/second\"]")
        .await;
    remote.move_to("first", "red").await;
    program
        .says("first changed: team blue [], team red [\"default/first\", \"default/second\"]")
        .await;
    remote.delete("second").await;
    program
        .says("second changed: team blue [], team red [\"default/first\"]")
        .await;
    remote.down();
    remote.move_to("first", "blue").await;
    remote.create("third", "red").await;
    remote.forget();
    remote.up();
    program
        .says("third changed: team blue [\"default/first\"], team red [\"default/third\"]")
        .await;
    let said = program.interrupt().await.well();
    let last = said.last().map(String::as_str);
    assert_eq!(last, Some("default/third: Some({\"made-by\": \"test\"})"));
}

#[tokio::test]
async fn factory_asks_once_for_each_kind() {
    let remote = Remote::start().await;
    remote.create("first", "blue").await;
    let mut program = Program::by(env!("CARGO_BIN_EXE_s8-factory"), &remote.kubeconfig());
    program.says("3 informers").await;
    program.says("blue: 1").await;
    remote.create("second", "blue").await;
    program.says("second changed: 2 blue").await;
    let said = program.interrupt().await.well();
    assert_eq!(said.last().map(String::as_str), Some("blue: 2"));
    for resource in ["configmaps", "namespaces", "serviceaccounts"] {
        assert_eq!(remote.asked(resource).await, ["watch"], "{resource}");
    }
}

#[tokio::test]
async fn work_queue_retries_up_to_a_limit_by_kubeconfig() {
    let remote = Remote::start().await;
    remote.create("first", "red").await;
    let mut program = Program::by(env!("CARGO_BIN_EXE_s9-work-queue"), &remote.kubeconfig());
    program.says("worker").await;
    remote.create("broken", "red").await;
    let dropped = |said: &[String]| said.iter().any(|line| line.contains("broken dropped"));
    while !dropped(&program.said) {
        program.says("worker").await;
    }
    remote.delete("broken").await;
    program.says("worker").await;
    let said = program.interrupt().await.well();
    let count = |what: &str| said.iter().filter(|line| line.contains(what)).count();
    assert_eq!(count("default/broken again: it is broken"), 2, "{said:#?}");
    assert_eq!(
        count("default/broken dropped: it is broken"),
        1,
        "{said:#?}"
    );
    assert_eq!(count("default/broken is gone"), 1, "{said:#?}");
    assert_eq!(count("default/first is there"), 1, "{said:#?}");
}
