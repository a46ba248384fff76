//! The manager's part in an election.

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{Manager, ManagerError};
use crate::lease::{Election, Ended, Leadership};

/// A manager that leads, wants to, or needs not to.
pub(super) struct Candidate {
    /// Cancelled when this process leads; at once where there is no election.
    pub(super) leading: CancellationToken,
    running: Option<Running>,
}

struct Running {
    leadership: Leadership,
    stop: CancellationToken,
    /// The election. Dropped with a manager that is not stopped but cut off, and then nothing is released.
    task: JoinSet<Ended>,
}

impl Candidate {
    /// Enters the election that the manager holds, if it holds one.
    pub(super) fn enter(manager: &Manager) -> Result<Self, ManagerError> {
        let leading = CancellationToken::new();
        let Some(options) = manager.election.clone() else {
            leading.cancel();
            return Ok(Self {
                leading,
                running: None,
            });
        };
        let kube = manager.client.kube().clone();
        let gauge = manager.metrics.leader(options.name());
        let election = Election::new(kube, options, manager.environment.clone())
            .map_err(ManagerError::Election)?;
        let (leadership, stop) = (election.leadership(), CancellationToken::new());
        let (led, told) = (leading.clone(), stop.clone());
        let mut task = JoinSet::new();
        task.spawn(election.run(told, move |leadership| {
            let leads = leadership.is_leading();
            gauge.set(if leads { 1.0 } else { 0.0 });
            if leads {
                led.cancel();
            }
        }));
        let grace = std::time::Duration::from_secs(20);
        manager
            .probes
            .liveness("leader-election", leadership.health(grace));
        let running = Some(Running {
            leadership,
            stop,
            task,
        });
        Ok(Self { leading, running })
    }

    /// Completes when this process led and does not any more. Never where there is no election.
    pub(super) async fn lost(&self) {
        let Some(running) = &self.running else {
            return std::future::pending().await;
        };
        running.leadership.acquired().await;
        running.leadership.lost().await;
    }

    /// Gives the lease up. The work must have ended.
    pub(super) async fn leave(self) {
        if let Some(mut running) = self.running {
            running.stop.cancel();
            // A panic in it has nobody to be told to; the lease runs out.
            running.task.join_next().await;
        }
    }
}
