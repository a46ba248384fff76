//! `cargo xtask kubectl`: every kubectl of this machine, against our server, with its answers checked.

mod check;
pub(crate) mod debian;
pub(crate) mod discover;
mod lane;
mod module;
mod report;
mod script;
pub(crate) mod server;
pub(crate) mod step;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::lanes::AllowMissing;
use crate::workspace::{self, Profile};
use discover::{Found, Kubectl};

/// Drive every kubectl of this machine against the server, and check what they print
///
/// Every program named `kubectl` or `kubectl.<version>` is used: those on PATH, and those beside the file that the
/// `kubectl` on PATH is a link to. Each gets a fresh server (`kubewright up` on a free port, in a directory of its own)
/// and runs the same script: create, apply, get in all its forms, watch, describe, explain, patch, edit, diff, wait,
/// delete, server-side apply, tokens, roles and autoscaling, for built-in kinds and for the Fruit CRD of examples/fruit; and
/// on a cluster with controllers and nodes: rollouts, undo, scale, expose, jobs, drain, logs, namespaces, cascades, exec, attach,
/// cp, port-forward, proxy, debug, top, taint, certificates, garbage collection, and what a cluster must not let pass. A step passes when
/// its exit code and its output are right. The command fails when a step of any kubectl fails, and when a kubectl that was found cannot
/// tell its version, unless --allow-missing is passed.
#[derive(clap::Args)]
#[command(
    verbatim_doc_comment,
    after_help = "Examples:\n  \
    cargo xtask kubectl                              every kubectl found here\n  \
    cargo xtask kubectl --install-debian             and Debian's, the oldest still packaged (1.20)\n  \
    cargo xtask kubectl --build 1.37.2               and the newest, built with Go\n  \
    cargo xtask kubectl --kubectl ~/bin/kubectl      only this one\n  \
    cargo xtask kubectl --only fruit                 only the group `fruit`, or steps with `fruit` in them\n  \
    cargo xtask kubectl --only 'patch' --verbose     show every step and what it printed"
)]
pub(crate) struct Arguments {
    /// Use this kubectl instead of looking for them; can be repeated
    #[arg(long, value_name = "PATH")]
    kubectl: Vec<PathBuf>,
    /// Only groups of this name, or groups with a step that contains this text
    #[arg(long, value_name = "PATTERN")]
    only: Option<String>,
    /// Also use the kubectl of Debian's package kubernetes-client, unpacked under target/kubectl, not installed
    #[arg(long)]
    install_debian: bool,
    /// Also build kubectl of this version, 1.37.2 say, from the Go module k8s.io/kubectl under target/kubectl; can be repeated
    #[arg(long, value_name = "VERSION")]
    build: Vec<String>,
    /// Build and use the server in release
    #[arg(long)]
    release: bool,
    /// Print every step with its output
    #[arg(long)]
    verbose: bool,
    #[command(flatten)]
    missing: AllowMissing,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let Found { kubectls, broken } = kubectls(arguments)?;
    let groups = script::groups(arguments.only.as_deref());
    if groups.is_empty() {
        bail!(
            "no step matches {:?}",
            arguments.only.as_deref().unwrap_or("")
        );
    }
    let profile = if arguments.release {
        Profile::Release
    } else {
        Profile::Debug
    };
    let binary = workspace::build("kubewright-cli", "kubewright", profile)?;
    let mut lanes = Vec::new();
    for kubectl in kubectls {
        println!("\nkubectl {}  {}", kubectl.version, kubectl.path.display());
        let results = lane::run(&kubectl, &binary, &groups, |group, outcomes| {
            report::group(group, outcomes, arguments.verbose);
        })?;
        lanes.push((kubectl.version, results));
    }
    let failed = report::summary(&groups, &lanes);
    let end = arguments.missing.end(&broken);
    if failed > 0 {
        println!("\n{failed} steps failed");
        return Ok(ExitCode::FAILURE);
    }
    Ok(end)
}

fn kubectls(arguments: &Arguments) -> Result<Found> {
    let mut found = Found::default();
    if arguments.kubectl.is_empty() {
        found = discover::on_this_machine();
    }
    let kubectls = &mut found.kubectls;
    for path in &arguments.kubectl {
        kubectls.push(Kubectl::ask(path)?);
    }
    if arguments.install_debian {
        kubectls.push(Kubectl::ask(&debian::unpack()?)?);
    }
    for version in &arguments.build {
        kubectls.push(Kubectl::ask(&module::build(version)?)?);
    }
    if kubectls.is_empty() {
        bail!("no kubectl found on PATH; name one with --kubectl, or try --install-debian");
    }
    discover::sort(kubectls);
    Ok(found)
}
