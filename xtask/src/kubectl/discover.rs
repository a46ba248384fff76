//! Finds every kubectl of this machine and asks it for its version.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::lanes::Missing;
use crate::process::{self, End};

/// How long a kubectl may take to tell its version.
const PATIENCE: Duration = Duration::from_secs(30);

/// A kubectl that runs here.
#[derive(Debug, Clone)]
pub(crate) struct Kubectl {
    pub(crate) path: PathBuf,
    /// As it calls itself, such as `v1.33.1`.
    pub(crate) version: String,
    /// The 33 of `v1.33.1`.
    pub(crate) minor: u32,
}

impl Kubectl {
    /// Asks a kubectl for its version.
    pub(crate) fn ask(path: &Path) -> Result<Self> {
        let mut command = Command::new(path);
        command.args(["version", "--client", "--output=json"]);
        let output = process::run(&mut command, "", PATIENCE)?;
        if output.end != End::Exited(0) {
            bail!(
                "{} does not tell its version: {}",
                path.display(),
                output.stderr
            );
        }
        let version = serde_json::from_str::<Value>(&output.stdout)
            .ok()
            .and_then(|v| Some(v["clientVersion"]["gitVersion"].as_str()?.to_owned()))
            .with_context(|| format!("{} tells no version", path.display()))?;
        let minor = minor(&version)
            .with_context(|| format!("{} has the strange version {version}", path.display()))?;
        Ok(Self {
            path: path.to_owned(),
            version,
            minor,
        })
    }
}

fn minor(version: &str) -> Option<u32> {
    version.strip_prefix("v1.")?.split('.').next()?.parse().ok()
}

/// What looks like a kubectl on this machine.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// One of each version, oldest first.
    pub(crate) kubectls: Vec<Kubectl>,
    /// Why others cannot be used.
    pub(crate) broken: Vec<Missing>,
}

/// Every kubectl on PATH and beside the files that PATH's kubectl links to.
pub(crate) fn on_this_machine() -> Found {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found = Found::default();
    for file in candidates(std::env::split_paths(&path)) {
        match Kubectl::ask(&file) {
            Ok(kubectl) => found.kubectls.push(kubectl),
            Err(error) => found.broken.push(Missing(format!("{error:#}"))),
        }
    }
    sort(&mut found.kubectls);
    found
}

/// Oldest first, one of each version.
pub(crate) fn sort(kubectls: &mut Vec<Kubectl>) {
    kubectls.sort_by(|a, b| {
        (a.minor, &a.version, specific(&b.path)).cmp(&(b.minor, &b.version, specific(&a.path)))
    });
    kubectls.dedup_by(|a, b| a.version == b.version);
}

/// Whether the name carries a version: a bare `kubectl` may only pass calls on to one that does.
fn specific(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name != "kubectl")
}

fn candidates(folders: impl Iterator<Item = PathBuf>) -> BTreeSet<PathBuf> {
    let mut all = BTreeSet::new();
    for folder in folders {
        all.extend(kubectls_in(&folder));
        if let Ok(target) = fs::canonicalize(folder.join("kubectl"))
            && let Some(beside) = target.parent()
        {
            all.extend(kubectls_in(beside));
        }
    }
    all
}

fn kubectls_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| is_kubectl(&entry.file_name().to_string_lossy()))
        .filter_map(|entry| fs::canonicalize(entry.path()).ok())
        .collect()
}

/// `kubectl`, `kubectl.1.27`, `kubectl-1.27`, `kubectl1.27`.
fn is_kubectl(name: &str) -> bool {
    name.strip_prefix("kubectl").is_some_and(|rest| {
        let version = rest.strip_prefix(['.', '-']).unwrap_or(rest);
        version.bytes().all(|b| b.is_ascii_digit() || b == b'.')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_and_without_a_version_are_kubectls() {
        for name in ["kubectl", "kubectl.1.27", "kubectl-1.33", "kubectl1.20"] {
            assert!(is_kubectl(name), "{name}");
        }
        for name in ["kubectl-neat", "kubectx", "kubectl.exe", "kubectl-convert"] {
            assert!(!is_kubectl(name), "{name}");
        }
    }

    #[test]
    fn one_of_each_version_stays_and_the_one_named_after_it_wins() {
        let kubectl = |path: &str, version: &str| Kubectl {
            path: path.into(),
            version: version.into(),
            minor: minor(version).expect("a version of the test"),
        };
        let mut all = vec![
            kubectl("/bin/kubectl", "v1.33.1"),
            kubectl("/sdk/kubectl.1.33", "v1.33.1"),
            kubectl("/sdk/kubectl.1.9", "v1.9.0"),
        ];
        sort(&mut all);
        let paths: Vec<_> = all.iter().map(|k| k.path.to_str()).collect();
        assert_eq!(paths, [Some("/sdk/kubectl.1.9"), Some("/sdk/kubectl.1.33")]);
    }
}
