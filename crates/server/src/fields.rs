//! Who manages which fields of an object: `metadata.managedFields` on every write.

use std::sync::Arc;

use http::HeaderMap;
use http::header::USER_AGENT;
use kubewright_schema::apply::{
    ApplyError, Conflicts, FieldManager, Force, Operation, Reset, ScaleManager, Typed, Versions,
};
use serde_json::Value;

use crate::admission::Requester;
use crate::api::write::Part;
use crate::core::Core;
use crate::http::query::{Persist, Query};
use crate::kinds::StatusMeta;
use crate::object;
use crate::registry::Resources;
use crate::resource::{Builtin, Nature, Served};
use crate::status::ApiError;

/// The manager of what the server itself writes.
const SERVER: &str = "kube-apiserver";
/// Longest name of a manager.
const MAX_MANAGER: usize = 128;

/// Whether the server keeps account of who manages which fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FieldManagement {
    /// It does, as Kubernetes does.
    #[default]
    Tracked,
    /// It does not: objects have no `managedFields`, writes are cheaper, and every apply takes what it wants.
    Off,
}

/// Who writes an object, and how the write counts.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    pub(crate) persist: Persist,
    pub(crate) manager: String,
    /// The part of the object that is written to; empty for the object itself.
    subresource: &'static str,
    how: How,
    /// Who is admitted; nobody for what the server writes itself.
    requester: Option<Arc<Requester>>,
}

/// How a write changes who manages what.
#[derive(Debug, Clone, PartialEq, Eq)]
enum How {
    /// The writer manages what it changes.
    Update,
    /// The writer manages the number of replicas, which is at these steps.
    Scale(Operation, Vec<String>),
    /// The change has seen to it, or it does not count.
    Settled,
}

impl Writer {
    /// The client of a request.
    pub(crate) fn client(
        headers: &HeaderMap,
        query: &Query,
        persist: Persist,
        subresource: &'static str,
    ) -> Self {
        let manager = match query.get("fieldManager") {
            Some(manager) => manager.to_owned(),
            None => from_user_agent(headers),
        };
        Self {
            persist,
            manager,
            subresource,
            how: How::Update,
            requester: None,
        }
    }

    /// The write has to be admitted.
    pub(crate) fn by(self, requester: Requester) -> Self {
        Self {
            requester: Some(Arc::new(requester)),
            ..self
        }
    }

    /// The write was admitted in another form, or needs not be.
    pub(crate) fn admitted(self) -> Self {
        Self {
            requester: None,
            ..self
        }
    }

    /// Who has to be admitted.
    pub(crate) fn requester(&self) -> Option<Arc<Requester>> {
        self.requester.clone()
    }

