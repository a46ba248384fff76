//! The life of simulated pods as tables, and what must hold whatever happens.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
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
use super::runtime::Exit;
use super::script::parse_duration;
use super::signal::Signal;
use super::status::{Host, Published, fingerprint};
use super::step::{Fate, Step};

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

#[test]
fn stages_follow_annotations() {
    let never = json!({"restartPolicy": "Never"});
    let on_failure = json!({"restartPolicy": "OnFailure"});
    check(
        json!({}),
        json!({}),
        &[
            (0, "Running Ready [ready]"),
            (9_000_000, "Running Ready [ready]"),
        ],
    );
    check(
        json!({"start-delay": "5s", "ready-delay": "250ms"}),
        json!({}),
        &[
            (0, "Pending NotReady [ContainerCreating]"),
            (4_999, "Pending NotReady [ContainerCreating]"),
            (5_000, "Running NotReady [running]"),
            (5_250, "Running Ready [ready]"),
        ],
    );
    check(
        json!({"never-ready": "true"}),
        json!({}),
        &[(90_000, "Running NotReady [running]")],
    );
    check(
        json!({"pull": "fail"}),
        json!({}),
        &[(90_000, "Pending NotReady [ImagePullBackOff]")],
    );
    check(
        json!({}),
        never.clone(),
        &[
            (0, "Running Ready [ready]"),
            (100, "Succeeded NotReady [Completed=0]"),
        ],
    );
    check(
        json!({"exit-after": "2s", "exit-code": "3"}),
        never.clone(),
        &[
            (1_999, "Running Ready [ready]"),
            (2_000, "Failed NotReady [Error=3]"),
        ],
    );
    check(
        json!({"exit-code": "137", "exit-reason": "OOMKilled", "exit-after": "1s"}),
        never.clone(),
        &[(1_000, "Failed NotReady [OOMKilled=137]")],
    );
    check(
        json!({"exit-after": "never"}),
        never.clone(),
        &[(90_000, "Running Ready [ready]")],
    );
    check(
        json!({"fail": "once"}),
        on_failure,
        &[
            (0, "Running Ready [ready] restarts 1"),
            (100, "Succeeded NotReady [Completed=0] restarts 1"),
        ],
    );
    check(
        json!({"fail": "2"}),
        json!({}),
        &[
            (0, "Running NotReady [CrashLoopBackOff] restarts 1"),
            (10_000, "Running Ready [ready] restarts 2"),
        ],
    );
    check(
        json!({"app.exit-code": "1"}),
        json!({"restartPolicy": "Never", "containers": [{"name": "app"}, {"name": "side"}]}),
        &[(100, "Failed NotReady [Error=1 Completed=0]")],
    );
    check(
        json!({"exit-after": "1h"}),
        json!({"restartPolicy": "Never", "activeDeadlineSeconds": 5}),
        &[
            (4_000, "Running Ready [ready]"),
            (5_000, "Failed NotReady [Error=137] DeadlineExceeded"),
        ],
    );
}

#[test]
fn crash_loop_backs_off_from_ten_seconds_to_five_minutes() {
    // Restarts happen at once, then after 10, 20, 40, 80, 160 and 300 seconds.
    let starts = [0, 0, 10, 30, 70, 150, 310, 610, 910];
    for (restarts, start) in starts.into_iter().enumerate().skip(1) {
        let mut life = Life::new(json!({"crash-loop": "true"}), json!({}));
        life.until(start * 1_000);
        let summary = format!("Running NotReady [CrashLoopBackOff] restarts {restarts}");
        assert_eq!(life.summary(), summary, "after {start} s");
    }
    let mut life = Life::new(json!({"crash-loop": "true"}), json!({}));
    life.until(80_000);
    let status = life.status().container_statuses.as_ref().expect("one")[0].clone();
    let waiting = status.state.and_then(|s| s.waiting).expect("it waits");
    assert_eq!(
        waiting.message.as_deref(),
        Some("back-off 1m20s restarting failed container=app pod=p_default(u)")
    );
    let last = status
        .last_state
        .and_then(|s| s.terminated)
        .expect("it ended");
    assert_eq!((last.exit_code, last.reason.as_deref()), (1, Some("Error")));
}

