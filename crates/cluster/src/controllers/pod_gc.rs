//! Pods that nobody will delete: too many that have ended, those on nodes that are gone or out of service, and those that
//! were deleted before they had a node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubewright_cache::Event;
use kubewright_cache::source::BoxFuture;
use kubewright_runtime::manager::Runnable;
use kubewright_runtime::{Client, Delete, Environment, Error, IgnoreNotFound, Key};
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::pods::is_terminating;

/// How often pods are looked through, at most: while nothing changes nobody looks.
const EVERY: Duration = Duration::from_secs(20);
/// How many pods that have ended are kept, as kube-controller-manager does by default.
const KEPT: usize = 12_500;
/// The taint by which somebody vouches that a node is off for good.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
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
            let changed = Arc::new(Changed::default());
            let informer = self.client.of::<Pod>().informer();
            let nodes = self.client.of::<Node>().informer();
            let (pod, node) = (changed.clone(), changed.clone());
            let heard = [
                informer.add_handler(move |event: Event<Pod>| pod.pod(&event))?,
                nodes.add_handler(move |event: Event<Node>| node.node(&event))?,
            ];
            let (mut census, mut missing) = (Census::default(), Missing::default());
            let mut next = Next::WhenSomethingChanges;
            loop {
                tokio::select! { biased; // A stop is worth more than another look.
                    () = stop.cancelled() => break,
                    () = changed.rest(next) => {}
                }
                let pods = informer.reader();
                for key in std::mem::take(&mut *changed.pods.lock()) {
                    let seen = pods.entry(&key).and_then(|pod| Seen::read(pod.json()));
                    census.put(&key, seen);
                }
                next = match self.look_through(&census, &mut missing).await {
                    Ok(()) if missing.0.is_empty() => Next::WhenSomethingChanges,
                    Ok(()) => Next::InAnyCase,
                    Err(error) => {
                        tracing::warn!(error = error.report(), "pods could not be looked through");
                        Next::InAnyCase
                    }
                };
            }
            for registration in heard {
                registration.remove();
            }
            Ok(())
        })
    }

    fn describe(&self) -> String {
        "the pod garbage collector".to_owned()
    }
}

/// When pods are looked through again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    WhenSomethingChanges,
    InAnyCase,
}

/// What has changed since pods were last looked through.
#[derive(Debug, Default)]
struct Changed {
    /// Their number is that of all pods at most.
    pods: Mutex<BTreeSet<Key>>,
    wake: Notify,
}

impl Changed {
    fn pod(&self, event: &Event<Pod>) {
        self.pods.lock().insert(event.object().key().clone());
        self.wake.notify_one();
    }

    /// A node that is there and in service strands nobody.
    fn node(&self, event: &Event<Node>) {
        let strands = match event {
            Event::Deleted { .. } => true,
            _ => event
                .object()
                .value()
                .is_some_and(|node| is_out_of_service(&node)),
        };
        if strands {
            self.wake.notify_one();
        }
    }

    /// Waits until it is time to look.
    async fn rest(&self, next: Next) {
        if next == Next::WhenSomethingChanges {
            self.wake.notified().await;
        }
        tokio::time::sleep(EVERY).await;
    }
}

impl PodGc {
    async fn look_through(&self, census: &Census, missing: &mut Missing) -> Result<(), Error> {
        let (pods, nodes) = (self.client.reader::<Pod>(), self.client.reader::<Node>());
        for key in census.surplus(KEPT) {
            if let Some(pod) = pods.get(key).filter(|pod| has_ended(pod)) {
                self.delete(&pod).await?;
            }
        }
        self.force(census).await?;
        let now = self.environment.now();
        let used = census.by_node.keys().map(String::as_str);
        let gone = missing.update(
            used.filter(|node| !nodes.contains(&Key::cluster(node))),
            now,
        );
        for node in gone {
            // The server is asked: a cache that lags behind must not cost pods.
            let live = self.client.live().get::<Node>(&Key::cluster(&node)).await?;
            let stranded = census.by_node.get(&node).filter(|_| live.is_none());
            for key in stranded.into_iter().flatten() {
                if let Some(pod) = pods.get(key).filter(|pod| node_of(pod) == Some(&node)) {
                    self.fail(&pod, now).await?;
                    self.delete(&pod).await?;
                }
            }
        }
        Ok(())
    }

