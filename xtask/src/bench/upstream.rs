//! A kube-apiserver, built from its Go module, and an etcd: what the server is measured beside.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::lanes::{self, Missing};
use crate::workspace;

/// Of the version whose answers the golden replay has recorded.
const VERSION: &str = "1.35.8";
const MAIN: &str = r#"package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	os.Exit(cli.Run(app.NewAPIServerCommand()))
}
"#;

/// A PATH on which both programs are found.
///
/// # Errors
/// When one of them is missing and cannot be built or installed.
pub(super) fn path() -> Result<OsString> {
    let mut folders: Vec<PathBuf> =
        env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect();
    if !lanes::is_there("kube-apiserver") {
        folders.push(kube_apiserver()?);
    }
    if !lanes::is_there("etcd") {
        match lanes::install_etcd()? {
            Ok(folder) => folders.push(folder),
            Err(Missing(why)) => bail!("etcd is missing: {why}"),
        }
    }
    Ok(env::join_paths(folders)?)
}

/// Builds kube-apiserver, unless it was built before, and returns its folder.
fn kube_apiserver() -> Result<PathBuf> {
    let folder = workspace::target().join("kube-apiserver").join(VERSION);
    if folder.join("kube-apiserver").exists() {
        return Ok(folder);
    }
    println!("building kube-apiserver {VERSION}, which takes some minutes");
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    fs::write(folder.join("main.go"), MAIN)?;
    fs::write(folder.join("go.mod"), modules(&staged(&folder)?))?;
    let set = |name: &str, value: &str| format!("-X k8s.io/component-base/version.{name}={value}");
    let flags = format!(
        "-s -w {} {} {}",
        set("gitVersion", &format!("v{VERSION}")),
        set("gitMajor", "1"),
        set("gitMinor", VERSION.split('.').nth(1).unwrap_or_default()),
    );
    // Not `go mod tidy`: it fetches what the tests of all dependencies need as well, for many minutes.
    let status = Command::new("go")
        .args(["build", "-mod=mod", "-ldflags", &flags])
        .args(["-o", "kube-apiserver", "."])
        .current_dir(&folder)
        .status()?;
    if !status.success() {
        bail!("go build failed in {}", folder.display());
    }
    Ok(folder)
}

/// The modules that Kubernetes keeps in its own repository, and publishes under versions of their own. Its go.mod names them
/// without a version, so whoever depends on it has to say which.
fn staged(folder: &Path) -> Result<BTreeSet<String>> {
    let module = format!("k8s.io/kubernetes@v{VERSION}");
    let output = Command::new("go")
        .args(["mod", "download", "-json", &module])
        .current_dir(folder)
        .output()
        .context("running go, which builds kube-apiserver; install it, or leave out --upstream")?;
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("go mod download {module}"))?;
    let Some(file) = answer["GoMod"].as_str() else {
        bail!("go mod download {module}: {}", answer["Error"]);
    };
    let text = fs::read_to_string(file).with_context(|| format!("reading {file}"))?;
    Ok(text
        .lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                [name, "v0.0.0", ..] if name.starts_with("k8s.io/") => Some(name.to_owned()),
                _ => None,
            }
        })
        .collect())
}

/// The text of a go.mod that needs Kubernetes, with the versions of its staged modules.
fn modules(staged: &BTreeSet<String>) -> String {
    let version = VERSION.strip_prefix("1.").unwrap_or(VERSION);
    let mut text = format!(
        "module kube-apiserver\n\nrequire (\n\tk8s.io/component-base v0.{version}\n\tk8s.io/kubernetes v{VERSION}\n)\n\nreplace (\n"
    );
    for name in staged {
        let _ = writeln!(text, "\t{name} => {name} v0.{version}");
    }
    text.push_str(")\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn staged_modules_get_the_version_of_their_release() {
        let text = modules(&BTreeSet::from(["k8s.io/api".to_owned()]));
        let line = "\tk8s.io/api => k8s.io/api v0.35.8\n";
        assert!(text.contains(line), "{text}");
    }
}
