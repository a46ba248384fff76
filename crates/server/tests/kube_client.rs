//! kube-rs as a client: everything its `Api`, watcher and reflector do, in-process and over TLS.

use futures::{Stream, StreamExt, TryStreamExt};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
    PostParams, WatchEvent, WatchParams,
};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, reflector, watcher as watch};
use kube::{Api, Client, Config, Error, ResourceExt};
use kubewright_server::{Endpoint, Server};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::pin::pin;

/// The server, in-process and over a socket. The endpoint lives as long as its client is used.
async fn clients(server: &Server) -> [(Client, Option<Endpoint>); 2] {
    let inside = Client::new(server.service(), "default");
    let address = "127.0.0.1:0".parse().expect("an address");
    let endpoint = server.listen(address).await.expect("listens");
    let text = endpoint.kubeconfig().as_str();
    let kubeconfig = Kubeconfig::from_yaml(text).expect("kube reads it");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let outside = Client::try_from(config.expect("kube takes it")).expect("a client");
    [(inside, None), (outside, Some(endpoint))]
}

async fn start() -> Server {
    Server::builder().start().await.expect("starts")
}

fn config_map(name: &str) -> ConfigMap {
    from(json!({"metadata": {"name": name, "labels": {"app": "test"}}, "data": {"a": "1"}}))
}

fn deployment(name: &str) -> Deployment {
    from(json!({
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "one"}]},
            },
        },
    }))
}

fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("the test's object is one")
}

fn is_conflict<T: std::fmt::Debug>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Api(status)) if status.is_conflict() && status.code == 409)
}

fn names<K: kube::Resource>(objects: impl IntoIterator<Item = K>) -> Vec<String> {
    objects
        .into_iter()
        .map(|object| object.name_any())
        .collect()
}

#[tokio::test]
async fn config_maps_are_created_read_changed_and_deleted() {
    let server = start().await;
    for (client, _endpoint) in clients(&server).await {
        let api: Api<ConfigMap> = Api::default_namespaced(client);
        let (post, patch) = (PostParams::default(), PatchParams::default());
        let made = api
            .create(&post, &config_map("one"))
            .await
            .expect("created");
        assert_eq!(made.uid().map(|uid| uid.len()), Some(36));
        let read = api.get("one").await.expect("read");
        assert_eq!(read, made);
        let twice = api.create(&post, &config_map("one")).await;
        assert!(matches!(twice, Err(Error::Api(s)) if s.is_already_exists()));
        assert_eq!(api.get_opt("none").await.expect("asked"), None);

        let merge = Patch::Merge(json!({"data": {"b": "2"}}));
        let patched = api.patch("one", &patch, &merge).await.expect("merged");
        assert_eq!(patched.data.as_ref().map(|d| d.len()), Some(2));
        let stale = api.replace("one", &post, &made).await;
        assert!(is_conflict(stale));
        let mut current = patched.clone();
        current.data = None;
        let replaced = api.replace("one", &post, &current).await.expect("replaced");
        assert_eq!(replaced.data, None);
        let json: Patch<()> = Patch::Json(from(
            json!([{"op": "add", "path": "/data", "value": {"c": "3"}}]),
        ));
        let patched = api.patch("one", &patch, &json).await.expect("patched");
        assert_eq!(
            patched.data.and_then(|d| d.get("c").cloned()).as_deref(),
            Some("3")
        );

        let gone = api
            .delete("one", &DeleteParams::default())
            .await
            .expect("deleted");
        assert!(gone.right().is_some_and(|status| status.is_success()));
        let missing = api.get("one").await;
        assert!(matches!(missing, Err(Error::Api(s)) if s.is_not_found()));
    }
}

#[tokio::test]
async fn lists_come_in_pages_and_collections_are_deleted() {
    let server = start().await;
    for (client, _endpoint) in clients(&server).await {
        let api: Api<ConfigMap> = Api::default_namespaced(client);
        for i in 0..10 {
            let made = api
                .create(&PostParams::default(), &config_map(&format!("c{i}")))
                .await;
            made.expect("created");
        }
        let mut params = ListParams::default().labels("app=test").limit(3);
        let mut all = Vec::new();
        let mut versions = BTreeSet::new();
        loop {
            let page = api.list(&params).await.expect("a page");
            assert!(page.items.len() <= 3);
            versions.insert(page.metadata.resource_version.clone());
            all.extend(names(page.items));
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => break,
            }
        }
        assert_eq!(all, (0..10).map(|i| format!("c{i}")).collect::<Vec<_>>());
        assert_eq!(versions.len(), 1, "all pages are of one version");
        let params = ListParams::default().labels("app=test");
        let gone = api
            .delete_collection(&DeleteParams::default(), &params)
            .await;
        assert_eq!(
            gone.expect("deleted").left().map(|list| list.items.len()),
            Some(10)
        );
        assert!(api.list(&params).await.expect("a list").items.is_empty());
    }
}

