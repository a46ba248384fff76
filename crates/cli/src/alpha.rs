//! `kubewright alpha`: commands whose flags may still change.

mod replay;
mod update;

use clap::{Args, Subcommand};

/// Commands whose flags may still change
#[derive(Debug, Args)]
pub(crate) struct Alpha {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Update(update::Update),
}

impl Alpha {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.what {
            What::Update(update) => update.run(),
        }
    }
}
