//! `kubewright envtest`: programs that controller-runtime's envtest starts, so that its users' tests run here.

use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use clap::Args;

use crate::masquerade::Role;

/// Write a kube-apiserver and an etcd that envtest can start, so that tests of Go operators run without either
///
/// envtest starts a control plane from a directory of programs. This writes such a directory: its kube-apiserver is
/// this program, its etcd only says that it is well, and kubectl is a link to the one on PATH, if there is one. Tests
/// use them when KUBEBUILDER_ASSETS names the directory.
///
/// With a command behind --, that command is run with everything set. It wins over what a Makefile sets, so that the
/// tests of a kubebuilder project run unchanged.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kubewright envtest -- make test\n  \
    kubewright envtest -- go test ./...\n  \
    kubewright envtest --assets ./bin/envtest && KUBEBUILDER_ASSETS=$PWD/bin/envtest go test ./...")]
pub(crate) struct Envtest {
    /// Directory to write the programs to
    #[arg(long, value_name = "DIR", default_value = ".kubewright/envtest")]
    assets: PathBuf,

    /// Command to run with these programs
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl Envtest {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let itself = env::current_exe().context("this program cannot find itself")?;
        fs::create_dir_all(&self.assets)
            .with_context(|| format!("{} cannot be made", self.assets.display()))?;
        let assets = self.assets.canonicalize()?;
        for role in Role::ALL {
            place(&itself, &assets.join(role.name()))?;
        }
        let kubectl = link_kubectl(&assets)?;
        let Some((program, arguments)) = self.command.split_first() else {
            announce(&assets, kubectl.as_deref());
            return Ok(());
        };
        bail!(exec(program, arguments, &assets));
    }
}

/// Becomes the command. Returns only when that fails.
fn exec(program: &str, arguments: &[String], assets: &Path) -> anyhow::Error {
    let mut command = Command::new(program);
    command.args(arguments).env("KUBEBUILDER_ASSETS", assets);
    // These win over KUBEBUILDER_ASSETS, which the Makefiles of kubebuilder set themselves.
    command
        .env("TEST_ASSET_KUBE_APISERVER", assets.join("kube-apiserver"))
        .env("TEST_ASSET_ETCD", assets.join("etcd"));
    if assets.join("kubectl").exists() {
        command.env("TEST_ASSET_KUBECTL", assets.join("kubectl"));
    }
    anyhow::Error::new(command.exec()).context(format!("{program} cannot be run"))
}

fn announce(assets: &Path, kubectl: Option<&Path>) {
    println!("Written to {}", assets.display());
    println!("  kube-apiserver  this program");
    println!("  etcd            this program, saying that it is well");
    match kubectl {
        Some(path) => println!("  kubectl         {}", path.display()),
        None => println!("  kubectl         none on PATH; few tests call it"),
    }
    println!(
        "\nTry:  KUBEBUILDER_ASSETS={} go test ./...",
        assets.display()
    );
}

/// Puts this program somewhere under another name: as a link to the same file, or a copy where that is elsewhere.
fn place(itself: &Path, target: &Path) -> anyhow::Result<()> {
    remove(target)?;
    if fs::hard_link(itself, target).is_ok() {
        return Ok(());
    }
    // A copy carries the permissions of its source, so that it can be run.
    fs::copy(itself, target)
        .map(|_| ())
        .with_context(|| format!("{} cannot be written", target.display()))
}

/// Links the kubectl of PATH, if there is one, and tells where it is.
fn link_kubectl(assets: &Path) -> anyhow::Result<Option<PathBuf>> {
    let target = assets.join("kubectl");
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path)
        .map(|directory| directory.join("kubectl"))
        .find(|file| file.is_file() && *file != target);
    if let Some(found) = &found {
        remove(&target)?;
        symlink(found, &target).with_context(|| format!("{} cannot be made", target.display()))?;
    }
    Ok(found)
}

fn remove(target: &Path) -> anyhow::Result<()> {
    match fs::remove_file(target) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => {
            Err(e).with_context(|| format!("{} is in the way", target.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_placed_over_an_older_one() {
        let folder = tempfile::tempdir().expect("a temporary directory can be made");
        let target = folder.path().join("etcd");
        let itself = env::current_exe().expect("tests have a file");
        for _ in 0..2 {
            place(&itself, &target).expect("it can be placed");
        }
        let size = |path: &Path| fs::metadata(path).expect("it is there").len();
        assert_eq!(size(&target), size(&itself));
    }
}
