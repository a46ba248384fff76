//! The status of ValidatingAdmissionPolicies: their expressions are checked against the kinds that they are about.

mod world;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kubewright_cluster::{Clock, Cluster};
use kubewright_server::Authorization;
use serde_json::{Value, json};

use world::{change, create, until};

async fn cluster() -> Cluster {
    let clock = Clock::starting_at("2030-01-01T00:00:00Z".parse().expect("a moment"));
    let builder = Cluster::builder().clock(clock).seed(7);
    let builder = builder.authorization(Authorization::Rbac);
    builder.start().await.expect("a cluster starts")
}

fn policy(rules: Value, expression: &str) -> Value {
    json!({"metadata": {"name": "p"}, "spec": {"matchConstraints": {"resourceRules": rules},
        "validations": [{"expression": expression}]}})
}

fn rule(group: &str, versions: Value, resources: Value) -> Value {
    json!({"apiGroups": [group], "apiVersions": versions, "operations": ["*"], "resources": resources})
}

/// The warnings of the policy once its present generation has been checked.
async fn checked(policies: &Api<ValidatingAdmissionPolicy>) -> Value {
    let policy = until(policies, "p", |it| {
        it["status"]["observedGeneration"] == it["metadata"]["generation"]
    })
    .await;
    policy["status"]["typeChecking"].clone()
}

#[tokio::test(start_paused = true)]
async fn expression_that_does_not_fit_a_built_in_kind_is_reported_until_it_does() {
    let cluster = cluster().await;
    let policies = Api::<ValidatingAdmissionPolicy>::all(cluster.client());
    let rules = json!([
        rule(
            "apps",
            json!(["v1"]),
            json!(["statefulsets", "deployments"])
        ),
        rule("", json!(["*"]), json!(["pods"])),
    ]);
    create(&policies, policy(rules, "object.spec.replicass <= 5")).await;
    let one = |kind: &str| {
        let mark = "ERROR: <input>:1:12: undefined field 'replicass'\n | object.spec.replicass <= 5\n | ...........^\n";
        format!("apps/v1, Kind={kind}: {mark}")
    };
    let warning = format!("{}\n{}", one("Deployment"), one("StatefulSet"));
    let expected = json!({"expressionWarnings": [{"fieldRef": "spec.validations[0].expression", "warning": warning}]});
    assert_eq!(checked(&policies).await, expected);
    // What is common to all kinds, and what a schema leaves open.
    let right = "object.spec.replicas <= 5 && object.metadata.labels.exists(k, k == 'app') && \
                 object.spec.template.spec.containers.all(c, c.resources.limits['memory'] != '') && \
                 request.userInfo.username != 'a'";
    let spec = json!({"spec": {"validations": [{"expression": right}]}});
    change(&policies, "p", spec).await;
    assert_eq!(checked(&policies).await, json!({}));
}

#[tokio::test(start_paused = true)]
async fn custom_kinds_and_parameters_are_checked_by_their_schemas() {
    let cluster = cluster().await;
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let names = json!({"kind": "Widget", "plural": "widgets"});
    let definition = json!({"metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}});
    create(
        &Api::<CustomResourceDefinition>::all(cluster.client()),
        definition,
    )
    .await;
    let policies = Api::<ValidatingAdmissionPolicy>::all(cluster.client());
    let rules = json!([rule(
        "example.com",
        json!(["v1", "v9"]),
        json!(["widgets", "gears"])
    )]);
    let fits = "object.spec.size < params.spec.size && object.metadata.name != 'a'";
    let mut with_params = policy(rules, fits);
    with_params["spec"]["paramKind"] = json!({"apiVersion": "example.com/v1", "kind": "Widget"});
    create(&policies, with_params).await;
    assert_eq!(checked(&policies).await, json!({}));
    let misfits = "object.spec.size < params.spec.sizes";
    let spec = json!({"spec": {"validations": [{"expression": misfits}]}});
    change(&policies, "p", spec).await;
    let warnings = checked(&policies).await;
    let warning = warnings["expressionWarnings"][0]["warning"].as_str();
    let warning = warning.unwrap_or_default();
    assert!(
        warning.starts_with("example.com/v1, Kind=Widget: ERROR: "),
        "{warning}"
    );
    assert!(warning.contains("undefined field 'sizes'"), "{warning}");
}
