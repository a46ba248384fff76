//! Limits that autoscalers, budgets, claims, cron jobs and taints set, checked at every write. Pure.
//!
//! As everywhere in the storm, controllers act on what they saw a while ago: a limit is kept when one of its values of late allows
//! the write.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::witness::WHILE;

/// The objects that there are, by collection and uid.
pub(crate) type Objects = BTreeMap<String, BTreeMap<String, Value>>;

/// What is checked. A storm that never puts a rule to the test says nothing about it.
pub(crate) const RULES: [&str; 11] = [
    "autoscaler keeps to its bounds",
    "budget is never overdrawn",
    "eviction is paid for by the budget",
    "claim never shrinks",
    "claim is never larger than its volume",
    "claim without owners stays",
    "volume never shrinks",
    "run of a cron job begins once",
    "cron job that forbids it has one run at a time",
    "no pod is placed beside a taint that it does not tolerate",
    "node evicts only what it had while it was low on something",
];

/// One write.
#[derive(Clone, Copy)]
pub(crate) struct Write<'a> {
    pub(crate) collection: &'a str,
    pub(crate) before: Option<&'a Value>,
    /// Of what is gone, the last state.
    pub(crate) after: &'a Value,
    pub(crate) gone: bool,
    pub(crate) now: Timestamp,
}

#[derive(Default)]
pub(crate) struct Limits {
    /// What a limit was until then, by what it is about.
    past: BTreeMap<String, Vec<(Timestamp, Value)>>,
    /// The job of each run, by cron job and scheduled time.
    runs: BTreeMap<(String, String), String>,
    /// Nodes that are low on something, and those that no longer are since then.
    pressed: BTreeMap<String, Option<Timestamp>>,
    checked: BTreeSet<&'static str>,
    complaints: Vec<String>,
}

