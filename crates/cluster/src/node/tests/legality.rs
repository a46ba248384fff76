//! Random stages: phases, conditions and restart counts change as Kubernetes allows.

use k8s_openapi::api::core::v1::PodStatus;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::Life;
use crate::node::signal::Signal;

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
        rebooted in proptest::option::of(0usize..12),
    ) {
        let mut life = Life::new(annotations, spec);
        let (mut before, mut restarts) = (0, 0);
        for (i, pause) in moments.into_iter().enumerate() {
            if deleted == Some(i) {
                life.delete(30);
            }
            if rebooted == Some(i) {
                life.run.signals.push(Signal::Rebooted);
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
