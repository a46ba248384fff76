//! The object that a walk changes, and how it is written.

use std::time::Duration;

use kube::api::{Api, DeleteParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kubewright_runtime::Error;
use serde_json::Value;
use tokio::time::sleep;

use crate::state::ObjectId;
use crate::target;
use crate::user::{User, dynamic};

/// Fields of an object that are not the walk's.
const KEPT: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];
/// How long an object may take to go, in virtual time.
const GONE_WITHIN: Duration = Duration::from_secs(120);

/// Which object a walk changes.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    resource: ApiResource,
    namespace: Option<String>,
    name: String,
}

impl Subject {
    /// The object of this content. The plural is that of its definition.
    pub(crate) fn of(object: &Value, plural: &str) -> Self {
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let kind = object["kind"].as_str().unwrap_or_default();
        let kind = GroupVersionKind::gvk(group, version, kind);
        let meta = &object["metadata"];
        Self {
            resource: ApiResource::from_gvk_with_plural(&kind, plural),
            namespace: meta["namespace"].as_str().map(str::to_owned),
            name: meta["name"].as_str().unwrap_or_default().to_owned(),
        }
    }

    /// Its resource and key, as states name it.
    pub(crate) fn id(&self) -> ObjectId {
        let key = match &self.namespace {
            Some(namespace) => format!("{namespace}/{}", self.name),
            None => self.name.clone(),
        };
        let resource = target::resource(&self.resource.group, &self.resource.plural);
        (resource, key)
    }

    fn api(&self, client: &kube::Client) -> Api<DynamicObject> {
        dynamic(client, &self.resource, self.namespace.as_deref())
    }

    /// Creates it with this content, and gives what the server made of that.
    pub(crate) async fn create(&self, user: &User, content: &Value) -> Result<Value, Error> {
        let object: DynamicObject = serde_json::from_value(content.clone())?;
        let api = self.api(&user.client());
        let created = api.create(&PostParams::default(), &object).await?;
        user.note(self.id());
        Ok(serde_json::to_value(created)?)
    }

    /// Gives it the content of another, metadata and status excepted, and gives what the server made of that.
    pub(crate) async fn replace(&self, user: &User, content: &Value) -> Result<Value, Error> {
        let api = self.api(&user.client());
        loop {
            let current = serde_json::to_value(api.get(&self.name).await?)?;
            let object = serde_json::from_value(with_content(&current, content))?;
            let written = api
                .replace(&self.name, &PostParams::default(), &object)
                .await;
            match written {
                Err(kube::Error::Api(status)) if status.reason == "Conflict" => {}
                written => return Ok(serde_json::to_value(written?)?),
            }
        }
    }

    /// Deletes the object.
    pub(crate) async fn delete(&self, user: &User) -> Result<(), Error> {
        let api = self.api(&user.client());
        api.delete(&self.name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Deletes it and creates another of its name.
    pub(crate) async fn make_anew(&self, user: &User, content: &Value) -> Result<Value, Error> {
        self.delete(user).await?;
        let api = self.api(&user.client());
        let begin = tokio::time::Instant::now();
        while api.get_opt(&self.name).await?.is_some() {
            if begin.elapsed() > GONE_WITHIN {
                return Err(Error::msg("the object does not go when it is deleted"));
            }
            sleep(Duration::from_millis(100)).await;
        }
        self.create(user, content).await
    }
}

/// An object with the content of another.
fn with_content(object: &Value, content: &Value) -> Value {
    let mut merged = content.clone();
    for name in KEPT {
        if let Some(kept) = object.get(name) {
            merged[name] = kept.clone();
        } else if let Some(fields) = merged.as_object_mut() {
            fields.remove(name);
        }
    }
    merged
}

/// What the walk changes of an object, to be created or compared: without what the server adds to it.
pub(crate) fn content(object: &Value, like: &Value) -> Value {
    with_content(like, object)
}
