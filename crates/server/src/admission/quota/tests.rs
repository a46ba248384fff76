//! What quotas allow.

use serde_json::{Value, json};

use super::super::resources::add;
use super::*;

const NOW: &str = "2026-01-01T00:00:00Z";

fn measure<'a>(group: &'a str, plural: &'a str) -> Measure<'a> {
    Measure {
        group,
        plural,
        now: NOW,
    }
}

fn quota(hard: Value) -> Value {
    json!({"metadata": {"name": "q"}, "spec": {"hard": hard}})
}

fn pod(requests: Value) -> Value {
    json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]}})
}

fn check_create(
    measure: Measure<'_>,
    quota: &Value,
    new: &Value,
    others: &[Value],
) -> Result<(), PluginRefusal> {
    let mut used = Amounts::new();
    for other in others.iter().filter(|o| scope::matches(quota, measure, o)) {
        add(&mut used, &measure.usage(other));
    }
    check(&Terms::read(quota), measure, new, &Amounts::new(), &used)
}

#[test]
fn a_namespace_uses_no_more_than_it_may() {
    let one = pod(json!({"cpu": "1"}));
    let pods = measure("", "pods");
    for (hard, others, expect) in [
        (json!({"pods": "2"}), 1, None),
        (
            json!({"pods": "2"}),
            2,
            Some("exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2"),
        ),
        (
            json!({"requests.cpu": "1500m", "pods": "9"}),
            1,
            Some(
                "exceeded quota: q, requested: requests.cpu=1, used: requests.cpu=1, limited: requests.cpu=1500m",
            ),
        ),
        (
            json!({"count/pods": "0"}),
            0,
            Some(
                "exceeded quota: q, requested: count/pods=1, used: count/pods=0, limited: count/pods=0",
            ),
        ),
        (json!({"configmaps": "0"}), 3, None),
        (
            json!({"limits.memory": "1Gi"}),
            0,
            Some("failed quota: q: must specify limits.memory for: c"),
        ),
    ] {
        let others = vec![one.clone(); others];
        let found = check_create(pods, &quota(hard.clone()), &one, &others).err();
        let found = found.map(|why| why.to_string());
        assert_eq!(found.as_deref(), expect, "{hard}");
    }
}

#[test]
fn pods_that_are_over_count_as_objects_alone() {
    let mut over = pod(json!({"cpu": "1"}));
    over["status"] = json!({"phase": "Succeeded"});
    let pods = measure("", "pods");
    let new = pod(json!({"cpu": "1"}));
    let check = |hard| check_create(pods, &quota(hard), &new, std::slice::from_ref(&over));
    assert_eq!(check(json!({"pods": "1", "cpu": "1"})), Ok(()));
    assert!(check(json!({"count/pods": "1"})).is_err());
}

#[test]
fn scopes_narrow_a_quota() {
    let mut scoped = quota(json!({"pods": "0"}));
    scoped["spec"]["scopes"] = json!(["BestEffort"]);
    let pods = measure("", "pods");
    assert_eq!(
        check_create(pods, &scoped, &pod(json!({"cpu": "1"})), &[]),
        Ok(())
    );
    assert!(check_create(pods, &scoped, &pod(json!({})), &[]).is_err());
    scoped["spec"] = json!({"hard": {"pods": "0"}, "scopeSelector": {"matchExpressions": [
        {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]},
    ]}});
    assert_eq!(check_create(pods, &scoped, &pod(json!({})), &[]), Ok(()));
    let mut high = pod(json!({}));
    high["spec"]["priorityClassName"] = json!("high");
    assert!(check_create(pods, &scoped, &high, &[]).is_err());
}

#[test]
fn other_objects_are_counted_by_name_and_group() {
    let object = json!({"metadata": {"name": "x"}});
    for (group, plural, name) in [
        ("", "configmaps", "configmaps"),
        ("", "configmaps", "count/configmaps"),
        ("apps", "deployments", "count/deployments.apps"),
        ("example.com", "widgets", "count/widgets.example.com"),
    ] {
        let full = quota(json!({name: "1"}));
        let found = check_create(
            measure(group, plural),
            &full,
            &object,
            std::slice::from_ref(&object),
        );
        assert_eq!(
            found,
            Err(format!(
                "exceeded quota: q, requested: {name}=1, used: {name}=1, limited: {name}=1"
            )
            .into())
        );
    }
}

#[test]
fn a_service_that_changes_its_type_takes_more() {
    let service = |kind: &str| json!({"metadata": {"name": "s"}, "spec": {"type": kind, "ports": [{"port": 80}]}});
    let limited = quota(json!({"services": "1", "services.nodeports": "0"}));
    let update = |new: &Value| {
        let services = measure("", "services");
        let before = services.usage(&service("ClusterIP"));
        check(&Terms::read(&limited), services, new, &before, &before)
    };
    assert_eq!(update(&service("ClusterIP")), Ok(()));
    assert_eq!(
        update(&service("NodePort")),
        Err("exceeded quota: q, requested: services.nodeports=1, used: services.nodeports=0, limited: services.nodeports=0".into())
    );
}

#[test]
fn claims_are_counted_by_class() {
    let claim = json!({"metadata": {"name": "c"}, "spec": {
        "storageClassName": "gold", "resources": {"requests": {"storage": "2Gi"}},
    }});
    let claims = measure("", "persistentvolumeclaims");
    let hard = json!({"gold.storageclass.storage.k8s.io/requests.storage": "1Gi", "requests.storage": "9Gi"});
    assert_eq!(
        check_create(claims, &quota(hard), &claim, &[]),
        Err("exceeded quota: q, requested: gold.storageclass.storage.k8s.io/requests.storage=2Gi, used: gold.storageclass.storage.k8s.io/requests.storage=0, limited: gold.storageclass.storage.k8s.io/requests.storage=1Gi".into())
    );
}
