//! Silence, taints and evictions as tables.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod, Taint};
use kubewright_cache::Key;
use serde_json::{Value, json};

use super::evictions::{Change, Evictions};
use super::health::{Monitor, Voice, silent_conditions, taints};
use super::looks::Looks;
use super::zones::Eviction;

const GRACE: Duration = Duration::from_secs(40);

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_second(1_700_000_000).expect("in range") + Duration::from_secs(seconds)
}

fn node(ready: &str, spec: Value) -> Node {
    let ready = json!({"type": "Ready", "status": ready, "lastHeartbeatTime": at(0).to_string()});
    let node = json!({"metadata": {"name": "n"}, "spec": spec, "status": {"conditions": [ready]}});
    serde_json::from_value(node).expect("a node")
}

fn lease(renewed: u64) -> Lease {
    let lease = json!({"metadata": {"name": "n"}, "spec": {"renewTime": at(renewed).to_string()}});
    serde_json::from_value(lease).expect("a lease")
}

fn pod(tolerations: Value) -> Pod {
    let pod = json!({"metadata": {"name": "p", "namespace": "d"}, "spec": {"containers": [], "tolerations": tolerations}});
    serde_json::from_value(pod).expect("a pod")
}

#[test]
fn node_is_silent_when_neither_lease_nor_report_is_renewed() {
    // When the lease says it was renewed, when that is looked at, and what it means.
    let story = [
        (0, 0, Voice::Speaks),
        (10, 10, Voice::Speaks),
        (10, 50, Voice::Speaks),
        (10, 51, Voice::Silent),
        (52, 52, Voice::Speaks),
        // A clock that runs ahead does not make a node live longer.
        (5_000, 60, Voice::Speaks),
        (5_000, 101, Voice::Silent),
    ];
    let mut monitor = Monitor::default();
    for (renewed, now, expect) in story {
        let voice = monitor.judge(
            &node("True", json!({})),
            Some(&lease(renewed)),
            GRACE,
            at(now),
        );
        assert_eq!(voice, expect, "renewed {renewed}, now {now}");
    }
}

#[test]
fn look_comes_with_the_first_period_after_the_earliest_moment() {
    let period = Duration::from_secs(5);
    // The moments after which a look is asked for, and when it comes.
    let cases: [(&[u64], Option<u64>); 6] = [
        (&[], None),
        (&[0], Some(5)),
        (&[4], Some(5)),
        (&[5], Some(10)),
        (&[43, 1_203], Some(45)),
        (&[1_203, 43], Some(45)),
    ];
    for (moments, expect) in cases {
        let mut looks = Looks::new(at(0), period);
        moments.iter().for_each(|moment| looks.after(at(*moment)));
        assert_eq!(looks.next(), expect.map(at), "{moments:?}");
        let Some(look) = expect else { continue };
        assert!(!looks.take(at(look - 1)) && looks.take(at(look)));
        assert_eq!(looks.next(), None, "a look is taken once");
    }
}

#[test]
fn renewed_lease_puts_silence_off() {
    let mut monitor = Monitor::default();
    monitor.judge(&node("True", json!({})), Some(&lease(0)), GRACE, at(0));
    monitor.renewed("n", at(30), at(31));
    monitor.renewed("unknown", at(30), at(31));
    assert_eq!(monitor.heard("n"), Some(at(31)));
    assert_eq!(monitor.heard("unknown"), None);
    assert_eq!(monitor.last("n", GRACE, at(71)), Voice::Speaks);
    assert_eq!(monitor.last("n", GRACE, at(72)), Voice::Silent);
    // The same renewal a second time is not news.
    monitor.renewed("n", at(30), at(72));
    assert_eq!(monitor.last("n", GRACE, at(72)), Voice::Silent);
}

#[test]
fn silent_node_turns_unknown_once() {
    let mut silent = node("True", json!({}));
    let conditions = silent_conditions(&silent, at(50)).expect("something to say");
    let reasons: Vec<_> = conditions
        .iter()
        .map(|c| (c.type_.as_str(), c.reason.as_deref().unwrap_or("")))
        .collect();
    assert_eq!(
        reasons,
        [
            ("Ready", "NodeStatusUnknown"),
            ("MemoryPressure", "NodeStatusNeverUpdated"),
            ("DiskPressure", "NodeStatusNeverUpdated"),
            ("PIDPressure", "NodeStatusNeverUpdated"),
        ]
    );
    silent.status.as_mut().expect("a status").conditions = Some(conditions);
    assert_eq!(silent_conditions(&silent, at(60)), None);
}

