//! Writes that break a rule are found, and those that do not are not.

use super::*;

const NOW: &str = "2030-01-01T00:10:00Z";

fn at(text: &str) -> Timestamp {
    text.parse().expect("a moment")
}

/// Objects of a collection, all with uids that are their names.
fn store(objects: &mut Objects, collection: &str, mut object: Value) {
    let name = object["metadata"]["name"].clone();
    object["metadata"]["uid"] = name.clone();
    let name = name.as_str().expect("a name").to_owned();
    objects
        .entry(collection.to_owned())
        .or_default()
        .insert(name, object);
}

/// Checks a write, and expects the rule to be broken, or none to be.
fn check(objects: &Objects, collection: &str, before: Value, after: Value, broken: Option<&str>) {
    let mut limits = Limits::default();
    let write = Write {
        collection,
        before: Some(&before).filter(|before| before.is_object()),
        after: &after,
        gone: false,
        now: at(NOW),
    };
    limits.see(write, objects);
    let complaints = limits.complaints();
    match broken {
        Some(rule) => assert!(
            complaints.len() == 1 && complaints[0].starts_with(rule),
            "{complaints:?}"
        ),
        None => assert_eq!(complaints, [""; 0], "{after}"),
    }
}

#[test]
fn autoscaler_beyond_its_bounds_is_found() {
    let mut objects = Objects::new();
    let spec = json!({"scaleTargetRef": {"name": "web"}, "minReplicas": 2, "maxReplicas": 4});
    let autoscaler = json!({"metadata": {"name": "web"}, "spec": spec});
    store(
        &mut objects,
        "autoscaling/horizontalpodautoscalers",
        autoscaler,
    );
    let deployment = |replicas: i64, subresource: &str| {
        let manager =
            json!({"subresource": subresource, "fieldsV1": {"f:spec": {"f:replicas": {}}}});
        json!({"metadata": {"name": "web", "managedFields": [manager]}, "spec": {"replicas": replicas}})
    };
    let rule = Some("autoscaler keeps to its bounds");
    for (size, by, broken) in [
        (4, "scale", None),
        (5, "scale", rule),
        (1, "scale", rule),
        (9, "", None),
    ] {
        let before = deployment(3, "");
        check(
            &objects,
            "apps/deployments",
            before,
            deployment(size, by),
            broken,
        );
    }
}

#[test]
fn budget_that_is_overdrawn_is_found() {
    let budget = |allowed: i64, pods: Value| {
        json!({"metadata": {"name": "b"},
        "status": {"disruptionsAllowed": allowed, "disruptedPods": pods}})
    };
    let paid = budget(0, json!({"a": NOW}));
    let (kind, rule) = (
        "policy/poddisruptionbudgets",
        Some("budget is never overdrawn"),
    );
    let none = Objects::new();
    check(&none, kind, budget(1, json!({})), paid.clone(), None);
    check(&none, kind, budget(0, json!({})), paid, rule);
    check(
        &none,
        kind,
        budget(1, json!({})),
        budget(1, json!({"a": NOW})),
        rule,
    );
    check(
        &none,
        kind,
        budget(2, json!({})),
        budget(0, json!({})),
        None,
    );
}

#[test]
fn eviction_that_no_budget_paid_for_is_found() {
    let ready = json!({"type": "Ready", "status": "True"});
    let evicted = json!({"type": "DisruptionTarget", "reason": "EvictionByEvictionAPI"});
    let pod = |conditions: Value| {
        json!({"metadata": {"name": "p", "labels": {"app": "web"}},
        "status": {"conditions": conditions}})
    };
    let rule = Some("eviction is paid for by the budget");
    for (pods, broken) in [(json!({"p": NOW}), None), (json!({}), rule)] {
        let mut objects = Objects::new();
        let budget = json!({"metadata": {"name": "b", "creationTimestamp": "2030-01-01T00:00:00Z"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}}, "status": {"disruptedPods": pods}});
        store(&mut objects, "policy/poddisruptionbudgets", budget);
        let after = pod(json!([ready, evicted]));
        check(&objects, "pods", pod(json!([ready])), after, broken);
    }
}

