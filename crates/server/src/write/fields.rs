//! Who manages which fields of an object: `metadata.managedFields` on every write.

use std::sync::Arc;

use kubewright_schema::apply::{
    ApplyError, Conflicts, FieldManager, Force, Reset, ScaleManager, Typed, Versions,
};
use serde_json::Value;

use super::request::{Ownership, WriteRequest};
use crate::core::{Core, FieldManagement};
use crate::http::path::GroupVersion;
use crate::kinds::StatusMeta;
use crate::object;
use crate::registry::Resources;
use crate::request::Part;
use crate::resource::{Builtin, Nature, Served};
use crate::status::ApiError;

impl Core {
    /// Sets `managedFields` of an object that is about to be stored. Comes after defaults and before anything else
    /// changes the object, because what the server adds of its own belongs to nobody.
    pub(super) fn manage(&self, request: &WriteRequest, live: Option<&Value>, new: &mut Value) {
        if self.field_management == FieldManagement::Off {
            return object::remove_meta(new, "managedFields");
        }
        match &request.ownership {
            Ownership::AsGiven => {}
            Ownership::Tracked => {
                self.with_manager(request, |manager| manager.update(live, new));
            }
            Ownership::Replicas(operation, steps) => {
                let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
                let scale = ScaleManager {
                    api_version: &request.served.resource.api_version(),
                    manager: &request.manager,
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
        request: &WriteRequest,
        live: Option<&Value>,
        config: &Value,
        force: Force,
    ) -> Result<Value, ApiError> {
        self.with_manager(request, |manager| {
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
        request: &WriteRequest,
        act: impl FnOnce(&FieldManager<'_>) -> T,
    ) -> T {
        let served = &request.served;
        let api_version = served.resource.api_version();
        let versions = KindVersions {
            served,
            resources: self.registry.now(),
        };
        act(&FieldManager {
            versions: &versions,
            api_version: &api_version,
            kind: &served.resource.kind,
            subresource: request.part.subresource(),
            manager: &request.manager,
            now: &self.environment.now_rfc3339(),
            reset: &reset(served, request.part),
        })
    }
}

/// What a request cannot change where it is sent to.
fn reset(served: &Served, part: Part) -> Reset {
    let strategy = served.strategy();
    match (part, strategy.status_meta) {
        (Part::Own(_), _) => Reset::Nothing,
        (Part::Whole | Part::Scale, _) if strategy.has_status => Reset::these(&[&["status"]]),
        (Part::Whole | Part::Scale, _) => Reset::Nothing,
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
        if self.served.api_version == api_version {
            return Some(self.served);
        }
        let gv = GroupVersion::of_api_version(api_version);
        let found = self.resources.get(&gv, &self.served.resource.plural)?;
        (found.collection.name() == self.served.collection.name()).then_some(&**found)
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