impl Limits {
    /// The rules that were put to the test.
    pub(crate) fn checked(&self) -> &BTreeSet<&'static str> {
        &self.checked
    }

    /// The writes that broke a rule since this was asked last.
    pub(crate) fn complaints(&mut self) -> Vec<String> {
        std::mem::take(&mut self.complaints)
    }

    /// A node is low on memory from now on.
    pub(crate) fn press(&mut self, node: &str) {
        self.pressed.insert(node.to_owned(), None);
    }

    /// A node is low on nothing any more.
    pub(crate) fn relieve(&mut self, node: &str, now: Timestamp) {
        self.pressed.insert(node.to_owned(), Some(now));
    }

    /// Checks a write; `objects` are those after it.
    pub(crate) fn see(&mut self, write: Write<'_>, objects: &Objects) {
        self.remember(write);
        match (write.collection, write.before) {
            ("persistentvolumeclaims", Some(before)) => self.claim(write, before, objects),
            _ if write.gone => {}
            ("apps/deployments", Some(before)) => self.scaled(write, before, objects),
            ("policy/poddisruptionbudgets", Some(before)) => self.budget(write, before),
            ("persistentvolumes", Some(before)) => self.volume(write, before),
            ("batch/jobs", None) => self.run(write, objects),
            ("pods", Some(before)) => {
                self.evicted(write, before, objects);
                self.placed(write, before, objects);
                self.squeezed(write, before);
            }
            _ => {}
        }
    }

    /// Remembers what a limit was until now.
    fn remember(&mut self, write: Write<'_>) {
        let Some(before) = write.before else { return };
        let (key, value) = match write.collection {
            "autoscaling/horizontalpodautoscalers" => {
                (autoscaler_of(target(before)), range(before))
            }
            "batch/cronjobs" => (runs_of(uid(before)), before["spec"].clone()),
            "nodes" => (taints_of(name(before)), taints(before)),
            _ => return,
        };
        let past = self.past.entry(key).or_default();
        past.retain(|(until, _)| write.now.duration_since(*until) < WHILE);
        past.push((write.now, value));
    }

    /// The values that a limit has, and those that it had of late.
    fn lately(
        &self,
        key: &str,
        now: Timestamp,
        present: impl Iterator<Item = Value>,
    ) -> Vec<Value> {
        let past = self.past.get(key).into_iter().flatten();
        let past = past.filter(|(until, _)| now.duration_since(*until) < WHILE);
        present
            .chain(past.map(|(_, value)| value.clone()))
            .collect()
    }

    fn check(&mut self, rule: &'static str, holds: bool, what: impl FnOnce() -> String) {
        assert!(RULES.contains(&rule), "{rule} is not listed");
        self.checked.insert(rule);
        if !holds {
            self.complaints.push(format!("{rule}: {}", what()));
        }
    }

    /// Users set replicas in the spec, autoscalers through the subresource.
    fn scaled(&mut self, write: Write<'_>, before: &Value, objects: &Objects) {
        let size = |deployment: &Value| deployment["spec"]["replicas"].as_i64().unwrap_or(1);
        let (was, is, name) = (size(before), size(write.after), name(write.after));
        if was == is || !is_scaled_by_subresource(write.after) {
            return;
        }
        let autoscalers = all(objects, "autoscaling/horizontalpodautoscalers");
        let present = autoscalers.filter(|it| target(it) == name).map(range);
        let ranges = self.lately(&autoscaler_of(name), write.now, present);
        let fits = |range: &Value| range[0].as_i64() <= Some(is) && Some(is) <= range[1].as_i64();
        let holds = ranges.iter().any(fits);
        self.check("autoscaler keeps to its bounds", holds, || {
            format!("{}: {name} has {is} replicas, not of {ranges:?}", write.now)
        });
    }

    /// Whoever adds to the disrupted pods takes as many from those that are allowed.
    fn budget(&mut self, write: Write<'_>, before: &Value) {
        let allowed = |budget: &Value| budget["status"]["disruptionsAllowed"].as_i64().unwrap_or(0);
        let names = |budget: &Value| -> BTreeSet<String> {
            let pods = budget["status"]["disruptedPods"].as_object();
            pods.into_iter()
                .flat_map(|pods| pods.keys().cloned())
                .collect()
        };
        let new = names(write.after).difference(&names(before)).count();
        let new = i64::try_from(new).unwrap_or(i64::MAX);
        let (was, is) = (allowed(before), allowed(write.after));
        let holds = is >= 0 && (new == 0 || (new <= was && is == was - new));
        self.check("budget is never overdrawn", holds, || {
            format!("{}: {new} evictions took {was} to {is}", write.now)
        });
    }

    /// A ready pod that goes by an eviction stands in the budget that covers it. The end of one that is going already costs nothing.
    fn evicted(&mut self, write: Write<'_>, before: &Value, objects: &Objects) {
        let pod = write.after;
        let counts = is_true(before, "Ready") && before["metadata"]["deletionTimestamp"].is_null();
        if is_evicted(before) || !is_evicted(pod) || !counts {
            return;
        }
        let budgets = all(objects, "policy/poddisruptionbudgets");
        let covering = budgets
            .filter(|budget| covers(budget, pod))
            .collect::<Vec<_>>();
        // One that was made between the two writes of an eviction has not been asked.
        let [budget] = covering[..] else { return };
        let age = moment(&budget["metadata"]["creationTimestamp"]);
        if age
            .is_none_or(|made| write.now.duration_since(made) < jiff::SignedDuration::from_secs(5))
        {
            return;
        }
        let paid = budget["status"]["disruptedPods"][name(pod)].is_string();
        self.check("eviction is paid for by the budget", paid, || {
            format!(
                "{}: {} is evicted: {}",
                write.now,
                name(pod),
                budget["status"]
            )
        });
    }

    fn claim(&mut self, write: Write<'_>, before: &Value, objects: &Objects) {
        let (claim, now) = (write.after, write.now);
        let leaves = |claim: &Value| claim["metadata"]["deletionTimestamp"].is_string();
        if !leaves(before) && (write.gone || leaves(claim)) {
            let owners = before["metadata"]["ownerReferences"].as_array();
            let is_owned = owners.is_some_and(|owners| !owners.is_empty());
            self.check("claim without owners stays", is_owned, || {
                format!("{now}: {} is deleted", name(claim))
            });
        }
        let size = |claim: &Value| gibibytes(&claim["status"]["capacity"]["storage"]);
        let Some(is) = size(claim).filter(|_| !write.gone) else {
            return;
        };
        if let Some(was) = size(before) {
            self.check("claim never shrinks", was <= is, || {
                format!("{now}: {} has {is} Gi after {was}", name(claim))
            });
        }
        let mut volumes = all(objects, "persistentvolumes");
        let volume = volumes.find(|volume| claim["spec"]["volumeName"] == name(volume));
        let has = volume.and_then(|volume| gibibytes(&volume["spec"]["capacity"]["storage"]));
        if let Some(has) = has {
            self.check("claim is never larger than its volume", is <= has, || {
                format!("{now}: {} has {is} Gi of {has}", name(claim))
            });
        }
    }

    fn volume(&mut self, write: Write<'_>, before: &Value) {
        let size = |volume: &Value| gibibytes(&volume["spec"]["capacity"]["storage"]);
        let (was, is) = (size(before), size(write.after));
        self.check("volume never shrinks", was <= is, || {
            format!(
                "{}: {} has {is:?} Gi after {was:?}",
                write.now,
                name(write.after)
            )
        });
    }

    /// A new job of a cron job.
    fn run(&mut self, write: Write<'_>, objects: &Objects) {
        let (job, now) = (write.after, write.now);
        let scheduled =
            &job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"];
        let (Some(scheduled), Some(cron)) = (scheduled.as_str(), owner(job, "CronJob")) else {
            return;
        };
        let is_it = |it: &&Value| uid(it) == cron && it["metadata"]["deletionTimestamp"].is_null();
        let states: Vec<_> = all(objects, "batch/cronjobs").filter(is_it).collect();
        // A controller that has not seen the end of a cron job may begin what the garbage collector then takes.
        if states.is_empty() {
            return;
        }
        let run = (cron.to_owned(), scheduled.to_owned());
        let earlier = self.runs.insert(run, uid(job).to_owned());
        self.check("run of a cron job begins once", earlier.is_none(), || {
            format!("{now}: {} begins again", name(job))
        });
        let present = states.into_iter().map(|it| it["spec"].clone());
        let states = self.lately(&runs_of(cron), now, present);
        let forbids = |state: &Value| state["concurrencyPolicy"] == "Forbid";
        if !states.iter().all(forbids) {
            return;
        }
        let jobs = all(objects, "batch/jobs").filter(|it| uid(it) != uid(job));
        let others = jobs.filter(|it| owner(it, "CronJob") == Some(cron) && !is_over(it));
        let others: Vec<_> = others.map(name).collect();
        let rule = "cron job that forbids it has one run at a time";
        self.check(rule, others.is_empty(), || {
            format!("{now}: {} begins beside {others:?}", name(job))
        });
    }

    /// The scheduler has placed a pod.
    fn placed(&mut self, write: Write<'_>, before: &Value, objects: &Objects) {
        let pod = write.after;
        let Some(node) = pod["spec"]["nodeName"]
            .as_str()
            .filter(|_| before["spec"]["nodeName"].is_null())
        else {
            return;
        };
        let nodes = all(objects, "nodes").filter(|it| name(it) == node);
        let states = self.lately(&taints_of(node), write.now, nodes.map(taints));
        // Taints that every state has are those that the scheduler has to have seen.
        let Some((first, others)) = states.split_first() else {
            return;
        };
        let has =
            |state: &Value, taint: &Value| state.as_array().is_some_and(|all| all.contains(taint));
        let steady = first.as_array().into_iter().flatten();
        let steady = steady.filter(|taint| others.iter().all(|other| has(other, taint)));
        let wrong: Vec<_> = steady.filter(|taint| !tolerates(pod, taint)).collect();
        let rule = "no pod is placed beside a taint that it does not tolerate";
        self.check(rule, wrong.is_empty(), || {
            format!(
                "{}: {} is placed on {node}: {wrong:?}",
                write.now,
                name(pod)
            )
        });
    }

    /// A kubelet has evicted a pod, or did not take it. It may say so late, when it speaks again.
    fn squeezed(&mut self, write: Write<'_>, before: &Value) {
        if !is_squeezed(write) || is_evicted(before) {
            return;
        }
        let pod = write.after;
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        let created = moment(&pod["metadata"]["creationTimestamp"]);
        let was_low = |relieved: Timestamp| {
            created.is_some_and(|created| created <= relieved)
                || write.now.duration_since(relieved) < WHILE
        };
        let relieved = self.pressed.get(node);
        let holds = relieved.is_some_and(|relieved| relieved.is_none_or(was_low));
        let rule = "node evicts only what it had while it was low on something";
        self.check(rule, holds, || {
            format!("{}: {node} evicts {}", write.now, name(pod))
        });
    }
}