#[test]
fn claims_and_volumes_that_shrink_are_found() {
    let mut objects = Objects::new();
    let volume =
        |size: &str| json!({"metadata": {"name": "v"}, "spec": {"capacity": {"storage": size}}});
    store(&mut objects, "persistentvolumes", volume("3Gi"));
    let claim = |size: &str| {
        json!({"metadata": {"name": "c"}, "spec": {"volumeName": "v"},
        "status": {"capacity": {"storage": size}}})
    };
    let kind = "persistentvolumeclaims";
    check(&objects, kind, claim("1Gi"), claim("3Gi"), None);
    check(
        &objects,
        kind,
        claim("3Gi"),
        claim("2Gi"),
        Some("claim never shrinks"),
    );
    check(
        &objects,
        kind,
        claim("3Gi"),
        claim("4Gi"),
        Some("claim is never larger"),
    );
    check(
        &objects,
        "persistentvolumes",
        volume("3Gi"),
        volume("2Gi"),
        Some("volume never shrinks"),
    );
    let mut leaving = claim("3Gi");
    leaving["metadata"]["deletionTimestamp"] = NOW.into();
    check(
        &objects,
        kind,
        claim("3Gi"),
        leaving.clone(),
        Some("claim without owners stays"),
    );
    let mut owned = claim("3Gi");
    owned["metadata"]["ownerReferences"] = json!([{"uid": "u"}]);
    check(&objects, kind, owned, leaving, None);
}

fn job(name: &str, run: &str) -> Value {
    json!({"metadata": {"name": name, "uid": name,
        "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": run},
        "ownerReferences": [{"kind": "CronJob", "controller": true, "uid": "cron"}]}})
}

#[test]
fn run_that_is_forbidden_is_found() {
    for (policy, broken) in [
        ("Allow", None),
        ("Forbid", Some("cron job that forbids it")),
    ] {
        let mut objects = Objects::new();
        let cron = json!({"metadata": {"name": "cron"}, "spec": {"concurrencyPolicy": policy}});
        store(&mut objects, "batch/cronjobs", cron);
        store(&mut objects, "batch/jobs", job("first", "00:01"));
        check(
            &objects,
            "batch/jobs",
            Value::Null,
            job("second", "00:02"),
            broken,
        );
    }
}

#[test]
fn run_that_begins_twice_is_found() {
    let mut objects = Objects::new();
    let cron = json!({"metadata": {"name": "cron"}, "spec": {}});
    store(&mut objects, "batch/cronjobs", cron);
    let mut limits = Limits::default();
    for name in ["first", "again"] {
        let job = job(name, "00:01");
        let write = Write {
            collection: "batch/jobs",
            before: None,
            after: &job,
            gone: false,
            now: at(NOW),
        };
        limits.see(write, &objects);
    }
    let complaints = limits.complaints();
    assert_eq!(complaints.len(), 1, "{complaints:?}");
}

#[test]
fn pod_beside_a_taint_is_found_unless_the_taint_is_new() {
    let node = |taints: Value| json!({"metadata": {"name": "n"}, "spec": {"taints": taints}});
    let tainted = node(json!([{"key": "low", "effect": "NoSchedule"}]));
    let pod = |node: Value, tolerations: Value| {
        json!({"metadata": {"name": "p"},
        "spec": {"nodeName": node, "tolerations": tolerations}})
    };
    let mut objects = Objects::new();
    store(&mut objects, "nodes", tainted.clone());
    let waiting = pod(Value::Null, json!([]));
    let placed = pod("n".into(), json!([]));
    let rule = Some("no pod is placed beside a taint");
    check(&objects, "pods", waiting.clone(), placed.clone(), rule);
    let tolerant = pod("n".into(), json!([{"key": "low", "operator": "Exists"}]));
    check(&objects, "pods", waiting.clone(), tolerant, None);
    let mut limits = Limits::default();
    let (before, now) = (node(json!([])), at(NOW));
    let write = |collection, before, after| Write {
        collection,
        before: Some(before),
        after,
        gone: false,
        now,
    };
    limits.see(write("nodes", &before, &tainted), &objects);
    limits.see(write("pods", &waiting, &placed), &objects);
    assert_eq!(limits.complaints(), [""; 0]);
}

#[test]
fn eviction_by_a_node_that_is_low_on_nothing_is_found() {
    let pod = |reason: &str| json!({"metadata": {"name": "p", "creationTimestamp": "2030-01-01T00:05:00Z"}, "spec": {"nodeName": "n"}, "status": {"reason": reason}});
    let rule = Some("node evicts only what");
    check(&Objects::new(), "pods", pod(""), pod("Evicted"), rule);
    let mut limits = Limits::default();
    limits.press("n");
    let (before, after, now) = (pod(""), pod("Evicted"), at(NOW));
    let write = Write {
        collection: "pods",
        before: Some(&before),
        after: &after,
        gone: false,
        now,
    };
    limits.see(write, &Objects::new());
    limits.relieve("n", at("2030-01-01T00:00:00Z"));
    assert_eq!(limits.complaints(), [""; 0]);
    limits.see(write, &Objects::new());
    assert_eq!(limits.complaints().len(), 1);
}
