//! Objects that are there before the operator is: read from YAML, applied in an order that works.

use std::path::PathBuf;
use std::time::Duration;

use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{self, Scope};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::{Error, Result};

/// Who the fields of applied objects belong to.
const FIELD_MANAGER: &str = "kubewright-test";
/// How long a new kind may take to be served; it takes milliseconds.
const SERVED_WITHIN: Duration = Duration::from_secs(30);
/// How often it is tried whether a kind is served.
const STEP: Duration = Duration::from_millis(5);

/// Where objects come from.
#[derive(Debug)]
pub(super) enum Source {
    Yaml(String),
    File(PathBuf),
    Object(Value),
}

/// All objects of these sources.
///
/// # Errors
/// When a file or a document cannot be read.
pub(super) fn read(sources: Vec<Source>) -> Result<Vec<Value>> {
    let mut objects = Vec::new();
    for source in sources {
        match source {
            Source::Object(object) => objects.push(object),
            Source::Yaml(text) => objects.extend(documents("a manifest", &text)?),
            Source::File(path) => {
                let name = path.display().to_string();
                let text = std::fs::read_to_string(&path)
                    .map_err(|error| Error::msg(format!("{name} cannot be read: {error}")))?;
                objects.extend(documents(&name, &text)?);
            }
        }
    }
    Ok(objects)
}

/// The objects of a YAML text, those of lists one by one.
fn documents(name: &str, text: &str) -> Result<Vec<Value>> {
    let mut objects = Vec::new();
    for document in split(text) {
        let value: Value = serde_saphyr::from_str(&document)
            .map_err(|error| Error::msg(format!("{name} is not YAML: {error}")))?;
        match value {
            Value::Null => {}
            Value::Object(mut list) if list.get("kind") == Some(&json!("List")) => {
                let items = list.remove("items").unwrap_or_default();
                objects.extend(items.as_array().cloned().unwrap_or_default());
            }
            object => objects.push(object),
        }
    }
    Ok(objects)
}

/// The documents of a text: what is between lines of three dashes.
fn split(text: &str) -> Vec<String> {
    let mut documents = vec![String::new()];
    for line in text.lines() {
        if line.trim_end() == "---" {
            documents.push(String::new());
        } else if let Some(last) = documents.last_mut() {
            last.push_str(line);
            last.push('\n');
        }
    }
    let has_content = |text: &String| {
        let mut lines = text.lines().map(str::trim);
        lines.any(|line| !line.is_empty() && !line.starts_with('#'))
    };
    documents.retain(has_content);
    documents
}

/// Applies objects: definitions, then namespaces, then the rest in order.
///
/// # Errors
/// When the server does not accept one.
pub(super) async fn apply_all(client: &kube::Client, mut objects: Vec<Value>) -> Result {
    objects.sort_by_key(|object| match object["kind"].as_str() {
        Some("CustomResourceDefinition") => 0,
        Some("Namespace") => 1,
        _ => 2,
    });
    for object in objects {
        apply(client, object).await?;
    }
    Ok(())
}

/// Applies an object, whoever applied another one before.
///
/// # Errors
/// When the server does not accept it.
pub(super) async fn apply(client: &kube::Client, object: Value) -> Result {
    let mut object: DynamicObject = serde_json::from_value(object)?;
    // The server keeps account of these, and objects that were read from one have them.
    object.metadata.managed_fields = None;
    object.metadata.resource_version = None;
    let kind = object.types.as_ref().map(GroupVersionKind::try_from);
    let kind = kind.and_then(std::result::Result::ok);
    let kind = kind.ok_or_else(|| Error::msg("an object has no apiVersion or no kind"))?;
    let name = object.metadata.name.clone().unwrap_or_default();
    let api = place(client, &object, &kind).await?;
    let how = PatchParams::apply(FIELD_MANAGER).force();
    let applied = api.patch(&name, &how, &Patch::Apply(&object)).await;
    match applied {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::msg(format!(
            "{} {name} is not accepted: {error}",
            kind.kind
        ))),
    }
}

/// Where an object of this kind goes, once its kind is served.
async fn place(
    client: &kube::Client,
    object: &DynamicObject,
    kind: &GroupVersionKind,
) -> Result<Api<DynamicObject>> {
    let end = Instant::now() + SERVED_WITHIN;
    let (resource, capabilities) = loop {
        match discovery::pinned_kind(client, kind).await {
            Ok(found) => break found,
            Err(_) if Instant::now() < end => sleep(STEP).await,
            Err(error) => {
                let (kind, version) = (&kind.kind, kind.api_version());
                return Err(Error::msg(format!(
                    "the cluster does not serve {kind} of {version}; give its definition to World::builder().manifest(..): {error}"
                )));
            }
        }
    };
    let client = client.clone();
    Ok(match (&capabilities.scope, &object.metadata.namespace) {
        (Scope::Cluster, _) => Api::all_with(client, &resource),
        (Scope::Namespaced, Some(namespace)) => Api::namespaced_with(client, namespace, &resource),
        (Scope::Namespaced, None) => Api::default_namespaced_with(client, &resource),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_between_lines_of_dashes_and_lists_are_taken_apart() {
        let text = "# a comment\n---\nkind: A\ntext: a---b\n---\n---\nkind: List\nitems:\n- kind: B\n- kind: C\n";
        let read = documents("a text", text).expect("it is YAML");
        let kinds: Vec<_> = read.iter().map(|it| it["kind"].clone()).collect();
        assert_eq!(kinds, ["A", "B", "C"]);
        let error = documents("a text", "a: [").expect_err("it is not YAML");
        assert!(error.to_string().contains("a text is not YAML"), "{error}");
    }
}
