//! The same types, roles and webhooks as in controller-gen's own tests, and what comes out, fact by fact.
//!
//! The facts in `controller_gen/*.facts` were read from what controller-gen v0.21 writes for its test data: a line for each
//! place of a schema, for each rule of a role, for each webhook; texts that describe are left out. Differences that are
//! accepted are listed here with what we write and a reason, and in `docs/parity-controller-gen.md`.
#![allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    reason = "types are here for their schemas alone"
)]

#[path = "controller_gen/cronjob.rs"]
mod cronjob;
#[path = "controller_gen/facts.rs"]
mod facts;
#[path = "controller_gen/others.rs"]
mod others;
#[path = "controller_gen/roles.rs"]
mod roles;
#[path = "controller_gen/webhooks.rs"]
mod webhooks;

use std::sync::LazyLock;

use facts::{Accepted, Facts};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, PostParams};
use kubewright::manifests::{Inventory, role, webhook};
use kubewright::registered;
use kubewright_server::Server;
use serde_json::Value;

/// Made once: the kitchen sink has a whole pod in it.
static INVENTORY: LazyLock<Inventory> = LazyLock::new(registered::inventory);

const SPEC: &str = "a kind of kube cannot be without its spec";
const LENGTH: &str = "a Rust array has its length; in Go it was lost";
const NARROW: &str = "the narrower limit alone says the same";
const KNOWN: &str =
    "the field that is known is validated; Go's type hides it behind its own marshaller";
const NEWER: &str = "a field of Kubernetes 1.37 that controller-gen's version does not have";
const INLINE: &str = "Go inlines LocalObjectReference, whose marker then marks the struct around; Kubernetes' own schema does not";
const STATUS: &str = "kube needs a type where there is a status";

const WITH_SPEC: &str = r#"{"required":["spec"],"type":"object"}"#;
const THREE: &str = r#"{"maxItems":3,"minItems":3,"type":"array"}"#;
const TEN: &str = r#"{"maxLength":10,"minLength":10,"type":"string"}"#;
const CONCRETE: &str =
    r#"{"required":["concreteField"],"type":"object","x-kubernetes-preserve-unknown-fields":true}"#;
const SET: &str = r#"{"x-kubernetes-list-type":"set"}"#;
const BY_NAME: &str = r#"{"x-kubernetes-list-map-keys":["name"],"x-kubernetes-list-type":"map"}"#;

