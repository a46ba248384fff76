//! `kubewright run`: the program on this machine, against a cluster.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use clap::Args;

use crate::folder::Place;
use crate::program::{self, Profile};
use crate::remote::connect::Connection;

/// Build the program and run it on this machine, against the cluster of your kubeconfig
///
/// The kinds have to be installed (kubewright install). What stands behind -- goes to the program.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kubewright run\n  \
    kubewright run --kubeconfig .kubewright/kubeconfig -- --log-level debug\n  \
    kubewright run --release --context test")]
pub(crate) struct Run {
    /// Build it optimised
    #[arg(long)]
    release: bool,

    #[command(flatten)]
    connection: Connection,

    /// Arguments of the program
    #[arg(last = true, value_name = "ARGUMENTS")]
    arguments: Vec<String>,

    #[command(flatten)]
    place: Place,
}

impl Run {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let folder = self.place.open()?;
        let kubeconfig = self.kubeconfig(&folder.root)?;
        let profile = match self.release {
            true => Profile::Release,
            false => Profile::Debug,
        };
        let program = program::build(&folder, profile)?;
        let mut command = Command::new(&program);
        command.current_dir(&folder.root).args(&self.arguments);
        if let Some(path) = kubeconfig {
            command.env("KUBECONFIG", path);
        }
        println!("Running {}. Ctrl-C stops it.", program.display());
        // The program takes the place of this one, so that signals go to it.
        bail!(
            anyhow::Error::new(command.exec())
                .context(format!("{} cannot be run", program.display()))
        );
    }

    /// The kubeconfig that the program is to use, if it is not the usual one.
    fn kubeconfig(&self, root: &Path) -> anyhow::Result<Option<PathBuf>> {
        let Some(context) = &self.connection.context else {
            let given = self.connection.kubeconfig.as_ref();
            let full = given.map(std::path::absolute).transpose();
            return full.context("the kubeconfig cannot be found");
        };
        let mut config = self.connection.kubeconfig()?;
        if !config.contexts.iter().any(|known| known.name == *context) {
            let known: Vec<_> = config.contexts.iter().map(|known| &*known.name).collect();
            bail!(
                "the kubeconfig has no context {context}; it has: {}",
                known.join(", ")
            );
        }
        config.current_context = Some(context.clone());
        let path = root.join(".kubewright/run-kubeconfig");
        write_private(&path, &serde_json::to_string(&config)?)?;
        Ok(Some(path))
    }
}

/// Writes a file that nobody else may read.
fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    let cannot = || format!("{} cannot be written", path.display());
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).with_context(cannot)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(path).with_context(cannot)?;
    file.write_all(text.as_bytes()).with_context(cannot)
}
