//! The roles and bindings that every cluster has, made when they are missing and completed when they lack something.
//!
//! What users add to them stays; what they take away comes back with the next start, unless the object's annotation
//! says otherwise.

use std::sync::Arc;

use futures::future::try_join_all;
use serde_json::{Map, Value, json};

use crate::access::rule::{self, Missing, Rule};
use crate::core::Core;
use crate::object;
use crate::request::Part;
use crate::resource::Served;
use crate::status::ApiError;
use crate::write::WriteRequest;

const GROUP: &str = "rbac.authorization.k8s.io";
const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";
const READ: [&str; 3] = ["get", "list", "watch"];
const WRITE: [&str; 5] = ["create", "delete", "deletecollection", "patch", "update"];

static POLICY: &str = include_str!("defaults.policy");

impl Core {
    /// Makes sure that the roles and bindings of every cluster are there.
    pub(crate) async fn ensure_policy(&self) -> Result<(), ApiError> {
        let (aggregated, others): (Vec<_>, Vec<_>) = Defaults::read(POLICY)
            .0
            .into_iter()
            .partition(is_aggregated);
        // Roles that are made of others come behind them, so that they are complete when they are made.
        for wanted in aggregated {
            self.ensure_policy_object(wanted).await?;
        }
        // The rest at once: with a data directory they wait for the disk together.
        let others = others
            .into_iter()
            .map(|wanted| self.ensure_policy_object(wanted));
        try_join_all(others).await?;
        Ok(())
    }

    async fn ensure_policy_object(&self, wanted: Value) -> Result<(), ApiError> {
        let kind = Kind::of(&wanted);
        let served = self.registry.now().builtin(GROUP, "v1", kind.plural);
        self.ensure_object(&served, wanted, kind.complete).await
    }

    /// Makes an object that is missing and completes one that is there, unless users asked that it be left alone.
    pub(crate) async fn ensure_object(
        &self,
        served: &Arc<Served>,
        wanted: Value,
        complete: fn(&mut Value, &Value),
    ) -> Result<(), ApiError> {
        let namespace = wanted["metadata"]["namespace"].as_str().map(str::to_owned);
        let key = served.key(namespace.as_deref(), object::name(&wanted));
        let request = WriteRequest::by_server(served, &key, Part::Whole);
        let Some(record) = served.collection.get(&key) else {
            Box::pin(self.create(&request, wanted)).await?;
            return Ok(());
        };
        let completed = |old: &Value| {
            let mut new = old.clone();
            if !is_protected(old) {
                complete_metadata(&mut new, &wanted);
                complete(&mut new, &wanted);
            }
            new
        };
        let old = served.revive(&record)?;
        if completed(&old) != old {
            let change = |old: &Value| Ok(completed(old));
            Box::pin(self.update(&request, change)).await?;
        }
        Ok(())
    }
}

/// What differs between the kinds of a policy.
struct Kind {
    plural: &'static str,
    /// Adds to an object what it lacks.
    complete: fn(&mut Value, &Value),
}

impl Kind {
    fn of(object: &Value) -> Self {
        let (plural, complete): (_, fn(&mut Value, &Value)) = match object["kind"].as_str() {
            Some("ClusterRole") => ("clusterroles", complete_role),
            Some("Role") => ("roles", complete_role),
            Some("ClusterRoleBinding") => ("clusterrolebindings", complete_binding),
            _ => ("rolebindings", complete_binding),
        };
        Self { plural, complete }
    }
}

/// Whether a role is made of others or others are made of it.
fn is_aggregated(object: &Value) -> bool {
    let labels = object["metadata"]["labels"].as_object();
    let offered = labels.is_some_and(|labels| labels.keys().any(|key| key.starts_with(GROUP)));
    offered || object["aggregationRule"].is_object()
}

/// Whether users asked that the object be left as it is.
fn is_protected(object: &Value) -> bool {
    object["metadata"]["annotations"][AUTO_UPDATE] == "false"
}

