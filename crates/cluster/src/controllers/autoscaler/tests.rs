//! The rules of autoscalers, as Kubernetes documents them.

use futures::FutureExt as _;
use k8s_openapi::api::autoscaling::v2::MetricSpec;
use serde_json::{Value, json};

use super::calculate::{Proposal, by_share, by_value};
use super::*;
use crate::metrics::Measured;
use crate::pods::samples::at;

/// A pod as a test writes it: phase, since when, whether it is ready, what it uses of its 1000m.
#[derive(Clone, Copy)]
struct PodCase {
    phase: &'static str,
    ready: bool,
    uses: Option<&'static str>,
    started: i64,
    leaving: bool,
}

const fn running(uses: &'static str) -> PodCase {
    PodCase {
        phase: "Running",
        ready: true,
        uses: Some(uses),
        started: 0,
        leaving: false,
    }
}

const UNMEASURED: PodCase = PodCase {
    uses: None,
    ..running("0")
};
const PENDING: PodCase = PodCase {
    phase: "Pending",
    ready: false,
    uses: None,
    ..running("0")
};
/// Far into the life of the pods that start at zero.
const NOW: i64 = 10_000;

fn pods(case: &[PodCase], container: Value) -> Vec<Arc<Pod>> {
    let made = case.iter().enumerate().map(|(index, case)| {
        let mut annotations = json!({});
        if let Some(uses) = case.uses {
            annotations["sim.kubewright.dev/cpu"] = json!(uses);
            annotations["sim.kubewright.dev/metric-hits"] = json!(uses);
        }
        let ready = if case.ready { "True" } else { "False" };
        let leaving = case.leaving.then(|| at(NOW).to_string());
        let pod = json!({
            "metadata": {"namespace": "n", "name": format!("p{index}"), "annotations": annotations,
                "deletionTimestamp": leaving},
            "spec": {"containers": [container]},
            "status": {"phase": case.phase, "startTime": at(case.started).to_string(),
                "conditions": [{"type": "Ready", "status": ready,
                    "lastTransitionTime": at(case.started).to_string()}]},
        });
        Arc::new(serde_json::from_value(pod).expect("it is a pod"))
    });
    made.collect()
}

fn asking() -> Value {
    json!({"name": "c", "resources": {"requests": {"cpu": "1"}}})
}

fn cpu(percent: i32) -> Value {
    let target = json!({"type": "Utilization", "averageUtilization": percent});
    json!({"type": "Resource", "resource": {"name": "cpu", "target": target}})
}

fn verdict(metrics: &Metrics, pods: &[Arc<Pod>], current: i32, specs: &[Value]) -> Verdict {
    let crowd = Crowd {
        pods,
        current,
        tolerance: Tolerance { up: 0.1, down: 0.1 },
        now: at(NOW),
    };
    let scene = Scene {
        namespace: "n",
        crowd,
        there: current,
    };
    let specs: Vec<MetricSpec> = specs
        .iter()
        .map(|spec| serde_json::from_value(spec.clone()).expect("it is a metric"))
        .collect();
    let declared = Declared {
        metrics,
        namespace: "n",
        pods,
    };
    let readings = Readings {
        declared,
        served: None,
    };
    let measures = readings.gather(&specs).now_or_never();
    assess(measures.expect("nobody is asked"), &scene)
}

fn check(what: &str, case: &[PodCase], spec: Value, expected: i32) {
    let current = i32::try_from(case.len()).expect("few pods");
    let found = verdict(&Metrics::default(), &pods(case, asking()), current, &[spec]);
    let replicas = found.asked.as_ref().map(|(replicas, _)| *replicas);
    assert_eq!(replicas, Some(expected), "{what}: {found:?}");
}

#[test]
fn replicas_follow_the_ratio_of_use_to_target() {
    check("at target", &[running("500m"); 4], cpu(50), 4);
    check("within tolerance above", &[running("550m"); 4], cpu(50), 4);
    check("within tolerance below", &[running("450m"); 4], cpu(50), 4);
    check("just above tolerance", &[running("560m"); 4], cpu(50), 5);
    check("twice the target", &[running("1"); 4], cpu(50), 8);
    check("half the target", &[running("250m"); 4], cpu(50), 2);
    check("no use at all", &[running("0"); 4], cpu(50), 0);
    check(
        "use is averaged",
        &[running("900m"), running("100m")],
        cpu(50),
        2,
    );
}

