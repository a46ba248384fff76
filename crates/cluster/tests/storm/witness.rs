//! Sees every write in its order and checks what must hold after it.
//!
//! Controllers act on what they have seen last, which with a bad transport is some time ago, as in Kubernetes. So a bound is what
//! any of the versions of a while ago allows, and pods that users delete or nodes lose are nobody's fault.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use jiff::{SignedDuration, Timestamp};
use kubewright_cluster::Clock;
use kubewright_server::storage::{Change, Event};
use serde_json::Value;

use crate::exclusive;
use crate::limits::{self, Limits, Objects, Write};

/// How long ago a controller's view may be from: late watches, and pauses after watches that broke.
pub(crate) const WHILE: SignedDuration = SignedDuration::from_secs(60);

/// What is looked at.
pub(crate) const WATCHED: [&str; 15] = [
    "apps/deployments",
    "apps/replicasets",
    "apps/statefulsets",
    "apps/daemonsets",
    "autoscaling/horizontalpodautoscalers",
    "batch/cronjobs",
    "batch/jobs",
    "certificates.k8s.io/certificatesigningrequests",
    "nodes",
    "persistentvolumeclaims",
    "persistentvolumes",
    "pods",
    "policy/poddisruptionbudgets",
    "replicationcontrollers",
    "services",
];

#[derive(Clone)]
pub(crate) struct Witness {
    clock: Clock,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    objects: Objects,
    limits: Limits,
    /// Numbers that bound others, with when they were no longer true: by uid and field.
    bounds: BTreeMap<(String, &'static str), Vec<(Timestamp, i64)>>,
    /// Pods that a user deleted.
    excused: BTreeSet<String>,
    /// When a node fell silent or came back, or anything about a Deployment or its pods was done by a user.
    disturbed: Option<Timestamp>,
    complaints: Vec<String>,
    checked: usize,
}

impl Witness {
    pub(crate) fn new(clock: Clock) -> Self {
        let seen = Arc::default();
        Self { clock, seen }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().expect("nobody panics while holding it")
    }

    /// A pod that a user deletes.
    pub(crate) fn excuse(&self, uid: &str) {
        self.lock().excused.insert(uid.to_owned());
        self.disturb();
    }

    /// Pods come and go through no fault of a controller's.
    pub(crate) fn disturb(&self) {
        self.lock().disturbed = Some(self.clock.now());
    }

    pub(crate) fn complaints(&self) -> Vec<String> {
        self.lock().complaints.clone()
    }

    /// The collections that were written to.
    pub(crate) fn collections(&self) -> BTreeSet<String> {
        self.lock().objects.keys().cloned().collect()
    }

    /// A node is low on memory from now on.
    pub(crate) fn press(&self, node: &str) {
        self.lock().limits.press(node);
        self.disturb();
    }

    /// A node is low on nothing any more.
    pub(crate) fn relieve(&self, node: &str) {
        let now = self.clock.now();
        self.lock().limits.relieve(node, now);
        self.disturb();
    }

    /// The rules about limits that were put to the test.
    pub(crate) fn rules(&self) -> BTreeSet<&'static str> {
        self.lock().limits.checked().clone()
    }

    /// How many checks there were.
    pub(crate) fn checked(&self) -> usize {
        self.lock().checked
    }

    /// A write.
    pub(crate) fn see(&self, collection: &str, event: &Event) {
        if !WATCHED.contains(&collection) {
            return;
        }
        let object: Value =
            serde_json::from_slice(event.record().body()).expect("objects are JSON");
        let gone = matches!(event.change(), Change::Deleted { .. });
        self.lock()
            .take_up(collection, object, gone, self.clock.now());
    }

    /// Nothing is left whose owners are all gone.
    pub(crate) fn check_ownership(&self, seed: u64) {
        let mut seen = self.lock();
        let live: BTreeSet<String> = seen
            .objects
            .values()
            .flat_map(BTreeMap::keys)
            .cloned()
            .collect();
        let mut orphans = Vec::new();
        for (collection, objects) in &seen.objects {
            for object in objects.values() {
                let owners = object["metadata"]["ownerReferences"].as_array();
                let dead =
                    |owner: &Value| owner["uid"].as_str().is_some_and(|uid| !live.contains(uid));
                if owners.is_some_and(|owners| !owners.is_empty() && owners.iter().all(dead)) {
                    orphans.push(format!(
                        "seed {seed}: {collection} {} has outlived its owners",
                        name(object)
                    ));
                }
            }
        }
        seen.complaints.extend(orphans);
    }
}

