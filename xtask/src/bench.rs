//! `cargo xtask bench`: builds the server and the benchmark in release and runs the one against the other.

use anyhow::Result;

/// Arguments of `cargo xtask bench`.
#[derive(clap::Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_arguments: &Arguments) -> Result<()> {
    Ok(())
}