/// Labels and annotations that are missing; those that are there win.
fn complete_metadata(object: &mut Value, wanted: &Value) {
    for field in ["labels", "annotations"] {
        let missing = wanted["metadata"][field].as_object();
        let mut all = missing.cloned().unwrap_or_default();
        if let Some(own) = object["metadata"][field].as_object() {
            all.extend(own.clone());
        }
        object::set_meta(object, field, all);
    }
}

fn complete_role(role: &mut Value, wanted: &Value) {
    if wanted["aggregationRule"].is_object() {
        if role["aggregationRule"].is_null() {
            role["aggregationRule"] = wanted["aggregationRule"].clone();
        }
        return;
    }
    let mut rules = Rule::of_role(role);
    if let Some(Missing::Rules(missing)) = rule::missing(&rules, &Rule::of_role(wanted)) {
        rules.extend(missing);
        role["rules"] = serde_json::to_value(rules).expect("rules are plain data");
    }
}

fn complete_binding(binding: &mut Value, wanted: &Value) {
    if binding["roleRef"] != wanted["roleRef"] {
        // It cannot be changed, and deleting what a user made is not ours to do.
        tracing::warn!(
            binding = object::name(binding),
            "a default binding gives another role"
        );
        return;
    }
    let missing: Vec<Value> = wanted["subjects"]
        .as_array()
        .into_iter()
        .flatten()
        .cloned()
        .collect();
    match binding["subjects"].as_array_mut() {
        Some(subjects) => {
            for subject in missing {
                if !subjects.contains(&subject) {
                    subjects.push(subject);
                }
            }
        }
        None => binding["subjects"] = Value::Array(missing),
    }
}

/// The objects that follow from a description.
struct Defaults(Vec<Value>);

impl Defaults {
    /// Reads our own description; the file says how it is written.
    fn read(text: &str) -> Self {
        let mut objects: Vec<Value> = Vec::new();
        for line in text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
        {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["role", name, options @ ..] => objects.push(role(name, options)),
                ["bind", name, rest @ ..] => objects.push(binding(name, rest)),
                [verbs, groups, what @ ..] => {
                    let role = objects.iter_mut().rev().find(|o| o["rules"].is_array());
                    let role = role.expect("a rule stands below its role");
                    let rules = role["rules"].as_array_mut();
                    rules
                        .expect("a role has a list of rules")
                        .push(rule_of(verbs, groups, what));
                }
                _ => panic!("a line of the default policy has a meaning: {line}"),
            }
        }
        Self(objects)
    }
}

fn metadata(name: &str) -> Value {
    json!({
        "name": name,
        "annotations": { (AUTO_UPDATE): "true" },
        "labels": { "kubernetes.io/bootstrapping": "rbac-defaults" },
    })
}

fn role(name: &str, options: &[&str]) -> Value {
    let mut role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": metadata(name), "rules": [],
    });
    for option in options.chunks(2) {
        let label = |key: &str| format!("{GROUP}/aggregate-to-{key}");
        match option {
            ["in", namespace] => {
                role["kind"] = json!("Role");
                role["metadata"]["namespace"] = json!(namespace);
            }
            ["label", key] => role["metadata"]["labels"][label(key)] = json!("true"),
            ["from", key] => {
                let labels = Map::from_iter([(label(key), json!("true"))]);
                role["aggregationRule"] =
                    json!({ "clusterRoleSelectors": [{ "matchLabels": labels }] });
            }
            _ => panic!(
                "an option of a default role is a namespace, a label or where it is made from"
            ),
        }
    }
    role
}

fn rule_of(verbs: &str, groups: &str, what: &[&str]) -> Value {
    let mut all: Vec<&str> = match verbs {
        "read" => READ.into(),
        "write" => WRITE.into(),
        "both" => WRITE.iter().chain(&READ).copied().collect(),
        verbs => verbs.split(',').collect(),
    };
    all.sort_unstable();
    if groups == "urls" {
        return json!({ "verbs": all, "nonResourceURLs": what });
    }
    let groups: Vec<&str> = groups
        .split(',')
        .map(|g| if g == "core" { "" } else { g })
        .collect();
    let mut parts = what.split(|word| *word == "named");
    let resources = parts.next().unwrap_or_default();
    let mut rule = json!({ "verbs": all, "apiGroups": groups, "resources": resources });
    if let Some(names) = parts.next() {
        rule["resourceNames"] = json!(names);
    }
    rule
}