#[test]
fn pods_that_say_nothing_never_make_a_scaling_larger() {
    let busy = running("1");
    let young = PodCase {
        started: NOW - 60,
        ready: false,
        ..running("1")
    };
    let leaving = PodCase {
        leaving: true,
        ..running("1")
    };
    let failed = PodCase {
        phase: "Failed",
        ..running("1")
    };
    let late = PodCase {
        started: NOW - 60,
        ..busy
    };
    let cases: [(&str, &[PodCase], i32); 11] = [
        (
            "pending pods count as idle on the way up",
            &[busy, busy, PENDING],
            4,
        ),
        ("enough pending pods hold it", &[busy, PENDING], 2),
        (
            "unmeasured pods count as idle on the way up",
            &[busy, busy, UNMEASURED],
            4,
        ),
        (
            "unmeasured pods count as busy on the way down",
            &[running("100m"), running("100m"), UNMEASURED],
            3,
        ),
        (
            "they slow the way down",
            &[
                running("100m"),
                running("100m"),
                running("100m"),
                running("100m"),
                UNMEASURED,
            ],
            3,
        ),
        (
            "pending pods do not count on the way down",
            &[running("250m"), running("250m"), PENDING],
            1,
        ),
        (
            "a pod that has not been ready counts as idle",
            &[busy, busy, young],
            4,
        ),
        (
            "a pod that is ready counts from the start",
            &[busy, late],
            4,
        ),
        ("pods that leave do not count", &[busy, busy, leaving], 4),
        ("failed pods do not count", &[busy, busy, failed], 4),
        (
            "what would turn around stays",
            &[running("600m"), UNMEASURED],
            2,
        ),
    ];
    for (what, case, expected) in cases {
        check(what, case, cpu(50), expected);
    }
}

#[test]
fn values_of_pods_are_averaged() {
    let of = |value: &str| {
        json!({"type": "Pods", "pods": {"metric": {"name": "hits"},
            "target": {"type": "AverageValue", "averageValue": value}}})
    };
    let raw = json!({"type": "Resource", "resource": {"name": "cpu",
        "target": {"type": "AverageValue", "averageValue": "500m"}}});
    check("twice as many hits", &[running("20"); 3], of("10"), 6);
    check("within tolerance", &[running("10500m"); 3], of("10"), 3);
    check("a third", &[running("10"); 3], of("30"), 1);
    check("raw processor", &[running("1"); 2], raw, 4);
}

#[test]
fn values_of_objects_and_from_outside_are_shared() {
    let metrics = Metrics::default();
    let set = |of, metric, value| metrics.set(of, metric, value).expect("a quantity");
    set(Measured::object("n", "Service", "web"), "rate", "100");
    set(Measured::external("n").label("queue", "mail"), "jobs", "30");
    set(
        Measured::external("n").label("queue", "video"),
        "jobs",
        "60",
    );
    set(Measured::external("other"), "jobs", "1k");
    let object = |target: Value| {
        json!({"type": "Object", "object": {"metric": {"name": "rate"}, "target": target,
            "describedObject": {"kind": "Service", "name": "web"}}})
    };
    let outside = |target: Value, selector: Value| {
        json!({"type": "External", "external": {"target": target,
            "metric": {"name": "jobs", "selector": selector}}})
    };
    let value = |text: &str| json!({"type": "Value", "value": text});
    let average = |text: &str| json!({"type": "AverageValue", "averageValue": text});
    let mail = json!({"matchLabels": {"queue": "mail"}});
    let shown = "external metric jobs(&LabelSelector{MatchLabels:map[string]string{queue: mail,},\
                 MatchExpressions:[]LabelSelectorRequirement{},})";
    let cases = [
        (object(value("50")), 4, "Service metric rate"),
        (object(value("95")), 2, "Service metric rate"),
        (object(average("20")), 5, "external metric rate(nil)"),
        (
            outside(average("30"), Value::Null),
            3,
            "external metric jobs(nil)",
        ),
        (
            outside(value("45"), Value::Null),
            4,
            "external metric jobs(nil)",
        ),
        (outside(average("10"), mail), 3, shown),
    ];
    let pods = pods(&[running("1"); 2], asking());
    for (spec, replicas, name) in cases {
        let found = verdict(&metrics, &pods, 2, std::slice::from_ref(&spec));
        assert_eq!(found.asked, Some((replicas, name.to_owned())), "{spec}");
    }
}

