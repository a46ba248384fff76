//! The same objects in other hands: dist/install.yaml and config/default, read by kubectl.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::NAMESPACE;
use super::books::{kubectl, succeed};
use super::cluster::Cluster;

const INSTALL: &str = "dist/install.yaml";
const LEFT_OUT: &str = "left out: kubectl is not on the path";

/// Has the server check dist/install.yaml where it is installed.
pub(super) fn dry_run(c: &Cluster<'_>) -> Result<String> {
    if c.kubectl().is_none() {
        return Ok(LEFT_OUT.to_owned());
    }
    let words = ["apply", "--dry-run=server", "-f", INSTALL];
    let printed = succeed(kubectl(c, &words, "")?)?;
    count(&printed)
}

/// Has the server check dist/install.yaml where nothing of it is but its namespace. A dry run makes no namespace that the
/// objects after it could be in, on any cluster.
pub(super) fn dry_run_in_a_namespace(c: &Cluster<'_>) -> Result<String> {
    if c.kubectl().is_none() {
        return Ok(LEFT_OUT.to_owned());
    }
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
    if c.kubectl().is_none() {
        return Ok(LEFT_OUT.to_owned());
    }
    let built = succeed(kubectl(c, &["kustomize", "config/default"], "")?)?;
    let built = objects(c, "-", &built)?;
    let installed = objects(c, INSTALL, "")?;
    for (name, object) in &installed {
        let other = built
            .get(name)
            .with_context(|| format!("{name} is not in config/default"))?;
        ensure!(other == object, "{name} differs");
    }
    ensure!(
        built.len() == installed.len(),
        "config/default has more objects"
    );
    Ok(format!("{} objects", installed.len()))
}

/// The objects of a file as kubectl reads them, by kind and name.
fn objects(c: &Cluster<'_>, file: &str, input: &str) -> Result<BTreeMap<String, Value>> {
    let words = [
        "create",
        "--dry-run=client",
        "--validate=false",
        "-o",
        "json",
        "-f",
        file,
    ];
    let printed = succeed(kubectl(c, &words, input)?)?;
    let list = serde_json::Deserializer::from_str(&printed).into_iter::<Value>();
    let mut found = BTreeMap::new();
    for value in list {
        let value = value.context("kubectl prints no JSON")?;
        let items = match value["items"].as_array() {
            Some(items) => items.clone(),
            None => vec![value],
        };
        for item in items {
            let name = format!("{} {}", item["kind"], item["metadata"]["name"]);
            found.insert(name, item);
        }
    }
    Ok(found)
}
