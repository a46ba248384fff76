//! The program itself: over TLS by a kubeconfig, and on its own.

#![allow(clippy::disallowed_names, reason = "a Foo is called foo")]

use std::process::Stdio;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube::CustomResourceExt;
use kubewright::prelude::*;
use kubewright_example_foo::Foo;
use kubewright_server::Server;
use kubewright_sim::{Campaign, FaultKind, Program};
use tokio::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_kubewright-example-foo");

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
    user.create(&Foo::crd())
        .await
        .expect("the definition is taken");
    let mut program = Command::new(PROGRAM)
        .env("KUBECONFIG", &kubeconfig)
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("the program starts");

    let foo: Foo = serde_saphyr::from_str(include_str!("../sample.yaml")).expect("a Foo");
    let foo = user.create(&foo).await.expect("it is created");
    let replicas = until_replicas(&user, 1);
    replicas.await;
    let scaled = user.modify(&foo, |foo| foo.spec.replicas = Some(4));
    scaled.await.expect("it is scaled");
    until_replicas(&user, 4).await;

    let id = program.id().expect("it runs").to_string();
    let interrupted = Command::new("kill").args(["-INT", &id]).status();
    assert!(interrupted.await.expect("it is interrupted").success());
    assert!(program.wait().await.expect("it ends").success());
}

/// Waits for the Deployment, change by change.
async fn until_replicas(user: &Client, replicas: i32) {
    let key = Key::new("default", "example-foo");
    let informer = user.of::<Deployment>().informer();
    loop {
        let changed = informer.advanced();
        let deployment = user.get::<Deployment>(&key).await.expect("it is read");
        if deployment.is_some_and(|deployment| deployment.spec.replicas == Some(replicas)) {
            return;
        }
        changed.await;
    }
}

#[tokio::test]
async fn program_brings_its_own_cluster_where_pods_become_available() {
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
        "deployment example-foo: 1 replicas",
        "foo example-foo: 1 available",
        "deployment example-foo: 3 replicas",
        "foo example-foo: 3 available",
    ] {
        assert!(lines.any(|other| other == line), "no {line:?} in\n{text}");
    }
}

/// The program is killed and refused from outside, as one in any language would be.
#[test]
fn program_behind_a_kubeconfig_survives_crashes_and_refusals() {
    let report = Campaign::of_program("foo-program", Program::new(PROGRAM))
        .install(&Foo::crd())
        .step("create", async |user| {
            let text = include_str!("../sample.yaml");
            let foo: Foo =
                serde_saphyr::from_str(text).map_err(|error| Error::msg(error.to_string()))?;
            user.create(&foo).await?;
            Ok(())
        })
        .only([FaultKind::CrashAfter, FaultKind::Refuse])
        .settle(Duration::from_millis(1200))
        .quiet(Duration::from_millis(300))
        .sample(4)
        .run();
    assert!(report.is_clean(), "{report}");
    assert_eq!((report.plans, report.unreached), (4, 0), "{report}");
}

#[test]
fn program_that_does_not_start_is_reported_with_its_last_words() {
    let campaign = Campaign::of_program("nothing", Program::new("sh -c 'echo no luck; exit 3'"));
    let report = campaign
        .cluster(|cluster| cluster.without_controllers())
        .run();
    let said = report.to_string();
    assert!(
        said.contains("exit status: 3") && said.contains("no luck"),
        "{said}"
    );
}
