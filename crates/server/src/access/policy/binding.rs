//! Bindings: which role they give to whom, and how they are spoken of.

use std::fmt;

use serde_json::Value;

use crate::object;

/// A RoleBinding, or a ClusterRoleBinding when the namespace is empty.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Binding {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) role: RoleRef,
    pub(super) subjects: Vec<BoundTo>,
}

/// The role that a binding gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RoleRef {
    pub(crate) kind: RoleKind,
    pub(crate) name: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RoleKind {
    Role,
    ClusterRole,
}

/// Whom a binding gives its role to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BoundTo {
    User(String),
    Group(String),
    ServiceAccount { namespace: String, name: String },
}

/// The binding by which something is allowed.
pub(crate) struct Grounds<'a> {
    pub(super) binding: &'a Binding,
    pub(super) subject: &'a BoundTo,
}

impl Binding {
    pub(super) fn read(object: &Value) -> Self {
        let namespace = object::namespace(object).to_owned();
        let subjects = object["subjects"].as_array().into_iter().flatten();
        let subjects = subjects
            .filter_map(|s| BoundTo::read(s, &namespace))
            .collect();
        Self {
            name: object::name(object).to_owned(),
            role: RoleRef::read(&object["roleRef"]),
            subjects,
            namespace,
        }
    }
}

impl RoleRef {
    /// Reads a `roleRef`; validation knows two kinds.
    pub(crate) fn read(reference: &Value) -> Self {
        let kind = match reference["kind"].as_str() {
            Some("Role") => RoleKind::Role,
            _ => RoleKind::ClusterRole,
        };
        let name = reference["name"].as_str().unwrap_or("").to_owned();
        Self { kind, name }
    }
}

impl BoundTo {
    /// A service account without a namespace is one of the binding's; a cluster binding has none to offer.
    fn read(subject: &Value, namespace: &str) -> Option<Self> {
        let name = subject["name"].as_str()?.to_owned();
        match subject["kind"].as_str()? {
            "User" => Some(Self::User(name)),
            "Group" => Some(Self::Group(name)),
            "ServiceAccount" => {
                let own = subject["namespace"].as_str().filter(|n| !n.is_empty());
                let namespace = own.unwrap_or(namespace).to_owned();
                (!namespace.is_empty()).then_some(Self::ServiceAccount { namespace, name })
            }
            _ => None,
        }
    }
}

impl fmt::Display for RoleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RoleKind::Role => "Role",
            RoleKind::ClusterRole => "ClusterRole",
        })
    }
}

impl fmt::Display for Grounds<'_> {
    /// `ClusterRoleBinding "a" of ClusterRole "b" to Group "c"`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Binding {
            namespace,
            name,
            role,
            ..
        } = self.binding;
        if namespace.is_empty() {
            write!(f, "ClusterRoleBinding {name:?}")?;
        } else {
            write!(f, "RoleBinding {:?}", format!("{name}/{namespace}"))?;
        }
        write!(f, " of {} {:?} to ", role.kind, role.name)?;
        match self.subject {
            BoundTo::User(name) => write!(f, "User {name:?}"),
            BoundTo::Group(name) => write!(f, "Group {name:?}"),
            BoundTo::ServiceAccount { namespace, name } => {
                write!(f, "ServiceAccount {:?}", format!("{name}/{namespace}"))
            }
        }
    }
}

/// The text about roles that bindings name and that do not exist.
pub(crate) fn missing_text(missing: &[RoleRef]) -> String {
    let mut texts: Vec<String> = Vec::new();
    for role in missing {
        let kind = role.kind.to_string().to_lowercase();
        let text = format!("{kind}.rbac.authorization.k8s.io {:?} not found", role.name);
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}
