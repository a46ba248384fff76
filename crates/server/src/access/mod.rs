//! Access control: who may do what, who a token belongs to, and what was done.
//!
//! - `attributes` puts a request into the words of roles, `policy` answers whether roles allow it. Both are pure.
//! - `follow` keeps the policy in step with the stored roles and bindings.
//! - `escalation` keeps users from granting what they do not have.
//! - `node` lets kubelets do what their role says.
//! - `impersonation` lets users act as others, `token` signs and checks the tokens of service accounts.
//! - `audit` writes down what was asked and answered.
//!
//! Nobody is anonymous but for health and version: a request without credentials is answered with 401, not with the
//! 403 that a server with anonymous requests sends.

mod attributes;
pub(crate) mod audit;
pub(crate) mod escalation;
pub(crate) mod follow;
mod impersonation;
mod node;
pub(crate) mod policy;
pub(crate) mod rule;
pub(crate) mod token;

use std::sync::Arc;

use parking_lot::RwLock;

use self::audit::AuditLog;
use self::policy::{MASTERS, Verdict, missing_text};
use self::token::Issuer;
use crate::auth::User;
use crate::status::ApiError;

pub(crate) use attributes::{Attributes, Resource, Subject};
pub(crate) use impersonation::impersonate;
pub(crate) use policy::Policy;

/// How the server decides who may do what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Authorization {
    /// Whoever is known may do everything.
    #[default]
    AlwaysAllow,
    /// Roles and their bindings decide; members of `system:masters` may do everything, and nodes (`system:node:NAME` in
    /// `system:nodes`) what the role `system:node` says.
    Rbac,
}

/// What the server needs to decide.
pub(crate) struct Access {
    mode: Authorization,
    /// The policy of the stored roles and bindings; `derived` keeps it in step with them.
    pub(crate) policy: Arc<RwLock<Policy>>,
    pub(crate) issuer: Arc<Issuer>,
    pub(crate) audit: Option<AuditLog>,
}

/// A decision and what it rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) allowed: bool,
    /// Empty when there is nothing to tell.
    pub(crate) reason: String,
}

impl Decision {
    fn allowed(reason: impl Into<String>) -> Self {
        Self {
            allowed: true,
            reason: reason.into(),
        }
    }

    /// Refuses, because no rule allows it.
    pub(crate) fn forbidden() -> Self {
        Self {
            allowed: false,
            reason: String::new(),
        }
    }
}

impl Access {
    pub(crate) fn new(mode: Authorization, issuer: Issuer, audit: Option<AuditLog>) -> Self {
        Self {
            mode,
            policy: Arc::default(),
            issuer: Arc::new(issuer),
            audit,
        }
    }

    /// The same way to decide, by this policy.
    pub(crate) fn by(self, policy: Arc<RwLock<Policy>>) -> Self {
        Self { policy, ..self }
    }

    /// The same way to decide, and tokens that are good here and there. The audit log stays with the original.
    pub(crate) fn fork(&self) -> Self {
        Self {
            mode: self.mode,
            policy: Arc::default(),
            issuer: self.issuer.clone(),
            audit: None,
        }
    }

    pub(crate) fn mode(&self) -> Authorization {
        self.mode
    }

    /// Whether a user may do everything, whatever the roles say.
    pub(crate) fn is_unrestricted(&self, user: &User) -> bool {
        self.mode == Authorization::AlwaysAllow || user.groups.iter().any(|group| group == MASTERS)
    }

    /// Whether a user may do something.
    pub(crate) fn allows(&self, user: &User, asked: &Attributes<'_>) -> bool {
        if self.is_unrestricted(user) {
            return true;
        }
        let policy = self.policy.read();
        node::allows(&policy, user, asked)
            || matches!(policy.decide(user, asked), Verdict::Allowed(_))
    }

    /// Whether a user may do something, and why.
    pub(crate) fn decide(&self, user: &User, asked: &Attributes<'_>) -> Decision {
        if self.is_unrestricted(user) {
            return Decision::allowed("");
        }
        let policy = self.policy.read();
        if node::allows(&policy, user, asked) {
            return Decision::allowed("");
        }
        match policy.decide(user, asked) {
            Verdict::Allowed(grounds) => Decision::allowed(format!("RBAC: allowed by {grounds}")),
            Verdict::Refused { missing } if missing.is_empty() => Decision::forbidden(),
            Verdict::Refused { missing } => Decision {
                allowed: false,
                reason: format!("RBAC: {}", missing_text(&missing)),
            },
        }
    }

    /// Refuses what a user may not do.
    pub(crate) fn authorize(&self, user: &User, asked: &Attributes<'_>) -> Result<(), ApiError> {
        if self.allows(user, asked) {
            return Ok(());
        }
        Err(asked.forbidden(user, &self.decide(user, asked).reason))
    }
}

/// The user that a service account is.
pub(crate) fn service_account_name(namespace: &str, name: &str) -> String {
    format!("system:serviceaccount:{namespace}:{name}")
}

/// The groups that every service account of a namespace is in.
pub(crate) fn service_account_groups(namespace: &str) -> [String; 2] {
    [
        "system:serviceaccounts".to_owned(),
        format!("system:serviceaccounts:{namespace}"),
    ]
}
