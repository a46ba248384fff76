//! What is left of pods when their cluster is killed, and when their node goes.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::Tools;
use super::cluster::{Cluster, Mode, kill};
use super::report::Report;
use super::tree;

pub(crate) async fn run(tools: &Tools, mode: Mode, report: &mut Report) -> Result<()> {
    let mut cluster = Cluster::start(tools, mode, 1)?;
    sleepers(&cluster).await?;
    report.step(
        "SIGKILL and restart",
        killed(&mut cluster, Victims::Cluster).await,
    );
    sleepers(&cluster).await?;
    let what = "SIGKILL, also of helpers, and restart";
    report.step(what, killed(&mut cluster, Victims::Helpers).await);
    sleepers(&cluster).await?;
    report.step("node removal", node_removed(&cluster).await);
    cluster.signal("-INT")?;
    Ok(())
}

/// Who is killed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Victims {
    Cluster,
    /// The cluster, and the helpers that would clean up after it.
    Helpers,
}

/// A Deployment of programs that have children of their own, some of which have detached themselves.
async fn sleepers(c: &Cluster<'_>) -> Result<()> {
    let script = "sleep 9871 & setsid sleep 9872 & wait";
    let labels = json!({"app": "sleepers"});
    c.apply(&json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "sleepers"},
        "spec": {"replicas": 5, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "main", "image": "sh", "args": ["-c", script]}]},
        }},
    }))?;
    c.until("all programs run", || {
        let found = tree::below(c.pid()?, |name| name == "sleep");
        Ok((found.len() == 10).then_some(()))
    })
    .await
}

async fn killed(c: &mut Cluster<'_>, victims: Victims) -> Result<String> {
    let processes = c.processes()?;
    if victims == Victims::Helpers {
        let helpers = tree::below(c.pid()?, |name| name.starts_with("kw-"));
        let pids: Vec<i32> = helpers
            .iter()
            .map(|(pid, _)| *pid)
            .chain([c.pid()?])
            .collect();
        kill("-KILL", &pids)?;
    }
    c.signal("-KILL")?;
    let left = tree::still_there(&processes).len();
    c.up()?;
    let gone = tree::until_gone(&processes).await?;
    Ok(format!("{gone} ({left} were left before the restart)"))
}

async fn node_removed(c: &Cluster<'_>) -> Result<String> {
    let processes = c.processes()?;
    ensure!(!processes.is_empty(), "nothing runs");
    let nodes = c.get(&["nodes"])?;
    let name = nodes["items"][0]["metadata"]["name"]
        .as_str()
        .context("a node")?;
    c.kubectl(&["delete", "node", name])?;
    tree::until_gone(&processes).await
}
