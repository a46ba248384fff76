//! Webhooks of a manager, asked by a real API server over TLS.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, CustomResource};
use kubewright_runtime::serving::{Listener, Tls};
use kubewright_runtime::webhook::{Converter, Spoke, Webhooks};
use kubewright_runtime::{Manager, Metrics};
use kubewright_server::Server;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

/// A server, a manager with webhooks, and how a configuration refers to them.
struct World {
    /// Kept, because a server that is dropped does no work of its own any more.
    _server: Server,
    client: Client,
    metrics: Metrics,
    address: String,
    bundle: String,
    _stop: DropGuard,
}

async fn world(webhooks: Webhooks) -> World {
    let server = Server::builder().start().await.expect("a server starts");
    let client = Client::new(server.service(), "default");
    let tls = Tls::self_signed(&["127.0.0.1"]).expect("a certificate");
    let bundle = tls.certificate_pem();
    let listener = Listener::bind("127.0.0.1:0").await.expect("a port");
    let listener = listener.expect("something is served").tls(tls);
    let address = listener.address().expect("an address").to_string();
    let manager = Manager::new(client.clone()).serve_webhooks(listener, webhooks);
    let (metrics, stop) = (manager.metrics().clone(), CancellationToken::new());
    let probes = manager.probes().clone();
    tokio::spawn(manager.run_until(stop.clone()));
    while probes.answer("/readyz", "").status() != 200 {
        tokio::task::yield_now().await;
    }
    World {
        _server: server,
        client,
        metrics,
        address,
        bundle,
        _stop: stop.drop_guard(),
    }
}

fn base64(bytes: &[u8]) -> Value {
    json!(ByteString(bytes.to_vec()))
}

impl World {
    fn client_config(&self, path: &str) -> Value {
        let bundle = base64(self.bundle.as_bytes());
        json!({"url": format!("https://{}{path}", self.address), "caBundle": bundle})
    }

    fn all<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::default_namespaced(self.client.clone())
    }

    /// Has the server ask a webhook about all that is done with ConfigMaps.
    async fn configure(&self, kind: &str, path: &str) {
        let object = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "test"},
            "webhooks": [{
                "name": "test.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "clientConfig": self.client_config(path),
                "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
            }],
        });
        self.create(object).await;
    }

    /// Creates an object that lives in no namespace.
    async fn create(&self, object: Value) {
        let object: DynamicObject = serde_json::from_value(object).expect("an object");
        let types = object.types.clone().expect("it says its kind");
        let kind = GroupVersionKind::try_from(&types).expect("a kind");
        let api: Api<DynamicObject> =
            Api::all_with(self.client.clone(), &ApiResource::from_gvk(&kind));
        api.create(&PostParams::default(), &object)
            .await
            .expect("it is created");
    }
}

fn map(name: &str, data: Value) -> ConfigMap {
    let object = json!({"metadata": {"name": name}, "data": data});
    serde_json::from_value(object).expect("a ConfigMap")
}

#[limited::test]
async fn objects_are_defaulted_and_validated_before_they_are_stored() {
    fn set_defaults(map: &mut ConfigMap) {
        map.data
            .get_or_insert_default()
            .entry("color".into())
            .or_insert("red".into());
    }
    fn validate(map: &ConfigMap, old: Option<&ConfigMap>) -> Result<(), String> {
        match old {
            Some(old) if old.data != map.data => Err("data does not change".to_owned()),
            _ => Ok(()),
        }
    }
    let webhooks = Webhooks::new()
        .defaulting("/mutate", set_defaults)
        .validating("/validate", validate);
    let world = world(webhooks).await;
    world
        .configure("MutatingWebhookConfiguration", "/mutate")
        .await;
    world
        .configure("ValidatingWebhookConfiguration", "/validate")
        .await;

    let maps = world.all::<ConfigMap>();
    let created = maps
        .create(&PostParams::default(), &map("a", json!({"size": "l"})))
        .await;
    let mut created = created.expect("it may be stored");
    let data = created.data.clone().unwrap_or_default();
    assert_eq!(data.get("color").map(String::as_str), Some("red"));

    created.data = Some([("color".to_owned(), "blue".to_owned())].into());
    let refused = maps.replace("a", &PostParams::default(), &created).await;
    let refused = refused.expect_err("its data does not change").to_string();
    assert!(
        refused.contains("denied the request: data does not change"),
        "{refused}"
    );
    maps.delete("a", &DeleteParams::default())
        .await
        .expect("deletions pass");

    let numbers = world.metrics.render();
    let counted = r#"controller_runtime_webhook_requests_total{webhook="/mutate",code="200"} 3"#;
    assert!(numbers.contains(counted), "{numbers}");
    assert!(
        numbers.contains(r#"controller_runtime_webhook_requests_in_flight{webhook="/validate"} 0"#)
    );
}

#[derive(CustomResource, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Job",
    namespaced,
    schema = "disabled"
)]
struct JobSpec {
    at: String,
}

mod v2 {
    use super::*;

    #[derive(CustomResource, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v2",
        kind = "Job",
        namespaced,
        schema = "disabled"
    )]
    pub(super) struct JobSpec {
        pub(super) minute: String,
        pub(super) hour: String,
    }
}

impl Spoke<Job> for v2::Job {
    fn to_hub(self) -> Result<Job, String> {
        let at = format!("{} {}", self.spec.minute, self.spec.hour);
        Ok(Job::new("", JobSpec { at }))
    }

    fn from_hub(hub: Job) -> Result<Self, String> {
        let at = hub.spec.at;
        let (minute, hour) = at
            .split_once(' ')
            .ok_or_else(|| format!("{at:?} is not a time"))?;
        let (minute, hour) = (minute.to_owned(), hour.to_owned());
        Ok(v2::Job::new("", v2::JobSpec { minute, hour }))
    }
}

#[limited::test]
async fn objects_are_served_in_both_versions_and_stored_in_one() {
    let converter = Converter::<Job>::hub().spoke::<v2::Job>();
    let world = world(Webhooks::new().converting("/convert", converter)).await;
    let version = |name: &str, storage: bool| {
        json!({
            "name": name, "served": true, "storage": storage,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }}},
        })
    };
    world
        .create(json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "jobs.example.com"},
            "spec": {
                "group": "example.com", "scope": "Namespaced",
                "names": {"plural": "jobs", "singular": "job", "kind": "Job", "listKind": "JobList"},
                "versions": [version("v1", true), version("v2", false)],
                "conversion": {"strategy": "Webhook", "webhook": {
                    "conversionReviewVersions": ["v1"], "clientConfig": world.client_config("/convert"),
                }},
            },
        }))
        .await;

    let spec = v2::JobSpec {
        minute: "5".into(),
        hour: "*".into(),
    };
    let posted = world
        .all::<v2::Job>()
        .create(&PostParams::default(), &v2::Job::new("a", spec))
        .await;
    posted.expect("it is stored as v1");
    let stored = world.all::<Job>().get("a").await.expect("it is there");
    assert_eq!(stored.spec.at, "5 *");
    let shown = world.all::<v2::Job>().get("a").await.expect("it is there");
    assert_eq!(
        (shown.spec.minute.as_str(), shown.spec.hour.as_str()),
        ("5", "*")
    );

    let odd = Job::new("b", JobSpec { at: "never".into() });
    world
        .all::<Job>()
        .create(&PostParams::default(), &odd)
        .await
        .expect("v1 is stored as it is");
    let refused = world
        .all::<v2::Job>()
        .get("b")
        .await
        .expect_err("it is not a v2");
    assert!(
        refused.to_string().contains("\"never\" is not a time"),
        "{refused}"
    );
}