    /// The part of the object that is written to; empty for the object itself.
    pub(crate) fn subresource(&self) -> &'static str {
        self.subresource
    }

    /// Whether the write is one of the number of replicas.
    pub(crate) fn is_scaling(&self) -> bool {
        matches!(self.how, How::Scale(..))
    }

    /// The server itself.
    pub(crate) fn server(subresource: &'static str) -> Self {
        Self {
            persist: Persist::Store,
            manager: SERVER.to_owned(),
            subresource,
            how: How::Update,
            requester: None,
        }
    }

    /// The change sets `managedFields` itself, or leaves them as they are.
    pub(crate) fn settled(self) -> Self {
        Self {
            how: How::Settled,
            ..self
        }
    }

    /// The change is one of the number of replicas.
    pub(crate) fn scaling(self, operation: Operation, pointer: &str) -> Self {
        let steps = pointer.trim_start_matches('/').split('/');
        Self {
            how: How::Scale(operation, steps.map(str::to_owned).collect()),
            ..self
        }
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

impl Core {
    /// Sets `managedFields` of an object that is about to be stored. Comes after defaults and before anything else
    /// changes the object, because what the server adds of its own belongs to nobody.
    pub(crate) fn manage(
        &self,
        served: &Arc<Served>,
        live: Option<&Value>,
        new: &mut Value,
        part: Part,
        writer: &Writer,
    ) {
        if self.field_management == FieldManagement::Off {
            return object::remove_meta(new, "managedFields");
        }
        match &writer.how {
            How::Settled => {}
            How::Update => {
                self.with_manager(served, part, writer, |manager| manager.update(live, new));
            }
            How::Scale(operation, steps) => {
                let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
                let scale = ScaleManager {
                    api_version: &served.resource.api_version(),
                    manager: &writer.manager,
                    operation: *operation,
                    replicas: &steps,
                };
                if let Some(live) = live {
                    scale.write(live, new);
                }
            }
        }
    }

    /// Applies a configuration to an object, or to none.
    pub(crate) fn apply(
        &self,
        served: &Arc<Served>,
        live: Option<&Value>,
        config: &Value,
        part: Part,
        writer: &Writer,
        force: Force,
    ) -> Result<Value, ApiError> {
        self.with_manager(served, part, writer, |manager| {
            let force = match self.field_management {
                FieldManagement::Tracked => force,
                FieldManagement::Off => Force::Yes,
            };
            manager.apply(live, config, force)
        })
        .map_err(apply_error)
    }

    fn with_manager<T>(
        &self,
        served: &Arc<Served>,
        part: Part,
        writer: &Writer,
        act: impl FnOnce(&FieldManager<'_>) -> T,
    ) -> T {
        let api_version = served.resource.api_version();
        let versions = KindVersions {
            served,
            resources: self.registry.now(),
        };
        act(&FieldManager {
            versions: &versions,
            api_version: &api_version,
            kind: &served.resource.kind,
            subresource: writer.subresource,
            manager: &writer.manager,
            now: &self.environment.now_rfc3339(),
            reset: &reset(served, part),
        })
    }
}

/// What a request cannot change where it is sent to.
fn reset(served: &Served, part: Part) -> Reset {
    let strategy = served.strategy();
    match (part, strategy.status_meta) {
        (Part::Own, _) => Reset::Nothing,
        (Part::Whole, _) if strategy.has_status => Reset::these(&[&["status"]]),
        (Part::Whole, _) => Reset::Nothing,
        (Part::Status, StatusMeta::Open) => Reset::these(&[&["spec"]]),
        (Part::Status, StatusMeta::KeepLabels) => {
            Reset::these(&[&["spec"], &["metadata", "labels"]])
        }
        (Part::Status, StatusMeta::KeepOwners) => Reset::these(&[
            &["spec"],
            &["metadata", "deletionTimestamp"],
            &["metadata", "ownerReferences"],
        ]),
        (Part::Status, StatusMeta::Closed) => Reset::AllBut(vec!["status".into()]),
    }
}

/// The versions of a kind that is served.
struct KindVersions<'a> {
    served: &'a Served,
    resources: Arc<Resources>,
}

impl KindVersions<'_> {
    /// The same objects at another version.
    fn at(&self, api_version: &str) -> Option<&Served> {
        let is_it = |served: &Served| {
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            *served.resource.version == *version
                && *served.resource.group == *group
                && served.resource.plural == self.served.resource.plural
                && served.collection.name() == self.served.collection.name()
        };
        if is_it(self.served) {
            return Some(self.served);
        }
        let found = self.resources.all.iter().find(|served| is_it(served));
        found.map(|served| &**served)
    }
}

impl Versions for KindVersions<'_> {
    fn typed(&self, api_version: &str) -> Option<Typed<'_>> {
        let (table, ty) = self.at(api_version)?.ty();
        Some(Typed::new(table, ty))
    }

    fn convert(&self, object: &Value, to: &str) -> Option<Value> {
        let target = self.at(to)?;
        let from = object.get("apiVersion").and_then(Value::as_str);
        let from = from.and_then(|from| self.at(from)).unwrap_or(self.served);
        let mut object = object.clone();
        match (&from.nature, &target.nature) {
            (Nature::Builtin(from), Nature::Builtin(target)) => {
                convert_builtin(from, target, &mut object);
            }
            _ => object["apiVersion"] = to.into(),
        }
        Some(object)
    }
}

/// Converts by way of the stored version.
fn convert_builtin(from: &Builtin, to: &Builtin, object: &mut Value) {
    if let Some(conversion) = from.conversion {
        (conversion.to_storage)(object);
    }
    if let Some(conversion) = to.conversion {
        (conversion.from_storage)(object);
    }
}

fn apply_error(error: ApplyError) -> ApiError {
    match error {
        ApplyError::Conflicts(conflicts) => conflict_error(&conflicts),
        ApplyError::Kind(_) | ApplyError::ManagedFields => ApiError::bad_request(error.to_string()),
        _ => ApiError::unreasoned(error.to_string()),
    }
}

/// The refusal of an apply that would change what others manage.
pub(crate) fn conflict_error(conflicts: &Conflicts) -> ApiError {
    let error = ApiError::apply_conflict(conflicts.to_string());
    conflicts.0.iter().fold(error, |error, conflict| {
        let message = format!("conflict with {}", conflict.manager);
        error.with_cause("FieldManagerConflict", &message, &conflict.field())
    })
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
