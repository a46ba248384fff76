//! What the server says besides its answer, and what it does about fields that it does not know.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::Patch;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kubewright_runtime::client::{FieldValidation, ServerWarning};
use kubewright_runtime::{Client, ClientError, Key, Manager, Query};
use kubewright_testing::limit;
use parking_lot::Mutex;
use serde_json::json;

use super::server;

/// Warnings in the order in which they came.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    fn listener(&self) -> impl Fn(&ServerWarning<'_>) + Send + Sync + 'static {
        let heard = self.0.clone();
        move |warning| {
            let (verb, resource, name) = (warning.verb, warning.resource, warning.name);
            let line = format!("{verb} {resource} {name}: {}", warning.text);
            heard.lock().push(line);
        }
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }
}

fn configs() -> ApiResource {
    ApiResource::erase::<ConfigMap>(&())
}

/// A ConfigMap with a field that there is not.
fn misspelled(name: &str) -> DynamicObject {
    let object = DynamicObject::new(name, &configs()).within("default");
    object.data(json!({"dta": {"color": "blue"}}))
}

const UNKNOWN: &str = "unknown field \"dta\"";

#[limited::test]
async fn warnings_of_the_server_reach_the_handler_with_their_request() {
    let (_server, kube) = server().await;
    let heard = Heard::default();
    let client = Client::builder(kube).warning_handler(heard.listener());
    let client = client.build();
    let made = limit(client.dynamic(&configs()).create(&misspelled("a"))).await;
    assert!(
        made.expect("created all the same")
            .data
            .get("dta")
            .is_none()
    );
    assert_eq!(
        heard.take(),
        [format!("create configmaps default/a: {UNKNOWN}")]
    );
    let again = limit(client.dynamic(&configs()).create(&misspelled("a"))).await;
    assert!(again.expect_err("it is there").is_already_exists());
    assert_eq!(heard.take().len(), 1, "a refusal can come with warnings");
    let listed = limit(client.live().list::<ConfigMap>(Query::all())).await;
    listed.expect("they are read");
    assert!(heard.take().is_empty());
}

/// A kind of which an older version is served.
fn deprecated() -> (CustomResourceDefinition, ApiResource) {
    let version = |name: &str, deprecated: bool| {
        json!({
            "name": name, "served": true, "storage": !deprecated, "deprecated": deprecated,
            "schema": {"openAPIV3Schema": {"type": "object"}},
        })
    };
    let definition = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version("v1", false), version("v1beta1", true)],
        },
    });
    let kind = GroupVersionKind::gvk("example.com", "v1beta1", "Widget");
    let definition = serde_json::from_value(definition).expect("a definition");
    (definition, ApiResource::from_gvk(&kind))
}

#[limited::test]
async fn informer_of_a_deprecated_version_passes_the_warning_on() {
    let (_server, kube) = server().await;
    let heard = Heard::default();
    let manager = Manager::new(kube).warning_handler(heard.listener());
    let client = manager.client();
    let (definition, resource) = deprecated();
    limit(client.create(&definition)).await.expect("created");
    let listed = limit(client.dynamic(&resource).list(Query::all())).await;
    assert!(listed.expect("they are read").is_empty());
    let warned = "widgets.example.com : example.com/v1beta1 Widget is deprecated";
    let heard = heard.take();
    assert!(heard.iter().any(|line| line.ends_with(warned)), "{heard:?}");
}

/// What becomes of each way to write, with an unknown field in it.
async fn writes(client: &Client) -> [(&'static str, Result<DynamicObject, ClientError>); 3] {
    let (configs, key) = (client.dynamic(&configs()), Key::new("default", "a"));
    let patch = Patch::Merge(json!({"dta": {"color": "blue"}}));
    [
        ("create", limit(configs.create(&misspelled("b"))).await),
        ("update", limit(configs.update(&misspelled("a"))).await),
        ("patch", limit(configs.patch_with(&key, &patch)).await),
    ]
}

async fn check_field_validation(
    how: FieldValidation,
    check: impl Fn(Result<(), ClientError>),
    warnings: usize,
) {
    let (_server, kube) = server().await;
    let heard = Heard::default();
    let client = Client::builder(kube).warning_handler(heard.listener());
    let client = client.build();
    let made = limit(client.create(&super::config("a"))).await;
    made.expect("created");
    for (verb, written) in writes(&client.field_validation(how)).await {
        println!("{how:?} {verb}");
        check(written.map(drop));
    }
    let heard = heard.take();
    assert_eq!(heard.len(), warnings, "{how:?}: {heard:?}");
    assert!(
        heard.iter().all(|line| line.ends_with(UNKNOWN)),
        "{heard:?}"
    );
}

#[limited::test]
async fn field_validation_decides_what_becomes_of_unknown_fields() {
    let written = |result: Result<(), ClientError>| result.expect("written without the field");
    let refused = |result: Result<(), ClientError>| {
        let error = result.expect_err("refused");
        assert!(matches!(error.code(), Some(400 | 422)), "{error}");
        assert!(error.to_string().contains(UNKNOWN), "{error}");
    };
    check_field_validation(FieldValidation::Warn, written, 3).await;
    check_field_validation(FieldValidation::Ignore, written, 0).await;
    check_field_validation(FieldValidation::Strict, refused, 0).await;
}
