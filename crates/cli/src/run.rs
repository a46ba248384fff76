//! `kubewright run`: the program on this machine, against a cluster.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::{Context as _, bail};
use clap::Args;

use crate::folder::Place;
use crate::program::{self, Profile};
use crate::remote::block_on;
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
        let flags = self.flags()?;
        let profile = if self.release {
            Profile::Release
        } else {
            Profile::Debug
        };
        let program = block_on(program::build(&folder, profile))?;
        let mut command = Command::new(&program);
        command
            .current_dir(&folder.root)
            .args(flags)
            .args(&self.arguments);
        println!("Running {}. Ctrl-C stops it.", program.display());
        // The program takes the place of this one, so that signals go to it.
        bail!(
            anyhow::Error::new(command.exec())
                .context(format!("{} cannot be run", program.display()))
        );
    }

    /// Which cluster the program is to use, in its own words.
    fn flags(&self) -> anyhow::Result<Vec<OsString>> {
        let mut flags = Vec::new();
        if let Some(path) = &self.connection.kubeconfig {
            let path = std::path::absolute(path).context("the kubeconfig cannot be found")?;
            flags.extend(["--kubeconfig".into(), path.into_os_string()]);
        }
        let Some(context) = &self.connection.context else {
            return Ok(flags);
        };
        // Before the build, which takes longer than finding out that there is no such context.
        let config = self.connection.kubeconfig()?;
        if !config.contexts.iter().any(|known| known.name == *context) {
            let known: Vec<_> = config.contexts.iter().map(|known| &*known.name).collect();
            bail!(
                "the kubeconfig has no context {context}; it has: {}",
                known.join(", ")
            );
        }
        flags.extend(["--context".into(), context.into()]);
        Ok(flags)
    }
}
