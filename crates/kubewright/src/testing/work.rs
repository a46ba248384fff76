//! What the operator did, as the server saw it: requests, writes, permissions that were used.

use kubewright_testing::{Exchange, RoleUse};

use super::role::{self, Identity};
use super::world::World;

/// A moment in the sequence of the operator's requests. See [`World::mark`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(usize);

impl World {
    /// Marks this moment, for [`writes_since`](World::writes_since).
    pub fn mark(&self) -> Mark {
        Mark(self.wire().passed())
    }

    /// Everything that the operator asked the server to change so far, events included. Leases of elections are left out, because
    /// they are renewed all the time.
    pub fn writes(&self) -> Vec<Exchange> {
        self.writes_since(Mark(0))
    }

    /// What the operator asked the server to change since a moment.
    pub fn writes_since(&self, mark: Mark) -> Vec<Exchange> {
        let mut writes = self.wire().exchanges_since(mark.0);
        writes.retain(|exchange| exchange.is_write() && !exchange.is_lease());
        writes
    }

    /// Compares the operator's role with what it has done so far: what was not used, and what is missing. Roles that every
    /// deployment has, for elections and metrics, are not compared. For an operator that runs as the administrator this is the role
    /// that is generated for it.
    ///
    /// # Panics
    /// When no role can be generated from what is registered.
    pub fn role_use(&self) -> RoleUse {
        let generated = || Identity::Generated.grant();
        let grant = match self.grant() {
            Some(grant) => Some(grant.clone()),
            None => generated().expect("a role can be generated"),
        };
        let Some(grant) = grant else {
            return RoleUse::default();
        };
        let used = self.wire().used();
        let mut compared = RoleUse::compare(&role::declared(&grant), &used);
        compared.missing = RoleUse::compare(&grant.permissions(), &used).missing;
        compared
    }

    /// Fails when the operator's role has a verb that nothing needed so far, or lacks one. A test calls this at the end of a
    /// scenario that has everything the operator can do.
    ///
    /// # Panics
    /// When the role is not exact, with each verb that is too much and each that is missing.
    #[track_caller]
    pub fn assert_exact_role(&self) {
        let compared = self.role_use();
        assert!(compared.is_exact(), "the role is not exact:\n{compared}");
    }
}
