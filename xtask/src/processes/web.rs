//! A web server as a Deployment: scaled, exposed, updated under load, looked into, hurt.

use std::fs;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use super::Tools;
use super::cluster::{Cluster, Mode, PATIENCE};
use super::load::{Load, get};
use super::report::Report;
use crate::process::Running;

/// Where containers write that have a file system of their own, and others as well.
const FILE: &str = "/tmp/kubewright-lane";

pub(crate) async fn run(tools: &Tools, mode: Mode, report: &mut Report) -> Result<()> {
    let mut cluster = Cluster::start(tools, mode, 1)?;
    let c = &cluster;
    report.step("create deployment, scale to 5", scaled(c).await);
    report.step("expose, curl by ClusterIP and NodePort", exposed(c).await);
    report.step("rolling update under load", updated(c).await);
    report.step("logs", logs(c));
    report.step("exec", exec(c));
    report.step("run -i with a file as its input", piped(c));
    report.step("cp", copied(c));
    report.step("port-forward", forwarded(c));
    report.step("top", top(c).await);
    report.step("names of Services in pods", names(c));
    report.step("service account", account(c).await);
    report.step("liveness: killed and restarted", liveness(c).await);
    report.step("out of memory", out_of_memory(c).await);
    report.step("ConfigMap change seen by the program", followed(c).await);
    let processes = cluster.processes()?;
    cluster.signal("-INT")?;
    report.step("Ctrl-C", super::tree::until_gone(&processes).await);
    Ok(())
}

async fn ready(c: &Cluster<'_>, name: &str, count: u64) -> Result<()> {
    c.until(&format!("{name} has {count} ready pods"), || {
        let status = c.get(&["deployment", name])?["status"].clone();
        let all = ["readyReplicas", "updatedReplicas", "replicas"];
        Ok(all
            .iter()
            .all(|field| status[*field] == count)
            .then_some(()))
    })
    .await
}