#[test]
fn init_containers_run_in_turn_and_sidecars_stay() {
    let spec = json!({
        "restartPolicy": "Never",
        "initContainers": [
            {"name": "one"},
            {"name": "side", "restartPolicy": "Always"},
            {"name": "two"},
        ],
    });
    check(
        json!({"one.exit-after": "1s", "two.exit-after": "1s", "exit-after": "1s", "side.exit-after": "never"}),
        spec.clone(),
        &[
            (
                0,
                "Pending NotReady [running PodInitializing PodInitializing PodInitializing]",
            ),
            (
                1_000,
                "Pending NotReady [Completed=0 ready running PodInitializing]",
            ),
            (2_000, "Running Ready [Completed=0 ready Completed=0 ready]"),
            (
                3_000,
                "Succeeded NotReady [Completed=0 Completed=0 Completed=0 Completed=0]",
            ),
        ],
    );
    check(
        json!({"one.exit-code": "1"}),
        spec,
        &[(
            0,
            "Failed NotReady [Error=1 PodInitializing PodInitializing PodInitializing]",
        )],
    );
    check(
        json!({"one.fail": "2"}),
        json!({"initContainers": [{"name": "one"}]}),
        &[
            (
                0,
                "Pending NotReady [CrashLoopBackOff PodInitializing] restarts 1",
            ),
            (10_000, "Running Ready [Completed=0 ready] restarts 2"),
        ],
    );
}

#[test]
fn what_happens_at_one_moment_is_one_write() {
    let spec = json!({"initContainers": [{"name": "a"}, {"name": "b"}]});
    let mut life = Life::new(json!({}), spec);
    life.until(60_000);
    assert_eq!(
        (life.summary().as_str(), life.writes),
        ("Running Ready [Completed=0 Completed=0 ready]", 1)
    );
    assert_eq!(life.notes, ["Pulled", "Created", "Started"].repeat(3));
}

#[test]
fn deleted_pod_stops_within_its_grace_and_then_goes() {
    // Delay of the container, grace, when the pod goes, and how.
    let cases = [
        (None, 30, 1_000, "Succeeded NotReady [Completed=0]"),
        (Some("3s"), 30, 4_000, "Succeeded NotReady [Completed=0]"),
        (Some("1m"), 5, 6_000, "Failed NotReady [Error=137]"),
    ];
    for (delay, grace, gone, summary) in cases {
        let annotations = delay.map_or(json!({}), |delay| json!({"stop-delay": delay}));
        let mut life = Life::new(annotations, json!({}));
        life.until(1_000).delete(grace);
        if gone > 1_000 {
            assert_eq!(life.step().fate, Fate::Stays);
            life.until(gone - 1);
            assert_eq!(life.summary(), "Running Ready [ready]");
        }
        life.now = gone;
        assert_eq!(life.step().fate, Fate::Goes);
        assert_eq!(life.summary(), summary, "{delay:?}");
        assert!(life.notes.contains(&"Killing".to_owned()));
    }
    let mut unborn = Life::new(json!({"start-delay": "1h"}), json!({}));
    unborn.until(10).delete(30);
    assert_eq!(unborn.step().fate, Fate::Goes);
}

#[test]
fn finished_pod_goes_when_it_is_deleted_and_nobody_holds_it() {
    let mut life = Life::new(json!({}), json!({"restartPolicy": "Never"}));
    life.until(1_000).delete(0);
    life.pod.metadata.deletion_grace_period_seconds = Some(0);
    life.pod.metadata.finalizers = Some(vec!["batch.kubernetes.io/job-tracking".to_owned()]);
    assert_eq!(life.step().fate, Fate::Stays);
    life.pod.metadata.finalizers = None;
    assert_eq!(life.step().fate, Fate::Goes);
}

/// The node lifecycle controller takes a node for silent that has just come back.
#[test]
fn a_condition_that_others_overwrite_is_written_again() {
    let mut life = Life::new(json!({}), json!({}));
    life.until(10);
    let is_ready = |life: &Life| {
        let mut conditions = life.status().conditions.iter().flatten();
        conditions.any(|it| it.type_ == "Ready" && it.status == "True")
    };
    assert!(is_ready(&life));
    let overwrite = |life: &mut Life, version: u64| {
        life.pod.metadata.resource_version = Some(version.to_string());
        let status = life.pod.status.as_mut().expect("a status");
        let mut conditions = status.conditions.iter_mut().flatten();
        let ready = conditions.find(|it| it.type_ == "Ready").expect("there");
        ready.status = "False".to_owned();
    };
    let writes = life.writes;
    // A view from before the last write is not news.
    overwrite(&mut life, WRITTEN - 1);
    life.step();
    assert_eq!(life.writes, writes);
    overwrite(&mut life, WRITTEN + 1);
    life.step();
    assert_eq!(life.writes, writes + 1);
    assert!(is_ready(&life));
}

