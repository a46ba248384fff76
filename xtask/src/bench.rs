//! `cargo xtask bench`: builds the server and the benchmark in release and runs the one against the other.

use std::process::Command;

use anyhow::{Context as _, Result, bail};
use clap::Subcommand;

use crate::workspace::{self, Profile};

/// The page that `--write` writes.
const PAGE: &str = "docs/benchmarks.md";

/// Arguments of `cargo xtask bench`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Server(Server),
}

/// Measure the API server over TLS: start, memory, creates, gets, lists, watches, fan-out, growth
///
/// With `kube-apiserver` and `etcd` on PATH they are measured by the same client in the same run. One run takes a few
/// minutes and wants a machine that does nothing else; the load average is printed beside the figures.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
struct Server {
    /// Rewrite docs/benchmarks.md with the figures
    #[arg(long)]
    write: bool,
    /// A tenth of everything: to see that it runs, not for figures
    #[arg(long, conflicts_with = "write")]
    quick: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let What::Server(server) = &arguments.what;
    let kubewright = workspace::build("kubewright-cli", "kubewright", Profile::Release)?;
    let bench = workspace::build("kubewright-bench", "kubewright-bench", Profile::Release)?;
    let mut command = Command::new(bench);
    command.arg("--kubewright").arg(kubewright);
    if server.quick {
        command.arg("--quick");
    }
    if server.write {
        command.arg("--write").arg(workspace::root().join(PAGE));
    }
    let status = command
        .status()
        .context("the benchmark could not be started")?;
    if !status.success() {
        bail!("the benchmark failed");
    }
    Ok(())
}
