//! Every example runs to its end on a server of its own and says what it should.

use std::process::Command;

/// Runs a program and looks for lines, in this order, others between them.
fn check(program: &str, expected: &[&str]) {
    let output = Command::new(program)
        .env_remove("KUBECONFIG")
        .output()
        .expect("the program starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    let mut lines = text.lines();
    for line in expected {
        assert!(lines.any(|l| l.starts_with(line)), "no {line:?} in\n{text}");
    }
}

#[test]
fn client_lists_namespaces() {
    check(env!("CARGO_BIN_EXE_s1-client"), &["default", "kube-system"]);
}

#[test]
fn list_watch_tells_what_exists_once_and_then_changes() {
    check(
        env!("CARGO_BIN_EXE_s2-list-watch"),
        &[
            "Exists: colours",
            "Applied: shapes",
            "Applied: colours",
            "Deleted: shapes",
        ],
    );
}

#[test]
fn reflector_fills_a_store_by_hand() {
    check(
        env!("CARGO_BIN_EXE_s3-reflector"),
        &[
            "Replaced: colours",
            "Added: shapes",
            "Updated: colours",
            "Deleted: shapes",
        ],
    );
}

#[test]
fn controller_is_the_same_in_one() {
    check(
        env!("CARGO_BIN_EXE_s4-controller"),
        &[
            "Replaced: [",
            "Applied: shapes",
            "Applied: colours",
            "Deleted: shapes",
        ],
    );
}

#[test]
fn informer_calls_three_functions() {
    check(
        env!("CARGO_BIN_EXE_s5-informer"),
        &[
            "created: colours",
            "created: shapes",
            "updated: colours",
            "deleted: shapes",
        ],
    );
}

#[test]
fn shared_informer_has_handlers_that_come_and_go() {
    let program = env!("CARGO_BIN_EXE_s6-shared-informer");
    check(
        program,
        &[
            "early: found colours",
            "early: created shapes",
            "early: resync colours",
        ],
    );
    check(
        program,
        &[
            "late: found colours",
            "late: deleted shapes",
            "late: created after",
        ],
    );
}

#[test]
fn indexer_finds_by_namespace_and_label() {
    check(
        env!("CARGO_BIN_EXE_s7-indexer"),
        &[
            "namespaces: [\"default\"",
            "team blue: [\"default/colours\"]",
            "team blue: []",
            "team red: [\"default/colours\"]",
            "default/colours: Some({\"made-by\": \"example\"})",
        ],
    );
}

#[test]
fn factory_shares_and_lists() {
    check(
        env!("CARGO_BIN_EXE_s8-factory"),
        &[
            "3 informers",
            "same store: true",
            "namespaces: [\"default\"",
            "blue: 1",
            "ApiError: configmaps \"nothing\" not found",
            "blue: 0",
        ],
    );
}

#[test]
fn work_queue_retries_and_gives_up() {
    let program = env!("CARGO_BIN_EXE_s9-work-queue");
    check(program, &["worker"]);
}