/// The first pod of the Deployment.
fn pod(c: &Cluster<'_>) -> Result<String> {
    let pods = c.get(&[
        "pods",
        "-l",
        "app=web",
        "--field-selector=status.phase=Running",
    ])?;
    let items = pods["items"].as_array().cloned().unwrap_or_default();
    let mut living = items
        .iter()
        .filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
    let first = living.next().context("no pod runs")?;
    Ok(first["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned())
}

async fn scaled(c: &Cluster<'_>) -> Result<String> {
    c.kubectl(&["create", "deployment", "web", "--image=web:1"])?;
    ready(c, "web", 1).await?;
    c.kubectl(&["scale", "deployment", "web", "--replicas=5"])?;
    ready(c, "web", 5).await?;
    Ok("5 of 5 ready".to_owned())
}

async fn exposed(c: &Cluster<'_>) -> Result<String> {
    let flags = ["--port=8080", "--target-port=8080", "--type=NodePort"];
    c.kubectl(&[&["expose", "deployment", "web"][..], &flags].concat())?;
    let (cluster, node) = c.service("web")?;
    for address in [cluster, node] {
        c.until("the Service answers", || get(address, PAGE).map(Some))
            .await?;
    }
    Ok(format!("{cluster} and {node}"))
}

/// A file that every Debian machine has below the directory that is served.
const PAGE: &str = "/common-licenses/BSD";

async fn updated(c: &Cluster<'_>) -> Result<String> {
    let probe = json!({"httpGet": {"path": PAGE, "port": 8080}, "periodSeconds": 1});
    let patch = json!({"spec": {
        "strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 2}},
        "template": {"spec": {"containers": [{
            "name": "web", "readinessProbe": probe, "lifecycle": {"preStop": {"sleep": {"seconds": 1}}},
        }]}},
    }});
    c.kubectl(&["patch", "deployment", "web", "-p", &patch.to_string()])?;
    c.kubectl(&["rollout", "status", "deployment/web", "--timeout=80s"])?;
    let (address, _) = c.service("web")?;
    let load = Load::start(address, PAGE);
    let rolled = c
        .kubectl(&["set", "image", "deployment/web", "web=web:2"])
        .and_then(|_| c.kubectl(&["rollout", "status", "deployment/web", "--timeout=80s"]));
    // The last of the old pods are on their way out.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let (good, bad) = load.end();
    rolled?;
    ensure!(
        bad.is_empty(),
        "{} of {} requests failed: {}",
        bad.len(),
        good + bad.len(),
        bad[0]
    );
    ensure!(good > 100, "only {good} requests were made");
    Ok(format!("{good} requests, 0 failed"))
}

fn logs(c: &Cluster<'_>) -> Result<String> {
    let text = c.kubectl(&["logs", "-l", "app=web", "--tail=-1"])?;
    let lines = text
        .lines()
        .filter(|line| line.contains("response:200"))
        .count();
    ensure!(lines > 0, "no answer is in the logs: {text}");
    Ok(format!("{lines} lines of answers"))
}

fn exec(c: &Cluster<'_>) -> Result<String> {
    let name = pod(c)?;
    let text = c.kubectl(&[
        "exec",
        &name,
        "--",
        "sh",
        "-c",
        "echo $POD_IP $(hostname) $(ps -e | wc -l)",
    ])?;
    let words: Vec<&str> = text.split_whitespace().collect();
    let [address, host, _] = words[..] else {
        bail!("{text:?}");
    };
    let found = c.get(&["pod", &name])?;
    ensure!(
        found["status"]["podIP"] == address,
        "{address} is not the pod's address"
    );
    ensure!(
        !c.mode().mounts() || host == name,
        "{host} is not the pod's name"
    );
    let failed = c.kubectl(&["exec", &name, "--", "sh", "-c", "exit 7"]);
    let code = failed
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    ensure!(code.contains("exit code 7"), "{code:?}");
    Ok(text.trim().to_owned())
}

/// The program reads to the end of its input, which `kubectl run -i` wants to be the end of its own.
fn piped(c: &Cluster<'_>) -> Result<String> {
    let run = ["run", "piped", "--image=sh", "--restart=Never", "--quiet"];
    let how = ["-i", "--rm", "--", "-c", "wc -c"];
    let content = "line by line\n".repeat(1_000);
    let text = c.kubectl_with(&[&run[..], &how].concat(), &content)?;
    let count = content.len().to_string();
    let counted = text.lines().any(|line| line.trim() == count);
    ensure!(counted, "{text:?} of {count} bytes");
    Ok(format!("{count} bytes read"))
}

fn copied(c: &Cluster<'_>) -> Result<String> {
    let name = pod(c)?;
    let content = "to and fro\n".repeat(10_000);
    fs::write(c.folder().join("sent"), &content)?;
    let there = format!("{name}:{FILE}-{}", c.mode().name());
    c.kubectl(&["cp", "sent", &there])?;
    c.kubectl(&["cp", &there, "returned"])?;
    let back = fs::read_to_string(c.folder().join("returned"))?;
    ensure!(
        back == content,
        "{} bytes came back of {}",
        back.len(),
        content.len()
    );
    Ok(format!("{} bytes there and back", content.len()))
}

fn forwarded(c: &Cluster<'_>) -> Result<String> {
    let mut command = c.command(&["port-forward", "deployment/web", ":8080"]);
    let mut running = Running::start(&mut command, "")?;
    let begun = running.read_until(PATIENCE, |output| {
        output.stdout.contains("Forwarding from 127")
    });
    ensure!(begun, "it does not begin");
    let text = running.output().stdout.clone();
    let address = text
        .split("Forwarding from ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    let address: SocketAddr = address.context("no address")?.parse()?;
    let body = get(address, PAGE)?;
    Ok(format!("{} bytes through {address}", body.len()))
}

async fn top(c: &Cluster<'_>) -> Result<String> {
    c.until("every pod has usage", || {
        let text = c.kubectl(&["top", "pod", "-l", "app=web", "--no-headers"])?;
        let rows: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        let counted = rows.len() == 5 && rows.iter().all(|row| row.len() == 3);
        let first = rows.first().map(|row| row.join(" ")).unwrap_or_default();
        Ok(counted.then_some(first))
    })
    .await
}

fn names(c: &Cluster<'_>) -> Result<String> {
    let name = pod(c)?;
    if !c.mode().mounts() {
        let host = c.kubectl(&["exec", &name, "--", "printenv", "KUBERNETES_SERVICE_HOST"])?;
        return Ok(format!("by variables: {}", host.trim()));
    }
    let found = c.kubectl(&[
        "exec",
        &name,
        "--",
        "getent",
        "hosts",
        "web.default.svc.cluster.local",
    ])?;
    let (cluster, _) = c.service("web")?;
    ensure!(
        found.starts_with(&cluster.ip().to_string()),
        "{found:?} is not {cluster}"
    );
    Ok(found.trim().to_owned())
}

async fn account(c: &Cluster<'_>) -> Result<String> {
    c.kubectl(&[
        "create",
        "rolebinding",
        "view",
        "--clusterrole=view",
        "--serviceaccount=default:default",
    ])?;
    let kubectl = c.tools().kubectl.display().to_string();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "account"},
        "spec": {"restartPolicy": "Never", "containers": [{
            "name": "main", "image": "sh", "command": [kubectl],
            "args": ["get", "deployment", "web", "-o", "name"],
            "env": [{"name": "HOME", "value": "/tmp"}],
        }]},
    });
    c.apply(&pod)?;
    let phase = ended(c, "account").await?;
    let log = c.kubectl(&["logs", "account"])?;
    ensure!(log.trim() == "deployment.apps/web", "{phase}: {log}");
    Ok("kubectl in the pod, as its account".to_owned())
}

