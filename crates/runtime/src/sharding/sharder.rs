//! The task that keeps a replica's lease: the rules of the machine, with a clock and a network.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::gate::Shards;
use super::machine::{Action, Machine, Seen};
use super::member::{self, LABEL};
use super::{ShardingOptions, assignment::Shard};
use crate::environment::Environment;

/// How much longer than asked a turn of a replica that joins may be, so that replicas do not all ask at once.
const JITTER: f64 = 1.2;

/// Why a replica's part in the sharing ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It was asked to stop, and gave everything up.
    Left,
    /// The lease was not renewed in time: the work has to end at once.
    Lost,
}

/// The lease was not renewed in time.
struct DeadlinePassed;

/// Keeps the lease of one replica.
pub(crate) struct Sharder {
    options: ShardingOptions,
    api: Api<Lease>,
    environment: Environment,
    machine: Machine,
    shards: Shards,
}

impl Sharder {
    pub(crate) fn new(
        options: ShardingOptions,
        client: kube::Client,
        environment: Environment,
    ) -> Self {
        Self {
            api: Api::namespaced(client, &options.namespace),
            machine: Machine::new(options.clone()),
            shards: Shards::new(options.shards),
            environment,
            options,
        }
    }

    pub(crate) fn shards(&self) -> Shards {
        self.shards.clone()
    }

    /// Takes part until asked to stop, or until the lease is lost. After `cancel` shards are given up as their work ends.
    pub(crate) async fn run(mut self, cancel: CancellationToken) -> Ended {
        loop {
            if cancel.is_cancelled() {
                self.machine.leave();
            }
            if self.turn().await.is_err() || self.machine.is_lost() {
                return self.end(Ended::Lost);
            }
            if self.machine.has_left() {
                return self.end(Ended::Left);
            }
            let (deadline, pause) = (self.machine.deadline(), self.pause(&cancel));
            tokio::select! { biased; // A lost lease is worth most.
                () = until(deadline) => return self.end(Ended::Lost),
                () = self.shards.wait_for_drain() => {}
                () = cancelled(&cancel) => {}
                () = sleep(pause) => {}
            }
            let drained: Vec<Shard> = self.shards.drained();
            drained.iter().for_each(|it| self.machine.drained(*it));
        }
    }

    /// A member renews at a steady pace, so that several tries fit into its time; those that join are spread.
    fn pause(&self, cancel: &CancellationToken) -> Duration {
        let retry = self.options.retry_period;
        if !self.shards.drained().is_empty() {
            // Others wait for it.
            return Duration::ZERO;
        }
        if cancel.is_cancelled() {
            return retry / 4;
        }
        match self.machine.deadline() {
            Some(_) => retry,
            None => self.environment.jitter(retry, JITTER),
        }
    }

    fn end(self, ended: Ended) -> Ended {
        self.shards.apply(&Default::default(), None);
        tracing::info!(lease = %self.options.lease_name(), ?ended, "sharing of objects ended here");
        ended
    }

    /// One turn of the rules. A renewal that succeeds within it moves the deadline for the rest of it.
    async fn turn(&mut self) -> Result<(), DeadlinePassed> {
        let mut seen = Seen::Turn;
        loop {
            let wall = self.environment.now();
            let action = self.machine.step(Instant::now(), wall, seen);
            let (holdings, deadline) = (self.machine.holdings(), self.machine.deadline());
            self.shards.apply(holdings, deadline);
            if action == Action::Rest {
                return Ok(());
            }
            seen = tokio::select! { biased; // A lost lease is lost, also if an answer comes at the same time.
                () = until(deadline) => return Err(DeadlinePassed),
                seen = self.send(action) => seen,
            };
        }
    }

    async fn send(&self, action: Action) -> Seen {
        // Several tries fit in the time for a renewal.
        let patience = self.options.renew_deadline / 4;
        match timeout(patience, self.request(action)).await {
            Ok(Ok(seen)) => seen,
            Ok(Err(error)) => {
                tracing::debug!(%error, "a request about the leases of replicas failed");
                Seen::Failed
            }
            Err(_) => {
                tracing::debug!("a request about the leases of replicas had no answer");
                Seen::Failed
            }
        }
    }

    async fn request(&self, action: Action) -> Result<Seen, kube::Error> {
        let params = PostParams {
            field_manager: self.options.field_manager.clone(),
            ..PostParams::default()
        };
        match action {
            Action::Rest => Ok(Seen::Turn),
            Action::List => {
                // Without a version: the server answers with its newest state, not with that of a cache.
                let labels = format!("{LABEL}={}", self.options.name);
                let list = self
                    .api
                    .list(&ListParams::default().labels(&labels))
                    .await?;
                Ok(Seen::Listed(list.items))
            }
            Action::Create(lease) => {
                let created = self.api.create(&params, &lease).await?;
                Ok(Seen::Written(Box::new(created)))
            }
            Action::Update(lease) => {
                let name = member::name(&lease);
                let written = self.api.replace(name, &params, &lease).await?;
                Ok(Seen::Written(Box::new(written)))
            }
            Action::Delete(lease) => {
                let preconditions = Preconditions {
                    uid: lease.metadata.uid.clone(),
                    resource_version: lease.metadata.resource_version.clone(),
                };
                let params = DeleteParams::default().preconditions(preconditions);
                match self.api.delete(member::name(&lease), &params).await {
                    Ok(_) => Ok(Seen::Deleted),
                    Err(kube::Error::Api(status)) if status.code == 404 => Ok(Seen::Deleted),
                    Err(error) => Err(error),
                }
            }
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Completes when asked to stop, once: after that there is nothing to hurry for.
async fn cancelled(cancel: &CancellationToken) {
    if cancel.is_cancelled() {
        std::future::pending().await
    }
    cancel.cancelled().await
}
