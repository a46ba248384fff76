//! The kubectl of Debian's package kubernetes-client: downloaded and unpacked under target/, not installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::process::{self, End};
use crate::workspace;

const PACKAGE: &str = "kubernetes-client";
/// How long a download may be silent.
const PATIENCE: Duration = Duration::from_secs(180);

/// Downloads and unpacks the package if that was not done before, and tells where its kubectl is.
pub(crate) fn unpack() -> Result<PathBuf> {
    let folder = workspace::target().join("kubectl");
    let kubectl = folder.join("usr/bin/kubectl");
    if kubectl.exists() {
        return Ok(kubectl);
    }
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    call(&folder, "apt-get", &["download", PACKAGE])?;
    let package = downloaded(&folder)?;
    call(&folder, "dpkg", &["-x", &package, "."])?;
    Ok(kubectl)
}

fn downloaded(folder: &Path) -> Result<String> {
    for entry in fs::read_dir(folder)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(PACKAGE) && name.ends_with(".deb") {
            return Ok(name);
        }
    }
    bail!("apt-get left no {PACKAGE} package in {}", folder.display())
}

fn call(folder: &Path, program: &str, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new(program);
    command.current_dir(folder).args(arguments);
    let output = process::run(&mut command, "", PATIENCE)?;
    if output.end != End::Exited(0) {
        bail!(
            "{program} {} failed: {}",
            arguments.join(" "),
            output.stderr
        );
    }
    Ok(())
}
