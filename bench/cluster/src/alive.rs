//! `kubewright-bench-cluster alive`: the process that one part of the measurement runs in.

use anyhow::Result;
use clap::Subcommand;
use serde::Serialize;
use tokio::runtime::{Builder, Runtime};

use crate::{crowd, fork, growth, large, month, ready};

/// One part of `cluster`, in this process; prints a line of JSON.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// A Deployment of 3 until it is ready, so many times
    Ready { times: usize },
    /// So many Deployments of 3 on so many nodes
    Crowd { deployments: usize, nodes: usize },
    /// A fork of a cluster with so many objects
    Fork { objects: usize },
    /// One more Deployment with so many pods present
    Growth { pods: usize },
    /// So many pods on so many nodes until all are ready, and then a minute of nothing
    Large { nodes: usize, pods: usize },
    /// Days with cron jobs, leases and node failures
    Month {
        days: u64,
        nodes: u64,
        seed: u64,
        /// How long a lease is good for, in seconds
        #[arg(default_value_t = 40)]
        lease: u64,
    },
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match arguments.what {
        What::Ready { times } => print(&shared()?.block_on(ready::measure(times))?),
        What::Crowd { deployments, nodes } => {
            print(&shared()?.block_on(crowd::measure(deployments, nodes))?)
        }
        What::Fork { objects } => print(&shared()?.block_on(fork::measure(objects))?),
        What::Growth { pods } => print(&single()?.block_on(growth::measure(pods))?),
        What::Large { nodes, pods } => print(&shared()?.block_on(large::measure(nodes, pods))?),
        What::Month {
            days,
            nodes,
            seed,
            lease,
        } => print(&month::measure(days, nodes, seed, lease)?),
    }
}

/// Threads as programs have them.
fn shared() -> Result<Runtime> {
    Ok(Builder::new_multi_thread().enable_all().build()?)
}

/// One thread, whose processor time is that of the whole cluster.
fn single() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

fn print<T: Serialize>(outcome: &T) -> Result<()> {
    println!("{}", serde_json::to_string(outcome)?);
    Ok(())
}
