//! `cargo xtask chart`: the chart of a golden project with a real Helm, on a cluster of ours.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::lanes::{self, Missing};
use crate::process::Running;
use crate::workspace::{self, Profile};

/// The Helm that is built from its module.
const HELM: &str = "helm.sh/helm/v3/cmd/helm@v3.18.6";
/// How long a cluster may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// Install, upgrade, roll back and uninstall the chart of testdata/projects/single with Helm
#[derive(clap::Args)]
pub(crate) struct Arguments {}

/// What one call of Helm or kubectl is to say.
struct Step {
    program: &'static str,
    arguments: &'static str,
    says: &'static str,
}

const STEPS: [Step; 7] = [
    step("helm", "lint CHART", "0 chart(s) failed"),
    step(
        "helm",
        "install single CHART --create-namespace --set webhooks.enabled=false --wait --timeout 60s",
        "STATUS: deployed",
    ),
    step(
        "helm",
        "upgrade single CHART --set manager.replicas=2 --wait --timeout 60s",
        "REVISION: 2",
    ),
    step(
        "kubectl",
        "get deployment single-controller-manager -o jsonpath={.spec.replicas}",
        "2",
    ),
    step(
        "helm",
        "rollback single 1 --wait --timeout 60s",
        "Rollback was a success",
    ),
    step(
        "kubectl",
        "get deployment single-controller-manager -o jsonpath={.spec.replicas}",
        "1",
    ),
    step(
        "helm",
        "uninstall single --wait --timeout 60s",
        "release \"single\" uninstalled",
    ),
];

const fn step(program: &'static str, arguments: &'static str, says: &'static str) -> Step {
    Step {
        program,
        arguments,
        says,
    }
}

pub(crate) fn run(_arguments: &Arguments) -> Result<ExitCode> {
    let helm = match helm()? {
        Ok(helm) => helm,
        Err(Missing(why)) => {
            println!("left out: {why}");
            return Ok(ExitCode::SUCCESS);
        }
    };
    let kubewright = workspace::build("kubewright-cli", "kubewright", Profile::Debug)?;
    let folder = tempfile::tempdir().context("making a folder")?;
    let chart = chart(&kubewright, folder.path())?;
    let kubeconfig = folder.path().join("kubeconfig");
    let mut up = Command::new(&kubewright);
    up.args(["up", "--port", "0", "--kubeconfig"])
        .arg(&kubeconfig);
    let mut cluster = Running::start(&mut up, "")?;
    if !cluster.read_until(PATIENCE, |output| output.shows("Ctrl-C stops it")) {
        bail!("the cluster did not start");
    }
    for step in &STEPS {
        let program = match step.program {
            "helm" => helm.clone(),
            other => other.into(),
        };
        let chart = chart.display().to_string();
        let arguments = step
            .arguments
            .split(' ')
            .map(|word| word.replace("CHART", &chart));
        let mut command = Command::new(program);
        command
            .args(arguments)
            .args(["--namespace", "books"])
            .env("KUBECONFIG", &kubeconfig)
            .env("HOME", folder.path());
        let output = lanes::tool(&mut command, step.arguments)?;
        let output = output.map_err(|Missing(why)| anyhow::anyhow!(why))?;
        if !output.shows(step.says) {
            bail!("{} {}: {}", step.program, step.arguments, output.stdout);
        }
        println!("ok  {} {}", step.program, step.arguments);
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds Helm from its module, once.
fn helm() -> Result<Result<PathBuf, Missing>> {
    if !lanes::is_there("go") || !lanes::is_there("kubectl") {
        return Ok(Err(Missing("go and kubectl are needed".to_owned())));
    }
    let place = lanes::installed("helm")?;
    let installed = lanes::once(&place, HELM, || {
        let mut go = Command::new("go");
        go.args(["install", HELM])
            .env("GOBIN", &place)
            .env("CGO_ENABLED", "0");
        Ok(lanes::tool(&mut go, HELM)?.map(drop))
    })?;
    Ok(installed.map(|()| place.join("helm")))
}

/// The chart of the golden project, in a copy of it.
fn chart(kubewright: &Path, folder: &Path) -> Result<PathBuf> {
    let project = folder.join("single");
    fs::create_dir(&project).context("making a folder")?;
    let root = workspace::root();
    let file = "PROJECT";
    fs::copy(
        root.join("testdata/projects/single").join(file),
        project.join(file),
    )
    .context("copying a project")?;
    let mut generate = Command::new(kubewright);
    generate
        .args(["generate", "helm", "--project"])
        .arg(&project)
        .arg("--inventory")
        .arg(root.join("testdata/inventories/single.json"));
    let made = lanes::tool(&mut generate, "generate helm")?;
    made.map_err(|Missing(why)| anyhow::anyhow!(why))?;
    Ok(project.join("dist/chart"))
}
