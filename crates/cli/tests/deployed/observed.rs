//! What a deployed operator was seen to do: the permissions that it used, and the metrics that it exposes.

use std::collections::BTreeSet;
use std::path::Path;

use http::{Method, Uri};
use kubewright_manifests::layout::{self, Settings};
use kubewright_manifests::project::Project;
use kubewright_manifests::{Inventory, dashboard};
use kubewright_testing::rbac::Grant;
use kubewright_testing::{Access, RoleUse};
use serde_json::{Value, json};

/// The objects of the deployment that `project` and `inventory` make.
pub(crate) fn objects(project: &Path, inventory: &Inventory) -> Vec<Value> {
    let text = std::fs::read_to_string(project.join("PROJECT")).expect("a project");
    let project = Project::parse(&text).expect("it is a project");
    layout::deployed(&project, inventory, &Settings::default()).expect("objects")
}

/// What a user did, as the audit log has it. Nothing may have been refused.
pub(crate) fn used(log: &Path, user: &str) -> Vec<Access> {
    let text = std::fs::read_to_string(log).expect("an audit log");
    let mut used = BTreeSet::new();
    for line in text.lines() {
        let event: Value = serde_json::from_str(line).expect("an event");
        if event["user"]["username"] != *user {
            continue;
        }
        let uri = event["requestURI"].as_str().expect("a path");
        assert_ne!(
            event["responseStatus"]["code"], 403,
            "{} {uri}",
            event["verb"]
        );
        let method = match event["verb"].as_str() {
            Some("create") => Method::POST,
            Some("update") => Method::PUT,
            Some("patch") => Method::PATCH,
            Some("delete" | "deletecollection") => Method::DELETE,
            _ => Method::GET,
        };
        let uri: Uri = uri.parse().expect("a path");
        used.extend(Access::of(&method, &uri));
    }
    used.into_iter().collect()
}

/// Compares roles with what was used: they are enough, and without any one of their rules they are not.
pub(crate) fn every_rule_is_needed(objects: &[Value], used: &[Access]) {
    let missing = |objects: &[Value]| {
        let grant = Grant::of(objects).expect("a service account with roles");
        RoleUse::compare(&grant.permissions(), used).missing
    };
    assert_eq!(missing(objects), [], "everything that was used is granted");
    let mut count = 0;
    for (place, object) in objects.iter().enumerate() {
        if !is_bound(object, objects) {
            continue;
        }
        let rules = object["rules"].as_array().cloned().unwrap_or_default();
        for rule in 0..rules.len() {
            let mut fewer = objects.to_vec();
            let mut left = rules.clone();
            left.remove(rule);
            fewer[place]["rules"] = json!(left);
            let name = &object["metadata"]["name"];
            assert_ne!(
                missing(&fewer),
                [],
                "nothing needs {} of {name}",
                rules[rule]
            );
            count += 1;
        }
    }
    assert!(count > 5, "{count} rules are not all of them");
    println!("{count} rules, {} uses, each rule is needed", used.len());
}

/// Whether a role is one of the manager's.
fn is_bound(role: &Value, objects: &[Value]) -> bool {
    let names = |object: &Value| {
        object["roleRef"]["kind"] == role["kind"]
            && object["roleRef"]["name"] == role["metadata"]["name"]
    };
    !role["rules"].is_null() && objects.iter().any(names)
}

/// Checks that every metric that the dashboard's queries name is exposed.
pub(crate) fn dashboard_is_about(metrics: &str, inventory: &Inventory) {
    let exposed: BTreeSet<&str> = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .collect();
    let wanted = dashboard::metrics(inventory);
    let missing: Vec<&String> = wanted
        .iter()
        .filter(|name| !exposed.contains(name.as_str()))
        .collect();
    assert!(missing.is_empty(), "no {missing:?} in {exposed:?}");
    println!(
        "{} metrics of the dashboard are among {}",
        wanted.len(),
        exposed.len()
    );
}
