//! What the definition of a custom resource says of its migration, and which versions its objects may still be stored at.
//! Mirrors `migrationrunner.go`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{GroupResource, Time};
use kube::Api;
use kube::api::{Patch, PatchParams};
use kubewright_runtime::{Context, Error};
use serde_json::{Value, json};

/// The condition of definitions whose objects are being written anew.
const MIGRATING: &str = "StorageMigrating";
/// Under which name the status is written.
const MANAGER: &str = "migration-runner-controller";

/// How a migration ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// All objects have been written.
    Succeeded,
    /// Some objects have not been written.
    Failed,
}

/// Notes at the definition that a migration runs, and of which generation of the definition. Resources that are built in
/// have none.
pub(super) async fn mark(cx: &Context, resource: &GroupResource, name: &str) -> Result<(), Error> {
    let Some(definition) = get(cx, resource).await? else {
        return Ok(());
    };
    let message = format!("Migration {name} is running");
    let status = json!({ "conditions": [condition(cx, &definition, "True", ("MigrationRunning", &message))] });
    apply(cx, &definition, status).await
}

/// Notes at the definition how a migration ended. If it succeeded and the definition is still the one that it began with, no
/// object is stored at another version any more.
pub(super) async fn close(
    cx: &Context,
    resource: &GroupResource,
    ending: Ending,
) -> Result<(), Error> {
    let Some(definition) = get(cx, resource).await? else {
        return Ok(());
    };
    let (reason, message, is_clean) = match (ending, is_as_marked(&definition)) {
        (Ending::Succeeded, true) => (
            "MigrationSucceeded",
            "The migration has succeeded and the stored versions have been updated",
            true,
        ),
        (Ending::Succeeded, false) => (
            "MigrationSucceeded",
            "The migration has succeeded but the stored versions have not been updated due to a generation mismatch",
            false,
        ),
        // Some objects may still be stored at an old version, so that none is taken out.
        (Ending::Failed, _) => ("MigrationFailed", "The migration has failed", false),
    };
    let condition = condition(cx, &definition, "False", (reason, message));
    let mut status = json!({ "conditions": [condition] });
    let mut versions = definition.spec.versions.iter();
    if is_clean && let Some(stored) = versions.find(|version| version.storage) {
        status["storedVersions"] = json!([stored.name]);
    }
    apply(cx, &definition, status).await
}

async fn get(
    cx: &Context,
    resource: &GroupResource,
) -> Result<Option<CustomResourceDefinition>, Error> {
    let name = format!("{}.{}", resource.resource, resource.group);
    Ok(definitions(cx).get_opt(&name).await?)
}

fn definitions(cx: &Context) -> Api<CustomResourceDefinition> {
    Api::all(cx.client().kube().clone())
}

/// Whether the definition has not changed since a migration was noted at it.
fn is_as_marked(definition: &CustomResourceDefinition) -> bool {
    let status = definition.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_deref());
    let mut conditions = conditions.unwrap_or_default().iter();
    let marked = conditions.find(|condition| condition.type_ == MIGRATING);
    marked.is_some_and(|marked| marked.observed_generation == definition.metadata.generation)
}

fn condition(
    cx: &Context,
    definition: &CustomResourceDefinition,
    status: &str,
    (reason, message): (&str, &str),
) -> Value {
    json!({
        "type": MIGRATING, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": Time(cx.now()), "observedGeneration": definition.metadata.generation,
    })
}

/// Writes a part of the status, unless somebody has changed the definition since it was read.
async fn apply(
    cx: &Context,
    definition: &CustomResourceDefinition,
    status: Value,
) -> Result<(), Error> {
    let name = definition.metadata.name.as_deref().unwrap_or_default();
    let body = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": name, "resourceVersion": definition.metadata.resource_version },
        "status": status,
    });
    let (params, patch) = (PatchParams::apply(MANAGER).force(), Patch::Apply(body));
    let written = definitions(cx).patch_status(name, &params, &patch).await;
    written.map(drop).map_err(Error::from)
}
