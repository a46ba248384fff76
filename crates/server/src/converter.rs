//! Objects at the version that is asked for, and at the version that is stored, where that may mean to ask a webhook.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use crate::callout::Callout;
use crate::conversion::ConversionHook;
use crate::environment::Environment;
use crate::flow::{Slices, release_while};
use crate::object;
use crate::resource::{Nature, Served, draft_converted};
use crate::status::ApiError;
use crate::storage::{Draft, Record};

impl Served {
    /// Whether a webhook has to be asked to show what was stored at a revision.
    pub(crate) fn needs_webhook(&self, revision: u64) -> bool {
        self.hook_for(revision).is_some()
    }

    /// The webhook that converts objects, when there is one and what was stored at a revision may need it.
    fn hook_for(&self, revision: u64) -> Option<&ConversionHook> {
        let hook = self.custom()?.conversion.as_deref()?;
        self.must_revive(revision).then_some(hook)
    }
}

/// Converts objects between the versions of their resource.
pub(crate) struct Converter {
    callout: Callout,
    environment: Environment,
    slices: Arc<Slices>,
}

impl Converter {
    pub(crate) fn new(callout: Callout, environment: Environment, slices: Arc<Slices>) -> Self {
        Self {
            callout,
            environment,
            slices,
        }
    }

    /// How webhooks are called.
    pub(crate) fn callout(&self) -> &Callout {
        &self.callout
    }

    /// The stored object as a value of a version.
    pub(crate) async fn revive(&self, served: &Served, record: &Record) -> Result<Value, ApiError> {
        let Some(hook) = served.hook_for(record.revision()) else {
            return served.revive(record);
        };
        let stored = served.read_stored(record.body(), record.revision())?;
        let mut converted = self.converted(hook, vec![stored], served).await?;
        Ok(converted.pop().unwrap_or_default())
    }

    /// The stored object as it is sent at a version.
    pub(crate) async fn body(&self, served: &Served, record: &Record) -> Result<Bytes, ApiError> {
        let body = record.body().clone();
        self.present(served, body, record.revision()).await
    }

    /// An object that was stored at a revision, as it is sent at a version.
    pub(crate) async fn present(
        &self,
        served: &Served,
        body: Bytes,
        revision: u64,
    ) -> Result<Bytes, ApiError> {
        let Some(hook) = served.hook_for(revision) else {
            return served.present(body, revision);
        };
        let stored = served.read_stored(&body, revision)?;
        let converted = self.converted(hook, vec![stored], served).await?;
        let encoded = converted.first().map(|value| served.encode(value).0);
        Ok(encoded.unwrap_or_default().into())
    }

    /// Many stored objects as they are sent at a version. A webhook is asked once for all of them.
    pub(crate) async fn bodies(
        &self,
        served: &Served,
        records: &[Arc<Record>],
    ) -> Result<Vec<Bytes>, ApiError> {
        let hook = served
            .custom()
            .and_then(|custom| custom.conversion.as_deref());
        let needs = |record: &Arc<Record>| served.must_revive(record.revision());
        let Some(hook) = hook.filter(|_| records.iter().any(needs)) else {
            let body = |record: &Arc<Record>| served.body(record);
            return self.slices.try_map(records.iter(), body).await;
        };
        let mut bodies: Vec<Bytes> = records.iter().map(|r| r.body().clone()).collect();
        let places: Vec<usize> = (0..records.len()).filter(|i| needs(&records[*i])).collect();
        let read = |i: &usize| served.read_stored(&bodies[*i], records[*i].revision());
        let stored: Result<Vec<Value>, ApiError> = places.iter().map(read).collect();
        let converted = self.converted(hook, stored?, served).await?;
        for (place, value) in places.into_iter().zip(&converted) {
            bodies[place] = served.encode(value).0.into();
        }
        Ok(bodies)
    }

    /// The object as the store takes it: at the version that is stored.
    pub(crate) async fn draft(&self, served: &Served, value: Value) -> Result<Draft, ApiError> {
        let Some(custom) = served.custom() else {
            return Ok(served.draft(value));
        };
        let hook = match &custom.conversion {
            Some(hook) if !served.is_stored_version() => hook,
            _ => return Ok(served.draft(value)),
        };
        let uid = object::uid(&value).to_owned();
        let stored = self.ask(hook, vec![value], &custom.schemas.stored_api_version);
        let mut stored = stored.await?;
        let stored = stored.pop().unwrap_or_default();
        Ok(draft_converted(custom, &uid, stored))
    }

    /// The object as it would be read once it is stored, which is what a dry run answers.
    pub(crate) async fn as_if_stored(
        &self,
        served: &Served,
        value: Value,
    ) -> Result<Value, ApiError> {
        if served.custom().is_none() || served.is_stored_version() {
            return Ok(value);
        }
        let draft = self.draft(served, value).await?;
        let body = self.present(served, draft.body.into(), u64::MAX).await?;
        serde_json::from_slice(&body).map_err(ApiError::internal)
    }

    /// An object of one version as one of another version of the same resource.
    pub(crate) async fn shown_at(
        &self,
        from: &Served,
        to: &Served,
        mut value: Value,
    ) -> Result<Value, ApiError> {
        let is_own = value
            .get("kind")
            .is_some_and(|kind| *kind == *from.resource.kind);
        if from.api_version == to.api_version || !is_own {
            return Ok(value);
        }
        match (&from.nature, &to.nature) {
            (Nature::Builtin(from), Nature::Builtin(to)) => {
                if let Some(conversion) = from.conversion {
                    (conversion.to_storage)(&mut value);
                }
                if let Some(conversion) = to.conversion {
                    (conversion.from_storage)(&mut value);
                }
                Ok(value)
            }
            (_, Nature::Custom(custom)) => {
                if let Some(hook) = &custom.conversion {
                    let mut converted = self.converted(hook, vec![value], to).await?;
                    value = converted.pop().unwrap_or_default();
                } else {
                    to.adopt(&mut value);
                }
                to.default(&mut value);
                Ok(value)
            }
            (Nature::Custom(_), Nature::Builtin(_)) => Ok(value),
        }
    }

    /// Objects at a version, pruned by its schema.
    async fn converted(
        &self,
        hook: &ConversionHook,
        objects: Vec<Value>,
        served: &Served,
    ) -> Result<Vec<Value>, ApiError> {
        let mut converted = self.ask(hook, objects, &served.api_version).await?;
        for value in &mut converted {
            served.adopt(value);
        }
        Ok(converted)
    }

    /// Asks a webhook for objects at a version.
    async fn ask(
        &self,
        hook: &ConversionHook,
        objects: Vec<Value>,
        to: &str,
    ) -> Result<Vec<Value>, ApiError> {
        // Boxed: it is rarely taken, and would make every read's future larger.
        let asked = Box::pin(hook.convert((&self.callout, &self.environment), objects, to));
        let answered = release_while(asked).await;
        answered.map_err(|why| ApiError::unreasoned(why.to_string()))
    }
}