#[test]
fn nothing_is_divided_by_zero_replicas() {
    let tolerance = Tolerance { up: 0.1, down: 0.1 };
    let crowd = Crowd {
        pods: &[],
        current: 0,
        tolerance,
        now: at(0),
    };
    let proposal = |replicas, value| Proposal {
        replicas,
        utilization: None,
        value,
    };
    assert_eq!(by_value(&crowd, 3000, 1000), Ok(proposal(3, 3000)));
    assert_eq!(by_value(&crowd, 0, 1000), Ok(proposal(0, 0)));
    assert_eq!(by_share(0, tolerance, 3000, 1000), proposal(3, 3000));
}

#[test]
fn the_greatest_number_counts_and_a_missing_metric_forbids_to_go_down() {
    let hits = json!({"type": "Pods", "pods": {"metric": {"name": "hits"},
        "target": {"type": "AverageValue", "averageValue": "100m"}}});
    let unknown = json!({"type": "Pods", "pods": {"metric": {"name": "unknown"},
        "target": {"type": "AverageValue", "averageValue": "1"}}});
    let cases = [
        (vec![cpu(100), hits.clone()], Some(10), 0),
        (vec![hits.clone(), cpu(100)], Some(10), 0),
        (vec![cpu(100), unknown.clone()], None, 1),
        (vec![unknown.clone(), hits], Some(10), 1),
        (vec![unknown], None, 1),
    ];
    let pods = pods(&[running("500m"); 2], asking());
    for (specs, replicas, failed) in cases {
        let found = verdict(&Metrics::default(), &pods, 2, &specs);
        let asked = found.asked.as_ref().map(|(replicas, _)| *replicas);
        assert_eq!(
            (asked, found.failures.len()),
            (replicas, failed),
            "{specs:?}"
        );
        assert_eq!(found.statuses.len(), specs.len());
    }
}

#[test]
fn what_cannot_be_had_is_said_in_the_words_of_the_real_controller() {
    let silent = json!({"name": "c"});
    let cases = [
        (
            vec![UNMEASURED],
            asking(),
            "failed to get cpu utilization: unable to get metrics for resource cpu: no metrics returned from resource metrics API",
        ),
        (
            vec![running("1")],
            silent,
            "failed to get cpu utilization: missing request for cpu in container c of Pod p0",
        ),
        (
            vec![PodCase {
                started: NOW - 10,
                ready: false,
                ..running("1")
            }],
            asking(),
            "failed to get cpu utilization: did not receive metrics for any ready pods",
        ),
    ];
    for (case, container, message) in cases {
        let found = verdict(&Metrics::default(), &pods(&case, container), 1, &[cpu(50)]);
        let failure = found.failures.first().expect("it fails");
        assert_eq!(
            (failure.reason, &*failure.message),
            ("FailedGetResourceMetric", message)
        );
        let summary = format!("failed to get cpu resource metric value: {message}");
        assert_eq!(failure.summary, summary);
    }
}

fn rules(spec: Value) -> HorizontalPodAutoscalerSpec {
    let mut whole = json!({"scaleTargetRef": {"kind": "Deployment", "name": "d"}, "minReplicas": 2, "maxReplicas": 20});
    for (key, value) in spec.as_object().into_iter().flatten() {
        whole[key] = value.clone();
    }
    serde_json::from_value(whole).expect("it is a spec")
}

/// Goes through recommendations at their times, following them, and compares where that leads.
fn follow(what: &str, spec: Value, begin: i32, course: &[(i64, i32, i32, &str)]) {
    let (spec, mut memory) = (rules(spec), Memory::default());
    let mut current = begin;
    memory.begin(current, at(0));
    for &(second, wanted, expected, why) in course {
        let now = at(second);
        let settled = memory.settle(&spec, current, wanted, now);
        let reason = match settled.limited {
            Limited::Yes(why) => why.0,
            Limited::No => settled.able.0,
        };
        let found = (settled.replicas, reason);
        assert_eq!(found, (expected, why), "{what} at {second}");
        if settled.replicas != current {
            memory.scaled(spec.behavior.as_ref(), (current, settled.replicas), now);
            current = settled.replicas;
        }
    }
}

