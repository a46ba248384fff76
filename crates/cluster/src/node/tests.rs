//! The life of simulated pods as tables, and what must hold whatever happens.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::behaviour::Behaviour;
use super::machine::PodMachine;
use super::run::Run;
use super::script::parse_duration;
use super::status::{Host, fingerprint};
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

/// A pod on a node that is stepped through time; statuses are written as soon as they are told.
struct Life {
    pod: Pod,
    run: Run,
    behaviour: Behaviour,
    /// Milliseconds since the pod came.
    now: u64,
    writes: usize,
    notes: Vec<String>,
}

impl Life {
    fn new(annotations: Value, spec: Value) -> Self {
        let pod = pod(annotations, spec);
        let mut run = Run::adopt(&pod, at(0));
        run.address = Some([10, 244, 0, 2].into());
        Self {
            run,
            pod,
            behaviour: Behaviour::default(),
            now: 0,
            writes: 0,
            notes: Vec::new(),
        }
    }

    fn step(&mut self) -> Step {
        let host = Host {
            address: "172.18.0.2".to_owned(),
        };
        let mut step = PodMachine::step(
            at(self.now),
            &self.pod,
            &mut self.run,
            &self.behaviour,
            &host,
        );
        let notes = step.notes.drain(..);
        self.notes.extend(notes.map(|note| note.reason.to_owned()));
        if let Some(status) = step.status.take() {
            self.run.published = Some(fingerprint(&status));
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
            init.chain(status.container_statuses.iter().flatten())
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
fn annotations_change_a_pod_that_runs_and_wrong_ones_are_told_once() {
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
