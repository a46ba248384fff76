//! `cargo xtask podtato-head`: the operator of `examples/podtato-head` with parts that are real processes.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

use crate::console::install_browser;
use crate::kubectl::debian;
use crate::lanes::{self, Missing};
use crate::workspace;

/// How long the lane may take, in seconds.
const PATIENCE: &str = "300";

/// Bring a podtato head up on real processes, upgrade it part by part, have it roll back, and take a picture of its page
///
/// The parts are processes of this machine behind Services on the loopback device, and the operator is a process with its own role and
/// webhooks; the page is read through `kubectl port-forward`.
/// kubectl and Chromium come from Debian's packages if they are missing. The picture goes to examples/podtato-head/page.png. What
/// failed is the exit code.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    cargo xtask podtato-head\n  \
    cargo xtask podtato-head --picture /tmp/page.png")]
pub(crate) struct Arguments {
    /// Where the picture of the page goes
    #[arg(long)]
    picture: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    if let Err(Missing(why)) = install_browser()? {
        bail!("Chromium is missing: {why}");
    }
    let kubectl = if lanes::is_there("kubectl") {
        PathBuf::from("kubectl")
    } else {
        debian::unpack()?
    };
    let programs = [
        "podtato-head-server",
        "kubewright-example-podtato-head",
        "kubewright-process-helper",
    ];
    let built = workspace::build_lane(&programs, "figure")?;
    let picture = || workspace::root().join("examples/podtato-head/page.png");
    let mut lane = Command::new("timeout");
    lane.args(["--kill-after=10", PATIENCE]).arg(built.example);
    lane.args(built.programs)
        .arg(kubectl)
        .arg(arguments.picture.clone().unwrap_or_else(picture));
    let status = lane.status().context("the lane cannot be started")?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
