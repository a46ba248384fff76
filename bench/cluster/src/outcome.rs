//! What the parts found out, each as the line of JSON that it prints. Times are in seconds, memory in bytes.
//!
//! Programs of earlier commits print the same lines, and are read with the same types: a field that is added later needs
//! `#[serde(default)]`.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

/// All that was found out.
#[derive(Debug)]
pub(crate) struct Results {
    pub(crate) ready: Ready,
    pub(crate) crowd: Crowd,
    pub(crate) fork: Fork,
    pub(crate) growth: Vec<Growth>,
    pub(crate) large: Large,
    /// Twice with the same seed, and once with another, with long leases.
    pub(crate) month: Month,
    pub(crate) again: Month,
    pub(crate) other: Month,
    /// Fewer days with the leases that kubelets have by default.
    pub(crate) usual: Month,
    pub(crate) earlier: Option<Earlier>,
}

/// What the program of an earlier commit found out in the same run.
#[derive(Debug)]
pub(crate) struct Earlier {
    pub(crate) name: String,
    pub(crate) ready: Ready,
    pub(crate) crowd: Crowd,
    /// With the seed and the leases of [`Results::month`].
    pub(crate) month: Month,
}

impl Results {
    /// Compares the two runs of one seed.
    ///
    /// # Errors
    /// When a byte of a write, or the order of two, differs between them.
    pub(crate) fn check_determinism(&self) -> Result<()> {
        let (first, second) = (&self.month.digest, &self.again.digest);
        ensure!(
            first == second,
            "seed 7 has two histories: {first} and {second}"
        );
        Ok(())
    }
}

/// A Deployment of 3, from its creation until it is ready.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Ready {
    pub(crate) times: usize,
    pub(crate) best: f64,
    pub(crate) median: f64,
    pub(crate) worst: f64,
    /// How long the cluster took to start.
    pub(crate) start: f64,
}

/// Many Deployments at once.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Crowd {
    pub(crate) deployments: usize,
    pub(crate) nodes: usize,
    pub(crate) settled: f64,
    /// Memory when all are ready, and the most there was until then.
    pub(crate) memory: u64,
    pub(crate) peak: u64,
    pub(crate) writes: u64,
}

/// A fork.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Fork {
    pub(crate) objects: usize,
    pub(crate) best: f64,
    pub(crate) median: f64,
    pub(crate) worst: f64,
}

/// One more Deployment of 3 beside many pods.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Growth {
    pub(crate) pods: usize,
    pub(crate) median: f64,
    /// Processor time of the whole process for one Deployment.
    pub(crate) processor: f64,
    pub(crate) memory: u64,
}

/// A large cluster.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Large {
    pub(crate) nodes: usize,
    pub(crate) pods: usize,
    /// From the start until all nodes are ready.
    pub(crate) nodes_ready: f64,
    /// From the first Deployment until all pods are ready.
    pub(crate) pods_ready: f64,
    pub(crate) memory: u64,
    pub(crate) peak: u64,
    /// Processors that are busy while nobody asks for anything.
    pub(crate) idle: f64,
    /// Writes in that minute.
    pub(crate) idle_writes: u64,
}

/// Simulated days.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Month {
    pub(crate) days: u64,
    pub(crate) nodes: u64,
    /// How long a lease is good for, in seconds.
    pub(crate) lease: u64,
    pub(crate) took: f64,
    pub(crate) writes: u64,
    pub(crate) leases: u64,
    pub(crate) jobs: u64,
    pub(crate) failures: u64,
    /// In hexadecimal.
    pub(crate) digest: String,
}
