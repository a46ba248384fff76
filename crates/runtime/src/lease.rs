//! Leader election on a `Lease` of coordination.k8s.io: of many replicas one leads.
//!
//! Guarantees
//! - A leader stops leading `renew_deadline` after the *start* of its last successful renewal, whatever the network does;
//!   others wait `lease_duration` from when they *saw* that renewal. Since the first is shorter, no two lead at once, as
//!   long as their clocks go at about the same rate. They need not show the same time.
//! - [`LeaderStatus::is_leading`] asks the clock, so that it is right even if the task that renews is stuck.
//!
//! Rules and fields are client-go's, so that both can share a lease. Differences: the deadline counts from the start of
//! the last renewal rather than from the first failure, and a candidate looks again when the lease runs out rather than
//! at the next turn. Deliberately absent: fencing. A write that is under way when leadership ends may still arrive.

mod election;
mod machine;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

pub use election::{Election, Ended};

/// How much longer than asked a turn may be; the jitter of client-go.
const JITTER: f64 = 1.2;

/// Which lease, who asks for it, and how fast.
#[derive(Debug, Clone)]
#[non_exhaustive]
#[must_use]
pub struct LeaseOptions {
    namespace: String,
    name: String,
    identity: String,
    labels: BTreeMap<String, String>,
    lease_duration: Duration,
    renew_deadline: Duration,
    retry_period: Duration,
    on_stop: OnStop,
    /// Who writes the lease, to the server.
    field_manager: Option<String>,
}

/// What becomes of the lease when a leader is asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnStop {
    /// It is given up, so that another takes over at once. Stop the work first.
    #[default]
    Release,
    /// It is kept until it runs out.
    Keep,
}

/// Why options make no election.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LeaseOptionsError {
    /// A leader must stop before others take over.
    #[error("leaseDuration must be greater than renewDeadline")]
    LeaseDuration,
    /// There must be time for a second try.
    #[error("renewDeadline must be greater than retryPeriod*JitterFactor")]
    RenewDeadline,
    /// Leases count in whole seconds.
    #[error("leaseDuration must be a whole number of seconds, and at least one")]
    WholeSeconds,
    /// The retry period is zero, and the election would spin.
    #[error("retryPeriod must be greater than zero")]
    RetryPeriod,
    /// Namespace, name or identity are missing.
    #[error("namespace, name and identity must not be empty")]
    Empty,
}

impl LeaseOptions {
    /// The lease `namespace/name`, asked for by `identity`, which no other process may have: a host name and a UID. 15 s
    /// of lease, 10 s to renew it, a try every 2 s.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use kubewright_runtime::LeaseOptions;
    ///
    /// let options = LeaseOptions::new("system", "my-operator", "my-operator-0")
    ///     .lease_duration(Duration::from_secs(30))
    ///     .renew_deadline(Duration::from_secs(20));
    /// assert_eq!(options.name(), "my-operator");
    /// ```
    pub fn new(namespace: &str, name: &str, identity: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            identity: identity.into(),
            labels: BTreeMap::new(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            on_stop: OnStop::default(),
            field_manager: None,
        }
    }

    /// The name of the lease.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How long others wait after they saw the last renewal, in whole seconds.
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.lease_duration = duration;
        self
    }

    /// How long after its last renewal a leader leads.
    pub fn renew_deadline(mut self, duration: Duration) -> Self {
        self.renew_deadline = duration;
        self
    }

    /// How long to wait between tries.
    pub fn retry_period(mut self, duration: Duration) -> Self {
        self.retry_period = duration;
        self
    }

    /// What becomes of the lease when the leader is asked to stop.
    ///
    /// ```
    /// # use kubewright_runtime::LeaseOptions;
    /// use kubewright_runtime::lease::OnStop;
    ///
    /// let options = LeaseOptions::new("system", "my-operator", "a").on_stop(OnStop::Keep);
    /// # drop(options);
    /// ```
    pub fn on_stop(mut self, on_stop: OnStop) -> Self {
        self.on_stop = on_stop;
        self
    }

    /// A label of the lease, if it is created here.
    pub fn label(mut self, name: &str, value: &str) -> Self {
        self.labels.insert(name.into(), value.into());
        self
    }

    /// Sets the name under which the lease is written.
    pub(crate) fn field_manager(mut self, name: &str) -> Self {
        self.field_manager = Some(name.to_owned());
        self
    }

    /// How long after a leader gave up, at the latest, another one can lead.
    pub(crate) fn margin(&self) -> Duration {
        self.lease_duration.saturating_sub(self.renew_deadline)
    }

    fn check(&self) -> Result<(), LeaseOptionsError> {
        let Self {
            lease_duration,
            renew_deadline,
            retry_period,
            ..
        } = self;
        if [&self.namespace, &self.name, &self.identity]
            .iter()
            .any(|text| text.is_empty())
        {
            return Err(LeaseOptionsError::Empty);
        }
        if lease_duration <= renew_deadline {
            return Err(LeaseOptionsError::LeaseDuration);
        }
        if renew_deadline.as_secs_f64() <= retry_period.as_secs_f64() * JITTER {
            return Err(LeaseOptionsError::RenewDeadline);
        }
        if retry_period.is_zero() {
            return Err(LeaseOptionsError::RetryPeriod);
        }
        let whole = lease_duration.subsec_nanos() == 0;
        if whole && i32::try_from(lease_duration.as_secs()).is_ok() {
            Ok(())
        } else {
            Err(LeaseOptionsError::WholeSeconds)
        }
    }
}

