//! The source of controller-runtime with its tests, copied out of the module cache, where nothing can be written.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::lanes::{self, Missing};

const MODULE: &str = "sigs.k8s.io/controller-runtime";
/// Deepest directory that is copied; the module has none beyond ten.
const MAX_DEPTH: usize = 16;

/// A copy of the version that go.mod pins.
pub(crate) fn copy() -> Result<Result<PathBuf, Missing>> {
    let mut download = Command::new("go");
    download
        .current_dir(lanes::sources("go"))
        .args(["mod", "download", "-json", MODULE]);
    let output = match lanes::tool(&mut download, "the module cannot be downloaded")? {
        Ok(output) => output,
        Err(missing) => return Ok(Err(missing)),
    };
    let module: Value =
        serde_json::from_str(&output.stdout).context("the output of go is not JSON")?;
    let source = module["Dir"]
        .as_str()
        .context("the output of go has no directory")?;
    let version = module["Version"]
        .as_str()
        .context("the output of go has no version")?;
    let target = lanes::installed("controller-runtime")?;
    let copied = lanes::once(&target, version, || {
        copy_directory(Path::new(source), &target, 0)?;
        Ok(Ok(()))
    })?;
    Ok(copied.map(|()| target))
}

fn copy_directory(from: &Path, to: &Path, depth: usize) -> Result<()> {
    anyhow::ensure!(depth < MAX_DEPTH, "{} is too deep", from.display());
    fs::create_dir_all(to).with_context(|| format!("making {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_directory(&entry.path(), &target, depth + 1)?;
            continue;
        }
        // The older file may be one that cannot be written over.
        let _ = fs::remove_file(&target);
        fs::copy(entry.path(), &target).with_context(|| format!("writing {}", target.display()))?;
        // Modules do not keep the bit that makes scripts run, and some tests run scripts.
        let mode = if target.extension().is_some_and(|e| e == "sh") {
            0o755
        } else {
            0o644
        };
        fs::set_permissions(&target, fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}
