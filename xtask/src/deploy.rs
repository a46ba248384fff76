//! `cargo xtask deploy`: from an empty folder to a manager that runs where it was deployed, and back to nothing.

mod account;
mod books;
mod cluster;
mod manifests;
pub(crate) mod project;
mod replicas;
mod roles;
mod trust;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::lanes::AllowMissing;
use crate::processes::report::Report;
use crate::workspace::{self, Profile};
use cluster::Cluster;
use project::Project;

/// How long a state of the cluster may take to come about.
const PATIENCE: Duration = Duration::from_secs(90);
/// What everything of the project is called after.
const NAME: &str = "library";
const NAMESPACE: &str = "library-system";
const MANAGER: &str = "library-controller-manager";
/// The images before and after the upgrade.
const IMAGES: [&str; 2] = [
    "registry.example.com/library:1",
    "registry.example.com/library:2",
];

/// Deploy an operator to a cluster whose pods are processes, and use it until nothing of it is left
///
/// From an empty folder: a kind with two versions, defaulting, validation and conversion; its image, without docker; a cluster of
/// `kubewright up --runtime process`; two replicas of the manager, which run. Then both versions are written and read through the
/// webhooks, the leader is killed, the manager upgraded and its certificates replaced while objects are written, its roles compared
/// with what it did, and everything removed again. The command fails if a step does, and if the steps that need kubectl are left out
/// because it is not on the path, unless --allow-missing is passed.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    cargo xtask deploy\n  \
    cargo xtask deploy --keep        leaves the project and the cluster's audit log to look at")]
pub(crate) struct Arguments {
    /// Use this command instead of building one
    #[arg(long, value_name = "FILE")]
    kubewright: Option<PathBuf>,
    /// Leave the folder with the project, its images and the logs
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    missing: AllowMissing,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let began = now();
    let kubewright = match &arguments.kubewright {
        Some(file) => file.clone(),
        None => workspace::build("kubewright-cli", "kubewright", Profile::Debug)?,
    };
    // Outside of the repository, or cargo takes it for a part of the workspace; not in /tmp, of which containers have their own.
    let around = if crate::processes::is_root()? {
        PathBuf::from("/var/lib")
    } else {
        std::env::temp_dir()
    };
    let place = tempfile::Builder::new()
        .prefix("kubewright-deploy-")
        .tempdir_in(around)
        .context("making a folder for the project")?;
    let mut report = Report::default();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(story(&kubewright, place.path(), &mut report));
    if arguments.keep {
        println!("\nleft in {}", place.keep().display());
    }
    report.step(
        "the story comes to its end",
        outcome.map(|()| String::new()),
    );
    println!("\n{:.0} s in all", began.elapsed().as_secs_f64());
    Ok(report.end(arguments.missing))
}

async fn story(
    kubewright: &std::path::Path,
    place: &std::path::Path,
    report: &mut Report,
) -> Result<()> {
    let folder = place.join(NAME);
    fs::create_dir(&folder).context("making the folder of the project")?;
    let project = Project::new(kubewright, &folder, place);
    report.begin("from an empty folder");
    report.step("init, create api, version, webhook", project.scaffold());
    report.step("generate", project.generate());
    for image in IMAGES {
        report.step(&format!("image build, load: {image}"), project.image(image));
    }
    report.begin("a cluster whose pods are processes");
    let mut cluster = Cluster::start(&project).await?;
    report.step("deploy, two replicas", cluster.deploy(IMAGES[0]).await);
    report.step(
        "the replicas run this image",
        replicas::run_image(&cluster, &project, IMAGES[0]).await,
    );
    report.step(
        "the account, its token, nothing more",
        account::has_its_token_alone(&cluster).await,
    );
    report.step(
        "defaulted, validated, converted",
        books::both_versions(&cluster).await,
    );
    report.step("the same through kubectl", books::through_kubectl(&cluster));
    report.step(
        "apply --dry-run=server of dist/install.yaml",
        manifests::dry_run(&cluster),
    );
    report.step(
        "kustomize config/default is dist/install.yaml",
        manifests::kustomize(&cluster),
    );
    report.step(
        "metrics through their Service",
        account::metrics_are_read(&cluster).await,
    );
    report.step(
        "the leader is killed",
        replicas::leader_is_killed(&cluster).await,
    );
    report.step(
        "upgrade while objects are written",
        replicas::upgraded(&cluster, &project).await,
    );
    report.step(
        "certificates are replaced meanwhile",
        trust::replaced(&cluster).await,
    );
    report.begin("what was used, and what is left");
    report.step("undeploy", cluster.undeploy().await);
    report.step("nothing is left of it", cluster.nothing_is_left().await);
    report.step(
        "roles are what was used",
        account::roles_are_exact(&cluster),
    );
    report.step(
        "install.yaml where its namespace is",
        manifests::dry_run_in_a_namespace(&cluster),
    );
    report.step("the cluster ends", cluster.end().await);
    Ok(())
}

#[allow(
    clippy::disallowed_methods,
    reason = "what whoever calls this waits is wall time, which nothing may inject"
)]
fn now() -> Instant {
    Instant::now()
}
