//! An operator at rest: how large its program is, and how much memory it keeps when it has nothing to do.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use http::Method;
use kubewright_bench::{Connection, Protocol};
use serde_json::{Value, json};

use crate::objects::expect_success;
use crate::process::Process;
use crate::stopwatch::Stopwatch;
use crate::target::Target;

const DEFINITION: &str = include_str!("../../../examples/foo/crd.yaml");
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const FOOS: &str = "/apis/samplecontroller.k8s.io/v1alpha1/namespaces/default/foos";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const JSON: &str = "application/json";
/// How many Foos there are.
const NUMBER: usize = 5;
/// How long an operator is left alone before its memory is read.
const SETTLE: Duration = Duration::from_secs(10);
/// How long it may take to make its Deployments.
const PATIENCE: Duration = Duration::from_secs(60);

/// What was found out about an operator.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Operator {
    /// Bytes of resident memory.
    pub(crate) memory: u64,
    /// Bytes of the program, without symbols.
    pub(crate) program: u64,
}

/// Runs an operator on a server with a handful of Foos.
pub(crate) async fn measure(server: &Target, program: &Path, name: &str) -> Result<Operator> {
    let running = server.start().await?;
    let mut connection = running.connect(Protocol::Http1).await?;
    prepare(&mut connection).await?;
    let mut command = Command::new(program);
    command.env("KUBECONFIG", running.kubeconfig());
    let process = Process::start(&mut command)?;
    until_deployed(&mut connection).await?;
    tokio::time::sleep(SETTLE).await;
    let found = Operator {
        memory: process.memory(),
        program: stripped(program)?,
    };
    eprintln!("{name}, operator at rest: {found:?}");
    Ok(found)
}

async fn prepare(connection: &mut Connection) -> Result<()> {
    let definition: Value = serde_saphyr::from_str(DEFINITION)?;
    let body = definition.to_string();
    expect_success(
        connection
            .send(Method::POST, DEFINITIONS, JSON, body)
            .await?,
    )?;
    for number in 0..NUMBER {
        let object = json!({
            "apiVersion": "samplecontroller.k8s.io/v1alpha1",
            "kind": "Foo",
            "metadata": {"name": format!("foo-{number}")},
            "spec": {"deploymentName": format!("deployment-{number}"), "replicas": 1},
        });
        let made = connection.send(Method::POST, FOOS, JSON, object.to_string());
        expect_success(made.await?)?;
    }
    Ok(())
}

/// Waits until each Foo has its Deployment.
async fn until_deployed(connection: &mut Connection) -> Result<()> {
    let stopwatch = Stopwatch::start();
    loop {
        let reply = connection.get(DEPLOYMENTS).await?;
        let list: Value = serde_json::from_slice(&reply.body).context("reading Deployments")?;
        let items = list["items"].as_array().map_or(0, Vec::len);
        if items == NUMBER {
            return Ok(());
        }
        if stopwatch.elapsed() > PATIENCE {
            bail!("the operator made {items} of {NUMBER} Deployments");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The size of a program without its symbols; zero where there is no `strip`.
fn stripped(program: &Path) -> Result<u64> {
    let folder = tempfile::tempdir()?;
    let copy = folder.path().join("stripped");
    let mut strip = Command::new("strip");
    strip.arg("-o").arg(&copy).arg(program);
    let status = strip.stdin(Stdio::null()).status();
    if !status.is_ok_and(|status| status.success()) {
        eprintln!("no program was stripped: sizes are missing");
        return Ok(0);
    }
    Ok(std::fs::metadata(&copy)?.len())
}
