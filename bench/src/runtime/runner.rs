//! Starts, one after the other, the controllers that are measured against the source.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::process::{Serving, measured};
use crate::reconcile::Outcome;

/// Objects beside those that stay in flight: each is timed once.
pub(super) const SPARE: usize = 200;
/// How often keys go round within one turn.
const ROUNDS: usize = 5;

/// Knows the programs.
pub(super) struct Runner {
    ourselves: PathBuf,
    controller_runtime: Option<PathBuf>,
}

/// Whose controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peer {
    Kubewright,
    KubeRs,
    ControllerRuntime,
}

/// What is measured of a controller.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    measure: &'static str,
    /// How many reconciles may run at once.
    pub(super) workers: usize,
    reads: &'static str,
    /// Which queue of controller-runtime's.
    queue: &'static str,
    events: usize,
    flights: usize,
}

impl Plan {
    fn rate(workers: usize, reads: &'static str, queue: &'static str) -> Self {
        Self {
            measure: "rate",
            workers,
            reads,
            queue,
            events: 0,
            flights: 0,
        }
    }

    /// One worker, so that nobody waits for a lock of somebody else's.
    pub(super) fn latency(events: usize) -> Self {
        Self {
            measure: "latency",
            events,
            ..Self::rate(1, "object", "priority")
        }
    }

    /// As many workers as there are keys; kube-rs knows no limit then.
    pub(super) fn flight(peer: Peer, flights: usize) -> Self {
        let workers = match peer {
            Peer::KubeRs => 0,
            _ => flights + SPARE,
        };
        Self {
            measure: "flight",
            flights,
            ..Self::rate(workers, "object", "priority")
        }
    }

    /// Whether each reconcile has its object.
    pub(super) fn is_of_objects(self) -> bool {
        self.reads == "object"
    }
}

impl Peer {
    fn name(self) -> &'static str {
        match self {
            Self::Kubewright => "kubewright",
            Self::KubeRs => "kube-rs",
            Self::ControllerRuntime => "controller-runtime",
        }
    }

    /// What is tried to find its best rate.
    pub(super) fn rates(self) -> Vec<Plan> {
        let mut plans = Vec::new();
        for workers in [1, 2, 8] {
            match self {
                Self::KubeRs => plans.push(Plan::rate(workers, "object", "priority")),
                Self::Kubewright => {
                    plans.push(Plan::rate(workers, "none", "priority"));
                    plans.push(Plan::rate(workers, "object", "priority"));
                }
                Self::ControllerRuntime => {
                    for queue in ["priority", "plain"] {
                        plans.push(Plan::rate(workers, "none", queue));
                        plans.push(Plan::rate(workers, "object", queue));
                    }
                }
            }
        }
        plans
    }
}

impl Runner {
    pub(super) fn new(controller_runtime: Option<PathBuf>) -> Result<Self> {
        Ok(Self {
            ourselves: std::env::current_exe().context("finding the program itself")?,
            controller_runtime,
        })
    }

    /// Those that are there.
    pub(super) fn peers(&self) -> impl Iterator<Item = Peer> {
        let theirs = self.controller_runtime.as_ref();
        let theirs = theirs.map(|_| Peer::ControllerRuntime);
        [Peer::Kubewright, Peer::KubeRs].into_iter().chain(theirs)
    }

    /// Measures a controller.
    pub(super) async fn measure(
        &self,
        peer: Peer,
        source: &Serving,
        plan: Plan,
    ) -> Result<Outcome> {
        let mut command = self.command(peer, plan);
        command.arg("--kubeconfig").arg(source.kubeconfig());
        for (name, value) in [
            ("--measure", plan.measure.to_owned()),
            ("--objects", source.objects.to_string()),
            ("--workers", plan.workers.to_string()),
            ("--reads", plan.reads.to_owned()),
            ("--rounds", ROUNDS.to_string()),
            ("--events", plan.events.to_string()),
            ("--flights", plan.flights.to_string()),
        ] {
            command.arg(name).arg(value);
        }
        let Plan {
            measure,
            workers,
            reads,
            queue,
            ..
        } = plan;
        let name = peer.name();
        let what = format!("{name}, {measure}, {workers} workers, reads: {reads}, queue: {queue}");
        measured(command, &what).await
    }

    fn command(&self, peer: Peer, plan: Plan) -> Command {
        match (peer, &self.controller_runtime) {
            (Peer::ControllerRuntime, Some(program)) => {
                let mut command = Command::new(program);
                command.arg("reconcile").args(["--queue", plan.queue]);
                // It lists: its streams take longer.
                command.env("KUBE_FEATURE_WatchListClient", "false");
                command
            }
            _ => {
                let mut command = Command::new(&self.ourselves);
                command.args(["reconcile", "--peer", peer.name()]);
                command
            }
        }
    }
}
