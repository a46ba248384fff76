//! One write, as a value that every step of it borrows.

use std::sync::Arc;

use http::HeaderMap;
use http::header::USER_AGENT;
use kubewright_schema::apply::Operation as FieldOperation;

use crate::admission::{AdmissionRequest, Operation, Requester};
use crate::auth::User;
use crate::http::query::{Persist, Query};
use crate::request::{Part, Warnings};
use crate::resource::Served;

/// The manager of what the server itself writes.
const SERVER: &str = "kube-apiserver";
/// Longest name of a manager.
const MAX_MANAGER: usize = 128;

/// A write of one object: what is written, by whom and with which options. It is made once, from a request or by the
/// server for a write of its own; field management, admission, validation and commit borrow it.
#[derive(Clone)]
pub(crate) struct WriteRequest {
    pub(crate) served: Arc<Served>,
    pub(crate) part: Part,
    pub(crate) namespace: Option<String>,
    /// The name in the request's path; empty for an object that is posted to its collection.
    pub(crate) name: String,
    pub(crate) persist: Persist,
    /// Who manages the fields that the write changes.
    pub(crate) manager: String,
    pub(crate) ownership: Ownership,
    pub(crate) warnings: Warnings,
    /// Who is admitted; nobody for what the server writes itself.
    pub(crate) requester: Option<Arc<Requester>>,
}

/// How a write changes who manages what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// The writer manages what it changes.
    Tracked,
    /// The writer manages the number of replicas, which is at these steps.
    Replicas(FieldOperation, Vec<String>),
    /// The object that is written says who manages its fields.
    AsGiven,
}

impl WriteRequest {
    /// A write by the server itself, of the object with this key.
    pub(crate) fn by_server(served: &Arc<Served>, key: &str, part: Part) -> Self {
        let (namespace, name) = match key.rsplit_once('/') {
            Some((namespace, name)) => (Some(namespace.to_owned()), name),
            None => (None, key),
        };
        Self {
            served: served.clone(),
            part,
            namespace,
            name: name.to_owned(),
            persist: Persist::Store,
            manager: SERVER.to_owned(),
            ownership: Ownership::Tracked,
            warnings: Warnings::default(),
            requester: None,
        }
    }

    /// The same by a client, who has to be admitted.
    pub(crate) fn by(self, requester: Requester) -> Self {
        Self {
            requester: Some(Arc::new(requester)),
            ..self
        }
    }

    /// The same without admission, because it was admitted in another form.
    pub(crate) fn admitted(self) -> Self {
        Self {
            requester: None,
            ..self
        }
    }

    /// The same where the change sets `managedFields` itself, or leaves them as they are.
    pub(crate) fn with_managers_as_given(self) -> Self {
        Self {
            ownership: Ownership::AsGiven,
            ..self
        }
    }

    /// The same as a change of the number of replicas, which is at this pointer.
    pub(crate) fn scaling(self, operation: FieldOperation, pointer: &str) -> Self {
        let steps = pointer.trim_start_matches('/').split('/');
        Self {
            ownership: Ownership::Replicas(operation, steps.map(str::to_owned).collect()),
            ..self
        }
    }

    /// The same for another object of the resource.
    pub(crate) fn of(&self, namespace: Option<&str>, name: &str) -> Self {
        Self {
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
            ..self.clone()
        }
    }

    /// The key of the object in its collection.
    pub(crate) fn key(&self) -> String {
        self.served.key(self.namespace.as_deref(), &self.name)
    }

    /// The user who has to be admitted, if it is not the server itself.
    pub(crate) fn user(&self) -> Option<&User> {
        self.requester.as_ref().map(|requester| &requester.user)
    }

    /// What admission is asked; nothing for what the server writes itself. `name` is that of the object, which may be
    /// known from the object alone.
    pub(crate) fn admission<'a>(
        &'a self,
        operation: Operation,
        name: &'a str,
    ) -> Option<AdmissionRequest<'a>> {
        let requester = self.requester.as_deref()?;
        Some(AdmissionRequest {
            served: &self.served,
            operation,
            subresource: self.part.subresource(),
            namespace: self.namespace.as_deref(),
            name,
            requester,
            persist: self.persist,
            warnings: &self.warnings,
        })
    }
}

/// The field manager that a request names, or else the program that its user agent names.
pub(crate) fn field_manager(headers: &HeaderMap, query: &Query) -> String {
    match query.get("fieldManager") {
        Some(manager) => manager.to_owned(),
        None => from_user_agent(headers),
    }
}

/// The name of a program: what stands before the first slash, without what cannot be printed.
fn from_user_agent(headers: &HeaderMap) -> String {
    let agent = headers.get(USER_AGENT).map(|value| value.as_bytes());
    let agent = String::from_utf8_lossy(agent.unwrap_or_default());
    let program = agent.split('/').next().unwrap_or("");
    let mut manager = String::new();
    for c in program.chars().filter(|c| !c.is_control()) {
        if manager.len() + c.len_utf8() > MAX_MANAGER {
            break;
        }
        manager.push(c);
    }
    manager
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn managers_are_named_after_programs() {
        let long = "x".repeat(200);
        let cases = [
            ("kubectl/v1.32.0 (linux/amd64)", "kubectl"),
            ("curl", "curl"),
            ("", ""),
            ("a\tb/1", "ab"),
            (&long, &long[..MAX_MANAGER]),
        ];
        for (agent, manager) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(USER_AGENT, agent.parse().expect("a header"));
            assert_eq!(from_user_agent(&headers), manager);
        }
        assert_eq!(from_user_agent(&HeaderMap::new()), "");
    }
}
