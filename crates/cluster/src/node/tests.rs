//! The life of simulated pods as tables, and what must hold whatever happens.

mod conditions;
mod ending;
mod hooks;
mod legality;
mod machines;
mod probes;
mod resizes;
mod sources;
mod stages;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::ClusterTrustBundle;
use k8s_openapi::api::core::v1::{
    ConfigMap, PersistentVolume, PersistentVolumeClaim, Pod, PodStatus, Secret, Service,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::behaviour::Behaviour;
use super::engine::Engine;
use super::kubelet::sources::Sources;
use super::machine::{PodMachine, Surroundings};
use super::run::Run;
use super::status::{Host, Published, fingerprint};
use super::step::Step;

pub(super) fn at(millis: u64) -> Timestamp {
    Timestamp::from_second(1_700_000_000).expect("in range") + Duration::from_millis(millis)
}

fn pod(annotations: Value, spec: Value) -> Pod {
    let mut prefixed = serde_json::Map::new();
    for (key, value) in annotations.as_object().into_iter().flatten() {
        prefixed.insert(format!("sim.kubewright.dev/{key}"), value.clone());
    }
    let mut pod = json!({
        "metadata": {"name": "p", "namespace": "default", "uid": "u", "generation": 1, "annotations": prefixed},
        "spec": {"nodeName": "n", "restartPolicy": "Always", "containers": [{"name": "app", "image": "app:1"}]},
        "status": {"phase": "Pending"},
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        pod["spec"][key] = value.clone();
    }
    serde_json::from_value(pod).expect("a pod")
}

/// A pod on a node that is stepped through time; statuses are written as soon as they change.
struct Life {
    pod: Pod,
    run: Run,
    behaviour: Behaviour,
    engine: Engine,
    sources: Shelf,
    /// Milliseconds since the pod came.
    now: u64,
    writes: usize,
    notes: Vec<String>,
    /// The messages of the events.
    texts: Vec<String>,
}

/// Objects that pods refer to.
#[derive(Default)]
struct Shelf {
    secrets: BTreeMap<String, Arc<Secret>>,
    config_maps: BTreeMap<String, Arc<ConfigMap>>,
    claims: BTreeMap<String, Arc<PersistentVolumeClaim>>,
    volumes: BTreeMap<String, Arc<PersistentVolume>>,
    trust_bundles: BTreeMap<String, Arc<ClusterTrustBundle>>,
}

impl Sources for Shelf {
    fn secret(&self, _: &str, name: &str) -> Option<Arc<Secret>> {
        self.secrets.get(name).cloned()
    }

    fn config_map(&self, _: &str, name: &str) -> Option<Arc<ConfigMap>> {
        self.config_maps.get(name).cloned()
    }

    fn claim(&self, _: &str, name: &str) -> Option<Arc<PersistentVolumeClaim>> {
        self.claims.get(name).cloned()
    }

    fn volume(&self, name: &str) -> Option<Arc<PersistentVolume>> {
        self.volumes.get(name).cloned()
    }

    fn trust_bundle(&self, name: &str) -> Option<Arc<ClusterTrustBundle>> {
        self.trust_bundles.get(name).cloned()
    }

    fn trust_bundles(&self) -> Vec<Arc<ClusterTrustBundle>> {
        self.trust_bundles.values().cloned().collect()
    }

    fn services(&self, _: &str) -> Vec<Arc<Service>> {
        Vec::new()
    }
}

/// The version of a pod after its status was written.
const WRITTEN: u64 = 10;

impl Life {
    fn new(annotations: Value, spec: Value) -> Self {
        let pod = pod(annotations, spec);
        let mut run = Run::adopt(&pod, at(0));
        run.address = Some([10, 244, 0, 2].into());
        Self {
            run,
            pod,
            behaviour: Behaviour::default().stop_delay(Duration::ZERO),
            engine: Engine::default(),
            sources: Shelf::default(),
            now: 0,
            writes: 0,
            notes: Vec::new(),
            texts: Vec::new(),
        }
    }

    fn step(&mut self) -> Step {
        let host = Host {
            address: "172.18.0.2".to_owned(),
            ..Host::default()
        };
        let around = Surroundings {
            behaviour: &self.behaviour,
            host: &host,
            sources: &self.sources,
            engine: &self.engine,
        };
        let mut step = PodMachine::step(at(self.now), &self.pod, &mut self.run, &around);
        for note in step.notes.drain(..) {
            self.texts.push(note.message);
            self.notes.push(note.reason.into_owned());
        }
        if let Some(status) = step.status.take() {
            self.run.published = Some(Published {
                fingerprint: fingerprint(&status),
                version: Some(WRITTEN),
            });
            self.pod.status = Some(status);
            self.writes += 1;
        }
        step
    }

    /// Steps until this many milliseconds have passed, at each moment that the machine asks for.
    fn until(&mut self, millis: u64) -> &mut Self {
        loop {
            let wake = self.step().wake;
            match wake.map(|wake| wake.duration_since(at(0)).as_millis() as u64) {
                Some(next) if next <= millis => self.now = next.max(self.now),
                _ => break,
            }
        }
        self.now = millis;
        self.step();
        self
    }

    fn delete(&mut self, grace: u64) -> &mut Self {
        let deadline = at(self.now) + Duration::from_secs(grace);
        self.pod.metadata.deletion_timestamp = Some(Time(deadline));
        self
    }

    fn status(&self) -> &PodStatus {
        self.pod.status.as_ref().expect("a status")
    }

    /// `Running ready=1/2 restarts=3 [state of each container]`
    fn summary(&self) -> String {
        let status = self.status();
        let all = || {
            let init = status.init_container_statuses.iter().flatten();
            let main = status.container_statuses.iter().flatten();
            init.chain(main)
                .chain(status.ephemeral_container_statuses.iter().flatten())
        };
        let states: Vec<String> = all()
            .map(|c| {
                let state = c.state.clone().unwrap_or_default();
                match (state.waiting, state.running, state.terminated) {
                    (Some(waiting), _, _) => waiting.reason.unwrap_or_default(),
                    (_, Some(_), _) if c.ready => "ready".to_owned(),
                    (_, Some(_), _) => "running".to_owned(),
                    (_, _, Some(end)) => {
                        format!("{}={}", end.reason.unwrap_or_default(), end.exit_code)
                    }
                    _ => "?".to_owned(),
                }
            })
            .collect();
        let restarts: i32 = all().map(|c| c.restart_count).sum();
        let ready = status
            .conditions
            .iter()
            .flatten()
            .any(|c| c.type_ == "Ready" && c.status == "True");
        let mut text = format!(
            "{} {} [{}]",
            status.phase.clone().unwrap_or_default(),
            if ready { "Ready" } else { "NotReady" },
            states.join(" ")
        );
        if restarts > 0 {
            text += &format!(" restarts {restarts}");
        }
        if let Some(reason) = &status.reason {
            text += &format!(" {reason}");
        }
        text
    }
}

/// What a pod looks like after so many milliseconds.
fn check(annotations: Value, spec: Value, expect: &[(u64, &str)]) {
    let mut life = Life::new(annotations.clone(), spec.clone());
    for (millis, summary) in expect {
        life.until(*millis);
        assert_eq!(
            life.summary(),
            *summary,
            "{annotations} {spec} after {millis} ms"
        );
    }
}
