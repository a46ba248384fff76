//! What simulated nodes write to the API server.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, NodeStatus, Pod, PodStatus};
use kube::Resource as _;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions, Request};
use kubewright_cache::Key;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::fleet::{Ending, Outcome};
use super::spec::LEASES;
use super::status::{Published, fingerprint};
use super::step::Fate;
use crate::identity::{self, Acting};

/// The pauses between attempts to register; they double.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_secs(7);

/// The name under which this is written.
const MANAGER: &str = "kubelet";

fn patching() -> PatchParams {
    PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

fn creating() -> PostParams {
    PostParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PostParams::default()
    }
}

/// A write about a pod.
#[derive(Debug)]
pub(crate) struct PodWrite {
    pub(crate) key: Key,
    pub(crate) uid: String,
    pub(crate) status: Option<PodStatus>,
    /// The conditions that the pod has no longer.
    pub(crate) gone: Vec<&'static str>,
    pub(crate) fate: Fate,
}

impl PodWrite {
    /// Writes the status, and deletes the pod if it goes.
    ///
    /// # Errors
    /// What the server answers. A pod that is gone, or another one, is not an error: the informer reports it.
    pub(crate) async fn send(self, kubelet: Acting) -> Result<Outcome, kube::Error> {
        let namespace = self.key.namespace().unwrap_or("default");
        let mut outcome = Outcome {
            uid: self.uid.clone(),
            published: None,
            fate: Fate::Stays,
            ended: Ending::Open,
        };
        if let Some(status) = &self.status {
            let patch = Patch::Strategic(patch(&self.uid, status, &self.gone));
            let pod = (Some(namespace), self.key.name());
            let params = patching();
            let written = kubelet.patch_status::<Pod, Written>(pod, &params, &patch);
            outcome.published = Some(Published {
                fingerprint: fingerprint(status),
                version: if_there(written.await)?.and_then(|written| written.version()),
            });
            if matches!(status.phase.as_deref(), Some("Succeeded" | "Failed")) {
                outcome.ended = Ending::Over;
            }
        }
        if self.fate == Fate::Goes {
            let params = DeleteParams {
                grace_period_seconds: Some(0),
                preconditions: Some(Preconditions {
                    uid: Some(self.uid.clone()),
                    resource_version: None,
                }),
                ..DeleteParams::default()
            };
            let name = self.key.name();
            let deleted = kubelet.delete::<Pod>(Some(namespace), name, &params).await;
            self.or_replaced(&kubelet, namespace, deleted).await?;
            outcome.fate = Fate::Goes;
        }
        Ok(outcome)
    }
}

impl PodWrite {
    /// A conflict means that another pod has the name, or that somebody wrote at the same time: the server knows which.
    async fn or_replaced(
        &self,
        kubelet: &Acting,
        namespace: &str,
        deleted: Result<(), kube::Error>,
    ) -> Result<(), kube::Error> {
        let Err(kube::Error::Api(status)) = &deleted else {
            return deleted;
        };
        match status.code {
            404 => Ok(()),
            409 => {
                let found = kubelet.get_opt(Some(namespace), self.key.name()).await?;
                let same = |pod: Pod| pod.metadata.uid.as_deref() == Some(&self.uid);
                if found.is_some_and(same) {
                    deleted
                } else {
                    Ok(())
                }
            }
            _ => deleted,
        }
    }
}

/// What is not there needs no write.
fn ignore_missing<T>(result: Result<T, kube::Error>) -> Result<(), kube::Error> {
    if_there(result).map(drop)
}

/// The answer, unless the object is gone.
fn if_there<T>(result: Result<T, kube::Error>) -> Result<Option<T>, kube::Error> {
    match result {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        other => other.map(Some),
    }
}

/// All that is news in the answer to a write.
#[derive(Debug, Deserialize)]
struct Written {
    metadata: Version,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    resource_version: String,
}

