//! A program that measures: this one, or that of an earlier commit. Both are asked in the same words.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use kubewright_bench::stopwatch::Stopwatch;
use serde::de::DeserializeOwned;

/// A program that knows `alive`, with the name that it has in the table.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) name: String,
    path: PathBuf,
}

impl Program {
    /// This program.
    pub(crate) fn ourselves() -> Result<Self> {
        let path = std::env::current_exe().context("finding the program itself")?;
        let name = "kubewright".to_owned();
        Ok(Self { name, path })
    }

    /// The same program of an earlier commit.
    pub(crate) fn earlier(name: &str, path: &Path) -> Self {
        Self {
            name: name.to_owned(),
            path: path.to_owned(),
        }
    }

    /// Runs one part in a process of its own and reads its line.
    pub(crate) fn part<T: DeserializeOwned>(&self, what: &str, numbers: &[usize]) -> Result<T> {
        let mut command = Command::new(&self.path);
        command.args(["alive", what]).stdin(Stdio::null());
        command.args(numbers.iter().map(usize::to_string));
        let name = &self.name;
        let stopwatch = Stopwatch::start();
        let output = command
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("starting {what} of {}", self.path.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            let status = output.status;
            bail!("{name}, {what} {numbers:?}: it ended with {status}");
        }
        let seconds = stopwatch.elapsed().as_secs_f64();
        eprintln!(
            "{name}, {what} {numbers:?}: {seconds:.1} s: {}",
            text.trim()
        );
        serde_json::from_str(&text).with_context(|| format!("{what} of {name} printed: {text}"))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::outcome::{Month, Ready};

    /// Prints what the first program with these parts printed.
    const EARLIER: &str = r#"#!/bin/sh
case "$*" in
"alive ready 100") echo '{"times":100,"best":0.004,"median":0.005,"worst":0.01,"start":0.04}' ;;
"alive month 30 3 7 600") echo '{"days":30,"nodes":3,"lease":600,"took":9.5,"writes":67168,"leases":51454,"jobs":2104,"failures":28,"digest":"8d89f1fa9cb6d52b"}' ;;
*) exit 2 ;;
esac
"#;

    #[test]
    fn program_of_an_earlier_commit_is_asked_in_the_same_words() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("earlier");
        fs::write(&path, EARLIER).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
        let program = Program::earlier("9d224f5a", &path);
        let ready: Ready = program.part("ready", &[100]).expect("an outcome");
        assert_eq!((ready.start, ready.times), (0.04, 100));
        let month: Month = program.part("month", &[30, 3, 7, 600]).expect("an outcome");
        assert_eq!(month.digest, "8d89f1fa9cb6d52b");
        let unknown = program.part::<Ready>("large", &[1]);
        let error = unknown.expect_err("it has no such part").to_string();
        assert!(
            error.starts_with("9d224f5a, large [1]: it ended with"),
            "{error}"
        );
    }
}