const KITCHEN_SINK: &[Accepted] = &[
    ("v1 .", WITH_SPEC, SPEC),
    ("v1beta1 .", WITH_SPEC, SPEC),
    ("v1beta1 status", r#"{"type":"object"}"#, STATUS),
    ("v1beta2 status", r#"{"type":"object"}"#, STATUS),
    ("v1 spec.array", THREE, LENGTH),
    ("v1 spec.arrayUsingCompositeLiteral", THREE, LENGTH),
    ("v1 spec.fieldLevelAliasOverride", TEN, NARROW),
    ("v1 spec.fieldLevelLocalDeclarationOverride", TEN, NARROW),
    ("v1 spec.unprunedFomType", CONCRETE, KNOWN),
    (
        "v1 spec.unprunedFomType.concreteField",
        r#"{"type":"string"}"#,
        KNOWN,
    ),
    ("v1 spec.unprunedFomTypeAndField", CONCRETE, KNOWN),
    (
        "v1 spec.unprunedFomTypeAndField.concreteField",
        r#"{"type":"string"}"#,
        KNOWN,
    ),
    (
        "v1 spec.jobTemplate.spec.scheduling.resourceClaims",
        BY_NAME,
        NEWER,
    ),
    (
        "v1 spec.jobTemplate.spec.template.spec.evictionResponders",
        BY_NAME,
        NEWER,
    ),
    (
        "v1 spec.jobTemplate.spec.template.spec.evictionResponders[]",
        r#"{"x-kubernetes-map-type":"atomic"}"#,
        NEWER,
    ),
    (
        "v1 spec.jobTemplate.spec.template.spec.containers[].volumeMounts[].bindMountOptions",
        SET,
        NEWER,
    ),
    (
        "v1 spec.jobTemplate.spec.template.spec.ephemeralContainers[].volumeMounts[].bindMountOptions",
        SET,
        NEWER,
    ),
    (
        "v1 spec.jobTemplate.spec.template.spec.initContainers[].volumeMounts[].bindMountOptions",
        SET,
        NEWER,
    ),
    (
        "v1 spec.jobTemplate.spec.template.spec.containers[].envFrom[].configMapRef",
        "",
        INLINE,
    ),
    (
        "v1 spec.jobTemplate.spec.template.spec.containers[].envFrom[].secretRef",
        "",
        INLINE,
    ),
    (
        "v1 spec.jobTemplate.spec.template.spec.ephemeralContainers[].envFrom[].configMapRef",
        "",
        INLINE,
    ),
    (
        "v1 spec.jobTemplate.spec.template.spec.ephemeralContainers[].envFrom[].secretRef",
        "",
        INLINE,
    ),
    (
        "v1 spec.jobTemplate.spec.template.spec.initContainers[].envFrom[].configMapRef",
        "",
        INLINE,
    ),
    (
        "v1 spec.jobTemplate.spec.template.spec.initContainers[].envFrom[].secretRef",
        "",
        INLINE,
    ),
    (
        "v1 spec.jobTemplate.spec.template.spec.volumes[].configMap",
        "",
        INLINE,
    ),
    (
        "v1 spec.jobTemplate.spec.template.spec.volumes[].projected.sources[].configMap",
        "",
        INLINE,
    ),
    (
        "v1 spec.jobTemplate.spec.template.spec.volumes[].projected.sources[].secret",
        "",
        INLINE,
    ),
];

#[track_caller]
fn check(name: &str, theirs: &str, accepted: &[Accepted]) {
    let definitions = &INVENTORY.definitions;
    let name = format!("{name}.testdata.kubebuilder.io");
    let found = definitions
        .iter()
        .find(|definition| definition.metadata.name.as_ref() == Some(&name));
    facts::compare(
        &facts::read(theirs),
        &facts::of(found.expect("a registered kind")),
        accepted,
    );
}

#[test]
fn the_kitchen_sink_is_the_same_but_for_what_is_listed() {
    check(
        "cronjobs",
        include_str!("controller_gen/cronjobs.facts"),
        KITCHEN_SINK,
    );
}

#[test]
fn small_kinds_are_the_same() {
    let with_spec: &[Accepted] = &[("v1 .", WITH_SPEC, SPEC)];
    check("jobs", include_str!("controller_gen/jobs.facts"), &[]);
    check(
        "enums",
        include_str!("controller_gen/enums.facts"),
        with_spec,
    );
    check(
        "externaldocs",
        include_str!("controller_gen/externaldocs.facts"),
        with_spec,
    );
}

#[test]
fn immutable_fields_are_the_same() {
    check(
        "immutabletypes",
        include_str!("controller_gen/immutabletypes.facts"),
        &[],
    );
}

#[test]
fn groups_of_fields_are_the_same() {
    check("oneofs", include_str!("controller_gen/oneofs.facts"), &[]);
}

#[test]
fn annotations_of_a_kind_are_on_its_definition() {
    let definitions = &INVENTORY.definitions;
    let annotations = definitions
        .iter()
        .filter_map(|definition| definition.metadata.annotations.clone());
    let names: Vec<String> = annotations
        .flat_map(|annotations| annotations.into_keys())
        .collect();
    assert_eq!(
        names,
        [
            "api-approved.kubernetes.io",
            "cert-manager.io/inject-ca-from-secret"
        ]
    );
}

#[tokio::test]
async fn a_server_takes_every_definition() {
    let server = Server::builder().start().await.expect("a server starts");
    let definitions =
        Api::<CustomResourceDefinition>::all(Client::new(server.service(), "default"));
    for definition in &INVENTORY.definitions {
        let created = definitions.create(&PostParams::default(), definition).await;
        let created =
            created.unwrap_or_else(|error| panic!("{:?}: {error}", definition.metadata.name));
        let conditions = created
            .status
            .and_then(|status| status.conditions)
            .unwrap_or_default();
        let problem = conditions
            .iter()
            .find(|condition| condition.type_ == "NonStructuralSchema");
        assert!(problem.is_none(), "{problem:?}");
    }
}

#[test]
fn roles_are_the_same() {
    let documents = role::roles(&INVENTORY.rules, "manager-role");
    let mut ours = Facts::new();
    for document in serde_json::to_value(documents)
        .expect("JSON")
        .as_array()
        .into_iter()
        .flatten()
    {
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let metadata = &document["metadata"];
        for (at, rule) in document["rules"]
            .as_array()
            .into_iter()
            .flatten()
            .enumerate()
        {
            let (namespace, name) = (text(&metadata["namespace"]), text(&metadata["name"]));
            let place = format!("{} {namespace}/{name} {at:02}", text(&document["kind"]));
            ours.insert(place, rule.clone());
        }
    }
    facts::compare(
        &facts::read(include_str!("controller_gen/roles.facts")),
        &ours,
        &[],
    );
}

#[test]
fn webhooks_are_the_same() {
    let theirs = facts::read(include_str!("controller_gen/webhooks.facts"));
    let made = webhook::configurations(&INVENTORY.webhooks, &webhook::service());
    let mutating = serde_json::to_value(made.mutating).expect("JSON");
    let validating = serde_json::to_value(made.validating).expect("JSON");
    for (kind, ours) in [("mutating", mutating), ("validating", validating)] {
        let name = format!("{kind}-webhook-configuration");
        assert_eq!(ours["metadata"]["name"], name);
        let ours = ours["webhooks"].as_array().cloned().unwrap_or_default();
        let names: Vec<_> = ours
            .iter()
            .map(|webhook| webhook["name"].as_str())
            .collect();
        assert!(names.is_sorted(), "{names:?}");
        let theirs = theirs
            .iter()
            .filter(|(place, _)| place.contains(&name))
            .map(|(_, webhook)| webhook);
        let sorted = |mut webhooks: Vec<String>| {
            webhooks.sort();
            webhooks
        };
        let theirs = sorted(theirs.map(ToString::to_string).collect());
        assert_eq!(
            sorted(ours.iter().map(ToString::to_string).collect()),
            theirs
        );
    }
}
