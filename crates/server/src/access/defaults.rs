//! The roles and bindings that every cluster has, made when they are missing and completed when they lack something.
//!
//! What users add to them stays; what they take away comes back with the next start, unless the object's annotation
//! says otherwise.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::rule::{self, Missing, Rule};
use crate::api::write::Part;
use crate::core::Core;
use crate::fields::Writer;
use crate::object;
use crate::resource::Served;
use crate::status::ApiError;

const GROUP: &str = "rbac.authorization.k8s.io";
const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";
const READ: [&str; 3] = ["get", "list", "watch"];
const WRITE: [&str; 5] = ["create", "delete", "deletecollection", "patch", "update"];

static POLICY: &str = include_str!("defaults.policy");

impl Core {
    /// Makes sure that the roles and bindings of every cluster are there.
    pub(crate) async fn ensure_policy(&self) -> Result<(), ApiError> {
        let defaults = Defaults::read(POLICY);
        let resources = self.registry.now();
        let roles = resources.builtin(GROUP, "v1", "clusterroles");
        for role in defaults.roles {
            self.ensure_object(&roles, role, complete_role).await?;
        }
        let bindings = resources.builtin(GROUP, "v1", "clusterrolebindings");
        for binding in defaults.bindings {
            self.ensure_object(&bindings, binding, complete_binding)
                .await?;
        }
        Ok(())
    }

    /// Makes an object that is missing and completes one that is there, unless users asked that it be left alone.
    pub(crate) async fn ensure_object(
        &self,
        served: &Arc<Served>,
        wanted: Value,
        complete: fn(&mut Value, &Value),
    ) -> Result<(), ApiError> {
        let key = object::name(&wanted).to_owned();
        let mut warnings = Vec::new();
        let Some(record) = served.collection.get(&key) else {
            self.create(served, None, wanted, &Writer::server(""), &mut warnings)
                .await?;
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
            self.update(
                served,
                &key,
                Part::Whole,
                &Writer::server(""),
                &mut warnings,
                change,
            )
            .await?;
        }
        Ok(())
    }
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

/// The objects that a description comes to.
#[derive(Default)]
struct Defaults {
    roles: Vec<Value>,
    bindings: Vec<Value>,
}

impl Defaults {
    /// Reads our own description; the file says how it is written.
    fn read(text: &str) -> Self {
        let mut defaults = Self::default();
        for line in text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
        {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["role", name, options @ ..] => defaults.roles.push(role(name, options)),
                ["bind", name, subjects @ ..] => defaults.bindings.push(binding(name, subjects)),
                [verbs, groups, what @ ..] => {
                    let role = defaults
                        .roles
                        .last_mut()
                        .expect("a rule stands below its role");
                    let rules = role["rules"]
                        .as_array_mut()
                        .expect("a role has a list of rules");
                    rules.push(rule_of(verbs, groups, what));
                }
                _ => panic!("a line of the default policy has a meaning: {line}"),
            }
        }
        defaults
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
            ["label", key] => role["metadata"]["labels"][label(key)] = json!("true"),
            ["from", key] => {
                let labels = Map::from_iter([(label(key), json!("true"))]);
                role["aggregationRule"] =
                    json!({ "clusterRoleSelectors": [{ "matchLabels": labels }] });
            }
            _ => panic!("an option of a default role is a label or where it is made from"),
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
    json!({ "verbs": all, "apiGroups": groups, "resources": what })
}

fn binding(name: &str, subjects: &[&str]) -> Value {
    let subject = |subject: &&str| {
        let (kind, name) = subject
            .split_once(':')
            .expect("a subject has a kind and a name");
        json!({ "apiGroup": GROUP, "kind": kind, "name": name })
    };
    let subjects: Vec<Value> = subjects.iter().map(subject).collect();
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": metadata(name),
        "roleRef": { "apiGroup": GROUP, "kind": "ClusterRole", "name": name },
        "subjects": subjects,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn description_is_read() {
        let defaults = Defaults::read(POLICY);
        let find = |name: &str| {
            defaults
                .roles
                .iter()
                .find(|role| object::name(role) == name)
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
        for binding in &defaults.bindings {
            assert!(find(object::name(binding)).is_some(), "{binding}");
        }
    }

    #[test]
    fn what_is_missing_is_added_and_what_is_more_stays() {
        let wanted = Defaults::read("role a\n  get,list core pods\n  get urls /x");
        let mut own = json!({
            "metadata": { "name": "a" },
            "rules": [{ "verbs": ["get", "delete"], "apiGroups": [""], "resources": ["pods"] }],
        });
        complete_role(&mut own, &wanted.roles[0]);
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
