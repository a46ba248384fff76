//! Deletes objects in the order in which nothing is left hanging.
//!
//! The objects of custom kinds go first, while the manager is there to finish them: with the manager gone, their
//! finalizers would hold them for good, and they their definitions.

use std::time::Duration;

use anyhow::{Context as _, bail};
use kube::api::{Api, DeleteParams, ListParams};
use kube::core::{DynamicObject, GroupVersionKind};
use kube::discovery::ApiResource;
use kube::{Client, ResourceExt as _};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::Target;

/// How often is looked.
const STEP: Duration = Duration::from_millis(100);
/// Objects that are looked at together.
const PAGE: u32 = 500;

/// What happens to the kinds themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kinds {
    Delete,
    Keep,
}

/// Deletes all of these objects, the last first.
///
/// # Errors
/// When the server refuses, or objects are still there after `patience`.
pub(crate) async fn all(
    client: &Client,
    objects: &[Value],
    kinds: Kinds,
    patience: Duration,
) -> anyhow::Result<()> {
    let end = Instant::now() + patience;
    let (definitions, others): (Vec<&Value>, Vec<&Value>) = objects
        .iter()
        .partition(|object| object["kind"] == "CustomResourceDefinition");
    if kinds == Kinds::Delete {
        for definition in &definitions {
            instances(client, definition, end).await?;
        }
    }
    let mut deleted = Vec::new();
    for object in others.into_iter().rev() {
        deleted.extend(one(client, object).await?);
    }
    if kinds == Kinds::Delete {
        for definition in definitions {
            deleted.extend(one(client, definition).await?);
        }
    }
    for target in &deleted {
        until_gone(target, end).await?;
    }
    Ok(())
}

/// Deletes one object, if it is there.
async fn one(client: &Client, value: &Value) -> anyhow::Result<Option<Target>> {
    let Some(target) = Target::find(client, value).await? else {
        return Ok(None);
    };
    match target
        .api
        .delete(target.name(), &DeleteParams::background())
        .await
    {
        Ok(_) => {
            println!("  {} deleted", target.shown());
            Ok(Some(target))
        }
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error).with_context(|| format!("{} cannot be deleted", target.shown())),
    }
}

async fn until_gone(target: &Target, end: Instant) -> anyhow::Result<()> {
    loop {
        let present = target.api.get_opt(target.name()).await;
        let present = present.with_context(|| format!("{} cannot be read", target.shown()))?;
        let Some(present) = present else {
            return Ok(());
        };
        if Instant::now() > end {
            let held = present.finalizers().join(", ");
            bail!("{} is still there, held by: {held}", target.shown());
        }
        sleep(STEP).await;
    }
}

/// Deletes all objects of a kind, and waits until their controllers have let go of them.
async fn instances(client: &Client, definition: &Value, end: Instant) -> anyhow::Result<()> {
    let Some(resource) = resource(definition) else {
        return Ok(());
    };
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let list = async || match api.list(&ListParams::default().limit(PAGE)).await {
        Ok(list) => Ok(list.items),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| format!("{} cannot be listed", resource.plural)),
    };
    loop {
        let objects = list().await?;
        if objects.is_empty() {
            return Ok(());
        }
        for object in &objects {
            delete_instance(client, &resource, object).await?;
        }
        if Instant::now() > end {
            let first = &objects[0];
            bail!(
                "{} {} are still there; {} is held by: {}. Nothing else was deleted. Does the manager run?",
                objects.len(),
                resource.plural,
                first.name_any(),
                first.finalizers().join(", ")
            );
        }
        sleep(STEP).await;
    }
}

async fn delete_instance(
    client: &Client,
    resource: &ApiResource,
    object: &DynamicObject,
) -> anyhow::Result<()> {
    if object.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let api: Api<DynamicObject> = match object.namespace() {
        Some(namespace) => Api::namespaced_with(client.clone(), &namespace, resource),
        None => Api::all_with(client.clone(), resource),
    };
    let name = object.name_any();
    match api.delete(&name, &DeleteParams::background()).await {
        Ok(_) => println!("  {} {name} deleted", resource.kind.to_ascii_lowercase()),
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        Err(error) => return Err(error).with_context(|| format!("{name} cannot be deleted")),
    }
    Ok(())
}

/// The resource that a definition defines, in its stored version.
fn resource(definition: &Value) -> Option<ApiResource> {
    let spec = &definition["spec"];
    let versions = spec["versions"].as_array()?;
    let stored = versions.iter().find(|version| version["storage"] == true)?;
    let kind = GroupVersionKind::gvk(
        spec["group"].as_str()?,
        stored["name"].as_str()?,
        spec["names"]["kind"].as_str()?,
    );
    Some(ApiResource::from_gvk_with_plural(
        &kind,
        spec["names"]["plural"].as_str()?,
    ))
}
