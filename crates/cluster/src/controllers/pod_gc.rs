//! Pods that nobody will delete: too many that have ended, and those on nodes that are gone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubewright_cache::source::BoxFuture;
use kubewright_runtime::manager::Runnable;
use kubewright_runtime::{Client, Delete, Environment, Error, IgnoreNotFound, Key, Query};
use tokio_util::sync::CancellationToken;

/// How often pods are looked through.
const EVERY: Duration = Duration::from_secs(20);
/// How many pods that have ended are kept, as kube-controller-manager does by default.
const KEPT: usize = 12_500;
/// How long a node has to be missing before its pods are: it may be about to register.
const QUARANTINE: jiff::SignedDuration = jiff::SignedDuration::from_secs(40);

/// Looks through pods now and then as long as the manager runs.
pub(crate) struct PodGc {
    client: Client,
    environment: Environment,
}

impl PodGc {
    pub(crate) fn new(client: Client, environment: Environment) -> Self {
        Self {
            client,
            environment,
        }
    }
}

impl Runnable for PodGc {
    fn run(self: Box<Self>, stop: CancellationToken) -> BoxFuture<'static, Result<(), Error>> {
        Box::pin(async move {
            let mut missing = Missing::default();
            loop {
                tokio::select! { biased; // A stop is worth more than another look.
                    () = stop.cancelled() => return Ok(()),
                    () = tokio::time::sleep(EVERY) => {}
                }
                if let Err(error) = self.look_through(&mut missing).await {
                    tracing::warn!(error = error.report(), "pods could not be looked through");
                }
            }
        })
    }

    fn describe(&self) -> String {
        "the pod garbage collector".to_owned()
    }
}

impl PodGc {
    async fn look_through(&self, missing: &mut Missing) -> Result<(), Error> {
        let pods = self.client.list::<Pod>(Query::all()).await?;
        let nodes = self.client.list::<Node>(Query::all()).await?;
        let now = self.environment.now();
        for pod in surplus(pods.iter().map(|pod| &**pod), KEPT) {
            self.delete(pod).await?;
        }
        let nodes: BTreeSet<&str> = nodes
            .iter()
            .filter_map(|n| n.metadata.name.as_deref())
            .collect();
        let used: BTreeSet<&str> = pods.iter().filter_map(|pod| node_of(pod)).collect();
        let gone = missing.update(used.difference(&nodes).copied(), now);
        for pod in pods
            .iter()
            .filter(|pod| node_of(pod).is_some_and(|n| gone.contains(n)))
        {
            let node = node_of(pod).unwrap_or_default();
            // The server is asked: a cache that lags behind must not cost pods.
            if self
                .client
                .live()
                .get::<Node>(&Key::cluster(node))
                .await?
                .is_none()
            {
                self.fail(pod, now).await?;
                self.delete(pod).await?;
            }
        }
        Ok(())
    }

    /// Says why before the pod goes, for those who count failures.
    async fn fail(&self, pod: &Pod, now: Timestamp) -> Result<(), Error> {
        if has_ended(pod) {
            return Ok(());
        }
        let failed = |pod: &mut Pod| fail(pod, now);
        self.client
            .modify_status(pod, failed)
            .await
            .ignore_not_found()?;
        Ok(())
    }

    async fn delete(&self, pod: &Pod) -> Result<(), Error> {
        let how = Delete::background().grace(Duration::ZERO);
        self.client.delete(pod, how).await.ignore_not_found()?;
        Ok(())
    }
}

/// Nodes that are missing, and since when.
#[derive(Debug, Default)]
struct Missing(BTreeMap<String, Timestamp>);

impl Missing {
    /// Notes which nodes are missing now; gives those that have been for long enough.
    fn update<'a>(
        &mut self,
        missing: impl Iterator<Item = &'a str>,
        now: Timestamp,
    ) -> BTreeSet<String> {
        let missing: BTreeMap<String, Timestamp> = missing
            .map(|node| (node.to_owned(), self.0.get(node).copied().unwrap_or(now)))
            .collect();
        self.0 = missing;
        let long = |since: &Timestamp| now.duration_since(*since) >= QUARANTINE;
        let gone = self.0.iter().filter(|(_, since)| long(since));
        gone.map(|(node, _)| node.clone()).collect()
    }
}

fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec
        .as_ref()?
        .node_name
        .as_deref()
        .filter(|node| !node.is_empty())
}

fn has_ended(pod: &Pod) -> bool {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// The oldest of the pods that have ended, as many as there are too many.
fn surplus<'a>(pods: impl Iterator<Item = &'a Pod>, kept: usize) -> Vec<&'a Pod> {
    let is_going = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
    let mut ended: Vec<&Pod> = pods
        .filter(|pod| has_ended(pod) && !is_going(pod))
        .collect();
    ended.sort_by_key(|pod| {
        let created = pod.metadata.creation_timestamp.as_ref().map(|t| t.0);
        (created, &pod.metadata.namespace, &pod.metadata.name)
    });
    ended.truncate(ended.len().saturating_sub(kept));
    ended
}

fn fail(pod: &mut Pod, now: Timestamp) {
    let status = pod.status.get_or_insert_default();
    status.phase = Some("Failed".to_owned());
    let conditions = status.conditions.get_or_insert_default();
    conditions.retain(|c| c.type_ != "DisruptionTarget");
    conditions.push(PodCondition {
        type_: "DisruptionTarget".to_owned(),
        status: "True".to_owned(),
        reason: Some("DeletionByPodGC".to_owned()),
        message: Some("PodGC: node no longer exists".to_owned()),
        last_transition_time: Some(Time(now)),
        ..PodCondition::default()
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, created: &str, phase: &str) -> Pod {
        let pod = json!({
            "metadata": {"name": name, "creationTimestamp": created},
            "status": {"phase": phase},
        });
        serde_json::from_value(pod).expect("a pod")
    }

    #[test]
    fn oldest_ended_pods_are_surplus() {
        let pods = [
            pod("running", "2020-01-01T00:00:00Z", "Running"),
            pod("new", "2020-01-03T00:00:00Z", "Failed"),
            pod("old", "2020-01-01T00:00:00Z", "Succeeded"),
            pod("middle", "2020-01-02T00:00:00Z", "Succeeded"),
        ];
        for (kept, expected) in [
            (1, &["old", "middle"][..]),
            (3, &[]),
            (0, &["old", "middle", "new"]),
        ] {
            let found = surplus(pods.iter(), kept);
            let names: Vec<_> = found
                .iter()
                .filter_map(|p| p.metadata.name.as_deref())
                .collect();
            assert_eq!(names, expected);
        }
    }

    #[test]
    fn node_has_to_be_missing_for_a_while_without_a_break() {
        let at = |second| Timestamp::from_second(second).expect("in range");
        let mut missing = Missing::default();
        assert!(missing.update(["n"].into_iter(), at(0)).is_empty());
        assert!(missing.update([].into_iter(), at(20)).is_empty());
        assert!(missing.update(["n"].into_iter(), at(40)).is_empty());
        assert!(missing.update(["n"].into_iter(), at(79)).is_empty());
        assert_eq!(missing.update(["n"].into_iter(), at(80)).len(), 1);
    }
}