/// Whether a kubelet evicts a pod by this write.
pub(crate) fn is_squeezed(write: Write<'_>) -> bool {
    let reason = |pod: &Value| pod["status"]["reason"] == "Evicted";
    write.collection == "pods" && reason(write.after) && !write.before.is_some_and(reason)
}

fn autoscaler_of(target: &str) -> String {
    format!("autoscaler of {target}")
}

fn runs_of(cron: &str) -> String {
    format!("runs of {cron}")
}

fn taints_of(node: &str) -> String {
    format!("taints of {node}")
}

fn all<'a>(objects: &'a Objects, collection: &str) -> impl Iterator<Item = &'a Value> {
    let found = objects.get(collection).into_iter();
    found.flat_map(BTreeMap::values)
}

fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn target(autoscaler: &Value) -> &str {
    let target = &autoscaler["spec"]["scaleTargetRef"]["name"];
    target.as_str().unwrap_or_default()
}

fn range(autoscaler: &Value) -> Value {
    let spec = &autoscaler["spec"];
    json!([
        spec["minReplicas"].as_i64().unwrap_or(1),
        spec["maxReplicas"]
    ])
}

fn is_scaled_by_subresource(object: &Value) -> bool {
    let managers = object["metadata"]["managedFields"].as_array();
    managers.into_iter().flatten().any(|manager| {
        let replicas = &manager["fieldsV1"]["f:spec"]["f:replicas"];
        manager["subresource"] == "scale" && replicas.is_object()
    })
}

