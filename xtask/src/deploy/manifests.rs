//! The same objects in other hands: dist/install.yaml and config/default, read by kubectl.

use std::fs;

use anyhow::{Context as _, Result, ensure};

use super::NAMESPACE;
use super::books::{kubectl, succeed};
use super::cluster::Cluster;
use crate::objects;

const INSTALL: &str = "dist/install.yaml";

/// Has the server check dist/install.yaml where it is installed.
pub(super) fn dry_run(c: &Cluster<'_>) -> Result<String> {
    let words = ["apply", "--dry-run=server", "-f", INSTALL];
    let printed = succeed(kubectl(c, &words, "")?)?;
    count(&printed)
}

/// Has the server check dist/install.yaml where nothing of it is but its namespace. A dry run makes no namespace that the
/// objects after it could be in, on any cluster.
pub(super) fn dry_run_in_a_namespace(c: &Cluster<'_>) -> Result<String> {
    succeed(kubectl(c, &["create", "namespace", NAMESPACE], "")?)?;
    let checked = dry_run(c);
    succeed(kubectl(c, &["delete", "namespace", NAMESPACE], "")?)?;
    checked
}

fn count(printed: &str) -> Result<String> {
    let lines = printed.lines().count();
    let checked = printed
        .lines()
        .filter(|line| line.ends_with("(server dry run)"));
    ensure!(checked.count() == lines && lines > 10, "{printed}");
    Ok(format!("{lines} objects"))
}

/// Compares what kubectl makes of config/default with dist/install.yaml, object by object.
pub(super) fn kustomize(c: &Cluster<'_>) -> Result<String> {
    let built = succeed(kubectl(c, &["kustomize", "config/default"], "")?)?;
    let installed = fs::read_to_string(c.project.folder.join(INSTALL)).context(INSTALL)?;
    let kubeconfig = c.project.kubeconfig();
    let installed = objects::read(&kubeconfig, &installed)?;
    let built = objects::read(&kubeconfig, &built)?;
    let count = objects::compare(&installed, &built)?;
    Ok(format!("{count} objects"))
}