#[test]
fn readiness_gates_keep_a_pod_from_being_ready() {
    let mut life = Life::new(
        json!({}),
        json!({"readinessGates": [{"conditionType": "example.com/open"}]}),
    );
    life.until(10);
    let message = |life: &Life, type_: &str| {
        let mut conditions = life.status().conditions.iter().flatten();
        let found = conditions.find(|c| c.type_ == type_).expect("there");
        (
            found.status.clone(),
            found.message.clone().unwrap_or_default(),
        )
    };
    let text = "corresponding condition of pod readiness gate \"example.com/open\" does not exist.";
    assert_eq!(
        message(&life, "Ready"),
        ("False".to_owned(), text.to_owned())
    );
    assert_eq!(message(&life, "ContainersReady").0, "True");
    let open = json!({"type": "example.com/open", "status": "True"});
    let open = serde_json::from_value(open).expect("a condition");
    let status = life.pod.status.as_mut().expect("a status");
    status.conditions.get_or_insert_default().push(open);
    life.step();
    assert_eq!(message(&life, "Ready").0, "True");
}

#[test]
fn annotations_change_a_pod_that_runs_and_wrong_ones_are_reported_once() {
    let mut life = Life::new(json!({}), json!({}));
    life.until(1_000);
    let annotations = life.pod.metadata.annotations.get_or_insert_default();
    annotations.insert(
        "sim.kubewright.dev/never-ready".to_owned(),
        "true".to_owned(),
    );
    annotations.insert(
        "sim.kubewright.dev/ready-delay".to_owned(),
        "soon".to_owned(),
    );
    life.until(2_000);
    assert_eq!(life.summary(), "Running NotReady [running]");
    life.until(3_000);
    let complaints = life
        .notes
        .iter()
        .filter(|note| *note == "InvalidSimulation");
    assert_eq!(complaints.count(), 1);
}

#[test]
fn node_that_comes_back_goes_on_where_it_was() {
    let mut life = Life::new(json!({"crash-loop": "true"}), json!({}));
    life.until(15_000);
    let before = life.summary();
    life.run = Run::adopt(&life.pod, at(life.now));
    life.until(16_000);
    assert_eq!(life.summary(), before);
    life.until(31_000);
    assert_eq!(
        life.summary(),
        "Running NotReady [CrashLoopBackOff] restarts 3"
    );
}

#[test]
fn durations_are_read_as_people_write_them() {
    let cases = [
        ("0", Some(0)),
        ("250ms", Some(250)),
        ("1.5s", Some(1_500)),
        ("1m30s", Some(90_000)),
        ("2h", Some(7_200_000)),
        ("", None),
        ("5", None),
        ("-1s", None),
        ("5 parsecs", None),
        ("1e999s", None),
        ("..s", None),
    ];
    for (text, expect) in cases {
        let expect = expect.map(Duration::from_millis);
        assert_eq!(parse_duration(text), expect, "{text:?}");
    }
}

fn object<K: serde::de::DeserializeOwned>(value: Value) -> Arc<K> {
    Arc::new(serde_json::from_value(value).expect("an object"))
}