/// The keys of taints that keep pods away.
fn taints(node: &Value) -> Value {
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    let strict = taints.filter(|taint| taint["effect"] != "PreferNoSchedule");
    strict.map(|taint| taint["key"].clone()).collect()
}

fn tolerates(pod: &Value, key: &Value) -> bool {
    let tolerations = pod["spec"]["tolerations"].as_array();
    let covers =
        |it: &Value| it["key"] == *key || (it["key"].is_null() && it["operator"] == "Exists");
    tolerations.is_some_and(|all| all.iter().any(covers))
}

fn is_true(object: &Value, kind: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let holds = |it: &Value| it["type"] == kind && it["status"] == "True";
    conditions.is_some_and(|all| all.iter().any(holds))
}

fn is_evicted(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    let by_api = |it: &Value| it["reason"] == "EvictionByEvictionAPI";
    conditions.is_some_and(|all| all.iter().any(by_api))
}

fn is_over(job: &Value) -> bool {
    let leaves = job["metadata"]["deletionTimestamp"].is_string();
    leaves || is_true(job, "Complete") || is_true(job, "Failed")
}

fn covers(budget: &Value, pod: &Value) -> bool {
    let labels = budget["spec"]["selector"]["matchLabels"].as_object();
    let has = |(key, value): (&String, &Value)| pod["metadata"]["labels"][key] == *value;
    labels.is_some_and(|labels| labels.iter().all(has))
}

fn owner<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    let is_it = |owner: &&Value| owner["kind"] == kind && owner["controller"] == true;
    owners.iter().find(is_it)?["uid"].as_str()
}

fn moment(time: &Value) -> Option<Timestamp> {
    time.as_str()?.parse().ok()
}

/// All sizes of the storm are whole gibibytes.
fn gibibytes(quantity: &Value) -> Option<u64> {
    quantity.as_str()?.strip_suffix("Gi")?.parse().ok()
}

#[cfg(test)]
#[path = "limits/tests.rs"]
mod tests;
