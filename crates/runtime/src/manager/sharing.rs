//! The manager's part in sharing the objects with other replicas.

use tokio_util::sync::CancellationToken;

use super::part::{Part, Stage};
use super::supervisor::Supervisor;
use super::{Manager, ManagerError};
use crate::sharding::{Ended, Sharder, Shards};

/// A replica that shares the objects with others, or works on all of them.
pub(super) struct Sharing {
    /// What this replica may work on; none where nothing is shared.
    pub(super) shards: Option<Shards>,
    /// Cancelled when the lease of this replica is lost.
    lost: CancellationToken,
}

impl Sharing {
    /// Takes part as the manager's options say, as a part of the manager.
    pub(super) fn enter(
        manager: &Manager,
        supervisor: &mut Supervisor,
    ) -> Result<Self, ManagerError> {
        let lost = CancellationToken::new();
        let Some(options) = manager.sharding.clone() else {
            return Ok(Self { shards: None, lost });
        };
        options.check().map_err(ManagerError::Sharding)?;
        let options = options.field_manager(&manager.name);
        let kube = manager.client.kube().clone();
        let sharder = Sharder::new(options, kube, manager.environment.clone());
        let shards = Some(sharder.shards());
        let ended = lost.clone();
        supervisor.add(Part::new(Stage::Election, "sharding"), |stop| async move {
            match sharder.run(stop).await {
                Ended::Left => Ok(()),
                // The manager hears of it, and drops everything; this is not another cause.
                Ended::Lost => {
                    ended.cancel();
                    std::future::pending().await
                }
            }
        });
        Ok(Self { shards, lost })
    }

    /// Completes when the lease of this replica was not renewed in time. Never where nothing is shared.
    pub(super) async fn lost(&self) {
        self.lost.cancelled().await;
    }
}
