//! `cargo xtask postgres`: the operator of `examples/postgres` with real PostgreSQL, through fail-overs.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::lanes::{self, Missing};
use crate::workspace;

/// How long the lane may take, with so much for each fail-over.
const PATIENCE: Duration = Duration::from_secs(120);
const EACH: Duration = Duration::from_secs(90);

/// Kill and stop primaries of a real PostgreSQL under a ledger of transfers, and check that nothing is lost
///
/// PostgreSQL comes from Debian's package postgresql-15 and is installed if it is missing. Pods are containers that run as processes of
/// this machine, with volumes, so it has to be run as root; the operator is a process with its own role and webhooks. Every
/// acknowledged transfer has to be there in the end, the sum of all accounts must be what it was, and at no time may two members
/// acknowledge writes. What failed is the exit code.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    cargo xtask postgres\n  \
    cargo xtask postgres --failovers 50")]
pub(crate) struct Arguments {
    /// How many primaries are hurt
    #[arg(long, default_value_t = 10)]
    failovers: u32,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    if let Err(Missing(why)) = install()? {
        bail!("PostgreSQL is missing: {why}");
    }
    let programs = [
        "postgres-agent",
        "kubewright-example-postgres",
        "kubewright-process-helper",
    ];
    let built = workspace::build_lane(&programs, "ledger")?;
    let limit = PATIENCE + EACH * arguments.failovers;
    let mut lane = Command::new("timeout");
    lane.arg("--kill-after=10").arg(limit.as_secs().to_string());
    lane.arg(built.example)
        .args(built.programs)
        .arg(arguments.failovers.to_string());
    let status = lane.status().context("the lane cannot be started")?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn install() -> Result<Result<(), Missing>> {
    if Path::new("/usr/lib/postgresql").is_dir() {
        return Ok(Ok(()));
    }
    lanes::install_packages(&["postgresql-15"])
}
