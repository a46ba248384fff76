//! Each example on a server that it starts itself: one command, no cluster.

use crate::program::{Program, command};

/// Runs a program to its end and looks for lines, in this order, others between them.
async fn check(program: &str, expected: &[&str]) {
    let said = Program::alone(program).end().await.well();
    let mut lines = said.iter();
    for line in expected {
        let found = lines.any(|said| said.starts_with(line));
        assert!(found, "no {line:?} in {said:#?}");
    }
}

#[tokio::test]
async fn client_lists_namespaces() {
    check(env!("CARGO_BIN_EXE_s1-client"), &["default", "kube-system"]).await;
}

/// A pod has a service account: the error outside of one says that it is missing.
#[tokio::test]
async fn client_looks_for_the_service_account_within_a_cluster() {
    let mut inside = command(env!("CARGO_BIN_EXE_s1-client"));
    inside
        .env("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        .env("KUBERNETES_SERVICE_PORT", "1");
    let ended = Program::start(&mut inside).end().await;
    assert!(!ended.status.success());
    let errors = ended.errors;
    assert!(errors.contains("reading the service account"), "{errors}");
}

#[tokio::test]
async fn list_watch_tells_what_exists_once_and_then_changes() {
    let expected = [
        "Exists: colours",
        "Applied: shapes",
        "Applied: colours",
        "Deleted: shapes",
    ];
    check(env!("CARGO_BIN_EXE_s2-list-watch"), &expected).await;
}

#[tokio::test]
async fn reflector_and_controller_say_the_same() {
    for program in [
        env!("CARGO_BIN_EXE_s3-reflector"),
        env!("CARGO_BIN_EXE_s4-controller"),
    ] {
        let expected = [
            "Replaced: colours",
            "Added: shapes",
            "Updated: colours",
            "Deleted: shapes",
            "Sync: colours",
        ];
        check(program, &expected).await;
    }
}

#[tokio::test]
async fn informer_calls_three_functions() {
    let expected = [
        "created: colours",
        "created: shapes",
        "updated: colours",
        "deleted: shapes",
    ];
    check(env!("CARGO_BIN_EXE_s5-informer"), &expected).await;
}

#[tokio::test]
async fn shared_informer_has_handlers_that_come_and_go() {
    let program = env!("CARGO_BIN_EXE_s6-shared-informer");
    let said = Program::alone(program).end().await.well();
    for expected in [
        [
            "early: found colours",
            "early: created shapes",
            "early: resync colours",
        ],
        [
            "late: found colours",
            "late: deleted shapes",
            "late: created after",
        ],
    ] {
        let mut lines = said.iter();
        let in_order = expected.iter().all(|line| lines.any(|said| said == line));
        assert!(in_order, "{said:#?}");
    }
    assert!(!said.contains(&"early: created after".to_owned()));
}

#[tokio::test]
async fn indexer_finds_by_namespace_and_label() {
    let expected = [
        "namespaces: [\"default\"",
        "team blue [\"default/colours\"], team red []",
        "shapes changed: team blue [\"default/colours\"], team red [\"default/shapes\"]",
        "colours changed: team blue [], team red [\"default/colours\"",
        "shapes changed: team blue [], team red [\"default/colours\"]",
        "default/colours: Some({\"made-by\": \"example\"})",
    ];
    check(env!("CARGO_BIN_EXE_s7-indexer"), &expected).await;
}

#[tokio::test]
async fn factory_shares_and_lists() {
    let expected = [
        "3 informers",
        "same store: true",
        "namespaces: [\"default\"",
        "blue: 1",
        "ApiError: configmaps \"nothing\" not found",
        "colours changed: 0 blue",
        "blue: 0",
    ];
    check(env!("CARGO_BIN_EXE_s8-factory"), &expected).await;
}

#[tokio::test]
async fn work_queue_retries_and_gives_up() {
    let program = env!("CARGO_BIN_EXE_s9-work-queue");
    let said = Program::alone(program).end().await.well();
    let count = |what: &str| said.iter().filter(|line| line.contains(what)).count();
    assert_eq!(count("default/broken again: it is broken"), 2, "{said:#?}");
    assert_eq!(
        count("default/broken dropped: it is broken"),
        1,
        "{said:#?}"
    );
    // A worker that comes late sees at its first run already that it is gone, and once more after the deletion.
    assert!(count("default/shapes is gone") >= 1, "{said:#?}");
}