/// Waits until a pod has ended, and returns its phase.
async fn ended(c: &Cluster<'_>, name: &str) -> Result<String> {
    c.until(&format!("{name} has ended"), || {
        let pod = c.get(&["pod", name])?;
        let phase = pod["status"]["phase"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        Ok(["Succeeded", "Failed"]
            .contains(&phase.as_str())
            .then_some(phase))
    })
    .await
}

async fn liveness(c: &Cluster<'_>) -> Result<String> {
    let file = format!("{FILE}-alive-{}", c.mode().name());
    let probe = json!({"exec": {"command": ["test", "-e", file]}, "initialDelaySeconds": 2, "periodSeconds": 1, "failureThreshold": 1});
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "alive"},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [{
            "name": "main", "image": "sh", "args": ["-c", format!("touch {file}; exec sleep 1000")],
            "livenessProbe": probe,
        }]},
    });
    c.apply(&pod)?;
    c.kubectl(&[
        "wait",
        "pod/alive",
        "--for=condition=Ready",
        "--timeout=60s",
    ])?;
    c.kubectl(&["exec", "alive", "--", "rm", &file])?;
    let again = |pod: &Value| {
        let status = &pod["status"]["containerStatuses"][0];
        (status["restartCount"] == 1 && status["ready"] == true)
            .then(|| status["lastState"]["terminated"]["exitCode"].clone())
    };
    let code = c
        .until("it was restarted", || Ok(again(&c.get(&["pod", "alive"])?)))
        .await?;
    let events = c.kubectl(&[
        "get",
        "events",
        "--field-selector=involvedObject.name=alive,reason=Unhealthy",
    ])?;
    ensure!(events.contains("Liveness probe failed"), "{events}");
    c.kubectl(&["delete", "pod", "alive", "--grace-period=0", "--force"])?;
    Ok(format!("1 restart, the first run ended with {code}"))
}

async fn out_of_memory(c: &Cluster<'_>) -> Result<String> {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "greedy"},
        "spec": {"restartPolicy": "Never", "containers": [{
            "name": "main", "image": "sh", "args": ["-c", "exec tail /dev/zero"],
            "resources": {"limits": {"memory": "32Mi"}},
        }]},
    });
    c.apply(&pod)?;
    ended(c, "greedy").await?;
    let pod = c.get(&["pod", "greedy"])?;
    let end = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
    ensure!(
        end["reason"] == "OOMKilled" && end["exitCode"] == 137,
        "{end}"
    );
    Ok("OOMKilled, 137".to_owned())
}

async fn followed(c: &Cluster<'_>) -> Result<String> {
    c.kubectl(&[
        "create",
        "configmap",
        "page",
        "--from-literal=index.html=first",
    ])?;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "page"},
        "spec": {
            "volumes": [{"name": "page", "configMap": {"name": "page"}}],
            "containers": [{"name": "main", "image": "page:1",
                "volumeMounts": [{"name": "page", "mountPath": "/srv/page"}]}],
        },
    });
    c.apply(&pod)?;
    c.kubectl(&["wait", "pod/page", "--for=condition=Ready", "--timeout=60s"])?;
    let found = c.get(&["pod", "page"])?;
    let address = found["status"]["podIP"].as_str().unwrap_or_default();
    let address: SocketAddr = format!("{address}:8080").parse()?;
    let shows =
        |text: &'static str| move || Ok((get(address, "/index.html")? == text).then_some(()));
    c.until("the first page is served", shows("first")).await?;
    let changed = json!({"data": {"index.html": "second"}}).to_string();
    c.kubectl(&["patch", "configmap", "page", "-p", &changed])?;
    let begun = tokio::time::Instant::now();
    c.until("the second page is served", shows("second"))
        .await?;
    Ok(format!("after {} ms", begun.elapsed().as_millis()))
}
