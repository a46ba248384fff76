//! What a delete asks for: grace, preconditions, and what becomes of dependents.

use kubewright_schema::FieldError;
use serde_json::{Value, json};

use crate::http::query::{Persist, read_dry_run};
use crate::kinds::Propagation as DefaultPropagation;
use crate::object;
use crate::resource::Served;
use crate::status::{About, ApiError};
use crate::storage::Record;

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// What a delete asks for.
#[derive(Debug, Clone)]
pub(crate) struct DeleteOptions {
    pub(super) grace_period: Option<i64>,
    pub(super) uid: Option<String>,
    pub(super) version: Option<String>,
    pub(crate) propagation: Option<Propagation>,
    /// The old way to say it; matters for the status code alone.
    pub(crate) orphan_dependents: Option<bool>,
    pub(crate) persist: Persist,
}

/// What happens to dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Propagation {
    Orphan,
    Background,
    Foreground,
}

impl DeleteOptions {
    /// The options that an object says; a dry run may be asked for beside it.
    pub(crate) fn of<'a>(
        object: &'a Value,
        dry_run: impl Iterator<Item = &'a str>,
    ) -> Result<Self, ApiError> {
        let text = |pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let mut errors = Vec::new();
        let orphan_dependents = object.get("orphanDependents").and_then(Value::as_bool);
        let policy = object.get("propagationPolicy").and_then(Value::as_str);
        if orphan_dependents.is_some() && policy.is_some() {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(FieldError::invalid(
                "propagationPolicy",
                &json!(policy),
                why,
            ));
        }
        let propagation = match (policy, orphan_dependents) {
            (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
            (Some("Background"), _) | (None, Some(false)) => Some(Propagation::Background),
            (Some("Foreground"), _) => Some(Propagation::Foreground),
            (Some(other), _) => {
                let allowed = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(FieldError::not_supported(
                    "propagationPolicy",
                    &json!(other),
                    &allowed,
                ));
                None
            }
            (None, None) => None,
        };
        let in_body = object
            .get("dryRun")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        let persist = read_dry_run(in_body.chain(dry_run), &mut errors);
        if !errors.is_empty() {
            return Err(ApiError::invalid_options("DeleteOptions", &errors));
        }
        Ok(Self {
            grace_period: object
                .get("gracePeriodSeconds")
                .and_then(Value::as_i64)
                .map(|s| if s < 0 { 1 } else { s }),
            uid: text("/preconditions/uid"),
            version: text("/preconditions/resourceVersion"),
            propagation,
            orphan_dependents,
            persist,
        })
    }

    pub(super) fn check_preconditions(
        &self,
        served: &Served,
        name: &str,
        record: &Record,
    ) -> Result<(), ApiError> {
        let about = About {
            group: &served.resource.group,
            resource: &served.resource.kind,
        };
        if let Some(uid) = self.uid.as_deref().filter(|uid| *uid != record.uid()) {
            let why = format!(
                "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have \
                 been deleted and then recreated",
                record.uid()
            );
            return Err(ApiError::conflict(about, name, &why));
        }
        let current = record.revision().to_string();
        if let Some(version) = self.version.as_deref().filter(|v| *v != current) {
            let why = format!(
                "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record \
                 ({current}). The object might have been modified"
            );
            return Err(ApiError::conflict(about, name, &why));
        }
        Ok(())
    }

    /// The finalizers that the object has from now on: propagation is asked for by finalizer.
    pub(super) fn finalizers(&self, by_default: DefaultPropagation, old: &Value) -> Vec<String> {
        let present = object::finalizers(old);
        if by_default == DefaultPropagation::Unsupported {
            return present.into_iter().map(str::to_owned).collect();
        }
        let policy = self.propagation.unwrap_or_else(|| {
            if present.contains(&ORPHAN) {
                Propagation::Orphan
            } else if present.contains(&FOREGROUND) {
                Propagation::Foreground
            } else if by_default == DefaultPropagation::Orphan {
                Propagation::Orphan
            } else {
                Propagation::Background
            }
        });
        let wanted = match policy {
            Propagation::Orphan => Some(ORPHAN),
            Propagation::Foreground => Some(FOREGROUND),
            Propagation::Background => None,
        };
        let kept = present
            .into_iter()
            .filter(|f| *f != ORPHAN && *f != FOREGROUND);
        kept.chain(wanted).map(str::to_owned).collect()
    }
}