#[tokio::test]
async fn deployments_take_strategic_patches() {
    let server = start().await;
    for (client, _endpoint) in clients(&server).await {
        let api: Api<Deployment> = Api::default_namespaced(client);
        let post = PostParams::default();
        api.create(&post, &deployment("web"))
            .await
            .expect("created");
        let patch = json!({"spec": {"template": {"spec": {"containers": [
            {"name": "main", "image": "two"}, {"name": "side", "image": "three"},
        ]}}}});
        let params = PatchParams::default();
        let patched = api
            .patch("web", &params, &Patch::Strategic(patch))
            .await
            .expect("patched");
        let spec = patched.spec.template.spec.expect("a template");
        let images: Vec<_> = spec
            .containers
            .iter()
            .map(|c| (c.name.as_str(), c.image.as_deref()))
            .collect();
        assert_eq!(images, [("main", Some("two")), ("side", Some("three"))]);
        assert_eq!(patched.metadata.generation, Some(2));
        let mut scale = api.get_scale("web").await.expect("a scale");
        scale.spec = from(json!({"replicas": 4}));
        let scaled = api
            .replace_scale("web", &post, &scale)
            .await
            .expect("scaled");
        assert_eq!(scaled.spec.and_then(|s| s.replicas), Some(4));
        api.delete("web", &DeleteParams::background())
            .await
            .expect("deleted");
    }
}

fn widget_definition() -> CustomResourceDefinition {
    from(json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"size": {"type": "integer", "default": 3}}},
                    "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
                }}},
            }],
        },
    }))
}

#[tokio::test]
async fn custom_objects_are_served_as_soon_as_they_are_defined() {
    let server = start().await;
    for (client, _endpoint) in clients(&server).await {
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        let post = PostParams::default();
        definitions
            .create(&post, &widget_definition())
            .await
            .expect("defined");
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
        let api: Api<DynamicObject> = Api::default_namespaced_with(client, &resource);
        let widget = DynamicObject::new("one", &resource)
            .data(json!({"spec": {}, "status": {"ready": true}}));
        let made = api.create(&post, &widget).await.expect("created");
        assert_eq!(made.data["spec"], json!({"size": 3}), "defaulted");
        assert!(
            made.data.get("status").is_none(),
            "status has a path of its own"
        );
        let status = Patch::Merge(json!({"status": {"ready": true}}));
        let patched = api
            .patch_status("one", &PatchParams::default(), &status)
            .await
            .expect("patched");
        assert_eq!(patched.data["status"], json!({"ready": true}));
        assert!(is_conflict(api.replace("one", &post, &made).await));
        let wrong = Patch::Merge(json!({"spec": {"size": "large"}}));
        let refused = api.patch("one", &PatchParams::default(), &wrong).await;
        assert!(matches!(refused, Err(Error::Api(s)) if s.is_invalid()));
        definitions
            .delete("widgets.example.com", &DeleteParams::default())
            .await
            .expect("deleted");
    }
}

#[tokio::test]
async fn a_watch_tells_what_happens() {
    let server = start().await;
    for (client, _endpoint) in clients(&server).await {
        let api: Api<ConfigMap> = Api::default_namespaced(client);
        let now = api.list(&ListParams::default()).await.expect("a list");
        let version = now.metadata.resource_version.expect("a version");
        let params = WatchParams::default().labels("app=test");
        let events = api.watch(&params, &version).await.expect("a watch");
        let mut events = pin!(events);
        let post = PostParams::default();
        api.create(&post, &config_map("seen"))
            .await
            .expect("created");
        let unlabel = Patch::Merge(json!({"metadata": {"labels": {"app": null}}}));
        api.patch("seen", &PatchParams::default(), &unlabel)
            .await
            .expect("patched");
        api.delete("seen", &DeleteParams::default())
            .await
            .expect("deleted");
        api.create(&post, &config_map("next"))
            .await
            .expect("created");
        let mut received = Vec::new();
        while received.len() < 3 {
            received.push(
                match events.try_next().await.expect("no error").expect("no end") {
                    WatchEvent::Added(o) => format!("added {}", o.name_any()),
                    WatchEvent::Modified(o) => format!("modified {}", o.name_any()),
                    WatchEvent::Deleted(o) => format!("deleted {}", o.name_any()),
                    other => panic!("{other:?}"),
                },
            );
        }
        assert_eq!(received, ["added seen", "deleted seen", "added next"]);
        api.delete("next", &DeleteParams::default())
            .await
            .expect("deleted");
    }
}

