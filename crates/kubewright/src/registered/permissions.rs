//! What controllers need to be allowed, from what they say of themselves: no more than that.
//!
//! - What is reconciled is read. If the kind is the operator's own it is also changed, for finalizers and annotations live in
//!   the object, and so does its status where it has one; it is neither made nor removed.
//! - What is owned is read, made, changed and removed; owners need to be named as such (`finalizers`).
//! - What is watched is read.
//! - Events are written.
//! - Objects of another cluster need no right here: whoever connects to that cluster has credentials there.
//!
//! Anything else is declared with `#[kubewright::rbac(..)]`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::ApiResource;
use kubewright_manifests::Rule;
use kubewright_runtime::watch::{Relation, Subject};

use super::RegisteredController;

const READ: &[&str] = &["get", "list", "watch"];
const CHANGE: &[&str] = &["patch", "update"];
const STATUS: &[&str] = &["get", "patch", "update"];
const OWN: &[&str] = &[
    "create", "delete", "get", "list", "patch", "update", "watch",
];

/// The permissions of all controllers together; not merged.
pub(super) fn inferred(
    controllers: &[RegisteredController],
    definitions: &[CustomResourceDefinition],
) -> Vec<Rule> {
    let mut rules = Vec::new();
    for controller in controllers {
        let subjects = controller.kinds();
        let owns = subjects
            .iter()
            .any(|subject| subject.relation == Relation::Owned && subject.cluster().is_none());
        for subject in subjects.iter().filter(|it| it.cluster().is_none()) {
            rules.extend(of_subject(subject, owns, definitions));
        }
    }
    if controllers.iter().any(|it| it.cluster().is_none()) {
        rules.push(rule("", "events", &["create", "patch"]));
    }
    rules
}

fn of_subject(
    subject: &Subject,
    owns: bool,
    definitions: &[CustomResourceDefinition],
) -> Vec<Rule> {
    let resource = &subject.resource;
    let on = |part: &str, verbs| {
        rule(
            &resource.group,
            &format!("{}{part}", resource.plural),
            verbs,
        )
    };
    match subject.relation {
        Relation::Owned => vec![on("", OWN)],
        Relation::Reconciled => {
            let mut rules = vec![on("", READ)];
            if let Some(definition) = definition_of(resource, definitions) {
                rules.push(on("", CHANGE));
                if has_status(definition, &resource.version) {
                    rules.push(on("/status", STATUS));
                }
            }
            if owns {
                rules.push(on("/finalizers", &["update"]));
            }
            rules
        }
        _ => vec![on("", READ)],
    }
}

fn definition_of<'a>(
    resource: &ApiResource,
    definitions: &'a [CustomResourceDefinition],
) -> Option<&'a CustomResourceDefinition> {
    let name = format!("{}.{}", resource.plural, resource.group);
    definitions
        .iter()
        .find(|definition| definition.metadata.name.as_ref() == Some(&name))
}

fn has_status(definition: &CustomResourceDefinition, version: &str) -> bool {
    let versions = definition.spec.versions.iter();
    let mut versions = versions.filter(|found| found.name == version);
    versions.any(|found| {
        found
            .subresources
            .as_ref()
            .is_some_and(|sub| sub.status.is_some())
    })
}

fn rule(group: &str, resource: &str, verbs: &[&str]) -> Rule {
    Rule {
        groups: vec![group.to_owned()],
        resources: vec![resource.to_owned()],
        verbs: verbs.iter().map(ToString::to_string).collect(),
        ..Rule::default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
    use kubewright_runtime::{Controller, Outcome, Watch, from_fn};

    use super::*;

    /// The resources and the verbs of each rule.
    fn rules(controller: Controller) -> Vec<String> {
        let rules = inferred(&[controller.into()], &[]).into_iter();
        let line = |rule: Rule| format!("{} {}", rule.resources.join(","), rule.verbs.join(","));
        rules.map(line).collect()
    }

    #[test]
    fn objects_of_another_cluster_need_no_rights_here() {
        let reconciler = || from_fn(|_: Arc<ConfigMap>, _| async { Ok(Outcome::done()) });
        let here = Controller::of::<ConfigMap>("here")
            .watches(Watch::of::<Secret>().cluster("edge"))
            .reconciler(reconciler());
        let edge = || {
            Controller::of::<ConfigMap>("edge")
                .owns::<Secret>()
                .cluster("edge")
        };
        let read = "get,list,watch";
        let expected = [format!("configmaps {read}"), "events create,patch".into()];
        assert_eq!(rules(here), expected);
        assert_eq!(rules(edge().reconciler(reconciler())), [] as [&str; 0]);
        let both = edge().watches(Watch::of::<Service>().home());
        let expected = [format!("services {read}")];
        assert_eq!(rules(both.reconciler(reconciler())), expected);
    }
}