#[test]
fn without_rules_it_doubles_at_most_and_goes_down_after_five_minutes() {
    let none = || json!({});
    follow(
        "up",
        none(),
        3,
        &[
            (0, 20, 6, "ScaleUpLimit"),
            (15, 20, 12, "ScaleUpLimit"),
            (30, 30, 20, "TooManyReplicas"),
        ],
    );
    follow(
        "few may go up to four",
        none(),
        2,
        &[(0, 9, 4, "ScaleUpLimit")],
    );
    follow(
        "down",
        none(),
        10,
        &[
            (0, 5, 10, "ScaleDownStabilized"),
            (299, 5, 10, "ScaleDownStabilized"),
            (301, 5, 5, "ReadyForNewScale"),
        ],
    );
    follow(
        "the highest of the window",
        none(),
        10,
        &[
            (0, 5, 10, "ScaleDownStabilized"),
            (200, 8, 10, "ScaleDownStabilized"),
            (310, 5, 8, "ScaleDownStabilized"),
            (501, 5, 5, "ReadyForNewScale"),
        ],
    );
    follow(
        "not below the minimum",
        none(),
        3,
        &[
            (0, 0, 3, "ScaleDownStabilized"),
            (301, 0, 2, "TooFewReplicas"),
        ],
    );
}

#[test]
fn rules_limit_how_fast_it_goes() {
    let behavior = |up: Value, down: Value| {
        let policies = |given: Value| json!({"selectPolicy": "Max", "stabilizationWindowSeconds": 0, "policies": [given]});
        let whole = |given: Value| {
            if given.is_object() && given["policies"].is_array() {
                given
            } else {
                policies(given)
            }
        };
        json!({"behavior": {"scaleUp": whole(up), "scaleDown": whole(down)}})
    };
    let pods =
        |value: i32, period: i32| json!({"type": "Pods", "value": value, "periodSeconds": period});
    let percent = |value: i32, period: i32| json!({"type": "Percent", "value": value, "periodSeconds": period});
    let any = || percent(100, 15);
    follow(
        "two pods a minute",
        behavior(pods(2, 60), any()),
        4,
        &[
            (0, 20, 6, "ScaleUpLimit"),
            (15, 20, 6, "ScaleUpLimit"),
            (60, 20, 8, "ScaleUpLimit"),
        ],
    );
    follow(
        "a tenth a minute, and one at least",
        behavior(any(), percent(10, 60)),
        20,
        &[
            (0, 2, 18, "ScaleDownLimit"),
            (30, 2, 18, "ScaleDownLimit"),
            (61, 2, 16, "ScaleDownLimit"),
        ],
    );
    let both = |select: &str| {
        json!({"selectPolicy": select, "stabilizationWindowSeconds": 0,
        "policies": [pods(4, 15), percent(50, 15)]})
    };
    follow(
        "the greatest change",
        behavior(both("Max"), any()),
        4,
        &[(0, 20, 8, "ScaleUpLimit")],
    );
    follow(
        "the smallest change",
        behavior(both("Min"), any()),
        4,
        &[(0, 20, 6, "ScaleUpLimit")],
    );
    follow(
        "never up",
        behavior(both("Disabled"), any()),
        4,
        &[(0, 20, 4, "ScaleUpLimit")],
    );
    follow(
        "the smallest change down",
        behavior(any(), both("Min")),
        20,
        &[(0, 2, 16, "ScaleDownLimit")],
    );
    follow(
        "never down",
        behavior(any(), both("Disabled")),
        9,
        &[(0, 2, 9, "ScaleDownLimit")],
    );
    follow(
        "what was removed may come back",
        behavior(pods(2, 60), pods(4, 60)),
        10,
        &[(0, 2, 6, "ScaleDownLimit"), (15, 20, 12, "ScaleUpLimit")],
    );
}

#[test]
fn windows_take_the_calmest_of_recent_recommendations() {
    let window = |up: i32, down: i32| {
        let rules = |seconds: i32| {
            json!({"selectPolicy": "Max", "stabilizationWindowSeconds": seconds,
            "policies": [{"type": "Percent", "value": 900, "periodSeconds": 15}]})
        };
        json!({"behavior": {"scaleUp": rules(up), "scaleDown": rules(down)}})
    };
    follow(
        "up",
        window(60, 0),
        4,
        &[
            (0, 10, 4, "ScaleUpStabilized"),
            (30, 9, 4, "ScaleUpStabilized"),
            (61, 12, 9, "ScaleUpStabilized"),
            (92, 12, 12, "ReadyForNewScale"),
        ],
    );
    follow(
        "down",
        window(0, 60),
        10,
        &[
            (0, 4, 10, "ScaleDownStabilized"),
            (30, 6, 10, "ScaleDownStabilized"),
            (61, 4, 6, "ScaleDownStabilized"),
            (95, 4, 4, "ReadyForNewScale"),
        ],
    );
    follow(
        "down at once",
        window(0, 0),
        10,
        &[(0, 4, 4, "ReadyForNewScale")],
    );
}
