//! The scheduler: finds a node for each pod that has none.
//!
//! Resources, node selectors, node affinity, taints, ports, pod affinity and anti-affinity, topology spread, volumes that
//! wait for their first consumer. The most important pod goes first; one that fits nowhere gets the reason in a condition
//! and an event, in the words of the real scheduler, and is tried again when something changes. Less important pods make
//! way for more important ones.
//!
//! Owner of nothing but `spec.nodeName`, which is written through `pods/binding`, and `status.nominatedNodeName`.
//! Deliberately absent: scheduling by weights that users configure, and the selection of nodes by a sample.

mod assign;
mod bind;
pub(crate) mod board;
mod claimants;
mod decide;
pub(crate) mod demand;
mod filter;
mod nominate;
mod preemption;
mod queue;
pub(crate) mod resources;
mod score;
pub(crate) mod selector;
mod shell;
mod stores;
pub(crate) mod taints;
mod tally;
mod verdict;
pub(crate) mod volumes;

#[cfg(test)]
mod tests;

use kubewright_runtime::{Client, Environment};
use tokio_util::sync::CancellationToken;

/// The scheduler that pods name unless they say otherwise.
const NAME: &str = "default-scheduler";

/// Finds nodes for pods.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Scheduler {
    options: SchedulerOptions,
}

/// How a scheduler is to be.
#[derive(Debug, Clone)]
struct SchedulerOptions {
    name: String,
}

impl Default for SchedulerOptions {
    fn default() -> Self {
        Self {
            name: NAME.to_owned(),
        }
    }
}

/// Why the scheduler does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchedulerError {
    /// Something cannot be watched.
    #[error("what the scheduler needs cannot be watched")]
    Watch(#[source] kubewright_cache::SyncError),
    /// The informers have stopped.
    #[error("the informers have stopped")]
    Stopped,
}

impl Scheduler {
    /// Makes the scheduler of pods that name `default-scheduler`.
    pub fn new() -> Self {
        Self::default()
    }

    /// A scheduler for the pods whose `spec.schedulerName` is this.
    pub fn named(name: impl Into<String>) -> Self {
        let options = SchedulerOptions { name: name.into() };
        Self { options }
    }

    /// Schedules pods until it is cancelled. One task serves them all.
    ///
    /// # Errors
    /// When pods or nodes cannot be watched.
    pub async fn run(
        self,
        client: Client,
        environment: Environment,
        cancel: CancellationToken,
    ) -> Result<(), SchedulerError> {
        shell::run(self.options, client, environment, cancel).await
    }
}
