//! The manager's part in an election.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::part::{Part, Stage};
use super::supervisor::Supervisor;
use super::watchdog::Watchdog;
use super::{Manager, ManagerError, Process};
use crate::lease::{Election, Ended, LeaderStatus};

/// How long after the end of its lease the liveness probe lets a process be that led.
const GRACE: Duration = Duration::from_secs(20);

/// A manager that leads, wants to, or needs not to.
pub(super) struct Candidate {
    /// Cancelled when this process leads; at once where there is no election.
    leading: CancellationToken,
    pub(super) leadership: Option<LeaderStatus>,
    /// How long after the loss of its lease nobody else can lead.
    pub(super) margin: Duration,
    /// Ends a process that does not end by itself.
    _watchdog: Option<Watchdog>,
}

impl Candidate {
    /// Enters the election that the manager holds, if it holds one. The lease is asked for once the supervisor runs it.
    pub(super) fn enter(
        manager: &Manager,
        process: Process,
    ) -> Result<(Self, Option<Election>), ManagerError> {
        let leading = manager.leading.clone();
        let Some(options) = manager.election.clone() else {
            leading.cancel();
            let free = Self {
                leading,
                leadership: None,
                margin: Duration::ZERO,
                _watchdog: None,
            };
            return Ok((free, None));
        };
        let (kube, margin) = (manager.client.kube().clone(), options.margin());
        let options = options.field_manager(&manager.name);
        let election = Election::new(kube, options, manager.environment.clone())
            .map_err(ManagerError::Election)?;
        let leadership = election.leadership();
        manager
            .probes
            .liveness("leader-election", leadership.health(GRACE));
        let watchdog = match process {
            Process::Own => Some(Watchdog::start(leadership.clone(), margin)),
            Process::Shared => None,
        };
        let candidate = Self {
            leading,
            leadership: Some(leadership),
            margin,
            _watchdog: watchdog,
        };
        Ok((candidate, Some(election)))
    }

    /// Takes part in the election, as a part of the manager.
    pub(super) fn run(&self, election: Election, manager: &Manager, supervisor: &mut Supervisor) {
        let gauge = manager.metrics.leader(election.name());
        let leading = self.leading.clone();
        let part = Part::new(Stage::Election, "leader election");
        supervisor.add(part, |stop| async move {
            let ended = election.run(stop, move |leadership| {
                let leads = leadership.is_leading();
                gauge.set(if leads { 1.0 } else { 0.0 });
                if leads {
                    leading.cancel();
                }
            });
            match ended.await {
                Ended::Stopped => Ok(()),
                // The manager hears of it from the leadership, and drops everything; this is not another cause.
                Ended::Lost => std::future::pending().await,
            }
        });
    }

    /// Completes when this process led and lost its lease. Never where there is no election, nor after a release.
    pub(super) async fn lost(&self) {
        match &self.leadership {
            Some(leadership) => leadership.expired().await,
            None => std::future::pending().await,
        }
    }
}
