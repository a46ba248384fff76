//! The benchmark of an earlier commit: built from a checkout of its own, with the lock file, profile and options of its time.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::CLUSTER;
use crate::workspace;

/// A program of an earlier commit, and what it is called in a table.
#[derive(Debug)]
pub(super) struct Before {
    pub(super) path: PathBuf,
    pub(super) name: String,
}

/// The program that measures clusters, given as a path or as a commit.
///
/// # Errors
/// When there is neither, or the commit does not build.
pub(super) fn program(given: &str) -> Result<Before> {
    if Path::new(given).is_file() {
        let path = std::path::absolute(given)?;
        let name = "before".to_owned();
        return Ok(Before { path, name });
    }
    let commit = commit(given)?;
    let name = commit.chars().take(8).collect();
    let folder = workspace::target().join("before");
    let path = folder.join(format!("{CLUSTER}-{commit}"));
    // A commit never changes: what was built of it is good for ever.
    if !path.is_file() {
        println!("building {CLUSTER} of {commit}, which takes some minutes");
        let checkout = Checkout::new(&folder.join("checkout"), &commit)?;
        let built = build(&checkout, &folder.join("target"))?;
        std::fs::copy(&built, &path).with_context(|| format!("copying {}", built.display()))?;
    }
    Ok(Before { path, name })
}

/// The whole name of a commit.
fn commit(given: &str) -> Result<String> {
    let mut git = git();
    git.args(["rev-parse", "--verify", "--quiet", "--end-of-options"]);
    let output = git.arg(format!("{given}^{{commit}}")).output();
    let output = output.context("git could not be started")?;
    if !output.status.success() {
        bail!("{given} is neither a program nor a commit");
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A commit's files beside ours; removed when this is dropped.
struct Checkout {
    folder: PathBuf,
}

impl Checkout {
    fn new(folder: &Path, commit: &str) -> Result<Self> {
        let checkout = Self {
            folder: folder.to_owned(),
        };
        // One that was killed may have left its own.
        checkout.remove();
        let mut git = git();
        git.args(["worktree", "add", "--quiet", "--force", "--detach"]);
        let status = git.arg(folder).arg(commit).status();
        if !status.context("git could not be started")?.success() {
            bail!("{commit} could not be checked out");
        }
        Ok(checkout)
    }

    fn remove(&self) {
        let mut git = git();
        git.args(["worktree", "remove", "--force"]);
        // Nothing is lost when it is not there, or stays.
        let _ = git.arg(&self.folder).output();
    }
}

impl Drop for Checkout {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Builds the program of a checkout and returns where it is.
fn build(checkout: &Checkout, target: &Path) -> Result<PathBuf> {
    let mut cargo = workspace::cargo();
    cargo.current_dir(&checkout.folder);
    cargo.env("CARGO_TARGET_DIR", target);
    cargo.args(["build", "--quiet", "--locked", "--profile", "dist"]);
    let status = cargo
        .args(["--package", CLUSTER, "--bin", CLUSTER])
        .status();
    if !status.context("cargo could not be started")?.success() {
        bail!("the commit's {CLUSTER} could not be built");
    }
    Ok(target.join("dist").join(CLUSTER))
}

fn git() -> Command {
    let mut git = Command::new("git");
    git.current_dir(workspace::root());
    git
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_is_taken_as_it_is() {
        let ourselves = std::env::current_exe().expect("a program");
        let given = ourselves.to_str().expect("a path");
        let before = program(given).expect("it is there");
        assert_eq!((before.path, before.name.as_str()), (ourselves, "before"));
    }

    #[test]
    fn what_is_neither_program_nor_commit_is_refused_before_anything_is_built() {
        let error = program("no-such-commit").expect_err("it is no commit");
        let expected = "no-such-commit is neither a program nor a commit";
        assert_eq!(error.to_string(), expected);
    }
}
