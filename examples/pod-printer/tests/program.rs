//! The program itself: over TLS by a kubeconfig, and on its own.

use std::process::Stdio;

use k8s_openapi::api::core::v1::Pod;
use kubewright::Client;
use kubewright_server::Server;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_kubewright-example-pod-printer");

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
    let mut program = Command::new(PROGRAM)
        .arg("mypod")
        .env("KUBECONFIG", &kubeconfig)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("the program starts");
    let mut lines = BufReader::new(program.stdout.take().expect("a pipe")).lines();
    let mut next = async || lines.next_line().await.expect("text").expect("it goes on");

    assert_eq!(next().await, "Pod default/mypod does not exist anymore");
    let pod: Pod = serde_saphyr::from_str(include_str!("../sample.yaml")).expect("a Pod");
    user.create(&pod).await.expect("it is created");
    assert_eq!(next().await, "Sync/Add/Update for Pod web");

    let id = program.id().expect("it runs").to_string();
    let interrupted = Command::new("kill").args(["-INT", &id]).status();
    assert!(interrupted.await.expect("it is interrupted").success());
    assert!(program.wait().await.expect("it ends").success());
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
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines.first(),
        Some(&"Sync/Add/Update for Pod web"),
        "{text}"
    );
    assert_eq!(
        lines.last(),
        Some(&"Pod default/web does not exist anymore"),
        "{text}"
    );
}
