//! Runs the machine of an election against a server: requests, timers, and the watch value that others look at.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::machine::{Action, Machine, Seen};
use super::{JITTER, LeaderStatus, LeaseOptions, LeaseOptionsError, OnStop, Standing, until};
use crate::environment::Environment;

/// Tries to give up the lease; after that it runs out by itself.
const RELEASE_TRIES: usize = 3;
/// How long giving up the lease may take in all.
const RELEASE_WITHIN: Duration = Duration::from_secs(3);

/// How an election ended for this candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub enum Ended {
    /// It was asked to stop.
    Stopped,
    /// It led and lost the lease. The process has to end: what it was doing may not go on.
    Lost,
}

/// A candidate for one lease.
#[derive(Debug)]
pub struct Election {
    leases: Leases,
    machine: Machine,
    options: LeaseOptions,
    environment: Environment,
    standing: watch::Sender<Standing>,
}

/// The one lease, on the server.
#[derive(Debug)]
struct Leases {
    api: Api<Lease>,
    name: String,
    patience: Duration,
    field_manager: Option<String>,
}

impl Election {
    /// A candidate that does not take part yet.
    ///
    /// # Errors
    /// When the times do not fit together.
    pub fn new(
        client: Client,
        options: LeaseOptions,
        environment: Environment,
    ) -> Result<Self, LeaseOptionsError> {
        options.check()?;
        Ok(Self {
            leases: Leases {
                api: Api::namespaced(client, &options.namespace),
                name: options.name.clone(),
                // Half of the deadline, so that one request without an answer does not cost the lease.
                patience: options.renew_deadline / 2,
                field_manager: options.field_manager.clone(),
            },
            machine: Machine::new(options.clone()),
            options,
            environment,
            standing: watch::Sender::default(),
        })
    }

    /// Whether this candidate leads: to be asked and waited for by others.
    pub fn leadership(&self) -> LeaderStatus {
        LeaderStatus {
            standing: self.standing.subscribe(),
            name: self.options.name.as_str().into(),
            lease_duration: self.options.lease_duration,
            renew_deadline: self.options.renew_deadline,
        }
    }

    /// The name of the lease.
    pub fn name(&self) -> &str {
        &self.options.name
    }