/// `Kubelet.makeEnvironmentVariables` and `kubeGenericRuntimeManager.startContainer`.
#[test]
fn container_waits_for_what_its_environment_refers_to() {
    let secret_key = json!({"secretKeyRef": {"name": "s", "key": "k"}});
    let map_key = json!({"configMapKeyRef": {"name": "m", "key": "k"}});
    let from = |kind: &str, name: &str| json!({"envFrom": [{kind: {"name": name}}]});
    let env = |source: &Value| json!({"env": [{"name": "A", "valueFrom": source}]});
    let optional = json!({"envFrom": [{"secretRef": {"name": "s", "optional": true}}],
        "env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k", "optional": true}}}]});
    for (more, message) in [
        (from("secretRef", "s"), "secret \"s\" not found"),
        (from("configMapRef", "m"), "configmap \"m\" not found"),
        (env(&secret_key), "secret \"s\" not found"),
        (env(&map_key), "configmap \"m\" not found"),
        (optional, ""),
    ] {
        let mut container = json!({"name": "app", "image": "app:1"});
        for (key, value) in more.as_object().expect("fields") {
            container[key] = value.clone();
        }
        let mut life = Life::new(json!({}), json!({"containers": [container]}));
        life.until(0);
        if message.is_empty() {
            assert_eq!(life.summary(), "Running Ready [ready]", "{more}");
            continue;
        }
        assert_eq!(
            life.summary(),
            "Pending NotReady [CreateContainerConfigError]",
            "{more}"
        );
        let status = life.status().container_statuses.as_ref().expect("one")[0].clone();
        let waiting = status.state.and_then(|s| s.waiting).expect("it waits");
        assert_eq!(waiting.message.as_deref(), Some(message));
        assert_eq!(
            (life.notes.as_slice(), life.texts.as_slice()),
            (
                &["Failed".to_owned()][..],
                &[format!("Error: {message}")][..]
            )
        );
        // The object comes without the key, then with it; a kubelet looks every ten seconds.
        life.sources
            .secrets
            .insert("s".to_owned(), object(json!({})));
        life.sources
            .config_maps
            .insert("m".to_owned(), object(json!({})));
        life.until(9_999);
        assert_eq!(
            life.summary(),
            "Pending NotReady [CreateContainerConfigError]"
        );
        life.until(10_000);
        let keyed = more["env"].is_array();
        if keyed {
            assert_eq!(
                life.summary(),
                "Pending NotReady [CreateContainerConfigError]"
            );
            let said = life.texts.last().expect("an event").clone();
            assert!(said.starts_with("Error: couldn't find key k in "), "{said}");
            life.sources
                .secrets
                .insert("s".to_owned(), object(json!({"data": {"k": "dg=="}})));
            life.sources
                .config_maps
                .insert("m".to_owned(), object(json!({"data": {"k": "v"}})));
            life.until(20_000);
        }
        assert_eq!(life.summary(), "Running Ready [ready]", "{more}");
    }
}

/// `GenerateMountVolumeFunc`, `secretVolumeMounter.SetUpAt` and `createVolumeSpec`.
#[test]
fn pod_waits_for_its_volumes_and_has_no_address_until_then() {
    let secret = json!({"name": "v", "secret": {"secretName": "s"}});
    let items =
        json!({"name": "v", "secret": {"secretName": "s", "items": [{"key": "k", "path": "p"}]}});
    let map = json!({"name": "v", "configMap": {"name": "m"}});
    let projected = json!({"name": "v", "projected": {"sources": [{"configMap": {"name": "m"}}, {"secret": {"name": "s", "optional": true}}]}});
    let claim = json!({"name": "v", "persistentVolumeClaim": {"claimName": "c"}});
    let mount = "MountVolume.SetUp failed for volume \"v\" : ";
    let process = "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to process volumes=[v]: \
        error processing PVC default/c: ";
    for (volume, message) in [
        (secret, format!("{mount}secret \"s\" not found")),
        (items, format!("{mount}secret \"s\" not found")),
        (map, format!("{mount}configmap \"m\" not found")),
        (projected, format!("{mount}configmap \"m\" not found")),
        (
            claim,
            format!(
                "{process}failed to fetch PVC from API server: persistentvolumeclaims \"c\" not found"
            ),
        ),
    ] {
        let mut life = Life::new(json!({}), json!({"volumes": [volume]}));
        life.until(0);
        assert_eq!(life.summary(), "Pending NotReady [ContainerCreating]");
        assert_eq!(
            (life.notes.as_slice(), life.texts.as_slice()),
            (&["FailedMount".to_owned()][..], &[message][..])
        );
        assert_eq!(life.status().pod_ip, None);
        let sandbox = life
            .status()
            .conditions
            .iter()
            .flatten()
            .find(|c| c.type_ == "PodReadyToStartContainers");
        assert_eq!(sandbox.expect("there").status, "False");
        // Tried again after 0.5, 1, 2, 4 s.
        life.until(7_499);
        assert_eq!(life.notes.len(), 4, "{:?}", life.notes);
        life.sources
            .secrets
            .insert("s".to_owned(), object(json!({"data": {"k": "dg=="}})));
        life.sources
            .config_maps
            .insert("m".to_owned(), object(json!({})));
        life.sources.claims.insert("c".to_owned(), object(json!({"metadata": {"uid": "1"}, "spec": {"volumeName": "pv"}, "status": {"phase": "Bound"}})));
        life.sources.volumes.insert(
            "pv".to_owned(),
            object(json!({"spec": {"claimRef": {"uid": "1"}}})),
        );
        life.until(7_500);
        assert_eq!(life.summary(), "Running Ready [ready]");
        assert!(life.status().pod_ip.is_some());
    }
    let claimed = |claim: Value, volume: Option<Value>| {
        let volumes = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]);
        let mut life = Life::new(json!({}), json!({"volumes": volumes}));
        life.sources.claims.insert("c".to_owned(), object(claim));
        if let Some(volume) = volume {
            life.sources.volumes.insert("pv".to_owned(), object(volume));
        }
        life.until(0);
        life.texts.first().cloned().unwrap_or_default()
    };
    let bound = json!({"metadata": {"uid": "1"}, "spec": {"volumeName": "pv"}, "status": {"phase": "Bound"}});
    assert_eq!(
        claimed(json!({"status": {"phase": "Pending"}}), None),
        format!("{process}PVC is not bound")
    );
    assert_eq!(
        claimed(bound.clone(), None),
        format!(
            "{process}failed to fetch PV pv from API server: persistentvolumes \"pv\" not found"
        )
    );
    let stolen = json!({"spec": {"claimRef": {"uid": "2"}}});
    assert_eq!(
        claimed(bound, Some(stolen)),
        format!(
            "{process}found PV object pv but its pv.Spec.ClaimRef.UID 2 does not point to claim.UID 1"
        )
    );
}

