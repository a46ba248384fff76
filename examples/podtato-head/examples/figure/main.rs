//! The life of a podtato head on real processes, for `cargo xtask podtato-head`: it comes up, is upgraded part by part, goes back when a
//! part does not become ready, and its page is read through `kubectl port-forward`.

mod page;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kubewright::prelude::*;
use kubewright_example_podtato_head::{Part, PodtatoHeadApp};
use kubewright_lane::{Deployed, Plan, assert_refused};
use kubewright_process::{ImageProgram, ImageTable};
use page::{Forward, Visitors};
use tokio::time::Instant;

const SAMPLE: &str = include_str!("../../config/samples/podtato_v1alpha1_podtatoheadapp.yaml");
/// How long a step may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What `cargo xtask podtato-head` gives, in this order.
struct Arguments {
    /// The program of the parts.
    server: PathBuf,
    operator: PathBuf,
    /// The helper of the process runtime.
    helper: PathBuf,
    kubectl: PathBuf,
    /// Where the picture of the page goes.
    picture: PathBuf,
}

impl Arguments {
    fn read() -> Result<Self> {
        let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
        let mut next = |what: &'static str| arguments.next().context(what);
        Ok(Self {
            server: next("the program of the parts is missing")?,
            operator: next("the operator is missing")?,
            helper: next("the helper is missing")?,
            kubectl: next("kubectl is missing")?,
            picture: next("the file for the picture is missing")?,
        })
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::read()?;
    let server = arguments.server.display().to_string();
    // An image that is not in the table cannot be pulled: version 4 is one.
    let table = ["1", "2", "3"].into_iter();
    let table = table.fold(ImageTable::default(), |table, version| {
        let image = format!("podtato-head:{version}");
        table.image(image.as_str(), ImageProgram::new(&server))
    });
    let folder = tempfile::tempdir()?;
    let plan = Plan {
        operator: &arguments.operator,
        role: include_str!("../../rbac.yaml"),
        helper: &arguments.helper,
        images: table,
        folder: folder.path(),
    };
    let deployed = Deployed::start(plan).await?;
    let lived = Box::pin(live(&deployed, &arguments)).await;
    if lived.is_err() {
        deployed.save_logs(folder.path()).await;
        println!("logs are in {}", folder.keep().display());
    }
    lived
}

async fn live(deployed: &Deployed, arguments: &Arguments) -> Result<()> {
    let kubeconfig = tempfile::NamedTempFile::new()?;
    let endpoint = deployed.cluster.listen("127.0.0.1:0".parse()?).await?;
    endpoint.write_kubeconfig(kubeconfig.path())?;

    let began = Instant::now();
    let mut sample: PodtatoHeadApp = serde_saphyr::from_str(SAMPLE)?;
    sample.spec.progress_deadline_seconds = Some(10);
    let mut nameless = sample.clone();
    nameless.metadata.name = Some("1-podtato".to_owned());
    let refused = deployed.client.create(&nameless).await;
    assert_refused(refused, "must begin with a letter")?;
    deployed.client.create(&sample).await?;
    until(deployed, "Complete").await?;
    println!("6 parts ready after {:.1?}", began.elapsed());

    let forward = Forward::start(&arguments.kubectl, kubeconfig.path()).await?;
    ensure!(forward.versions().await? == ["1"; 6], "the first page");
    drop(forward);
    let visitors = Visitors::of(deployed).await?;
    let order = upgrade(deployed).await?;
    println!("upgraded to 2 in the order {}", order.join(", "));
    let broken = roll_back(deployed).await?;
    println!("{broken}");
    let (answered, failed) = visitors.leave();
    println!("{answered} pages through the Service meanwhile, {failed} of them failed");
    ensure!(answered > 0 && failed == 0, "{failed} visitors saw no page");

    let forward = Forward::start(&arguments.kubectl, kubeconfig.path()).await?;
    ensure!(forward.versions().await? == ["2"; 6], "the last page");
    forward.picture(&arguments.picture).await?;
    println!("picture of the page in {}", arguments.picture.display());
    drop(forward);

    let app = app(deployed).await?;
    deployed.client.delete(&app, Delete::background()).await?;
    until_gone(deployed).await?;
    println!("all pods are gone; {:.1?} in all", began.elapsed());
    deployed.assert_exact_role()
}

async fn until_gone(deployed: &Deployed) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    loop {
        let here = Query::all().namespace("default");
        let pods = deployed.client.live().list::<Pod>(here).await?;
        if pods.is_empty() {
            return Ok(());
        }
        ensure!(Instant::now() < end, "pods stay; last seen: {pods:#?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn key() -> Key {
    Key::new("default", "podtato-head")
}

async fn app(deployed: &Deployed) -> Result<PodtatoHeadApp> {
    let app = deployed.client.live().get(&key()).await?;
    app.context("the app is there")
}

async fn change(deployed: &Deployed, change: impl FnOnce(&mut PodtatoHeadApp)) -> Result<()> {
    let app = app(deployed).await?;
    deployed.client.modify(&app, change).await?;
    Ok(())
}

/// Waits until the present generation has come to this reason.
async fn until(deployed: &Deployed, wanted: &str) -> Result<PodtatoHeadApp> {
    let is_there = |app: &PodtatoHeadApp| {
        let Some(status) = &app.status else {
            return false;
        };
        let progressing = conditions::find(&status.conditions, "Progressing");
        status.observed_generation == app.metadata.generation
            && progressing.is_some_and(|it| it.reason == wanted)
    };
    deployed.until(&key(), PATIENCE, is_there).await
}

/// The parts that run a version and are ready.
fn with_version(app: &PodtatoHeadApp, version: &str) -> Vec<Part> {
    let parts = app.status.iter().flat_map(|status| &status.parts);
    let there = parts.filter(|part| part.version == version && part.ready);
    there.map(|part| part.name).collect()
}

/// Upgrades, and gives the parts in the order in which they were ready with the new version.
async fn upgrade(deployed: &Deployed) -> Result<Vec<String>> {
    change(deployed, |app| app.spec.version = "2".to_owned()).await?;
    let mut order: Vec<Part> = Vec::new();
    let end = Instant::now() + PATIENCE;
    while order.len() < Part::ALL.len() {
        let app = app(deployed).await?;
        let fresh = with_version(&app, "2");
        let fresh: Vec<Part> = fresh.into_iter().filter(|it| !order.contains(it)).collect();
        ensure!(fresh.len() <= 1, "{fresh:?} were upgraded at once");
        order.extend(fresh);
        ensure!(Instant::now() < end, "not upgraded; last seen: {order:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    until(deployed, "Complete").await?;
    ensure!(order == Part::ALL, "the order was {order:?}");
    Ok(order.iter().map(Part::to_string).collect())
}

/// Asks for a version of which one part cannot be pulled, and waits until all parts are what they were.
async fn roll_back(deployed: &Deployed) -> Result<String> {
    let began = Instant::now();
    change(deployed, |app| {
        app.spec.version = "3".to_owned();
        let broken = kubewright_example_podtato_head::PartSpec {
            name: Part::RightArm,
            version: Some("4".to_owned()),
            replicas: None,
        };
        app.spec.parts = vec![broken];
    })
    .await?;
    let app = until(deployed, "RolledBack").await?;
    let status = app.status.clone().unwrap_or_default();
    let rollback = status.rollback.context("the rollback is on record")?;
    ensure!(rollback.part == Part::RightArm, "{rollback:?}");
    ensure!(with_version(&app, "2").len() == Part::ALL.len(), "{app:?}");
    Ok(format!(
        "the right arm of 3 cannot be pulled: all parts are back at 2 after {:.1?}",
        began.elapsed()
    ))
}
