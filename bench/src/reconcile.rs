//! `kubewright-bench reconcile`: a controller that is measured, in a process of its own. It reconciles Foos of the source,
//! does next to nothing with them, and prints what that took.

mod desk;
mod foo;
mod kube_rs;
mod ours;
mod outcome;
mod steps;

use std::path::PathBuf;

use anyhow::Result;
use kube::Client;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};

pub(crate) use outcome::Outcome;

/// Be measured against a source of Foos.
#[derive(clap::Args, Clone)]
pub(crate) struct Arguments {
    /// Whose controller
    #[arg(long)]
    peer: Peer,
    /// Where the source is
    #[arg(long)]
    kubeconfig: PathBuf,
    /// What is measured
    #[arg(long)]
    measure: Measure,
    /// How many objects the source has
    #[arg(long)]
    objects: usize,
    /// How many reconciles may run at once
    #[arg(long)]
    workers: usize,
    /// What a reconcile has at hand
    #[arg(long, default_value = "object")]
    reads: Reads,
    /// How often; the best counts
    #[arg(long, default_value_t = 1)]
    rounds: usize,
    /// How many events are timed
    #[arg(long, default_value_t = 0)]
    events: usize,
    /// How many reconciles are in flight
    #[arg(long, default_value_t = 0)]
    flights: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Peer {
    Kubewright,
    KubeRs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Measure {
    /// Keys are added, and each runs.
    Rate,
    /// Objects change, and each runs.
    Latency,
    /// Keys are added while many reconciles are under way.
    Flight,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Reads {
    /// The key: there is no such object.
    None,
    /// The object of the key.
    Object,
}

/// Measures, and prints the outcome.
pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    // Somebody who listens to nothing, as with the peer in Go: without any, spans are written for the `log` crate.
    tracing::subscriber::set_global_default(tracing::subscriber::NoSubscriber::default())?;
    let kubeconfig = Kubeconfig::read_from(&arguments.kubeconfig)?;
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    let client = Client::try_from(config.clone())?;
    // On a thread of the runtime, where tasks are started without waking another one.
    let measured = tokio::spawn(async move {
        match arguments.peer {
            Peer::Kubewright => ours::measure(config, client, &arguments).await,
            Peer::KubeRs => kube_rs::measure(client, &arguments).await,
        }
    });
    println!("{}", serde_json::to_string(&measured.await??)?);
    Ok(())
}