/// Reads until the store of a watcher would hold exactly these names; errors are what a watcher recovers from.
async fn until(
    events: &mut (impl Stream<Item = watcher::Result<Event<ConfigMap>>> + Unpin),
    known: &mut BTreeSet<String>,
    expected: &BTreeSet<String>,
) -> usize {
    let (mut errors, mut listing) = (0, None);
    while listing.is_some() || known != expected {
        match events.next().await.expect("a watcher never ends") {
            Ok(Event::Apply(object)) => drop(known.insert(object.name_any())),
            Ok(Event::Delete(object)) => assert!(known.remove(&object.name_any())),
            Ok(Event::Init) => listing = Some(BTreeSet::new()),
            Ok(Event::InitApply(object)) => {
                listing.as_mut().expect("begun").insert(object.name_any());
            }
            Ok(Event::InitDone) => *known = listing.take().expect("begun"),
            Err(_) => errors += 1,
        }
    }
    errors
}

#[tokio::test]
async fn a_watcher_survives_compaction_without_losing_an_object() {
    for strategy in [
        watcher::Config::default(),
        watcher::Config::default().streaming_lists(),
    ] {
        let server = start().await;
        let client = Client::new(server.service(), "default");
        let api: Api<ConfigMap> = Api::default_namespaced(client);
        let config = strategy.labels("app=test");
        let mut events = Box::pin(watch(api.clone(), config));
        let mut known = BTreeSet::new();
        let mut expected = BTreeSet::new();
        let post = PostParams::default();
        api.create(&post, &config_map("first"))
            .await
            .expect("created");
        expected.insert("first".to_owned());
        assert_eq!(until(&mut events, &mut known, &expected).await, 0);
        // Nobody reads while these are written and forgotten.
        for i in 0..20 {
            api.create(&post, &config_map(&format!("c{i}")))
                .await
                .expect("created");
            expected.insert(format!("c{i}"));
        }
        api.delete("first", &DeleteParams::default())
            .await
            .expect("deleted");
        expected.remove("first");
        let now = server.revision();
        server.compact(now).expect("it has been reached");
        let errors = until(&mut events, &mut known, &expected).await;
        assert!(errors >= 1, "the watcher learned that its version expired");
        api.create(&post, &config_map("last"))
            .await
            .expect("created");
        expected.insert("last".to_owned());
        assert_eq!(until(&mut events, &mut known, &expected).await, 0);
    }
}

#[tokio::test]
async fn a_reflector_holds_what_the_server_holds() {
    let server = start().await;
    for (client, _endpoint) in clients(&server).await {
        let api: Api<Deployment> = Api::default_namespaced(client);
        let post = PostParams::default();
        for i in 0..5 {
            api.create(&post, &deployment(&format!("d{i}")))
                .await
                .expect("created");
        }
        let (reader, writer) = reflector::store();
        let config = watcher::Config::default().page_size(2);
        let events = reflector(writer, watch(api.clone(), config)).applied_objects();
        let mut events = pin!(events);
        for _ in 0..5 {
            events.try_next().await.expect("no error").expect("no end");
        }
        api.create(&post, &deployment("late"))
            .await
            .expect("created");
        let late = events.try_next().await.expect("no error").expect("no end");
        assert_eq!(late.name_any(), "late");
        let mut held: Vec<Deployment> = reader.state().iter().map(|d| (**d).clone()).collect();
        held.sort_by_key(ResourceExt::name_any);
        let list = api.list(&ListParams::default()).await.expect("a list");
        assert_eq!(names(held), names(list.items));
        let all = api
            .delete_collection(&DeleteParams::default(), &ListParams::default())
            .await;
        all.expect("deleted");
    }
}
