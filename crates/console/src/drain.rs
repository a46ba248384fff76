//! Empties a node: no new pods, then an eviction of each pod that is not of a DaemonSet, with progress as it happens.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Response};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::actions::Target;
use crate::cluster::{Call, ClusterError, Connection, escape};
use crate::http::{Body, Problem, pieces};
use crate::state::State;

/// Messages that wait for a page that reads slowly.
const WAITING: usize = 32;
/// How long pods that a disruption budget protects are asked for again.
const PATIENCE: Duration = Duration::from_secs(120);
/// Pause before a protected pod is asked for again.
const PAUSE: Duration = Duration::from_secs(2);

/// Drains a node. The answer is one JSON object a line: a step for each pod, and the end.
///
/// # Errors
/// When the node cannot be cordoned, or its pods cannot be listed.
pub(crate) async fn drain(state: &Arc<State>, target: Target) -> Result<Response<Body>, Problem> {
    let (kind, path) = target.resolve(state).await?;
    if !kind.is("", "Node") {
        return Err(Problem::BadRequest("only nodes can be drained".to_owned()));
    }
    let connection = state.feeds.shared.connection.clone();
    let patch = json!({"spec": {"unschedulable": true}}).to_string();
    let cordon = Call::new(Method::PATCH, path).body("application/merge-patch+json", patch.into());
    connection.call(cordon).await?;
    let selector = escape(&format!("spec.nodeName={}", target.name()));
    let list = Call::new(
        Method::GET,
        format!("/api/v1/pods?fieldSelector={selector}"),
    );
    let list = connection.json(list).await?;
    let pods = list["items"].as_array().cloned().unwrap_or_default();
    let (page, steps) = mpsc::channel(WAITING);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        // A page that left needs no progress; what was evicted stays evicted.
        let _ = evict_all(&connection, pods, &page).await;
    });
    Ok(pieces("application/x-ndjson", steps, tasks))
}

type Gone = mpsc::error::SendError<Bytes>;

async fn say(page: &mpsc::Sender<Bytes>, message: Value) -> Result<(), Gone> {
    page.send(format!("{message}\n").into()).await
}

async fn evict_all(
    connection: &Connection,
    pods: Vec<Value>,
    page: &mpsc::Sender<Bytes>,
) -> Result<(), Gone> {
    let (mut evicted, mut failed) = (0, 0);
    for pod in &pods {
        let metadata = &pod["metadata"];
        let name = format!(
            "{}/{}",
            text(&metadata["namespace"]),
            text(&metadata["name"])
        );
        if let Some(why) = stays(pod) {
            say(page, json!({"pod": name, "step": "stays", "why": why})).await?;
            continue;
        }
        match evict(connection, pod, (&name, page)).await? {
            Ok(()) => {
                evicted += 1;
                say(page, json!({"pod": name, "step": "evicted"})).await?;
            }
            Err(error) => {
                failed += 1;
                say(
                    page,
                    json!({"pod": name, "step": "failed", "why": error.message}),
                )
                .await?;
            }
        }
    }
    say(
        page,
        json!({"step": "done", "evicted": evicted, "failed": failed}),
    )
    .await
}

/// Asks for the eviction of a pod, repeatedly while a disruption budget forbids it.
async fn evict(
    connection: &Connection,
    pod: &Value,
    (name, page): (&str, &mpsc::Sender<Bytes>),
) -> Result<Result<(), ClusterError>, Gone> {
    let metadata = &pod["metadata"];
    let (namespace, own) = (text(&metadata["namespace"]), text(&metadata["name"]));
    let path = format!(
        "/api/v1/namespaces/{}/pods/{}/eviction",
        escape(namespace),
        escape(own)
    );
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction",
        "metadata": {"name": own, "namespace": namespace},
    })
    .to_string();
    let end = Instant::now() + PATIENCE;
    let mut last = String::new();
    loop {
        let body = eviction.clone().into();
        let call = Call::new(Method::POST, path.clone()).body("application/json", body);
        match connection.call(call).await {
            Ok(_) => return Ok(Ok(())),
            Err(error) if error.code == 404 => return Ok(Ok(())),
            Err(error) if error.code == 429 && Instant::now() < end => {
                if error.message != last {
                    last = error.message.clone();
                    say(
                        page,
                        json!({"pod": name, "step": "waits", "why": error.message}),
                    )
                    .await?;
                }
                sleep(PAUSE).await;
            }
            Err(error) => return Ok(Err(error)),
        }
    }
}

/// Why a pod is not evicted.
fn stays(pod: &Value) -> Option<&'static str> {
    let metadata = &pod["metadata"];
    if !metadata["annotations"]["kubernetes.io/config.mirror"].is_null() {
        return Some("the node itself runs it");
    }
    let owners = metadata["ownerReferences"].as_array();
    let is_daemon = owners.is_some_and(|owners| {
        owners
            .iter()
            .any(|owner| owner["kind"] == "DaemonSet" && owner["controller"] == true)
    });
    is_daemon.then_some("its DaemonSet would start it again")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_of_daemon_sets_and_of_the_node_stay() {
        let owned = |kind: &str| json!({"metadata": {"ownerReferences": [{"kind": kind, "controller": true}]}});
        assert!(stays(&owned("DaemonSet")).is_some());
        assert!(stays(&owned("ReplicaSet")).is_none());
        let mirror = json!({"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}});
        assert!(stays(&mirror).is_some());
    }
}
