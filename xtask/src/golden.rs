//! `cargo xtask golden`: writes the golden projects anew.

use anyhow::{Context as _, Result, bail};

use crate::workspace;

/// Write the golden projects of testdata/projects anew, with the commands in crates/cli/tests/golden.rs
#[derive(clap::Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_arguments: &Arguments) -> Result<()> {
    let status = workspace::cargo()
        .args([
            "test",
            "--package",
            "kubewright-cli",
            "--test",
            "golden",
            "golden_projects",
        ])
        .env("KUBEWRIGHT_WRITE_GOLDENS", "1")
        .status()
        .context("cargo could not be started")?;
    if !status.success() {
        bail!("the projects were not written");
    }
    Ok(())
}
