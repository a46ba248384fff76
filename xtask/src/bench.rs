//! `cargo xtask bench`: builds the programs and the benchmark in release and runs the one against the other.

mod before;
mod seams;
mod upstream;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use clap::Subcommand;

use crate::workspace::{self, Profile};

/// The page that `--write` writes.
const PAGE: &str = "docs/benchmarks.md";
/// The package that measures clusters, and its program.
const CLUSTER: &str = "kubewright-bench-cluster";
/// The program that stands for client-go.
const CLIENT_GO: &str = "bench/peers/go";
/// The programs that stand for controller-runtime.
const CONTROLLER_RUNTIME: &str = "bench/peers/controller-runtime";

/// Arguments of `cargo xtask bench`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Server(Server),
    Cache(Cache),
    Runtime(Runtime),
    Cluster(Cluster),
    Seams(seams::Seams),
}

/// Measure the API server over TLS: start, memory, creates, gets, lists, watches, fan-out, growth
///
/// With `kube-apiserver` and `etcd` on PATH, or with --upstream, they are measured by the same client in the same run, and so is
/// an earlier `kubewright` with --before. A run takes about a minute a server and wants a machine that does nothing else; the load
/// average is printed beside the figures.
#[derive(clap::Args)]
#[command(
    verbatim_doc_comment,
    after_help = "Examples:\n  \
    cargo xtask bench server                              this tree\n  \
    cargo xtask bench server --upstream                   and a kube-apiserver, built with Go, on an etcd from PyPI\n  \
    cargo xtask bench server --before ../old/kubewright   and the program of an earlier commit"
)]
struct Server {
    /// Build kube-apiserver from its Go module and install etcd, unless both are on PATH, and measure them too
    #[arg(long)]
    upstream: bool,
    /// A `kubewright` of an earlier commit, measured too
    #[arg(long, value_name = "PROGRAM")]
    before: Option<PathBuf>,
    /// Rewrite the section of docs/benchmarks.md
    #[arg(long)]
    write: bool,
    /// A tenth of everything: to see that it runs, not for figures
    #[arg(long, conflicts_with = "write")]
    quick: bool,
}

/// Measure informers and work queues beside those of kube-rs and client-go: sync, memory, events, reads, queues
///
/// client-go is measured where Go is on the machine; its modules come from the Go module proxy. A run takes
/// about seven minutes and 8 GB of memory, and wants a machine that does nothing else.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
struct Cache {
    /// Rewrite the section of docs/benchmarks.md
    #[arg(long)]
    write: bool,
    /// A hundredth of everything: to see that it runs, not for figures
    #[arg(long, conflicts_with = "write")]
    quick: bool,
}

/// Measure controllers beside those of kube-rs and controller-runtime: reconciles, latency, many in flight, an operator
///
/// controller-runtime is measured where Go is on the machine; its modules come from the Go module proxy. A run takes
/// about six minutes, besides building, and wants a machine that does nothing else.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
struct Runtime {
    /// Rewrite the section of docs/benchmarks.md
    #[arg(long)]
    write: bool,
    /// A tenth of everything: to see that it runs, not for figures
    #[arg(long, conflicts_with = "write")]
    quick: bool,
}

/// Measure a whole cluster in the process: a Deployment until ready, many, growth, forks, thirty simulated days
///
/// A run takes about five minutes and 4 GB of memory, and wants a machine that does nothing else. It fails when the thirty days of
/// one seed have two histories. With --before an earlier commit is measured in the same run, by its own program.
#[derive(clap::Args)]
#[command(
    verbatim_doc_comment,
    after_help = "Examples:\n  \
    cargo xtask bench cluster                                      this tree\n  \
    cargo xtask bench cluster --before main~20                     and an earlier commit, which is built\n  \
    cargo xtask bench cluster --before ../kubewright-bench-cluster and a program that was built already"
)]
struct Cluster {
    /// An earlier commit, or its `kubewright-bench-cluster`, measured too
    #[arg(long, value_name = "PROGRAM_OR_COMMIT")]
    before: Option<String>,
    /// Rewrite the section of docs/benchmarks.md
    #[arg(long)]
    write: bool,
    /// A tenth of everything: to see that it runs, not for figures
    #[arg(long, conflicts_with = "write")]
    quick: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.what {
        What::Server(server) => run_server(server),
        What::Cache(cache) => run_cache(cache),
        What::Runtime(runtime) => run_runtime(runtime),
        What::Cluster(cluster) => run_cluster(cluster),
        What::Seams(_) => seams::run(),
    }
}

