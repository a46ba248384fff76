//! `cargo xtask chart`: the chart of a golden project with a real Helm, on a cluster of ours.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::lanes::{self, AllowMissing, Missing};
use crate::objects;
use crate::process::Running;
use crate::workspace::{self, Profile};

/// The Helm that is built from its module.
const HELM: &str = "helm.sh/helm/v3/cmd/helm@v3.18.6";
/// How long a cluster may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// Install, upgrade, roll back and uninstall the chart of testdata/projects/single with Helm
///
/// The values are changed on the way: webhooks on and off, replicas, memory, the image and the network policy. kubectl looks at
/// what becomes of each. Helm is built with Go; the command fails without Go or kubectl, unless --allow-missing is passed.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Use this command instead of building one
    #[arg(long, value_name = "FILE")]
    kubewright: Option<PathBuf>,
    #[command(flatten)]
    missing: AllowMissing,
}

/// What one call of Helm or kubectl is to say.
struct Step {
    program: &'static str,
    arguments: &'static str,
    says: &'static str,
}

const STEPS: [Step; 17] = [
    step("helm", "lint CHART", "0 chart(s) failed"),
    step(
        "helm",
        "install single CHART --create-namespace --set webhooks.enabled=false --wait --timeout 60s",
        "STATUS: deployed",
    ),
    step("kubectl", WEBHOOKS, "No resources found"),
    step("kubectl", VERSIONS, "v1,v2 true,false"),
    step(
        "helm",
        "upgrade single CHART --set manager.replicas=2,manager.resources.limits.memory=256Mi,manager.image.tag=2 \
         --wait --timeout 60s",
        "REVISION: 2",
    ),
    step("kubectl", DEPLOYMENT, "2 single:2 256Mi"),
    step("kubectl", WEBHOOKS, "single-mutating-webhook-configuration"),
    step("kubectl", VERSIONS, "v1,v2 true,true"),
    step(
        "helm",
        "upgrade single CHART --set networkPolicy.enabled=false --wait --timeout 60s",
        "REVISION: 3",
    ),
    step("kubectl", "get networkpolicies", "No resources found"),
    step(
        "helm",
        "rollback single 1 --wait --timeout 60s",
        "Rollback was a success",
    ),
    step("kubectl", DEPLOYMENT, "1 single:0.1.0 128Mi"),
    step("kubectl", WEBHOOKS, "No resources found"),
    step(
        "helm",
        "uninstall single --wait --timeout 60s",
        "release \"single\" uninstalled",
    ),
    step(
        "kubectl",
        "get deployments,services,serviceaccounts,roles -l app.kubernetes.io/name=single",
        "No resources found",
    ),
    step(
        "kubectl",
        "get clusterroles,clusterrolebindings -l app.kubernetes.io/name=single",
        "No resources found",
    ),
    // Kinds outlive the release, with their objects, unless crds.keep is off.
    step("kubectl", VERSIONS, "v1,v2 true,"),
];

/// What kubectl is asked about the manager: replicas, image and memory.
const DEPLOYMENT: &str = "get deployment single-controller-manager --no-headers -o \
    custom-columns=A:.spec.replicas,B:.spec.template.spec.containers[0].image,C:.spec.template.spec.containers[0].resources.limits.memory";
const WEBHOOKS: &str = "get mutatingwebhookconfigurations";
/// Which versions of the kind are served.
const VERSIONS: &str = "get customresourcedefinition guestbooks.webapp.my.domain --no-headers -o \
    custom-columns=A:.spec.versions[*].name,B:.spec.versions[*].served";

const fn step(program: &'static str, arguments: &'static str, says: &'static str) -> Step {
    Step {
        program,
        arguments,
        says,
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let helm = match helm()? {
        Ok(helm) => helm,
        Err(missing) => return Ok(arguments.missing.end(&[missing])),
    };
    let kubewright = match &arguments.kubewright {
        Some(file) => file.clone(),
        None => workspace::build("kubewright-cli", "kubewright", Profile::Debug)?,
    };
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
    let count = same_as_installed(&helm, &chart, &kubeconfig)?;
    println!("ok  helm template: {count} objects, those of dist/install.yaml");
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
        let printed = format!("{} {}", output.stdout, output.stderr);
        let printed: Vec<&str> = printed.split_whitespace().collect();
        if !printed.join(" ").contains(step.says) {
            bail!("{} {}: {}", step.program, step.arguments, printed.join(" "));
        }
        println!("ok  {} {}", step.program, step.arguments);
    }
    Ok(ExitCode::SUCCESS)
}

/// Compares what Helm makes of the chart with dist/install.yaml, object by object: its roles are no others.
fn same_as_installed(helm: &Path, chart: &Path, kubeconfig: &Path) -> Result<usize> {
    let mut template = Command::new(helm);
    template
        .args(["template", "single"])
        .arg(chart)
        .args(["--namespace", "single-system"])
        .env("KUBECONFIG", kubeconfig);
    let made = lanes::tool(&mut template, "helm template")?;
    let made = made.map_err(|Missing(why)| anyhow::anyhow!(why))?;
    let mut made = objects::read(kubeconfig, &made.stdout)?;
    for object in made.values_mut() {
        // What Helm alone reads about.
        if object["kind"] == "CustomResourceDefinition"
            && let Some(metadata) = object["metadata"].as_object_mut()
        {
            metadata.remove("annotations");
        }
    }
    let install = chart.with_file_name("install.yaml");
    let install = fs::read_to_string(install).context("reading dist/install.yaml")?;
    let mut installed = objects::read(kubeconfig, &install)?;
    // The namespace is the release's.
    installed.retain(|_, object| object["kind"] != "Namespace");
    objects::compare(&installed, &made)
}

/// Builds Helm from its module, once.
fn helm() -> Result<Result<PathBuf, Missing>> {
    if !lanes::is_there("go") || !lanes::is_there("kubectl") {
        return Ok(Err(Missing("go and kubectl are needed".to_owned())));
    }
    let place = lanes::installed("helm")?;
    let installed = lanes::once(&place, HELM, || {
        let mut go = Command::new("go");
        // It says what it compiles, so that a slow machine is not taken for one that hangs.
        go.args(["install", "-v", HELM])
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
        .args(["generate", "helm", "install", "--project"])
        .arg(&project)
        .arg("--inventory")
        .arg(root.join("testdata/inventories/single.json"));
    let made = lanes::tool(&mut generate, "generate helm")?;
    made.map_err(|Missing(why)| anyhow::anyhow!(why))?;
    Ok(project.join("dist/chart"))
}
