//! An image that the project's own command has made runs with its own files, as its own user.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::Tools;
use super::cluster::{Cluster, Mode};
use super::report::Report;
use crate::lanes;
use crate::process::{End, Output};
use crate::workspace;

/// What the image is called.
const NAME: &str = "lane.example.com/kubectl:1";

pub(crate) async fn run(tools: &Tools, mode: Mode, report: &mut Report) -> Result<()> {
    let mut cluster = Cluster::start(tools, mode, 1)?;
    report.step("image build, load, list", loaded(&cluster));
    report.step("pod from the image, as its account", ran(&cluster).await);
    report.step("image rm", removed(&cluster).await);
    cluster.signal("-INT")
}

fn printed(output: Output, what: &str) -> Result<String> {
    ensure!(
        output.end == End::Exited(0),
        "{what}: {}",
        output.stderr.trim()
    );
    Ok(output.stdout)
}

/// Makes an image of a static program, kubectl, in one of the repository's own projects.
fn loaded(c: &Cluster<'_>) -> Result<String> {
    let archive = c.folder().join("image.tar");
    let mut build = std::process::Command::new(&c.tools().kubewright);
    build
        .current_dir(workspace::root().join("testdata/projects/cluster-scoped"))
        .args(["image", "build", "--image", NAME, "--program"])
        .arg(&c.tools().kubectl)
        .arg("--tar")
        .arg(&archive);
    match lanes::tool(&mut build, "kubewright image build")? {
        Ok(_) => {}
        Err(lanes::Missing(why)) => anyhow::bail!("{why}"),
    }
    let archive = archive.to_str().context("a path that is text")?;
    let flags = ["--image-store", "images"];
    let load = c.kubewright(&[&["image", "load", archive][..], &flags].concat())?;
    let text = printed(load, "image load")?;
    let list = c.kubewright(&[&["image", "list"][..], &flags].concat())?;
    let list = printed(list, "image list")?;
    ensure!(list.starts_with(NAME), "{list}");
    Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

async fn ran(c: &Cluster<'_>) -> Result<String> {
    let role = [
        "rolebinding",
        "view",
        "--clusterrole=view",
        "--serviceaccount=default:default",
    ];
    c.kubectl(&[&["create"][..], &role].concat())?;
    c.apply(&json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "image"},
        "spec": {"restartPolicy": "Never", "containers": [{
            "name": "main", "image": NAME, "args": ["get", "configmap", "kube-root-ca.crt", "-o", "name"],
            "env": [{"name": "HOME", "value": "/tmp"}],
        }]},
    }))?;
    let phase = c
        .until("the pod has ended", || {
            let pod = c.get(&["pod", "image"])?;
            let phase = pod["status"]["phase"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            Ok(["Succeeded", "Failed"]
                .contains(&phase.as_str())
                .then_some(phase))
        })
        .await?;
    let log = c.kubectl(&["logs", "image"])?;
    let pod = c.get(&["pod", "image"])?;
    let end = &pod["status"]["containerStatuses"][0]["state"];
    if c.mode().name() == "root-plain" {
        let refused = end.to_string().contains("cannot read the image");
        ensure!(refused, "{phase}: {end} {log}");
        return Ok("refused, as documented: its user is not root".to_owned());
    }
    ensure!(
        log.trim() == "configmap/kube-root-ca.crt",
        "{phase}: {end} {log}"
    );
    Ok(log.trim().to_owned())
}

async fn removed(c: &Cluster<'_>) -> Result<String> {
    let gone = c.kubewright(&["image", "rm", NAME, "--image-store", "images"])?;
    printed(gone, "image rm")?;
    c.apply(&json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "late"},
        "spec": {"containers": [{"name": "main", "image": NAME}]},
    }))?;
    c.until("it cannot be pulled", || {
        let pod = c.get(&["pod", "late"])?;
        let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"];
        Ok((waiting == "ErrImagePull" || waiting == "ImagePullBackOff").then_some(()))
    })
    .await?;
    Ok("ErrImagePull from then on".to_owned())
}