/// `imageManager.EnsureImageExists` and `pullImage`.
#[test]
fn image_that_is_missing_is_pulled_again_with_back_off() {
    let mut life = Life::new(json!({}), json!({}));
    life.engine.simulation.miss_image("app:*");
    life.until(0);
    assert_eq!(life.summary(), "Pending NotReady [ErrImagePull]");
    assert_eq!(life.notes, ["Pulling", "Failed", "Failed"]);
    life.until(1_000);
    assert_eq!(life.summary(), "Pending NotReady [ImagePullBackOff]");
    assert_eq!(life.notes[3..], ["BackOff", "Failed"]);
    let status = life.status().container_statuses.as_ref().expect("one")[0].clone();
    let waiting = status.state.and_then(|s| s.waiting).expect("it waits");
    let message = waiting.message.expect("a message");
    assert!(
        message.starts_with("Back-off pulling image \"app:1\": ErrImagePull: rpc error"),
        "{message}"
    );
    // Pulled again 10, 20, 40 s after each failure.
    for (at, tries) in [
        (9_999, 1),
        (10_000, 2),
        (29_999, 2),
        (30_000, 3),
        (70_000, 4),
    ] {
        life.until(at);
        let pulls = life.notes.iter().filter(|note| *note == "Pulling").count();
        assert_eq!(pulls, tries, "after {at}");
    }
    life.engine.simulation.provide_image("app:*");
    life.until(150_000);
    assert_eq!(life.summary(), "Running Ready [ready]");

    let never =
        json!({"containers": [{"name": "app", "image": "app:1", "imagePullPolicy": "Never"}]});
    let mut life = Life::new(json!({"pull": "fail"}), never);
    life.until(0);
    assert_eq!(life.summary(), "Pending NotReady [ErrImageNeverPull]");
    assert_eq!(
        life.texts[0],
        "Container image \"app:1\" is not present with pull policy of Never"
    );

    let upper = json!({"containers": [{"name": "app", "image": "App:1"}]});
    let mut life = Life::new(json!({}), upper);
    life.until(0);
    assert_eq!(life.summary(), "Pending NotReady [InvalidImageName]");
}

/// `Kubelet.getPullSecretsForPod`.
#[test]
fn private_image_needs_a_pull_secret_of_its_registry() {
    let spec = json!({"imagePullSecrets": [{"name": "reg"}],
        "containers": [{"name": "app", "image": "registry.example.com/app:1"}]});
    let mut life = Life::new(json!({}), spec);
    life.engine
        .simulation
        .protect_image("registry.example.com/*");
    life.until(0);
    assert_eq!(life.notes[0], "FailedToRetrieveImagePullSecret");
    assert_eq!(
        life.texts[0],
        "Unable to retrieve some image pull secrets (reg); attempting to pull the image may not succeed."
    );
    assert_eq!(life.summary(), "Pending NotReady [ErrImagePull]");
    // {"auths": {"registry.example.com": {"username": "u"}}}
    let config = "eyJhdXRocyI6IHsicmVnaXN0cnkuZXhhbXBsZS5jb20iOiB7InVzZXJuYW1lIjogInUifX19";
    life.sources.secrets.insert(
        "reg".to_owned(),
        object(json!({"data": {".dockerconfigjson": config}})),
    );
    life.until(10_000);
    assert_eq!(life.summary(), "Running Ready [ready]");
}