/// How a candidate stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Standing {
    /// Not leading, and not known who is.
    #[default]
    Unknown,
    /// Another candidate holds the lease.
    Following { leader: String },
    /// Leading, if the deadline has not passed.
    Leading { renewed: Instant, deadline: Instant },
    /// Led, and does not any more.
    Lost { renewed: Instant },
    /// Not taking part any more.
    Stopped,
}

impl Standing {
    fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Leading { deadline, .. } => Some(*deadline),
            _ => None,
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Whether this process leads, now and from now on. Clones show the same. Whether a controller needs a leader is another
/// matter: [`controller::Leadership`](crate::controller::Leadership).
#[derive(Debug, Clone)]
pub struct LeaderStatus {
    standing: watch::Receiver<Standing>,
    name: Arc<str>,
    lease_duration: Duration,
    renew_deadline: Duration,
}

impl LeaderStatus {
    /// Whether this process leads at this moment, by the clock.
    pub fn is_leading(&self) -> bool {
        let now = Instant::now();
        matches!(&*self.standing.borrow(), Standing::Leading { deadline, .. } if now < *deadline)
    }

    /// Who leads, if it is somebody else and known.
    pub fn other_leader(&self) -> Option<String> {
        match &*self.standing.borrow() {
            Standing::Following { leader } => Some(leader.clone()),
            _ => None,
        }
    }

    /// Waits until this process leads. Never ends if the election ends before.
    pub async fn acquired(&self) {
        let mut standing = self.standing.clone();
        let leading = |standing: &Standing| matches!(standing, Standing::Leading { .. });
        if standing.wait_for(leading).await.is_err() {
            std::future::pending().await
        }
    }

    /// Waits until this process has led and does not any more: returns at the deadline at the latest, and at once when that is
    /// already so. Never ends for a process that never led.
    pub async fn lost(&self) {
        let over =
            |standing: &Standing| matches!(standing, Standing::Lost { .. } | Standing::Stopped);
        self.over(over).await;
    }

    /// As [`lost`](LeaderStatus::lost), but a lease that was given up was not lost.
    pub(crate) async fn expired(&self) {
        let over = |standing: &Standing| matches!(standing, Standing::Lost { .. });
        self.over(over).await;
    }

    /// Waits until the standing is such, or the deadline of a leader has passed.
    ///
    /// A state is waited for, not a change: a process that was held for longer than its lease may see `Lost` first.
    async fn over(&self, over: impl Fn(&Standing) -> bool) {
        let mut standing = self.standing.clone();
        loop {
            let (is_over, deadline) = {
                let now = standing.borrow_and_update();
                (over(&now), now.deadline())
            };
            if is_over {
                return;
            }
            // A change comes first: a renewal moves the deadline.
            tokio::select! {
                biased;
                changed = standing.changed() => if changed.is_err() {
                    break until(deadline).await;
                },
                () = until(deadline) => return,
            }
        }
    }

    /// Whether this process led and lost its lease.
    pub(crate) fn is_lost(&self) -> bool {
        match &*self.standing.borrow() {
            Standing::Lost { .. } => true,
            Standing::Leading { deadline, .. } => *deadline <= Instant::now(),
            _ => false,
        }
    }

    /// When the lease of this process ends or ended, if it leads or lost it.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match *self.standing.borrow() {
            Standing::Leading { deadline, .. } => Some(deadline),
            Standing::Lost { renewed } => Some(renewed + self.renew_deadline),
            _ => None,
        }
    }

    /// The name of the lease.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A check for a liveness probe: fails when this process led, did not renew, and is still there `grace` after the
    /// lease ran out. A process that lost its lease has to end.
    pub fn health(
        &self,
        grace: Duration,
    ) -> impl Fn() -> Result<(), String> + Send + Sync + 'static {
        let this = self.clone();
        move || {
            let renewed = match *this.standing.borrow() {
                Standing::Leading { renewed, .. } | Standing::Lost { renewed } => renewed,
                _ => return Ok(()),
            };
            if Instant::now() > renewed + this.lease_duration + grace {
                Err(format!(
                    "failed election to renew leadership on lease {}",
                    this.name
                ))
            } else {
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests;
