//! The policy: roles and bindings, indexed by whom they concern. Pure: what changes is put in, what is asked is
//! answered.
//!
//! A question costs a few lookups and the rules of the bindings that name the user or one of the user's groups;
//! nothing is copied.

mod aggregate;
mod binding;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;

use kubewright_schema::selector::LabelSelector;
use serde_json::Value;

use self::binding::{Binding, BoundTo, Grounds};
use super::attributes::Attributes;
use super::rule::Rule;
use crate::auth::User;
use crate::object;
use crate::storage::Pairs;

pub(crate) use binding::{RoleKind, RoleRef, missing_text};

/// Who is in this group may do everything.
pub(crate) const MASTERS: &str = "system:masters";

/// Roles and bindings of a cluster.
#[derive(Default)]
pub(crate) struct Policy {
    cluster_roles: BTreeMap<String, ClusterRole>,
    /// Rules by namespace and name.
    roles: HashMap<String, HashMap<String, Arc<[Rule]>>>,
    /// By namespace and name; cluster bindings are in the namespace without a name. Each is in `granted` under
    /// every subject it has.
    bindings: HashMap<(String, String), Arc<Binding>>,
    /// By namespace, cluster bindings in the one without a name. Nothing empty is kept.
    granted: HashMap<String, Granted>,
    /// The names of all `cluster_roles` with selectors.
    aggregating: BTreeSet<String>,
}

#[derive(Debug)]
struct ClusterRole {
    rules: Arc<[Rule]>,
    labels: Pairs,
    /// Other roles that this one is made of.
    selectors: Vec<LabelSelector>,
}

/// Bindings of one namespace by the names of their subjects.
#[derive(Default)]
struct Granted {
    users: HashMap<String, Vec<Grant>>,
    groups: HashMap<String, Vec<Grant>>,
}

/// One binding as one of its subjects sees it.
#[derive(Clone)]
struct Grant {
    binding: Arc<Binding>,
    subject: usize,
}

/// The answer to a question.
pub(crate) enum Verdict<'a> {
    Allowed(Grounds<'a>),
    /// No rule allows it. Bindings of the user to roles that do not exist may be the cause.
    Refused {
        missing: Vec<RoleRef>,
    },
}

/// The rules of one user in one namespace.
pub(crate) struct Held {
    pub(crate) rules: Vec<Rule>,
    pub(crate) missing: Vec<RoleRef>,
}

impl Policy {
    /// Whether a user may do something.
    pub(crate) fn decide(&self, user: &User, asked: &Attributes<'_>) -> Verdict<'_> {
        let mut missing = Vec::new();
        let found = self.visit(user, asked.namespace(), |grant| {
            match self.rules(&grant.binding.role, &grant.binding.namespace) {
                Some(rules) if rules.iter().any(|rule| rule.allows(asked)) => {
                    ControlFlow::Break(grant)
                }
                Some(_) => ControlFlow::Continue(()),
                None => {
                    missing.push(grant.binding.role.clone());
                    ControlFlow::Continue(())
                }
            }
        });
        match found {
            Some(grant) => Verdict::Allowed(Grounds {
                binding: &grant.binding,
                subject: &grant.binding.subjects[grant.subject],
            }),
            None => Verdict::Refused { missing },
        }
    }

    /// All rules that apply to a user in a namespace, or in the whole cluster when the namespace is empty.
    pub(crate) fn held(&self, user: &User, namespace: &str) -> Held {
        let mut bindings: Vec<&Arc<Binding>> = Vec::new();
        self.visit(user, namespace, |grant| {
            bindings.push(&grant.binding);
            ControlFlow::Continue(())
        });
        bindings.sort_by_key(|binding| (&binding.namespace, &binding.name));
        bindings.dedup_by(|a, b| Arc::ptr_eq(a, b));
        let mut held = Held {
            rules: Vec::new(),
            missing: Vec::new(),
        };
        for binding in bindings {
            match self.rules(&binding.role, &binding.namespace) {
                Some(rules) => held.rules.extend_from_slice(rules),
                None => held.missing.push(binding.role.clone()),
            }
        }
        held
    }

    /// The rules of a role, as a binding in this namespace means it.
    pub(crate) fn rules(&self, role: &RoleRef, namespace: &str) -> Option<&[Rule]> {
        match role.kind {
            RoleKind::ClusterRole => Some(&*self.cluster_roles.get(&role.name)?.rules),
            RoleKind::Role => Some(&**self.roles.get(namespace)?.get(&role.name)?),
        }
    }

    /// Shows every grant of a user until the visitor has seen enough: those of the cluster first.
    fn visit<'a>(
        &'a self,
        user: &User,
        namespace: &str,
        mut visitor: impl FnMut(&'a Grant) -> ControlFlow<&'a Grant>,
    ) -> Option<&'a Grant> {
        let places = [Some(""), Some(namespace).filter(|n| !n.is_empty())];
        for granted in places
            .into_iter()
            .flatten()
            .filter_map(|place| self.granted.get(place))
        {
            let own = granted.users.get(&user.name).into_iter();
            let shared = user
                .groups
                .iter()
                .filter_map(|group| granted.groups.get(group));
            for grant in own.chain(shared).flatten() {
                if let ControlFlow::Break(found) = visitor(grant) {
                    return Some(found);
                }
            }
        }
        None
    }