fn run_server(server: &Server) -> Result<()> {
    let kubewright = workspace::build("kubewright-cli", "kubewright", Profile::Release)?;
    let mut command = bench("server")?;
    command.arg("--kubewright").arg(kubewright);
    if let Some(before) = &server.before {
        command.arg("--before").arg(before);
    }
    if server.upstream {
        command.env("PATH", upstream::path()?);
    }
    if server.quick {
        command.arg("--quick");
    }
    if server.write {
        command.arg("--write").arg(workspace::root().join(PAGE));
    }
    finish(command)
}

fn run_cache(cache: &Cache) -> Result<()> {
    let mut command = bench("cache")?;
    match go(CLIENT_GO, ".", "client-go-peer") {
        Ok(program) => command.arg("--client-go").arg(program),
        Err(error) => command.arg("--no-client-go").arg(format!("{error:#}")),
    };
    if cache.quick {
        command.arg("--quick");
    }
    if cache.write {
        command.arg("--write").arg(workspace::root().join(PAGE));
    }
    finish(command)
}

fn run_runtime(runtime: &Runtime) -> Result<()> {
    let kubewright = workspace::build("kubewright-cli", "kubewright", Profile::Release)?;
    let operator = workspace::build_operator("kubewright-example-foo")?;
    let mut command = bench("runtime")?;
    command.arg("--kubewright").arg(kubewright);
    command.arg("--foo").arg(operator);
    let theirs = go(CONTROLLER_RUNTIME, "./peer", "controller-runtime-peer").and_then(|peer| {
        let operator = go(CONTROLLER_RUNTIME, "./foo", "controller-runtime-foo")?;
        Ok((peer, operator))
    });
    match theirs {
        Ok((peer, operator)) => {
            command.arg("--controller-runtime").arg(peer);
            command.arg("--controller-runtime-foo").arg(operator);
        }
        Err(error) => {
            let why = format!("{error:#}");
            command.arg("--no-controller-runtime").arg(why);
        }
    }
    if runtime.quick {
        command.arg("--quick");
    }
    if runtime.write {
        command.arg("--write").arg(workspace::root().join(PAGE));
    }
    finish(command)
}

fn run_cluster(cluster: &Cluster) -> Result<()> {
    // A name that means nothing is noticed before anything is built.
    let before = cluster.before.as_deref().map(before::program).transpose()?;
    let mut command = Command::new(workspace::build(CLUSTER, CLUSTER, Profile::Release)?);
    if let Some(before) = before {
        command.arg("--before").arg(before.path);
        command.arg("--before-name").arg(before.name);
    }
    if cluster.quick {
        command.arg("--quick");
    }
    if cluster.write {
        command.arg("--write").arg(workspace::root().join(PAGE));
    }
    finish(command)
}

/// The benchmark, built, with its command.
fn bench(what: &str) -> Result<Command> {
    let bench = workspace::build("kubewright-bench", "kubewright-bench", Profile::Release)?;
    let mut command = Command::new(bench);
    command.arg(what);
    Ok(command)
}

/// Builds a program in Go.
fn go(module: &str, package: &str, name: &str) -> Result<PathBuf> {
    let program = workspace::target().join("dist").join(name);
    let status = Command::new("go")
        .current_dir(workspace::root().join(module))
        .args(["build", "-trimpath", "-ldflags", "-s -w", "-o"])
        .arg(&program)
        .arg(package)
        .status()
        .context("Go is not on this machine")?;
    if !status.success() {
        bail!("{name} could not be built");
    }
    Ok(program)
}

fn finish(mut command: Command) -> Result<()> {
    let status = command
        .status()
        .context("the benchmark could not be started")?;
    if !status.success() {
        bail!("the benchmark failed");
    }
    Ok(())
}
