//! Pods that a component takes away for reasons of its own: the pod says why before it is deleted, so that Jobs and people
//! can tell it from a failure.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::is_finished;
use crate::identity::Acting;

/// Who takes pods away, and what their condition `DisruptionTarget` says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Disruption {
    /// The name under which the condition is written.
    pub(crate) manager: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) message: &'static str,
}

impl Disruption {
    /// Marks a pod and deletes it. One that is gone, or another one by now, needs nothing.
    ///
    /// # Errors
    /// What the server says.
    pub(crate) async fn delete(
        &self,
        client: &kube::Client,
        pod: &Pod,
        now: Timestamp,
    ) -> Result<(), kube::Error> {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or("default");
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let (acting, object) = (Acting::of(client), (Some(namespace), name));
        if !is_finished(pod) {
            let params = PatchParams {
                field_manager: Some(self.manager.to_owned()),
                ..PatchParams::default()
            };
            let patch = Patch::Strategic(self.patch(pod, now));
            let marked = acting.patch_status::<Pod, IgnoredAny>(object, &params, &patch);
            ignore_gone(marked.await.map(drop))?;
        }
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: pod.metadata.uid.clone(),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        ignore_gone(acting.delete::<Pod>(object.0, object.1, &params).await)
    }

    fn patch(&self, pod: &Pod, now: Timestamp) -> Value {
        let condition = json!({
            "type": "DisruptionTarget", "status": "True", "reason": self.reason, "message": self.message,
            "lastTransitionTime": Time(now), "observedGeneration": pod.metadata.generation,
        });
        json!({"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}})
    }
}

fn ignore_gone(written: Result<(), kube::Error>) -> Result<(), kube::Error> {
    match written {
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        other => other,
    }
}
