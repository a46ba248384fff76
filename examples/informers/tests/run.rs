//! Every example runs to its end on a server of its own and says what it should.

use std::process::Command;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ObjectMeta, PostParams};
use kubewright_server::Server;
use tokio::io::{AsyncBufReadExt, BufReader};

/// Runs a program to its end.
fn output(command: &mut Command) -> String {
    let output = command.output().expect("the program starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    text
}

/// Runs a program and looks for lines, in this order, others between them.
fn check(program: &str, expected: &[&str]) {
    let text = output(Command::new(program).env_remove("KUBECONFIG"));
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
    let text = output(Command::new(program).env_remove("KUBECONFIG"));
    let count = |what: &str| text.lines().filter(|line| line.contains(what)).count();
    assert_eq!(count("default/broken again: it is broken"), 2, "{text}");
    assert_eq!(count("default/broken dropped: it is broken"), 1, "{text}");
    assert_eq!(count("default/shapes is gone"), 1, "{text}");
}

/// The same programs over TLS and a socket, as a kubeconfig says.
#[tokio::test]
async fn examples_run_by_kubeconfig_until_they_are_interrupted() {
    let server = Server::builder().start().await.expect("the server starts");
    let address = "127.0.0.1:0".parse().expect("an address");
    let endpoint = server.listen(address).await.expect("it listens");
    let directory = tempfile::tempdir().expect("a directory");
    let kubeconfig = directory.path().join("kubeconfig");
    endpoint
        .write_kubeconfig(&kubeconfig)
        .expect("it is written");

    let client = env!("CARGO_BIN_EXE_s1-client").to_owned();
    let config = kubeconfig.clone();
    let text =
        tokio::task::spawn_blocking(move || output(Command::new(client).env("KUBECONFIG", config)));
    assert!(text.await.expect("no panic").contains("kube-system"));

    let mut informer = tokio::process::Command::new(env!("CARGO_BIN_EXE_s5-informer"))
        .env("KUBECONFIG", &kubeconfig)
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the program starts");
    let client = kube::Client::new(server.service(), "default");
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let map = ConfigMap {
        metadata: ObjectMeta {
            name: Some("remote".to_owned()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    };
    maps.create(&PostParams::default(), &map)
        .await
        .expect("it is created");
    let mut lines = BufReader::new(informer.stdout.take().expect("a pipe")).lines();
    while lines.next_line().await.expect("text").expect("it goes on") != "created: remote" {}
    let id = informer.id().expect("it runs").to_string();
    Command::new("kill")
        .args(["-INT", &id])
        .status()
        .expect("it is interrupted");
    assert!(informer.wait().await.expect("it ends").success());
}