impl Seen {
    fn take_up(&mut self, collection: &str, object: Value, gone: bool, now: Timestamp) {
        let uid = object["metadata"]["uid"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let objects = self.objects.entry(collection.to_owned()).or_default();
        let before = if gone {
            objects.remove(&uid)
        } else {
            objects.insert(uid.clone(), object.clone())
        };
        let write = Write {
            collection,
            before: before.as_ref(),
            after: &object,
            gone,
            now,
        };
        self.limits.see(write, &self.objects);
        self.complaints.extend(self.limits.complaints());
        if limits::is_squeezed(write) {
            self.disturbed = Some(now);
        }
        self.keep_bounds(collection, &uid, before.as_ref(), now);
        match collection {
            "apps/deployments" if before.as_ref().map(|b| &b["spec"]) != Some(&object["spec"]) => {
                self.disturbed = Some(now);
            }
            "apps/replicasets" if gone => self.set_gone(&object, now),
            "apps/replicasets" => self.set_written(&object, before.as_ref(), now),
            "services"
            | "persistentvolumes"
            | "persistentvolumeclaims"
            | "certificates.k8s.io/certificatesigningrequests" => self.exclusive(collection, now),
            "pods" if before.is_none() => self.pod_created(&object, now),
            "pods" if is_active(before.as_ref()) && (gone || !is_active(Some(&object))) => {
                self.pod_ends(&object, gone, now);
            }
            _ => {}
        }
    }

    /// Remembers what a number was until now.
    fn keep_bounds(&mut self, collection: &str, uid: &str, before: Option<&Value>, now: Timestamp) {
        let Some(before) = before else { return };
        let mut note = |field, value| {
            let past = self.bounds.entry((uid.to_owned(), field)).or_default();
            past.retain(|(until, _)| now.duration_since(*until) < WHILE);
            past.push((now, value));
        };
        match collection {
            "apps/deployments" => {
                note("most", most(before));
                note("least", least(before));
            }
            "apps/replicasets" | "apps/statefulsets" | "replicationcontrollers" => {
                note("replicas", replicas(before));
            }
            "batch/jobs" => note("parallelism", parallelism(before)),
            _ => {}
        }
    }

    /// The values that a bound had of late, the present one first.
    fn lately(&self, uid: &str, field: &'static str, present: i64, now: Timestamp) -> Vec<i64> {
        let past = self
            .bounds
            .get(&(uid.to_owned(), field))
            .into_iter()
            .flatten();
        let past = past.filter(|(until, _)| now.duration_since(*until) < WHILE);
        [present]
            .into_iter()
            .chain(past.map(|(_, value)| *value))
            .collect()
    }

    fn set_written(&mut self, set: &Value, before: Option<&Value>, now: Timestamp) {
        let Some(deployment) = self.owner(set, "apps/deployments").cloned() else {
            return;
        };
        let (after, before) = (replicas(set), before.map_or(0, replicas));
        let deployment_uid = uid(&deployment).to_owned();
        let sets = self.owned("apps/replicasets", &deployment_uid);
        if after > before {
            let total: i64 = sets.iter().map(replicas).sum();
            let most = self.lately(&deployment_uid, "most", most(&deployment), now);
            let most = most.into_iter().max().unwrap_or_default();
            self.check(total <= most, || {
                format!(
                    "{now}: {} grew: {total} pods wanted, {most} allowed",
                    name(set)
                )
            });
        }
        let calm = self
            .disturbed
            .is_none_or(|at| now.duration_since(at) > WHILE);
        if after < before && calm && deployment["metadata"]["deletionTimestamp"].is_null() {
            let serving: i64 = sets
                .iter()
                .map(|set| self.ready_pods(uid(set)).min(replicas(set)))
                .sum();
            let least = self.lately(&deployment_uid, "least", least(&deployment), now);
            let least = least.into_iter().min().unwrap_or_default();
            self.check(serving >= least, || {
                format!(
                    "{now}: {} shrank: {serving} would serve, {least} must",
                    name(set)
                )
            });
        }
    }

    /// A set goes only when nothing is in it, or with its Deployment.
    fn set_gone(&mut self, set: &Value, now: Timestamp) {
        let owner = self.owner(set, "apps/deployments");
        let alive = owner.is_some_and(|owner| owner["metadata"]["deletionTimestamp"].is_null());
        if alive {
            let pods = self.active_pods(uid(set));
            self.check(replicas(set) == 0 && pods == 0, || {
                format!(
                    "{now}: {} was deleted with {pods} pods, and its owner lives",
                    name(set)
                )
            });
        }
    }

    fn pod_created(&mut self, pod: &Value, now: Timestamp) {
        for (collection, field) in [
            ("apps/replicasets", "replicas"),
            ("replicationcontrollers", "replicas"),
            ("batch/jobs", "parallelism"),
        ] {
            let Some(owner) = self.owner(pod, collection).cloned() else {
                continue;
            };
            let present = if field == "replicas" {
                replicas(&owner)
            } else {
                parallelism(&owner)
            };
            let most = self
                .lately(uid(&owner), field, present, now)
                .into_iter()
                .max()
                .unwrap_or_default();
            let pods = self.active_pods(uid(&owner));
            self.check(pods <= most, || {
                format!(
                    "{now}: {} is one of {pods} where {most} are allowed",
                    name(pod)
                )
            });
        }
        if let Some(owner) = self.owner(pod, "apps/daemonsets").cloned() {
            let target = |pod: &Value| pod["spec"]["affinity"]["nodeAffinity"].to_string();
            let twins = self.owned("pods", uid(&owner));
            let twins = twins
                .iter()
                .filter(|other| is_active(Some(other)) && target(other) == target(pod))
                .count();
            self.check(twins == 1, || {
                format!("{now}: {} is one of {twins} for its node", name(pod))
            });
        }
    }

    /// A pod of a set ends: the set has more than it may, or it is going, or it is nobody's fault.
    fn pod_ends(&mut self, pod: &Value, gone: bool, now: Timestamp) {
        let Some(set) = self.owner(pod, "apps/replicasets").cloned() else {
            return;
        };
        let leaving = !set["metadata"]["deletionTimestamp"].is_null();
        let calm = self
            .disturbed
            .is_none_or(|at| now.duration_since(at) > WHILE * 10);
        if leaving || !calm || self.excused.contains(uid(pod)) {
            return;
        }
        let left = self.active_pods(uid(&set));
        let least = self.lately(uid(&set), "replicas", replicas(&set), now);
        let least = least.into_iter().min().unwrap_or_default();
        self.check(left >= least, || format!("{now}: {} was deleted (gone: {gone}) and its owner lives: {left} of {least} are left", name(pod)));
    }

    /// What only one may have is had by one: addresses, volumes and claims; and no certificate without an approval.
    fn exclusive(&mut self, collection: &str, now: Timestamp) {
        let all = |collection: &str| {
            let objects = self.objects.get(collection).into_iter();
            objects
                .flat_map(BTreeMap::values)
                .cloned()
                .collect::<Vec<_>>()
        };
        let faults = match collection {
            "services" => exclusive::addresses(&all("services")),
            "persistentvolumes" | "persistentvolumeclaims" => {
                exclusive::volumes(&all("persistentvolumes"), &all("persistentvolumeclaims"))
            }
            _ => exclusive::certificates(&all(collection)),
        };
        self.check(faults.is_empty(), || format!("{now}: {faults:?}"));
    }

    fn check(&mut self, holds: bool, complaint: impl FnOnce() -> String) {
        self.checked += 1;
        if !holds {
            self.complaints.push(complaint());
        }
    }

    fn owner(&self, object: &Value, collection: &str) -> Option<&Value> {
        let owners = object["metadata"]["ownerReferences"].as_array()?;
        let uid = owners.iter().find(|owner| owner["controller"] == true)?["uid"].as_str()?;
        self.objects.get(collection)?.get(uid)
    }

    fn owned(&self, collection: &str, owner: &str) -> Vec<Value> {
        let objects = self
            .objects
            .get(collection)
            .into_iter()
            .flat_map(BTreeMap::values);
        let is_owned = |object: &&Value| {
            let owners = object["metadata"]["ownerReferences"].as_array();
            owners.is_some_and(|owners| {
                owners
                    .iter()
                    .any(|o| o["uid"] == owner && o["controller"] == true)
            })
        };
        objects.filter(is_owned).cloned().collect()
    }

    fn active_pods(&self, owner: &str) -> i64 {
        let pods = self.owned("pods", owner);
        pods.iter().filter(|pod| is_active(Some(pod))).count() as i64
    }

    fn ready_pods(&self, owner: &str) -> i64 {
        let ready = |pod: &&Value| {
            let conditions = pod["status"]["conditions"].as_array();
            is_active(Some(pod))
                && conditions.is_some_and(|all| {
                    all.iter()
                        .any(|c| c["type"] == "Ready" && c["status"] == "True")
                })
        };
        self.owned("pods", owner).iter().filter(ready).count() as i64
    }
}

fn is_active(pod: Option<&Value>) -> bool {
    pod.is_some_and(|pod| {
        let ended = pod["status"]["phase"] == "Succeeded" || pod["status"]["phase"] == "Failed";
        !ended && pod["metadata"]["deletionTimestamp"].is_null()
    })
}

fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn replicas(object: &Value) -> i64 {
    object["spec"]["replicas"].as_i64().unwrap_or(1)
}

fn parallelism(job: &Value) -> i64 {
    job["spec"]["parallelism"].as_i64().unwrap_or(1)
}

/// The most pods a Deployment may want at once.
fn most(deployment: &Value) -> i64 {
    replicas(deployment)
        + share(
            &deployment["spec"]["strategy"]["rollingUpdate"]["maxSurge"],
            replicas(deployment),
            99,
        )
}

/// The fewest pods that must serve. Both bounds cannot be zero, and the server sees to that but for rounding.
fn least(deployment: &Value) -> i64 {
    let rolling = &deployment["spec"]["strategy"]["rollingUpdate"];
    let size = replicas(deployment);
    let (surge, down) = (
        share(&rolling["maxSurge"], size, 99),
        share(&rolling["maxUnavailable"], size, 0),
    );
    let down = if surge == 0 && down == 0 { 1 } else { down };
    (size - down).max(0)
}

/// A number, or a share of all; `round` is 99 to round up.
fn share(given: &Value, of: i64, round: i64) -> i64 {
    let percent = given
        .as_str()
        .and_then(|text| text.strip_suffix('%')?.parse::<i64>().ok());
    match percent {
        Some(percent) => (of * percent + round) / 100,
        None => given.as_i64().unwrap_or_default(),
    }
}
