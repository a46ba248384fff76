//! The replicas of the manager: what they run, who leads, and what becomes of requests when they are replaced.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::books::{self, Load};
use super::cluster::Cluster;
use super::project::{Project, REFUSALS};
use super::{IMAGES, NAMESPACE};
use crate::process::Output;
use crate::processes::cluster::kill;

/// How long requests go on before and after what is done under load.
const MARGIN: Duration = Duration::from_secs(2);

/// Checks that each replica is a process of its own, of the image with the digest that was built.
pub(super) async fn run_image(c: &Cluster<'_>, project: &Project, image: &str) -> Result<String> {
    let image = project.by_digest(image)?;
    for pod in c.pods().await? {
        let status = &pod["status"]["containerStatuses"][0];
        ensure!(
            status["image"] == *image,
            "a replica runs {}",
            status["image"]
        );
        ensure!(status["restartCount"] == 0, "restarted: {status}");
    }
    let count = c.processes()?.len();
    ensure!(count == 2, "{count} processes are managers, not 2");
    Ok(format!("2 processes of {image}"))
}

/// Who holds the lease: the name of the pod, and what tells its processes apart.
async fn leader(c: &Cluster<'_>) -> Result<Option<(String, String)>> {
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases");
    let leases = c.get(&path).await?;
    let holder = leases["items"][0]["spec"]["holderIdentity"].as_str();
    let parts = holder.and_then(|holder| holder.rsplit_once('_'));
    Ok(parts.map(|(pod, process)| (pod.to_owned(), process.to_owned())))
}

/// The process of a pod, by the host name in its environment.
fn process_of(c: &Cluster<'_>, pod: &str) -> Result<i32> {
    let wanted = format!("HOSTNAME={pod}");
    let is_of_pod = |pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|it| it == wanted.as_bytes())
    };
    let mut pids = c.processes()?.into_iter().map(|(pid, _)| pid);
    pids.find(is_of_pod)
        .with_context(|| format!("no process is the pod {pod}"))
}

/// Kills the process that leads. Another one leads when the lease has run out: that of the other replica, or the one that was started
/// in the place of the killed one, whichever asks first.
pub(super) async fn leader_is_killed(c: &Cluster<'_>) -> Result<String> {
    let (old, process) = leader(c).await?.context("nobody leads")?;
    let began = Instant::now();
    kill("-KILL", &[process_of(c, &old)?])?;
    let new = c
        .until("another process leads", async || match leader(c).await? {
            Some((pod, other)) if other != process => Ok(pod),
            other => bail!("{other:?} leads"),
        })
        .await?;
    let took = began.elapsed().as_secs_f64();
    c.rolled_out().await?;
    let restarted = c.pods().await?.iter().any(|pod| {
        let is_old = pod["metadata"]["name"] == *old;
        is_old && pod["status"]["containerStatuses"][0]["restartCount"] == 1
    });
    ensure!(restarted, "{old} was not restarted");
    books::both_versions(c).await?;
    Ok(format!(
        "{new} leads after {took:.1} s; {old} was restarted once"
    ))
}

/// Deploys the second image while books are written. No request may fail.
pub(super) async fn upgraded(c: &Cluster<'_>, project: &Project) -> Result<String> {
    let load = Load::start(c);
    sleep(MARGIN).await;
    let line = format!(
        "deploy --image {} --replicas 2",
        project.by_digest(IMAGES[1])?
    );
    let deployed: Result<Output> = c.blocking(|project| project.call(&line)).await;
    let rolled = c.rolled_out().await;
    sleep(MARGIN).await;
    let outcome = load.end().await;
    deployed?;
    rolled?;
    run_image(c, project, IMAGES[1]).await?;
    books::refused(c, REFUSALS[1]).await?;
    outcome
}

/// The arguments of the manager.
pub(super) fn arguments(deployment: &Value) -> Vec<String> {
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let arguments = container["args"].as_array().into_iter().flatten();
    arguments
        .filter_map(|it| it.as_str().map(str::to_owned))
        .collect()
}