    /// Takes part until cancelled or until the lease is lost, and tells each change of leadership. A leader that is
    /// cancelled gives the lease up, so cancel after the work has stopped.
    pub async fn run(
        mut self,
        cancel: CancellationToken,
        mut on_change: impl FnMut(&LeaderStatus),
    ) -> Ended {
        let leadership = self.leadership();
        loop {
            let deadline = self.deadline();
            // Stopping comes first, and the end of the lease before an answer that arrives with it: never lead longer.
            let ended = tokio::select! {
                biased;
                () = cancel.cancelled() => Some(Ended::Stopped),
                () = until(deadline) => Some(Ended::Lost),
                () = self.turn() => None,
            };
            if let Some(ended) = ended.or_else(|| self.publish(&leadership, &mut on_change)) {
                return self.end(ended, &leadership, &mut on_change).await;
            }
            let (deadline, pause) = (self.deadline(), self.pause());
            // As above.
            let ended = tokio::select! {
                biased;
                () = cancel.cancelled() => Some(Ended::Stopped),
                () = until(deadline) => Some(Ended::Lost),
                () = sleep(pause) => None,
            };
            if let Some(ended) = ended {
                return self.end(ended, &leadership, &mut on_change).await;
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.machine.standing().deadline()
    }

    /// A leader renews at a steady pace; candidates are spread, and look when the lease runs out.
    fn pause(&self) -> Duration {
        let retry = self.options.retry_period;
        if self.deadline().is_some() {
            return retry;
        }
        let pause = self.environment.jitter(retry, JITTER);
        let now = Instant::now();
        match self.machine.expiry().filter(|expiry| *expiry > now) {
            Some(expiry) => pause.min(expiry - now),
            None => pause,
        }
    }

    async fn turn(&mut self) {
        let mut seen = Seen::Turn;
        loop {
            let wall = self.environment.now();
            let action = self.machine.step(Instant::now(), wall, seen);
            seen = match action {
                Action::Rest => return,
                action => self.leases.send(action).await,
            };
        }
    }

    /// Shows how we stand, and says whether that is the end.
    fn publish(
        &self,
        leadership: &LeaderStatus,
        on_change: &mut impl FnMut(&LeaderStatus),
    ) -> Option<Ended> {
        let standing = self.machine.standing();
        let lost = matches!(standing, Standing::Lost { .. });
        if !lost {
            self.show(standing, leadership, on_change);
        }
        lost.then_some(Ended::Lost)
    }

    fn show(
        &self,
        standing: Standing,
        leadership: &LeaderStatus,
        on_change: &mut impl FnMut(&LeaderStatus),
    ) {
        let leads = |standing: &Standing| matches!(standing, Standing::Leading { .. });
        let was_leading = leads(&self.standing.borrow());
        let is_leading = leads(&standing);
        self.standing.send_if_modified(|shown| {
            let modified = *shown != standing;
            *shown = standing;
            modified
        });
        if was_leading != is_leading {
            tracing::info!(lease = %self.options.name, identity = %self.options.identity, is_leading, "leadership changed");
            on_change(leadership);
        }
    }

    async fn end(
        self,
        ended: Ended,
        leadership: &LeaderStatus,
        on_change: &mut impl FnMut(&LeaderStatus),
    ) -> Ended {
        let standing = match (ended, self.machine.standing()) {
            (Ended::Lost, Standing::Leading { renewed, .. } | Standing::Lost { renewed }) => {
                Standing::Lost { renewed }
            }
            _ => Standing::Stopped,
        };
        // Before the lease is given up, so that nobody here believes to lead when another one does.
        self.show(standing, leadership, on_change);
        let release = ended == Ended::Stopped && self.options.on_stop == OnStop::Release;
        if release && self.machine.may_hold() {
            // Whoever stops has not much time, and the lease runs out by itself.
            if timeout(RELEASE_WITHIN, self.release()).await != Ok(Released::Yes) {
                tracing::warn!(lease = %self.options.name, "the lease was not released; it will run out");
            }
        }
        tracing::info!(lease = %self.options.name, ?ended, "the election ended here");
        ended
    }

    async fn release(&self) -> Released {
        for _ in 0..RELEASE_TRIES {
            let Seen::Found(lease) = self.leases.send(Action::Get).await else {
                continue;
            };
            let Some(lease) = self.machine.released(*lease, self.environment.now()) else {
                return Released::Yes;
            };
            let update = Action::Update(Box::new(lease));
            if let Seen::Written(_) = self.leases.send(update).await {
                return Released::Yes;
            }
        }
        Released::No
    }
}

/// Whether the lease is nobody's, or somebody else's.
#[derive(Debug, PartialEq)]
enum Released {
    Yes,
    No,
}

impl Leases {
    async fn send(&self, action: Action) -> Seen {
        let answer = timeout(self.patience, self.request(action)).await;
        match answer {
            Ok(Ok(seen)) => seen,
            Ok(Err(error)) => {
                tracing::debug!(lease = %self.name, %error, "a request of the election failed");
                Seen::Failed
            }
            Err(_) => {
                tracing::debug!(lease = %self.name, "a request of the election had no answer");
                Seen::Failed
            }
        }
    }

    async fn request(&self, action: Action) -> Result<Seen, kube::Error> {
        let params = PostParams {
            field_manager: self.field_manager.clone(),
            ..PostParams::default()
        };
        match action {
            Action::Rest => Ok(Seen::Turn),
            Action::Get => Ok(match self.api.get_opt(&self.name).await? {
                Some(lease) => Seen::Found(Box::new(lease)),
                None => Seen::Missing,
            }),
            Action::Create(lease) => {
                let created = self.api.create(&params, &lease).await?;
                Ok(Seen::Written(Box::new(created)))
            }
            Action::Update(lease) => {
                let written = self.api.replace(&self.name, &params, &lease).await?;
                Ok(Seen::Written(Box::new(written)))
            }
        }
    }
}