impl Written {
    /// The version as a number, which those of this cluster are.
    fn version(&self) -> Option<u64> {
        self.metadata.resource_version.parse().ok()
    }
}

/// The status as a patch: what is empty or gone now is taken away, what others wrote stays.
fn patch(uid: &str, status: &PodStatus, gone: &[&str]) -> Value {
    let mut status = serde_json::to_value(status).unwrap_or(Value::Null);
    if let Some(conditions) = status["conditions"].as_array_mut() {
        for condition in conditions.iter_mut() {
            for field in ["reason", "message"] {
                if condition[field].is_null() {
                    condition[field] = Value::Null;
                }
            }
        }
        let gone = gone
            .iter()
            .map(|kind| json!({"$patch": "delete", "type": kind}));
        conditions.extend(gone);
    }
    json!({"metadata": {"uid": uid}, "status": status})
}

/// Registers a node: creates its object, or takes over the one that is there. Gives the uid of the object.
///
/// # Errors
/// What the server says.
pub(crate) async fn register(kubelet: Acting, node: Node) -> Result<String, kube::Error> {
    let name = node.metadata.name.clone().unwrap_or_default();
    match kubelet.create(None, &creating(), &node).await {
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        other => return other.map(uid),
    }
    let (object, params) = ((None, &*name), patching());
    let existing = kubelet.get_opt(None, &name).await?.unwrap_or_default();
    let patch = Patch::Merge(missing(&existing, &node));
    kubelet.patch::<Node>(object, &params, &patch).await?;
    let report = json!({"status": node.status});
    let patch = Patch::Strategic(report);
    let reported = kubelet.patch_status::<Node, Node>(object, &params, &patch);
    reported.await.map(uid)
}

/// Registers a node and retries until the server accepts it or says that it never will, as the kubelet does.
///
/// # Errors
/// That the server will not have it.
pub(crate) async fn register_in_the_end(
    kubelet: Acting,
    node: Node,
) -> Result<String, kube::Error> {
    let mut pause = FIRST_PAUSE;
    loop {
        let registered = register(kubelet.clone(), node.clone()).await;
        match &registered {
            Err(kube::Error::Api(status)) if is_final(status.code) => return registered,
            Err(error) => tracing::debug!(%error, "a node could not register yet"),
            Ok(_) => return registered,
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LAST_PAUSE);
    }
}

/// Whether asking again cannot help.
fn is_final(code: u16) -> bool {
    (400..500).contains(&code) && !matches!(code, 404 | 409 | 429)
}

fn uid(node: Node) -> String {
    node.metadata.uid.unwrap_or_default()
}

/// What a node brings that the object of its name does not have yet. What somebody has written there stays.
fn missing(existing: &Node, node: &Node) -> Value {
    let known = existing.metadata.labels.clone().unwrap_or_default();
    let labels = node.metadata.labels.iter().flatten();
    let labels: serde_json::Map<String, Value> = labels
        .filter(|(key, _)| !known.contains_key(*key))
        .map(|(key, value)| (key.clone(), json!(value)))
        .collect();
    let annotations = &node.metadata.annotations;
    let mut missing = json!({"metadata": {"labels": labels, "annotations": annotations}});
    let has_network = |node: &Node| {
        let cidr = node.spec.as_ref().and_then(|s| s.pod_cidr.as_deref());
        cidr.is_some_and(|cidr| !cidr.is_empty())
    };
    if !has_network(existing) {
        let spec = node.spec.clone().unwrap_or_default();
        missing["spec"] = json!({"podCIDR": spec.pod_cidr, "podCIDRs": spec.pod_cidrs});
    }
    missing
}

