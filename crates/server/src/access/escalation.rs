//! Nobody grants what they do not have: checks on writes of roles and bindings.

use serde_json::Value;

use super::Access;
use super::attributes::{Attributes, Resource, Subject};
use super::policy::{RoleKind, RoleRef};
use super::rule::{self, Missing, Rule};
use crate::auth::User;
use crate::object;
use crate::resource::Served;
use crate::status::{About, ApiError};

const GROUP: &str = "rbac.authorization.k8s.io";
/// The most missing rules that an error lists.
const MAX_LINES: usize = 1_000;
const NEEDS_EVERYTHING: &str = "must have cluster-admin privileges to use the aggregationRule";

/// The check of one write.
pub(crate) struct EscalationCheck<'a> {
    pub(crate) access: &'a Access,
    pub(crate) served: &'a Served,
    pub(crate) user: &'a User,
    pub(crate) namespace: &'a str,
    /// The name in the request's path; empty for a create.
    pub(crate) name: &'a str,
}

impl EscalationCheck<'_> {
    /// Refuses an object that grants more than its writer has. `old` is what it replaces. Other kinds pass, and so do
    /// users who may do everything.
    pub(crate) fn run(&self, old: Option<&Value>, new: &Value) -> Result<(), ApiError> {
        let concerned = &*self.served.resource.group == GROUP;
        if !concerned || self.access.is_unrestricted(self.user) {
            return Ok(());
        }
        if old.is_some_and(|old| grants_the_same(old, new)) {
            return Ok(());
        }
        match &*self.served.resource.plural {
            "roles" | "clusterroles" => self.role(old, new),
            _ => self.binding(new),
        }
    }

    fn role(&self, old: Option<&Value>, new: &Value) -> Result<(), ApiError> {
        if self.may("escalate", &self.served.resource.plural, self.name) {
            return Ok(());
        }
        self.confirm(&Rule::of_role(new), new)?;
        let gathers = |role: &Value| {
            let selectors = role["aggregationRule"]["clusterRoleSelectors"].as_array();
            selectors.is_some_and(|selectors| !selectors.is_empty())
        };
        // It can gather anything, and an old one would undo a tightening.
        if gathers(new) || old.is_some_and(gathers) {
            return match self.missing(&Rule::everything()) {
                Some(_) => Err(self.refuse(new, NEEDS_EVERYTHING)),
                None => Ok(()),
            };
        }
        Ok(())
    }

    fn binding(&self, new: &Value) -> Result<(), ApiError> {
        let role = RoleRef::read(&new["roleRef"]);
        let (plural, singular) = match role.kind {
            RoleKind::Role => ("roles", "role"),
            RoleKind::ClusterRole => ("clusterroles", "clusterrole"),
        };
        if self.may("bind", plural, &role.name) {
            return Ok(());
        }
        let rules = {
            let policy = self.access.policy.read();
            policy.rules(&role, self.namespace).map(<[Rule]>::to_vec)
        };
        let about = About {
            group: GROUP,
            resource: singular,
        };
        let rules = rules.ok_or_else(|| ApiError::not_found(about, &role.name))?;
        self.confirm(&rules, new)
    }

    fn may(&self, verb: &str, plural: &str, name: &str) -> bool {
        let resource = Resource {
            group: GROUP,
            version: "*",
            plural,
            namespace: self.namespace,
            name: name.into(),
            ..Resource::default()
        };
        let asked = Attributes {
            verb: verb.into(),
            subject: Subject::Resource(resource),
        };
        self.access.allows(self.user, &asked)
    }

    fn missing(&self, wanted: &[Rule]) -> Option<Missing> {
        let held = self.access.policy.read().held(self.user, self.namespace);
        rule::missing(&held.rules, wanted)
    }

    /// Refuses rules that the user does not have.
    fn confirm(&self, wanted: &[Rule], object: &Value) -> Result<(), ApiError> {
        let missing = match self.missing(wanted) {
            None => return Ok(()),
            Some(Missing::TooMany) => {
                let why = "the rules are too many to be compared with those of the user";
                return Err(self.refuse(object, why));
            }
            Some(Missing::Rules(rules)) => rules,
        };
        let mut lines: Vec<String> = missing.iter().map(Rule::to_string).collect();
        lines.sort();
        lines.dedup();
        lines.truncate(MAX_LINES);
        let (user, groups) = (&self.user.name, rule::quoted(&self.user.groups));
        let why = format!(
            "user {user:?} (groups={groups}) is attempting to grant RBAC permissions not currently held:\n{}",
            lines.join("\n")
        );
        Err(self.refuse(object, &why))
    }

    fn refuse(&self, object: &Value, why: &str) -> ApiError {
        ApiError::forbidden(self.served.about(), object::name(object), why)
    }
}

/// Whether nothing changes but what a garbage collector changes.
fn grants_the_same(old: &Value, new: &Value) -> bool {
    let mut new = new.clone();
    for field in ["ownerReferences", "finalizers", "selfLink", "managedFields"] {
        object::copy_meta(&mut new, old, field);
    }
    new == *old
}
