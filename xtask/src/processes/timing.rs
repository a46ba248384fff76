//! How long it takes until pods are ready.

use std::time::Duration;

use anyhow::{Result, bail};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::cluster::{Cluster, Mode, PATIENCE};
use super::report::Report;
use super::{Arguments, Tools};
use crate::process::Running;

/// What is aimed at for one pod.
const AIM: Duration = Duration::from_millis(100);

pub(crate) async fn run(
    tools: &Tools,
    mode: Mode,
    arguments: &Arguments,
    report: &mut Report,
) -> Result<()> {
    let mut cluster = Cluster::start(tools, mode, 3)?;
    report.step("apply to Ready, one pod", one(&cluster, arguments.times));
    let what = format!("apply to Ready, {} pods at once", arguments.pods);
    report.step(&what, many(&cluster, arguments.pods).await);
    let processes = cluster.processes()?;
    cluster.signal("-INT")?;
    report.step(
        "Ctrl-C with all of them",
        super::tree::until_gone(&processes).await,
    );
    Ok(())
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "timed"}},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [
            {"name": "main", "image": "sh", "args": ["-c", "exec sleep 1000"]},
        ]},
    })
}

/// Watches pods, applies one and takes the time between the first line about it and the one that says that it is ready.
fn one(c: &Cluster<'_>, times: usize) -> Result<String> {
    let (mut within, mut whole) = (Vec::new(), Vec::new());
    for number in 0..times {
        let name = format!("timed-{number}");
        let mut watch = Running::start(
            &mut c.command(&["get", "pods", "--watch-only", "--no-headers"]),
            "",
        )?;
        until_watched(c, &mut watch, &format!("marker-{number}"))?;
        let begun = Instant::now();
        let mut apply = Running::start(
            &mut c.command(&["apply", "-f", "-"]),
            &pod(&name).to_string(),
        )?;
        watch.read_until(PATIENCE, |output| output.stdout.contains(&name));
        let seen = Instant::now();
        let ready = |line: &str| line.starts_with(&name) && line.contains("1/1");
        if !watch.read_until(PATIENCE, |output| output.stdout.lines().any(ready)) {
            bail!("{name} is not ready");
        }
        within.push(seen.elapsed());
        whole.push(begun.elapsed());
        apply.read_until(PATIENCE, |_| false);
    }
    c.kubectl(&["delete", "pods", "--all", "--grace-period=0", "--force"])?;
    let (within, whole) = (median(within), median(whole));
    let aim = if within < AIM { "met" } else { "missed" };
    Ok(format!(
        "median of {times}: {} ms after the server has it (aim {} ms: {aim}), {} ms with kubectl's own start",
        within.as_millis(),
        AIM.as_millis(),
        whole.as_millis()
    ))
}

/// Changes a pod until a watch sees it. One change is not enough: a watch that begins after it does not show it.
fn until_watched(c: &Cluster<'_>, watch: &mut Running, marker: &str) -> Result<()> {
    c.apply(&pod(marker))?;
    for attempt in 0..PATIENCE.as_secs() {
        if watch.read_until(Duration::from_secs(1), |output| {
            output.stdout.contains(marker)
        }) {
            return Ok(());
        }
        let label = format!("attempt={attempt}");
        c.kubectl(&["label", "pod", marker, &label, "--overwrite"])?;
    }
    bail!("the watch does not begin")
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

async fn many(c: &Cluster<'_>, count: usize) -> Result<String> {
    let pods: Vec<Value> = (0..count)
        .map(|number| pod(&format!("many-{number}")))
        .collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": pods});
    let begun = Instant::now();
    c.kubectl_with(&["create", "-f", "-"], &list.to_string())?;
    let created = begun.elapsed();
    c.until("all pods are ready", || {
        let all = c.get(&["pods", "-l", "app=timed"])?;
        let items = all["items"].as_array().cloned().unwrap_or_default();
        let is_ready = |pod: &&Value| {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            name.starts_with("many-") && pod["status"]["containerStatuses"][0]["ready"] == true
        };
        let ready = items.iter().filter(is_ready).count();
        Ok((ready == count).then_some(()))
    })
    .await?;
    let programs = super::tree::below(c.pid()?, |name| name == "sleep").len();
    Ok(format!(
        "{:.1} s, of which kubectl took {:.1} s; {programs} programs run",
        begun.elapsed().as_secs_f64(),
        created.as_secs_f64()
    ))
}