/// Reports the status of a node: what is other than it was.
///
/// # Errors
/// What the server says.
pub(crate) async fn report(
    kubelet: Acting,
    name: String,
    before: Option<NodeStatus>,
    status: NodeStatus,
) -> Result<(), kube::Error> {
    let before = serde_json::to_value(before).unwrap_or(Value::Null);
    let status = serde_json::to_value(status).map_err(kube::Error::SerdeError)?;
    let patch = Patch::Strategic(json!({"status": changes(&before, status)}));
    let (object, params) = ((None, &*name), patching());
    let written = kubelet.patch_status::<Node, IgnoredAny>(object, &params, &patch);
    ignore_missing(written.await)
}

/// What of a status is other than before: whole fields, but of the conditions those that differ.
fn changes(before: &Value, mut status: Value) -> Value {
    if let Some(fields) = status.as_object_mut() {
        fields.retain(|field, value| before[field] != *value);
    }
    let known = before["conditions"].as_array();
    if let (Some(known), Some(Value::Array(conditions))) = (known, status.get_mut("conditions")) {
        conditions.retain(|condition| !known.contains(condition));
    }
    status
}

/// Renews the lease of a node, or makes it. As a kubelet does it: the lease that was written last is written again, and
/// the server is asked only when somebody else has changed it.
///
/// # Errors
/// What the server says.
pub(crate) async fn renew(
    kubelet: Acting,
    held: Option<Arc<Lease>>,
    wanted: Lease,
) -> Result<Lease, kube::Error> {
    if let Some(held) = held {
        match replace_lease(&kubelet, &held, &wanted).await {
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
            other => return other,
        }
    }
    let name = wanted.metadata.name.as_deref().unwrap_or_default();
    let mut lease = match kubelet.get_opt(Some(LEASES), name).await? {
        Some(found) => return replace_lease(&kubelet, &found, &wanted).await,
        None => kubelet.create(Some(LEASES), &creating(), &wanted).await?,
    };
    lease.metadata.managed_fields = None;
    Ok(lease)
}

/// Writes a lease that is there with what is wanted of it.
async fn replace_lease(
    kubelet: &Acting,
    found: &Lease,
    wanted: &Lease,
) -> Result<Lease, kube::Error> {
    let mut lease = Lease {
        metadata: found.metadata.clone(),
        spec: wanted.spec.clone(),
    };
    // Without them they stay as they are.
    lease.metadata.managed_fields = None;
    let name = lease.metadata.name.as_deref().unwrap_or_default();
    let body = serde_json::to_vec(&lease).map_err(kube::Error::SerdeError)?;
    let path = Lease::url_path(&(), Some(LEASES));
    let request = Request::new(path).replace(name, &creating(), body);
    let written: Written = kubelet.send(request).await?;
    lease.metadata.resource_version = Some(written.metadata.resource_version);
    Ok(lease)
}

/// Deletes the object of a node and its lease. A kubelet may do the second alone; nodes are deleted by the node controller.
///
/// # Errors
/// What the server answers; what is gone already is not an error.
pub(crate) async fn deregister(kubelet: Acting, name: &str) -> Result<(), kube::Error> {
    let (controller, params) = (
        kubelet.as_user(identity::controller("node-controller")),
        DeleteParams::default(),
    );
    ignore_missing(controller.delete::<Node>(None, name, &params).await)?;
    ignore_missing(kubelet.delete::<Lease>(Some(LEASES), name, &params).await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_has_what_is_other_than_before() {
        let ready = |at: &str| json!({"type": "Ready", "status": "True", "lastHeartbeatTime": at});
        let full = json!({"type": "DiskPressure", "status": "False"});
        let status = |at: &str, cpu: &str| json!({"capacity": {"cpu": cpu}, "conditions": [ready(at), full]});
        let before = status("1", "8");
        for (now, expect) in [
            (status("1", "8"), json!({})),
            (status("2", "8"), json!({"conditions": [ready("2")]})),
            (status("1", "4"), json!({"capacity": {"cpu": "4"}})),
        ] {
            assert_eq!(changes(&before, now), expect);
        }
        assert_eq!(changes(&Value::Null, before.clone()), before);
    }
}
