//! Copies of a whole server: snapshots, forks, and going back to a snapshot.
//!
//! Objects are in persistent maps, so a copy is a clone of their roots and of what is derived from them. All that a
//! client can see of the original it can see of the copy, watches of the past included.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::core::{Core, ForkOptions};
use crate::listen::ListenLimits;
use crate::pki::Authority;
use crate::server::Server;
use crate::storage::RestoreError;

/// Everything a server has at one moment: objects, their past, kinds, roles, addresses. It never changes.
#[derive(Clone)]
pub struct Snapshot {
    core: Arc<Core>,
    limits: ListenLimits,
    authority: Arc<OnceLock<Authority>>,
}

impl Server {
    /// Everything as it is now, to go back to or to start other servers from.
    pub async fn snapshot(&self) -> Snapshot {
        let core = &self.core.0;
        Snapshot {
            core: core.fork(core.environment.clone().into()),
            limits: self.limits.clone(),
            authority: self.authority.clone(),
        }
    }

    /// An independent server in memory with all that this one has: revisions, history for watches, custom kinds,
    /// addresses, roles; tokens and certificates are good for both. Sockets, audit log and data directory stay with
    /// the original.
    pub async fn fork(&self, own: impl Into<ForkOptions>) -> Server {
        let core = self.core.0.fork(own.into());
        Server::run(core, self.limits.clone(), self.authority.clone())
    }

    /// Puts a snapshot in place of all objects, under the feet of all clients: objects are as they were, the revision
    /// goes on, and every watch has to list again.
    ///
    /// # Errors
    /// When the server has a data directory.
    pub async fn restore(&self, snapshot: &Snapshot) -> Result<(), RestoreError> {
        self.core.0.restore(&snapshot.core)
    }
}

impl Snapshot {
    /// A server of its own that starts from here, with its own time and randomness.
    pub async fn server(&self, own: impl Into<ForkOptions>) -> Server {
        let core = self.core.fork(own.into());
        Server::run(core, self.limits.clone(), self.authority.clone())
    }

    /// The revision at that moment.
    pub fn revision(&self) -> u64 {
        self.core.store.revision()
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Snapshot(revision {})", self.revision())
    }
}