#[test]
fn taints_follow_the_state_and_leave_others_alone() {
    let other = json!({"taints": [{"key": "mine", "effect": "NoExecute"}]});
    let cordoned = json!({"unschedulable": true});
    let cases: [(&str, Value, Option<&[&str]>); 6] = [
        ("True", json!({}), None),
        (
            "False",
            json!({}),
            Some(&["not-ready:NoSchedule", "not-ready:NoExecute"]),
        ),
        (
            "Unknown",
            other,
            Some(&[
                "mine:NoExecute",
                "unreachable:NoSchedule",
                "unreachable:NoExecute",
            ]),
        ),
        ("True", cordoned, Some(&["unschedulable:NoSchedule"])),
        (
            "True",
            json!({"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]}),
            Some(&[]),
        ),
        (
            "Unknown",
            json!({"taints": [
                {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"},
                {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]}),
            None,
        ),
    ];
    for (ready, spec, expect) in cases {
        let wanted = taints(&node(ready, spec.clone()), Eviction::Allowed, at(0));
        let short = |taint: &Taint| {
            let key = taint.key.trim_start_matches("node.kubernetes.io/");
            format!("{key}:{}", taint.effect)
        };
        let wanted: Option<Vec<String>> = wanted.map(|all| all.iter().map(short).collect());
        let expect = expect.map(|all| all.iter().map(|&t| t.to_owned()).collect::<Vec<_>>());
        assert_eq!(wanted, expect, "{ready} {spec}");
    }
}

/// `node_lifecycle_controller.go: processTaintBaseEviction, handleDisruption`.
#[test]
fn taint_that_evicts_waits_for_its_turn_and_goes_while_nobody_is_evicted() {
    let unreachable =
        |effect: &str| json!({"key": "node.kubernetes.io/unreachable", "effect": effect});
    let bare = || node("Unknown", json!({"taints": [unreachable("NoSchedule")]}));
    let tainted = || {
        node(
            "Unknown",
            json!({"taints": [unreachable("NoSchedule"), unreachable("NoExecute")]}),
        )
    };
    let not_ready = || {
        node(
            "False",
            json!({"taints": [unreachable("NoSchedule"), unreachable("NoExecute")]}),
        )
    };
    let keys = |node: &Node, eviction| {
        let all = taints(node, eviction, at(0));
        all.map(|all| {
            all.into_iter()
                .map(|t| (t.key, t.effect))
                .collect::<Vec<_>>()
        })
    };
    assert_eq!(keys(&bare(), Eviction::Later(None)), None);
    assert_eq!(
        keys(&bare(), Eviction::Allowed).map(|all| all.len()),
        Some(2)
    );
    assert_eq!(keys(&tainted(), Eviction::Later(None)), None);
    assert_eq!(
        keys(&tainted(), Eviction::Suspended).map(|all| all.len()),
        Some(1)
    );
    let swapped = keys(&not_ready(), Eviction::Later(None)).expect("other taints");
    assert!(
        swapped
            .iter()
            .all(|(key, _)| key == "node.kubernetes.io/not-ready"),
        "{swapped:?}"
    );
    assert_eq!(
        swapped.len(),
        2,
        "one taint that evicts is exchanged for the other at once"
    );
}

#[test]
fn pods_leave_when_their_tolerations_run_out() {
    let taint = |key: &str| Taint {
        key: key.to_owned(),
        effect: "NoExecute".to_owned(),
        time_added: Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(10))),
        value: None,
    };
    let tolerate = |key: &str, seconds: Option<i64>| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds});
    let cases = [
        (json!([]), Some(20)),
        (json!([tolerate("a", None)]), None),
        // From when the taint is seen, not from when it says that it was added: `taint_eviction.go: processPodOnNode`.
        (json!([tolerate("a", Some(300))]), Some(320)),
        (
            json!([tolerate("a", Some(300)), tolerate("a", Some(60))]),
            Some(80),
        ),
        (json!([tolerate("b", None)]), Some(20)),
        (json!([{"operator": "Exists"}]), None),
        (json!([tolerate("a", Some(0))]), Some(20)),
    ];
    let key = Key::new("d", "p");
    for (tolerations, expect) in cases {
        let mut evictions = Evictions::default();
        let pod = pod(tolerations.clone());
        assert_eq!(
            evictions.consider(&key, &pod, &[taint("a")], at(20)),
            Change::None
        );
        assert_eq!(evictions.next(), expect.map(at), "{tolerations}");
        let change = evictions.consider(&key, &pod, &[], at(30));
        assert_eq!(change == Change::Cancelled, expect.is_some());
        assert_eq!(evictions.due(at(9_999)), None, "the taint is gone");
    }
}
