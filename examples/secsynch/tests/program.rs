//! The program itself: over TLS by a kubeconfig, and on its own.

use std::process::Stdio;

use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::CustomResourceExt;
use kubewright::prelude::*;
use kubewright_example_secsynch::SecSynch;
use kubewright_server::Server;
use tokio::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_kubewright-example-secsynch");

#[tokio::test]
async fn program_runs_by_kubeconfig_until_it_is_interrupted() {
    let server = Server::builder().start().await.expect("a server starts");
    let address = "127.0.0.1:0".parse().expect("an address");
    let endpoint = server.listen(address).await.expect("it listens");
    let directory = tempfile::tempdir().expect("a directory");
    let kubeconfig = directory.path().join("kubeconfig");
    endpoint
        .write_kubeconfig(&kubeconfig)
        .expect("it is written");
    let user = Client::new(kube::Client::new(server.service(), "default"));
    user.create(&SecSynch::crd())
        .await
        .expect("the definition is taken");
    let mut program = Command::new(PROGRAM)
        .env("KUBECONFIG", &kubeconfig)
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("the program starts");

    let text = include_str!("../sample.yaml");
    let (secret, synch) = text.split_once("---\n").expect("two documents");
    let secret: Secret = serde_saphyr::from_str(secret).expect("a Secret");
    let synch: SecSynch = serde_saphyr::from_str(synch).expect("a SecSynch");
    user.create(&secret).await.expect("it is created");
    user.create(&synch).await.expect("it is created");
    for name in ["team-a", "team-b"] {
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(name.to_owned());
        user.create(&namespace).await.expect("it is created");
        until_copied(&user, name).await;
    }

    let id = program.id().expect("it runs").to_string();
    let interrupted = Command::new("kill").args(["-INT", &id]).status();
    assert!(interrupted.await.expect("it is interrupted").success());
    assert!(program.wait().await.expect("it ends").success());
}

/// Waits for a copy, change by change.
async fn until_copied(user: &Client, namespace: &str) {
    let key = Key::new(namespace, "registry");
    let informer = user.of::<Secret>().informer();
    loop {
        let changed = informer.advanced();
        if user
            .get::<Secret>(&key)
            .await
            .expect("it is read")
            .is_some()
        {
            return;
        }
        changed.await;
    }
}

#[tokio::test]
async fn program_shows_itself_without_a_cluster() {
    let mut program = Command::new(PROGRAM);
    program
        .env_remove("KUBECONFIG")
        .env_remove("KUBERNETES_SERVICE_HOST");
    let output = program.output().await.expect("the program runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut lines = text.lines();
    for line in [
        r#"copied; team-b does not exist: copies in ["team-a"]"#,
        r#"team-b exists: copies in ["team-a", "team-b"]"#,
        "the source is deleted: copies in []",
    ] {
        assert!(lines.any(|other| other == line), "no {line:?} in\n{text}");
    }
}
