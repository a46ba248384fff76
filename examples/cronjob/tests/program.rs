//! The program itself: for a cluster of a kubeconfig, and on its own.

use std::process::Stdio;

use kubewright::prelude::*;
use kubewright_example_cronjob::v2;
use kubewright_server::Server;
use kubewright_testing::until;
use serde_json::Value;
use tokio::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_kubewright-example-cronjob");

#[tokio::test]
async fn program_serves_a_cluster_by_kubeconfig_until_it_is_interrupted() {
    let server = Server::builder().start().await.expect("a server starts");
    let address = "127.0.0.1:0".parse().expect("an address");
    let endpoint = server.listen(address).await.expect("it listens");
    let directory = tempfile::tempdir().expect("a directory");
    let kubeconfig = directory.path().join("kubeconfig");
    endpoint
        .write_kubeconfig(&kubeconfig)
        .expect("it is written");
    let mut program = Command::new(PROGRAM)
        .env("KUBECONFIG", &kubeconfig)
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("the program starts");

    let user = Client::new(kube::Client::new(server.service(), "default"));
    let sample = include_str!("../sample.yaml");
    let sample: v2::CronJob = serde_saphyr::from_str(sample).expect("a CronJob");
    // The kind is there when the program has installed it.
    let stored = until("the sample is stored", async || {
        user.create(&sample).await.ok()
    })
    .await;
    assert_eq!(stored.spec.rest.successful_jobs_history_limit, Some(3));
    let schedule = serde_json::to_value(stored.spec.schedule).expect("JSON");
    assert_eq!(schedule.get("hour").and_then(Value::as_str), Some("3"));

    let id = program.id().expect("it runs").to_string();
    let interrupted = Command::new("kill").args(["-INT", &id]).status();
    assert!(interrupted.await.expect("it is interrupted").success());
    assert!(program.wait().await.expect("it ends").success());
}

#[tokio::test]
async fn program_shows_itself_without_a_cluster() {
    let output = Command::new(PROGRAM)
        .env_remove("KUBECONFIG")
        .output()
        .await;
    let output = output.expect("the program runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for line in [
        "completed: Allow, suspended: false, keeps 3 that succeeded",
        r#"as version 2: {"minute":"0","hour":"3"}"#,
        r#"spec.schedule: Invalid value: "0 25 * * *": hour "25" is not within 0 and 23"#,
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}
