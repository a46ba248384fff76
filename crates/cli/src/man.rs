//! `kubewright man`: the pages of the manual.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, CommandFactory as _};

/// Print the manual page of this command, or write one for each of its commands
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kubewright man | man -l -\n  \
    kubewright man --dir ~/.local/share/man/man1     then: man kubewright-create-api")]
pub(crate) struct Man {
    /// Write a page for each command to this folder
    #[arg(long)]
    dir: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let command = crate::Arguments::command();
        let Some(dir) = &self.dir else {
            let page = clap_mangen::Man::new(command);
            return page.render(&mut io::stdout()).context("the page");
        };
        write(command, dir).with_context(|| dir.display().to_string())
    }
}

fn write(command: clap::Command, dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    clap_mangen::generate_to(command, dir)
}