    /// All roles, bindings and grants in a fixed order, for tests that compare.
    pub(crate) fn describe(&self) -> String {
        let mut lines: Vec<String> = Vec::new();
        lines.extend(self.cluster_roles.iter().map(|role| format!("{role:?}")));
        for (namespace, roles) in &self.roles {
            lines.extend(roles.iter().map(|role| format!("{namespace} {role:?}")));
        }
        lines.extend(self.bindings.values().map(|binding| format!("{binding:?}")));
        for (namespace, granted) in &self.granted {
            for (name, grants) in granted.users.iter().chain(&granted.groups) {
                let grants = grants.iter().map(|grant| &grant.binding.name);
                lines.extend(grants.map(|binding| format!("{namespace} {name} {binding}")));
            }
        }
        lines.sort_unstable();
        lines.join("\n")
    }

    /// Takes up a ClusterRole as it is now.
    pub(crate) fn put_cluster_role(&mut self, object: &Value) {
        let name = object::name(object).to_owned();
        let selectors = aggregate::selectors(object);
        if selectors.is_empty() {
            self.aggregating.remove(&name);
        } else {
            self.aggregating.insert(name.clone());
        }
        let role = ClusterRole {
            rules: Rule::of_role(object).into(),
            labels: object::labels(object),
            selectors,
        };
        self.cluster_roles.insert(name, role);
    }

    /// Forgets a ClusterRole.
    pub(crate) fn remove_cluster_role(&mut self, name: &str) {
        self.cluster_roles.remove(name);
        self.aggregating.remove(name);
    }

    /// Takes up a Role as it is now.
    pub(crate) fn put_role(&mut self, object: &Value) {
        let rules = Rule::of_role(object).into();
        let namespace = object::namespace(object).to_owned();
        let roles = self.roles.entry(namespace).or_default();
        roles.insert(object::name(object).to_owned(), rules);
    }

    /// Forgets a Role.
    pub(crate) fn remove_role(&mut self, namespace: &str, name: &str) {
        if let Some(roles) = self.roles.get_mut(namespace) {
            roles.remove(name);
            if roles.is_empty() {
                self.roles.remove(namespace);
            }
        }
    }

    /// Takes up a RoleBinding or ClusterRoleBinding as it is now.
    pub(crate) fn put_binding(&mut self, object: &Value) {
        let binding = Binding::read(object);
        self.remove_binding(&binding.namespace, &binding.name);
        let binding = Arc::new(binding);
        let granted = self.granted.entry(binding.namespace.clone()).or_default();
        for (subject, bound_to) in binding.subjects.iter().enumerate() {
            let grant = Grant {
                binding: binding.clone(),
                subject,
            };
            granted.remember(bound_to, grant);
        }
        let key = (binding.namespace.clone(), binding.name.clone());
        self.bindings.insert(key, binding);
    }

    /// Forgets a binding.
    pub(crate) fn remove_binding(&mut self, namespace: &str, name: &str) {
        let key = (namespace.to_owned(), name.to_owned());
        let Some(binding) = self.bindings.remove(&key) else {
            return;
        };
        let Some(granted) = self.granted.get_mut(namespace) else {
            return;
        };
        for subject in &binding.subjects {
            granted.forget(subject, &binding);
        }
        if granted.users.is_empty() && granted.groups.is_empty() {
            self.granted.remove(namespace);
        }
    }
}

impl Granted {
    /// Where the grants of a subject are, and under which name.
    fn place(&mut self, subject: &BoundTo) -> (&mut HashMap<String, Vec<Grant>>, String) {
        match subject {
            BoundTo::User(name) => (&mut self.users, name.clone()),
            BoundTo::Group(name) => (&mut self.groups, name.clone()),
            BoundTo::ServiceAccount { namespace, name } => (
                &mut self.users,
                super::service_account_name(namespace, name),
            ),
        }
    }

    fn remember(&mut self, subject: &BoundTo, grant: Grant) {
        let (grants, name) = self.place(subject);
        grants.entry(name).or_default().push(grant);
    }

    fn forget(&mut self, subject: &BoundTo, binding: &Arc<Binding>) {
        let (grants, name) = self.place(subject);
        if let Some(list) = grants.get_mut(&name) {
            list.retain(|grant| !Arc::ptr_eq(&grant.binding, binding));
            if list.is_empty() {
                grants.remove(&name);
            }
        }
    }
}