/// `prober.worker.doProbe` and `computePodActions`.
#[test]
fn liveness_restarts_and_readiness_takes_out_of_service() {
    let spec = json!({"containers": [{"name": "app", "image": "app:1",
        "livenessProbe": {"httpGet": {"port": 80}, "periodSeconds": 5, "failureThreshold": 2, "successThreshold": 1},
        "readinessProbe": {"httpGet": {"port": 80}, "periodSeconds": 2, "failureThreshold": 3, "successThreshold": 1}}]});
    let mut life = Life::new(json!({"liveness": "fail"}), spec.clone());
    life.until(4_999);
    assert_eq!(life.summary(), "Running Ready [ready]");
    assert_eq!(
        life.texts.last().map(String::as_str),
        Some("Liveness probe failed: HTTP probe failed with statuscode: 500")
    );
    life.until(5_000);
    assert_eq!(life.summary(), "Running Ready [ready] restarts 1");
    assert!(
        life.texts
            .contains(&"Container app failed liveness probe, will be restarted".to_owned())
    );
    let mut life = Life::new(json!({}), spec.clone());
    life.until(60_000);
    let key = "sim.kubewright.dev/readiness".to_owned();
    life.pod
        .metadata
        .annotations
        .get_or_insert_default()
        .insert(key.clone(), "fail".to_owned());
    life.until(63_999);
    assert_eq!(
        life.summary(),
        "Running Ready [ready]",
        "two failures are not enough"
    );
    life.until(64_000);
    assert_eq!(life.summary(), "Running NotReady [running]");
    life.pod
        .metadata
        .annotations
        .get_or_insert_default()
        .remove(&key);
    life.until(66_000);
    assert_eq!(life.summary(), "Running Ready [ready]");
    // A container that hangs hears neither probes nor SIGTERM.
    let mut life = Life::new(json!({}), spec);
    life.until(1_000);
    life.run.signals.push(Signal::Hang { container: None });
    life.until(6_000);
    assert_eq!(life.summary(), "Running NotReady [running]");
    life.until(36_000);
    assert_eq!(life.summary(), "Running Ready [ready] restarts 1");
}

/// `computeInitContainerActions` with a startup probe.
#[test]
fn startup_probe_holds_back_the_others_and_kills_in_the_end() {
    let spec = json!({"containers": [{"name": "app", "image": "app:1",
        "startupProbe": {"exec": {"command": ["x"]}, "periodSeconds": 10, "failureThreshold": 3}}]});
    let mut life = Life::new(json!({"startup": "fail"}), spec);
    life.until(19_999);
    assert_eq!(life.summary(), "Running NotReady [running]");
    assert_eq!(
        life.status().container_statuses.as_ref().expect("one")[0].started,
        Some(false)
    );
    life.until(20_000);
    assert_eq!(life.summary(), "Running NotReady [running] restarts 1");
    assert!(
        life.texts
            .contains(&"Container app failed startup probe, will be restarted".to_owned())
    );
}

