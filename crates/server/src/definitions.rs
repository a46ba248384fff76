//! CustomResourceDefinitions come to life: names are accepted, versions compiled and served, and when a definition
//! goes its objects go first.
//!
//! All of it happens within the write that causes it, so a client that has the answer to its write finds the new
//! resource served. There is nothing to wait for and no controller that could lag behind.

use std::collections::HashSet;
use std::sync::Arc;

use kubewright_schema::catalog::{Resource, Subresource, Verb};
use kubewright_schema::crd::{
    self, ColumnDefinition, Columns, CompiledVersion, Definition, Names, SelectableFields, Version,
};
use kubewright_schema::{FieldError, Table};
use serde_json::{Value, json};

use crate::api::write::{Part, storage_error};
use crate::conversion::collection_name;
use crate::core::Core;
use crate::fields::Writer;
use crate::kinds::custom_strategy;
use crate::object;
use crate::printers::{Column, Printer};
use crate::resource::{Custom, Nature, Served};
use crate::status::ApiError;
use crate::storage::{At, CommitError, Write};

/// Holds a definition until its objects are gone.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

impl Core {
    /// Serves the definitions that are in the store, after a start.
    pub(crate) async fn load_definitions(&self) -> Result<(), ApiError> {
        let definitions = self.definitions();
        let snapshot = definitions
            .collection
            .snapshot(At::Latest)
            .map_err(ApiError::internal)?;
        let names: Vec<String> = snapshot
            .range("", None)
            .map(|r| r.key().to_owned())
            .collect();
        for name in names {
            self.settle_definition(&name).await?;
        }
        Ok(())
    }

    /// Brings what is served into line with a definition that was written or removed.
    pub(crate) async fn settle_definition(&self, name: &str) -> Result<(), ApiError> {
        let definitions = self.definitions();
        let Some((plural, group)) = name.split_once('.') else {
            return Ok(());
        };
        let Some(record) = definitions.collection.get(name) else {
            self.registry.replace_custom(group, plural, Vec::new());
            return Ok(());
        };
        let value = definitions.revive(&record)?;
        if object::is_deleting(&value) {
            return self.tear_down(&definitions, name, &value).await;
        }
        let status = self.next_status(name, &value);
        if status != value["status"] {
            let change = |old: &Value| {
                let mut new = old.clone();
                new["status"] = status.clone();
                Ok(new)
            };
            self.write_definition(&definitions, name, change).await?;
        }
        if is_established(&status) {
            self.serve(&value, record.revision(), Stage::Alive)?;
        }
        Ok(())
    }