fn binding(name: &str, mut rest: &[&str]) -> Value {
    let (mut role, mut namespace) = (name, None);
    while let ["to" | "in", value, after @ ..] = rest {
        match rest[0] {
            "to" => role = value,
            _ => namespace = Some(*value),
        }
        rest = after;
    }
    let (kind, role_kind) = match namespace {
        Some(_) => ("RoleBinding", "Role"),
        None => ("ClusterRoleBinding", "ClusterRole"),
    };
    let subjects: Vec<Value> = rest.iter().map(|subject| subject_of(subject)).collect();
    let mut binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
        "metadata": metadata(name),
        "roleRef": { "apiGroup": GROUP, "kind": role_kind, "name": role },
        "subjects": subjects,
    });
    if let Some(namespace) = namespace {
        binding["metadata"]["namespace"] = json!(namespace);
    }
    binding
}

/// `User:name`, `Group:name` or `ServiceAccount:namespace/name`.
fn subject_of(subject: &str) -> Value {
    let (kind, name) = subject
        .split_once(':')
        .expect("a subject has a kind and a name");
    match name.split_once('/') {
        Some((namespace, name)) if kind == "ServiceAccount" => {
            json!({ "kind": kind, "namespace": namespace, "name": name })
        }
        _ => json!({ "apiGroup": GROUP, "kind": kind, "name": name }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn description_is_read() {
        let defaults = Defaults::read(POLICY);
        let find = |name: &str| {
            let mut roles = defaults.0.iter().filter(|o| o["rules"].is_array());
            roles.find(|role| object::name(role) == name)
        };
        let edit = find("edit").expect("there");
        assert_eq!(
            edit["metadata"]["labels"][format!("{GROUP}/aggregate-to-admin")],
            "true"
        );
        let selector = &edit["aggregationRule"]["clusterRoleSelectors"][0]["matchLabels"];
        assert_eq!(
            *selector,
            json!({ "rbac.authorization.k8s.io/aggregate-to-edit": "true" })
        );
        let admin = find("system:aggregate-to-admin").expect("there");
        let verbs = [
            "create",
            "delete",
            "deletecollection",
            "get",
            "list",
            "patch",
            "update",
            "watch",
        ];
        assert_eq!(admin["rules"][1]["verbs"], json!(verbs));
        for binding in defaults.0.iter().filter(|o| o["roleRef"].is_object()) {
            let role = binding["roleRef"]["name"].as_str().expect("a name");
            assert!(find(role).is_some(), "{binding}");
        }
        let reader = find("extension-apiserver-authentication-reader").expect("there");
        assert_eq!(reader["kind"], "Role");
        assert_eq!(
            reader["rules"][0],
            json!({
                "verbs": READ, "apiGroups": [""], "resources": ["configmaps"],
                "resourceNames": ["extension-apiserver-authentication"],
            })
        );
    }

    #[test]
    fn what_is_missing_is_added_and_what_is_more_stays() {
        let wanted = Defaults::read("role a\n  get,list core pods\n  get urls /x");
        let mut own = json!({
            "metadata": { "name": "a" },
            "rules": [{ "verbs": ["get", "delete"], "apiGroups": [""], "resources": ["pods"] }],
        });
        complete_role(&mut own, &wanted.0[0]);
        let rules: Vec<String> = Rule::of_role(&own).iter().map(Rule::to_string).collect();
        assert_eq!(
            rules,
            [
                r#"{APIGroups:[""], Resources:["pods"], Verbs:["get" "delete"]}"#,
                r#"{APIGroups:[""], Resources:["pods"], Verbs:["list"]}"#,
                r#"{NonResourceURLs:["/x"], Verbs:["get"]}"#,
            ]
        );
    }
}