/// `podutil.ContainerShouldRestart`.
#[test]
fn container_restart_rules_decide() {
    let rules = json!([{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]);
    let container = json!({"name": "app", "image": "app:1", "restartPolicy": "Never", "restartPolicyRules": rules});
    let spec = json!({"restartPolicy": "Never", "containers": [container]});
    check(
        json!({"exit-code": "42", "exit-after": "1s"}),
        spec.clone(),
        &[
            (1_000, "Running Ready [ready] restarts 1"),
            (2_000, "Running NotReady [CrashLoopBackOff] restarts 1"),
        ],
    );
    check(
        json!({"exit-code": "1", "exit-after": "1s"}),
        spec,
        &[(1_000, "Failed NotReady [Error=1]")],
    );
}

/// `startEphemeralContainers` of SyncPod.
#[test]
fn ephemeral_container_is_started_and_never_again() {
    let mut life = Life::new(json!({"never-ready": "true"}), json!({}));
    life.until(1_000);
    let debugger = json!({"name": "debugger", "image": "busybox", "command": ["sleep", "5"]});
    let spec = life.pod.spec.as_mut().expect("a spec");
    spec.ephemeral_containers = Some(vec![serde_json::from_value(debugger).expect("one")]);
    life.until(2_000);
    assert_eq!(life.summary(), "Running NotReady [running running]");
    life.until(7_000);
    assert_eq!(life.summary(), "Running NotReady [running Completed=0]");
    life.until(900_000);
    assert_eq!(life.summary(), "Running NotReady [running Completed=0]");
}

/// `eviction.managerImpl.evictPod` and `Kubelet.rejectPod`.
#[test]
fn evicted_and_rejected_pods_fail_with_their_reason() {
    let mut life = Life::new(json!({}), json!({}));
    life.until(1_000);
    let message = "The node was low on resource: memory. ".to_owned();
    life.run.signals.push(Signal::Evicted { message });
    life.until(2_000);
    assert_eq!(life.summary(), "Failed NotReady [Error=137] Evicted");
    let target = life
        .status()
        .conditions
        .iter()
        .flatten()
        .find(|c| c.type_ == "DisruptionTarget");
    assert_eq!(
        target.and_then(|c| c.reason.as_deref()),
        Some("TerminationByKubelet")
    );
    let mut life = Life::new(json!({}), json!({}));
    let (reason, message) = ("OutOfcpu".to_owned(), "Node didn't have enough".to_owned());
    life.run.signals.push(Signal::Rejected { reason, message });
    life.until(0);
    assert_eq!(life.summary(), "Failed NotReady [] OutOfcpu");
    assert_eq!(
        life.status().message.as_deref(),
        Some("Pod was rejected: Node didn't have enough")
    );
}

#[test]
fn container_crashes_when_a_test_says_so() {
    let mut life = Life::new(json!({}), json!({}));
    life.until(1_000);
    let exit = Exit::code(3);
    life.run.signals.push(Signal::Crash {
        container: None,
        exit,
    });
    life.until(1_000);
    assert_eq!(life.summary(), "Running Ready [ready] restarts 1");
    let status = life.status().container_statuses.as_ref().expect("one")[0].clone();
    let last = status
        .last_state
        .and_then(|s| s.terminated)
        .expect("it ended");
    assert_eq!((last.exit_code, last.reason.as_deref()), (3, Some("Error")));
}

#[test]
fn commands_that_are_plain_are_done() {
    let with = |command: Value, policy: &str| json!({"restartPolicy": policy, "containers": [{"name": "app", "image": "busybox", "command": command}]});
    check(
        json!({}),
        with(json!(["sleep", "5"]), "Never"),
        &[
            (4_999, "Running Ready [ready]"),
            (5_000, "Succeeded NotReady [Completed=0]"),
        ],
    );
    check(
        json!({}),
        with(json!(["false"]), "Never"),
        &[(0, "Failed NotReady [Error=1]")],
    );
    check(
        json!({}),
        with(json!(["sh", "-c", "exit 3"]), "OnFailure"),
        &[(0, "Running NotReady [CrashLoopBackOff] restarts 1")],
    );
    check(
        json!({}),
        with(json!(["true"]), "Always"),
        &[(0, "Running NotReady [CrashLoopBackOff] restarts 1")],
    );
    // What a test gives the simulation wins.
    check(
        json!({"exit-after": "never"}),
        with(json!(["true"]), "Never"),
        &[(9_000, "Running Ready [ready]")],
    );
    // Nothing handles SIGTERM: it takes the whole grace period.
    let mut life = Life::new(json!({}), with(json!(["sleep", "infinity"]), "Always"));
    life.until(1_000).delete(30);
    assert_eq!(life.step().fate, Fate::Stays);
    life.now = 31_000;
    assert_eq!(life.step().fate, Fate::Goes);
    assert_eq!(life.summary(), "Failed NotReady [Error=137]");
}

/// `terminationOrdering` of kuberuntime.
#[test]
fn sidecars_stop_after_the_main_containers_in_reverse_order() {
    let spec = json!({"initContainers": [
        {"name": "one", "image": "a", "restartPolicy": "Always"},
        {"name": "two", "image": "a", "restartPolicy": "Always"},
    ]});
    let mut life = Life::new(json!({"stop-delay": "2s"}), spec);
    life.until(1_000).delete(30);
    for (at, summary) in [
        (3_000, "Running NotReady [ready ready Completed=0]"),
        (5_000, "Running NotReady [ready Completed=0 Completed=0]"),
    ] {
        life.until(at);
        assert_eq!(life.summary(), summary, "after {at}");
    }
    life.now = 7_000;
    assert_eq!(life.step().fate, Fate::Goes);
}

mod legality {
    use proptest::prelude::*;

    use super::*;

    const SETTINGS: [(&str, &[&str]); 9] = [
        ("start-delay", &["0", "1s", "20s"]),
        ("ready-delay", &["0", "3s"]),
        ("exit-after", &["0", "2s", "never"]),
        ("exit-code", &["0", "1"]),
        ("fail", &["once", "3", "always"]),
        ("never-ready", &["true"]),
        ("stop-delay", &["0", "2s", "1h"]),
        ("pull", &["fail"]),
        ("init.exit-code", &["0", "1"]),
    ];

    fn annotations() -> impl Strategy<Value = Value> {
        let choices = proptest::collection::vec((0..SETTINGS.len(), 0usize..3), 0..4);
        choices.prop_map(|choices| {
            let mut chosen = serde_json::Map::new();
            for (setting, value) in choices {
                let (name, values) = SETTINGS[setting];
                chosen.insert(name.to_owned(), json!(values[value % values.len()]));
            }
            Value::Object(chosen)
        })
    }

    fn spec() -> impl Strategy<Value = Value> {
        let policies = prop_oneof![Just("Always"), Just("OnFailure"), Just("Never")];
        (policies, 0usize..3, 1usize..3, proptest::option::of(1i64..40)).prop_map(|(policy, init, main, deadline)| {
            let names = ["init", "side"];
            let init: Vec<Value> = names[..init].iter().map(|name| match *name {
                "side" => json!({"name": "side", "restartPolicy": "Always"}),
                name => json!({"name": name}),
            }).collect();
            let main: Vec<Value> = (0..main).map(|i| json!({"name": format!("c{i}")})).collect();
            json!({"restartPolicy": policy, "initContainers": init, "containers": main, "activeDeadlineSeconds": deadline})
        })
    }

    fn rank(phase: &str) -> u8 {
        match phase {
            "Pending" => 0,
            "Running" => 1,
            _ => 2,
        }
    }

    fn conditions_agree(status: &PodStatus) -> Result<(), TestCaseError> {
        let holds = |type_: &str| {
            let mut all = status.conditions.iter().flatten();
            all.find(|c| c.type_ == type_)
                .is_some_and(|c| c.status == "True")
        };
        let phase = status.phase.as_deref().unwrap_or("");
        prop_assert!(!holds("Ready") || holds("ContainersReady"));
        prop_assert!(!holds("ContainersReady") || (holds("Initialized") && phase == "Running"));
        prop_assert!(phase != "Running" || holds("Initialized"));
        let main = status.container_statuses.as_deref().unwrap_or_default();
        prop_assert_eq!(
            holds("ContainersReady") && main.iter().any(|c| !c.ready),
            false
        );
        for container in main {
            let state = container.state.clone().unwrap_or_default();
            let kinds = [
                state.waiting.is_some(),
                state.running.is_some(),
                state.terminated.is_some(),
            ];
            prop_assert_eq!(kinds.iter().filter(|k| **k).count(), 1);
            prop_assert!(!container.ready || state.running.is_some());
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(192))]

        #[test]
        fn transitions_are_legal_whatever_the_stages(
            annotations in annotations(),
            spec in spec(),
            moments in proptest::collection::vec(0u64..40_000, 1..12),
            deleted in proptest::option::of(0usize..12),
        ) {
            let mut life = Life::new(annotations, spec);
            let (mut before, mut restarts) = (0, 0);
            for (i, pause) in moments.into_iter().enumerate() {
                if deleted == Some(i) {
                    life.delete(30);
                }
                let next = life.now + pause;
                life.until(next);
                let status = life.status();
                let now = rank(status.phase.as_deref().unwrap_or(""));
                prop_assert!(now >= before, "{} after rank {before}", life.summary());
                let counted: i32 = status.container_statuses.iter().flatten().map(|c| c.restart_count).sum();
                prop_assert!(counted >= restarts);
                (before, restarts) = (now, counted);
                conditions_agree(status)?;
                let writes = life.writes;
                life.step();
                prop_assert_eq!(life.writes, writes, "nothing is written when nothing happens");
            }
        }
    }
}