    /// Removes pods on their way out that no kubelet will ever confirm (`gc_controller.go: gcUnscheduledTerminating,
    /// gcTerminating`).
    async fn force(&self, census: &Census) -> Result<(), Error> {
        let (pods, nodes) = (self.client.reader::<Pod>(), self.client.reader::<Node>());
        for key in &census.terminating {
            let Some(pod) = pods.get(key).filter(|pod| is_terminating(pod)) else {
                continue;
            };
            let node = node_of(&pod).and_then(|name| nodes.get(&Key::cluster(name)));
            if node_of(&pod).is_none() || node.is_some_and(|node| is_out_of_service(&node)) {
                self.delete(&pod).await?;
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

/// Whether somebody vouches that a node is off and will not come back as it was.
fn is_out_of_service(node: &Node) -> bool {
    let conditions = node
        .status
        .iter()
        .flat_map(|s| s.conditions.iter().flatten());
    let ready = conditions
        .into_iter()
        .any(|c| c.type_ == "Ready" && c.status == "True");
    let taints = node.spec.iter().flat_map(|s| s.taints.iter().flatten());
    !ready && taints.into_iter().any(|taint| taint.key == OUT_OF_SERVICE)
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
    phase.is_some_and(is_end)
}

fn is_end(phase: &str) -> bool {
    matches!(phase, "Succeeded" | "Failed")
}

/// What is read of a pod for the census. Very many may have changed since the last look, and to decode a whole pod takes
/// several times as long.
#[derive(Debug, Deserialize)]
struct Seen {
    metadata: SeenMetadata,
    #[serde(default)]
    spec: SeenSpec,
    #[serde(default)]
    status: SeenStatus,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SeenMetadata {
    creation_timestamp: Option<Timestamp>,
    deletion_timestamp: Option<Timestamp>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SeenSpec {
    node_name: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct SeenStatus {
    #[serde(default)]
    phase: String,
}

impl Seen {
    fn read(pod: &[u8]) -> Option<Self> {
        serde_json::from_slice(pod).ok()
    }
}

/// What has to be known of pods. Kept up with each change, so that a look costs as much as there are nodes.
///
/// `pods` says under what each pod is in the other two.
#[derive(Debug, Default)]
struct Census {
    pods: BTreeMap<Key, Facts>,
    by_node: BTreeMap<String, BTreeSet<Key>>,
    /// Those that were deleted and are still there.
    terminating: BTreeSet<Key>,
    /// Those that have ended and are not going, the oldest first.
    ended: BTreeSet<(Option<Timestamp>, Key)>,
}

#[derive(Debug)]
struct Facts {
    node: Option<String>,
    ended: Option<(Option<Timestamp>, Key)>,
}

impl Census {
    /// Takes up a pod as it is now, or that it is gone.
    fn put(&mut self, key: &Key, pod: Option<Seen>) {
        self.forget(key);
        let Some(pod) = pod else {
            return;
        };
        let is_going = pod.metadata.deletion_timestamp.is_some();
        let created = pod.metadata.creation_timestamp;
        let facts = Facts {
            node: pod.spec.node_name.filter(|node| !node.is_empty()),
            ended: (is_end(&pod.status.phase) && !is_going).then(|| (created, key.clone())),
        };
        if let Some(node) = &facts.node {
            let there = self.by_node.entry(node.clone()).or_default();
            there.insert(key.clone());
        }
        if is_going {
            self.terminating.insert(key.clone());
        }
        self.ended.extend(facts.ended.clone());
        self.pods.insert(key.clone(), facts);
    }

    fn forget(&mut self, key: &Key) {
        let Some(facts) = self.pods.remove(key) else {
            return;
        };
        self.terminating.remove(key);
        if let Some(ended) = facts.ended {
            self.ended.remove(&ended);
        }
        if let Some(node) = facts.node
            && let Some(there) = self.by_node.get_mut(&node)
        {
            there.remove(key);
            if there.is_empty() {
                self.by_node.remove(&node);
            }
        }
    }

    /// The oldest of the pods that have ended, as many as there are too many.
    fn surplus(&self, kept: usize) -> impl Iterator<Item = &Key> {
        let many = self.ended.len().saturating_sub(kept);
        self.ended.iter().take(many).map(|(_, key)| key)
    }
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

    fn seen(pod: &serde_json::Value) -> Option<Seen> {
        Seen::read(pod.to_string().as_bytes())
    }

    #[test]
    fn oldest_ended_pods_are_surplus() {
        let pods = [
            ("running", "2020-01-01T00:00:00Z", "Running"),
            ("new", "2020-01-03T00:00:00Z", "Failed"),
            ("old", "2020-01-01T00:00:00Z", "Succeeded"),
            ("middle", "2020-01-02T00:00:00Z", "Succeeded"),
        ];
        let mut census = Census::default();
        for (name, created, phase) in pods {
            let pod = json!({
                "metadata": {"name": name, "creationTimestamp": created},
                "status": {"phase": phase},
            });
            let key = Key::new("n", name);
            census.put(&key, seen(&pod));
            census.put(&key, seen(&pod));
        }
        let going = json!({
            "metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z", "creationTimestamp": "2019-01-01T00:00:00Z"},
            "status": {"phase": "Failed"},
        });
        census.put(&Key::new("n", "going"), seen(&going));
        for (kept, expected) in [
            (1, &["old", "middle"][..]),
            (3, &[]),
            (0, &["old", "middle", "new"]),
        ] {
            let names: Vec<_> = census.surplus(kept).map(Key::name).collect();
            assert_eq!(names, expected);
        }
    }

    #[test]
    fn census_knows_who_is_where_until_they_are_gone() {
        let mut census = Census::default();
        let key = Key::new("n", "p");
        let placed = |node: &str| {
            seen(
                &json!({"metadata": {"name": "p"}, "spec": {"nodeName": node, "containers": []},
                "status": {"phase": "Succeeded"}}),
            )
        };
        for node in ["one", "other", ""] {
            census.put(&key, placed(node));
            let used: Vec<_> = census.by_node.keys().map(String::as_str).collect();
            let expected: &[&str] = if node.is_empty() { &[] } else { &[node] };
            assert_eq!((used.as_slice(), census.ended.len()), (expected, 1));
        }
        census.put(&key, None);
        assert!(census.pods.is_empty() && census.by_node.is_empty() && census.ended.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_looks_while_nothing_changes() {
        let changed = Changed::default();
        let within = |next| {
            let day = Duration::from_secs(24 * 3_600);
            let start = tokio::time::Instant::now();
            let rest = tokio::time::timeout(day, changed.rest(next));
            async move { rest.await.ok().map(|()| start.elapsed()) }
        };
        assert_eq!(within(Next::WhenSomethingChanges).await, None);
        assert_eq!(within(Next::InAnyCase).await, Some(EVERY));
        changed.wake.notify_one();
        assert_eq!(within(Next::WhenSomethingChanges).await, Some(EVERY));
        assert_eq!(within(Next::WhenSomethingChanges).await, None);
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
