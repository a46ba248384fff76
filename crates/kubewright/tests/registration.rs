//! What attributes register is what the program tells of itself.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use kubewright::manifests::{Inventory, WebhookKind};
use kubewright::prelude::*;
use kubewright::runtime::States;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A book of guests.
#[kubewright::api]
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
#[kube(
    group = "webapp.my.domain",
    version = "v1",
    kind = "Guestbook",
    namespaced,
    status = "GuestbookStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct GuestbookSpec {
    /// How many guests fit in.
    #[schemars(range(min = 1, max = 10))]
    pub size: Option<i32>,
    /// The ports that it listens on.
    #[k8s(list = map(name), rule("self.size() > 1", message = "one is not enough"))]
    #[serde(default)]
    pub ports: Vec<Port>,
    /// Who it belongs to.
    #[k8s(immutable)]
    pub owner_name: Option<String>,
}

/// A port that it listens on.
#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
#[serde(rename_all = "camelCase")]
pub struct Port {
    /// The name of the port.
    pub name: String,
    /// The number of the port.
    #[k8s(min = 1, multiple_of = 2)]
    pub number: u16,
}

/// The observed state of a guestbook.
#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
#[serde(rename_all = "camelCase")]
pub struct GuestbookStatus {
    /// The conditions of the guestbook.
    #[serde(default)]
    pub conditions: Vec<Condition>,
    /// The generation that was observed last.
    pub observed_generation: Option<i64>,
}

struct GuestbookReconciler;

#[kubewright::rbac(groups = "", resources = "configmaps", verbs = "get;list;watch")]
#[kubewright::rbac(groups = "", resources = "secrets", verbs = ["get"], namespace = "vault")]
impl Reconciler<Guestbook> for GuestbookReconciler {
    async fn reconcile(&self, _: Arc<Guestbook>, _: &Context) -> Result<Outcome> {
        Ok(Outcome::done())
    }
}

#[kubewright::controller]
fn guestbook() -> Controller {
    Controller::of::<Guestbook>("guestbook")
        .owns::<Deployment>()
        .reconciler(GuestbookReconciler)
}

/// Validates guestbooks.
#[kubewright::webhook(
    validating,
    name = "vguestbook.my.domain",
    path = "/validate-webapp-my-domain-v1-guestbook",
    groups = "webapp.my.domain",
    versions = "v1",
    resources = "guestbooks",
    verbs = "create;update",
    failure_policy = "Fail",
    side_effects = "None",
    admission_review_versions = "v1",
    match_conditions = ["not-a-node: !('system:nodes' in request.userInfo.groups)", "named: object.metadata.name != ''; true"]
)]
pub struct GuestbookValidator;

#[test]
fn everything_registered_is_in_the_inventory() {
    let inventory = kubewright::registered::inventory();
    assert_eq!(inventory.controllers, ["guestbook"]);
    let names: Vec<_> = inventory
        .definitions
        .iter()
        .filter_map(|d| d.metadata.name.as_deref())
        .collect();
    assert_eq!(names, ["guestbooks.webapp.my.domain"]);
    assert!(
        inventory
            .rules
            .iter()
            .any(|rule| rule.resources == ["configmaps"])
    );
    let vault = inventory
        .rules
        .iter()
        .find(|rule| rule.resources == ["secrets"]);
    assert_eq!(
        vault.and_then(|rule| rule.namespace.as_deref()),
        Some("vault")
    );
    assert_eq!(inventory.webhooks[0].kind, WebhookKind::Validating);
    assert_eq!(inventory.webhooks[0].verbs, ["create", "update"]);
}

#[test]
fn conditions_of_a_webhook_are_in_its_configuration() {
    let webhooks = kubewright::registered::inventory().webhooks;
    let service = kubewright::manifests::webhook::service();
    let made = kubewright::manifests::webhook::configurations(&webhooks, &service);
    let validating = serde_json::to_value(made.validating).expect("JSON");
    let expected = serde_json::json!([
        {"name": "not-a-node", "expression": "!('system:nodes' in request.userInfo.groups)"},
        {"name": "named", "expression": "object.metadata.name != ''; true"},
    ]);
    assert_eq!(validating["webhooks"][0]["matchConditions"], expected);
}

#[test]
fn permissions_are_what_the_controller_needs_and_what_is_declared() {
    let rules = kubewright::registered::inventory().rules;
    let roles = kubewright::manifests::role::roles(&rules, "manager-role");
    let roles = serde_json::to_value(roles).expect("JSON");
    let lines = |role: &serde_json::Value| -> Vec<String> {
        let rules = role["rules"].as_array().cloned().unwrap_or_default();
        let join = |list: &serde_json::Value| {
            let list = list.as_array().cloned().unwrap_or_default();
            let texts: Vec<_> = list.iter().filter_map(|text| text.as_str()).collect();
            texts.join(",")
        };
        let line = |rule: &serde_json::Value| {
            format!(
                "{} {}: {}",
                join(&rule["apiGroups"]),
                join(&rule["resources"]),
                join(&rule["verbs"])
            )
        };
        rules.iter().map(line).collect()
    };
    assert_eq!(
        lines(&roles[0]),
        [
            " configmaps: get,list,watch",
            " events: create,patch",
            "apps deployments: create,delete,get,list,patch,update,watch",
            "webapp.my.domain guestbooks: get,list,patch,update,watch",
            "webapp.my.domain guestbooks/finalizers: update",
            "webapp.my.domain guestbooks/status: get,patch,update",
        ]
    );
    assert_eq!(roles[1]["metadata"]["namespace"], "vault");
    assert_eq!(lines(&roles[1]), [" secrets: get"]);
}

#[test]
fn attributes_become_a_schema() {
    let definitions = kubewright::registered::inventory().definitions;
    let definition = serde_json::to_value(&definitions[0]).expect("JSON");
    let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let spec = &schema["properties"]["spec"];
    assert_eq!(
        spec["properties"]["ports"]["x-kubernetes-list-map-keys"],
        serde_json::json!(["name"])
    );
    assert_eq!(
        spec["properties"]["ports"]["x-kubernetes-validations"][0]["message"],
        "one is not enough"
    );
    assert_eq!(
        spec["properties"]["ownerName"]["x-kubernetes-validations"][0]["rule"],
        "self == oldSelf"
    );
    assert_eq!(
        spec["x-kubernetes-validations"][0]["rule"],
        "!has(oldSelf.ownerName) || has(self.ownerName)"
    );
    let number = &spec["properties"]["ports"]["items"]["properties"]["number"];
    assert_eq!(
        (&number["minimum"], &number["maximum"]),
        (&1.0.into(), &65535.0.into())
    );
    assert_eq!(schema["description"], "A book of guests.");
}

#[test]
fn the_inventory_is_the_same_every_time_and_survives_json() {
    let first = kubewright::registered::inventory();
    assert_eq!(first, kubewright::registered::inventory());
    let text = serde_json::to_string(&first).expect("JSON");
    let read: Inventory = serde_json::from_str(&text).expect("an inventory");
    assert_eq!(read, first);
}

#[test]
fn controllers_are_made_anew_each_time() {
    let names = || -> Vec<String> {
        let made = kubewright::registered::controllers(&States::default());
        made.iter().map(|it| it.name().to_owned()).collect()
    };
    assert_eq!(names(), ["guestbook"]);
    assert_eq!(names(), ["guestbook"]);
}
