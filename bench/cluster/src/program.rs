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