    fn definitions(&self) -> Arc<Served> {
        self.registry
            .now()
            .builtin("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    }

    async fn write_definition(
        &self,
        definitions: &Arc<Served>,
        name: &str,
        change: impl FnMut(&Value) -> Result<Value, ApiError> + Send,
    ) -> Result<(), ApiError> {
        let mut warnings = Vec::new();
        match self
            .update_alone(
                definitions,
                name,
                Part::Own,
                &Writer::server("status"),
                &mut warnings,
                change,
            )
            .await
        {
            Ok(_) => Ok(()),
            Err(error) if error.code() == http::StatusCode::NOT_FOUND => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The status that a definition should have: which of its names are free, and whether it is served.
    fn next_status(&self, name: &str, value: &Value) -> Value {
        let wanted = Definition::parse(value);
        let taken = self.taken_names(name, &wanted.group);
        let conflict = conflict(&wanted.names, &taken);
        let mut status = value["status"].clone();
        if !status.is_object() {
            status = json!({});
        }
        let now = self.environment.now_rfc3339();
        match &conflict {
            None => {
                status["acceptedNames"] = value["spec"]["names"].clone();
                set_condition(
                    &mut status,
                    &now,
                    "NamesAccepted",
                    "True",
                    "NoConflicts",
                    "no conflicts found",
                );
                set_condition(
                    &mut status,
                    &now,
                    "Established",
                    "True",
                    "InitialNamesAccepted",
                    "the initial names have been accepted",
                );
            }
            Some((reason, message)) => {
                set_condition(&mut status, &now, "NamesAccepted", "False", reason, message);
                // Once served, a definition stays served under the names it was accepted with.
                if !is_established(&status) {
                    let why = "not all names are accepted";
                    set_condition(
                        &mut status,
                        &now,
                        "Established",
                        "False",
                        "NotAccepted",
                        why,
                    );
                }
            }
        }
        if status["acceptedNames"].is_null() {
            status["acceptedNames"] = json!({ "plural": "", "kind": "" });
        }
        status
    }

    /// Names in a group that other resources have.
    fn taken_names(&self, definition: &str, group: &str) -> Taken {
        let mut taken = Taken::default();
        for served in &self.registry.now().all {
            let resource = &served.resource;
            if &*resource.group != group || format!("{}.{group}", resource.plural) == definition {
                continue;
            }
            let names = [&resource.plural, &resource.singular]
                .into_iter()
                .chain(&resource.short_names);
            taken.resources.extend(names.map(|n| n.to_string()));
            taken
                .kinds
                .extend([resource.kind.to_string(), resource.list_kind.to_string()]);
        }
        taken
    }

    /// Serves the versions of a definition.
    fn serve(&self, value: &Value, revision: u64, stage: Stage) -> Result<(), ApiError> {
        let definition = Definition::parse(value);
        let group = definition.group.clone();
        let accepted = Names {
            plural: definition.names.plural.clone(),
            ..definition.accepted_names.clone()
        };
        let names = if accepted.kind.is_empty() {
            definition.names.clone()
        } else {
            accepted
        };
        let stored = definition
            .storage_version()
            .map(|v| format!("{group}/{}", v.name))
            .unwrap_or_default();
        let mut versions = Vec::new();
        for version in definition.versions.iter().filter(|v| v.served) {
            let compiled = compile(version)?;
            versions.push(Served {
                collection: self
                    .store
                    .collection(&collection_name(&group, &names.plural)),
                printer: printer(version),
                resource: resource(&definition, &names, version),
                nature: Nature::Custom(Box::new(Custom {
                    version: Arc::new(compiled),
                    schema: version.schema.clone().unwrap_or_default(),
                    strategy: custom_strategy(version.status),
                    scale: version.scale.clone(),
                    selectable: SelectableFields::new(version),
                    stored_api_version: stored.clone(),
                    schema_revision: revision,
                    terminating: stage == Stage::Terminating,
                    deprecation: deprecation(&definition, version),
                })),
            });
        }
        self.registry
            .replace_custom(&group, &names.plural, versions);
        Ok(())
    }

    /// Deletes the objects of a definition, and the definition once they are gone.
    async fn tear_down(
        &self,
        definitions: &Arc<Served>,
        name: &str,
        value: &Value,
    ) -> Result<(), ApiError> {
        let definition = Definition::parse(value);
        let collection = self.store.collection(&collection_name(
            &definition.group,
            &definition.names.plural,
        ));
        self.serve(value, self.store.revision(), Stage::Terminating)?;
        let now = self.environment.now_rfc3339();
        let snapshot = collection
            .snapshot(At::Latest)
            .map_err(ApiError::internal)?;
        let mut left = 0;
        for record in snapshot.range("", None) {
            let mut object: Value =
                serde_json::from_slice(record.body()).map_err(ApiError::internal)?;
            let held = !object::finalizers(&object).is_empty();
            left += usize::from(held);
            let write = if held {
                if object::is_deleting(&object) {
                    continue;
                }
                object::set_meta(&mut object, "deletionTimestamp", now.as_str());
                object::set_meta(&mut object, "deletionGracePeriodSeconds", 0);
                let generation = object::generation(&object) + 1;
                object::set_meta(&mut object, "generation", generation);
                let draft = crate::resource::custom_draft(object, record);
                Write::Update {
                    key: record.key().to_owned(),
                    expected_revision: record.revision(),
                    draft,
                }
            } else {
                Write::Delete {
                    key: record.key().to_owned(),
                    expected_revision: record.revision(),
                }
            };
            match collection.commit_durable(write).await {
                Ok(_) | Err(CommitError::NotFound) => {}
                Err(CommitError::Conflict { .. }) => left += 1,
                Err(error) => return Err(storage_error(&error)),
            }
        }
        let finished = left == 0;
        let change = |old: &Value| {
            let mut new = old.clone();
            let (status, reason, message) = if finished {
                let finalizers = object::finalizers(old)
                    .into_iter()
                    .filter(|f| *f != CLEANUP);
                let finalizers = finalizers.map(str::to_owned).collect();
                object::set_finalizers(&mut new, finalizers);
                (
                    "False",
                    "InstanceDeletionCompleted",
                    "removed all instances",
                )
            } else {
                (
                    "True",
                    "InstanceDeletionInProgress",
                    "CustomResource deletion is in progress",
                )
            };
            set_condition(
                &mut new["status"],
                &now,
                "Terminating",
                status,
                reason,
                message,
            );
            Ok(new)
        };
        self.write_definition(definitions, name, change).await?;
        if definitions.collection.get(name).is_none() {
            self.registry
                .replace_custom(&definition.group, &definition.names.plural, Vec::new());
        }
        Ok(())
    }
}

/// Whether objects may still be created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Alive,
    Terminating,
}

/// Names that other resources of a group have.
#[derive(Debug, Default)]
struct Taken {
    resources: HashSet<String>,
    kinds: HashSet<String>,
}

/// The reason and message of the first name that is taken.
fn conflict(names: &Names, taken: &Taken) -> Option<(&'static str, String)> {
    let in_use = |name: &str| format!("{name:?} is already in use");
    let resource =
        |name: &String| (!name.is_empty() && taken.resources.contains(name)).then(|| in_use(name));
    let kind =
        |name: &String| (!name.is_empty() && taken.kinds.contains(name)).then(|| in_use(name));
    resource(&names.plural)
        .map(|m| ("PluralConflict", m))
        .or_else(|| resource(&names.singular).map(|m| ("SingularConflict", m)))
        .or_else(|| {
            names
                .short_names
                .iter()
                .find_map(resource)
                .map(|m| ("ShortNamesConflict", m))
        })
        .or_else(|| kind(&names.kind).map(|m| ("KindConflict", m)))
        .or_else(|| kind(&names.list_kind).map(|m| ("ListKindConflict", m)))
}

fn is_established(status: &Value) -> bool {
    let conditions = status["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|c| c["type"] == "Established" && c["status"] == "True")
}

/// Sets a condition; its time changes only when its status does.
fn set_condition(
    status: &mut Value,
    now: &str,
    kind: &str,
    value: &str,
    reason: &str,
    message: &str,
) {
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let Some(conditions) = status["conditions"].as_array_mut() else {
        return;
    };
    let mut condition = json!({
        "type": kind, "status": value, "lastTransitionTime": now, "reason": reason, "message": message,
    });
    match conditions.iter_mut().find(|c| c["type"] == kind) {
        Some(existing) => {
            if existing["status"] == value {
                condition["lastTransitionTime"] = existing["lastTransitionTime"].take();
            }
            *existing = condition;
        }
        None => conditions.push(condition),
    }
}

fn compile(version: &Version) -> Result<CompiledVersion, ApiError> {
    let table = Table::builtin();
    let meta = table
        .named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
        .map(|id| (table, id));
    CompiledVersion::new(version, meta).map_err(ApiError::internal)
}

fn printer(version: &Version) -> Printer {
    let columns = Columns::new(version);
    let headers = columns.definitions().iter().map(column).collect();
    Printer::new(headers, move |object, now| columns.cells(object, now))
}

fn column(definition: &ColumnDefinition) -> Column {
    Column {
        name: definition.name.clone().into(),
        type_: definition.column_type.clone().into(),
        format: definition.format.clone().into(),
        description: definition.description.clone().into(),
        priority: i32::try_from(definition.priority).unwrap_or(i32::MAX),
    }
}

fn resource(definition: &Definition, names: &Names, version: &Version) -> Resource {
    let boxed = |list: &[String]| list.iter().map(|s| s.as_str().into()).collect();
    let (group, version_name, kind) = (
        definition.group.as_str(),
        version.name.as_str(),
        names.kind.as_str(),
    );
    let part = |name: &str, group: &str, version: &str, kind: &str| Subresource {
        name: name.into(),
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        verbs: vec![Verb::Get, Verb::Patch, Verb::Update],
    };
    let status = version
        .status
        .then(|| part("status", group, version_name, kind));
    let scale = version
        .scale
        .as_ref()
        .map(|_| part("scale", "autoscaling", "v1", "Scale"));
    Resource {
        group: group.into(),
        version: version_name.into(),
        plural: names.plural.as_str().into(),
        singular: names.singular.as_str().into(),
        kind: kind.into(),
        list_kind: names.list_kind.as_str().into(),
        scope: definition.catalog_scope(),
        short_names: boxed(&names.short_names),
        categories: boxed(&names.categories),
        verbs: Verb::ALL.to_vec(),
        subresources: status.into_iter().chain(scale).collect(),
    }
}

fn deprecation(definition: &Definition, version: &Version) -> Option<String> {
    version.deprecated.then(|| {
        version.deprecation_warning.clone().unwrap_or_else(|| {
            format!(
                "{}/{} {} is deprecated",
                definition.group, version.name, definition.names.kind
            )
        })
    })
}

/// Makes a new definition what it is at the start.
pub(crate) fn prepare_create(value: &mut Value) {
    crd::default_definition(value);
    crd::reset_status(value);
    object::set_meta(value, "generation", 1);
}

/// Marks a definition whose objects have to go before it does.
pub(crate) fn mark_terminating(value: &mut Value, now: &str) {
    if !object::finalizers(value).contains(&CLEANUP) {
        let finalizers = object::finalizers(value).into_iter().map(str::to_owned);
        let finalizers = finalizers.chain([CLEANUP.to_owned()]).collect();
        object::set_finalizers(value, finalizers);
    }
    let (reason, message) = (
        "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    );
    set_condition(
        &mut value["status"],
        now,
        "Terminating",
        "True",
        reason,
        message,
    );
}

/// What is wrong with a definition.
pub(crate) fn validate(value: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    errors.extend(match old {
        None => crd::validate_definition(value),
        Some(old) => crd::validate_definition_update(value, old),
    });
}
