//! The factory: one informer for each resource, shared, counted, awaited.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::core::ApiResource;
use kubewright_cache::{Factory, Key, Scope, Selector};
use kubewright_testing::limit;

use crate::story::Story;
use crate::wire::{World, until};

#[limited::test(start_paused = true)]
async fn asked_twice_it_gives_the_same_informer() {
    let world = World::new().await;
    let factory = Factory::new(world.wire.client());
    let first = factory.informer::<ConfigMap>();
    let second = factory.informer::<ConfigMap>();
    let dynamic = factory.dynamic(&ApiResource::erase::<ConfigMap>(&()), Scope::all());
    assert_eq!(factory.len(), 1);
    factory.start();
    factory.start();
    limit(factory.synced()).await.expect("it syncs");
    assert!(first.has_synced() && second.has_synced() && dynamic.has_synced());
    assert_eq!(world.wire.asked(), ["stream"]);
    limit(factory.shutdown()).await;
    assert!(first.is_stopped());
}

#[limited::test(start_paused = true)]
async fn scopes_and_metadata_have_informers_of_their_own() {
    let world = World::new().await;
    world.create("a").await;
    world.create("b").await;
    let factory = Factory::new(world.wire.client());
    let resource = ApiResource::erase::<ConfigMap>(&());
    let chosen =
        factory.informer_in::<ConfigMap>(Scope::all().namespace("default").labels("app in (a)"));
    let named = factory.dynamic(&resource, Scope::all().fields("metadata.name=b"));
    let metadata = factory.metadata(&resource, Scope::all().namespace("default"));
    assert_eq!(factory.len(), 3);
    factory.start();
    limit(factory.synced()).await.expect("it syncs");
    assert_eq!(chosen.reader().keys(), [Key::new("default", "a")]);
    let dynamic = named
        .reader()
        .get(&Key::new("default", "b"))
        .expect("it is there");
    assert_eq!(dynamic.data["data"]["n"], "0");
    assert_eq!(
        dynamic.types.as_ref().map(|t| t.kind.as_str()),
        Some("ConfigMap")
    );
    let partial = metadata
        .reader()
        .get(&Key::new("default", "a"))
        .expect("it is there");
    assert_eq!(partial.metadata.name.as_deref(), Some("a"));
    let entry = metadata
        .reader()
        .entry(&Key::new("default", "a"))
        .expect("it is there");
    assert!(!String::from_utf8_lossy(entry.json()).contains("\"data\""));
}

#[limited::test(start_paused = true)]
async fn informer_that_nobody_uses_stops() {
    let world = World::new().await;
    let factory = Factory::new(world.wire.client());
    let informer = factory.informer::<ConfigMap>();
    factory.start();
    limit(factory.synced()).await.expect("it syncs");
    let reader = informer.reader();
    let (story, record) = Story::new();
    let registration = informer.add_handler(story).expect("it runs");
    drop(informer);
    drop(reader);
    assert_eq!(factory.len(), 1);
    drop(registration);
    assert_eq!(factory.len(), 0);
    until("the handler is gone", async || {
        std::sync::Arc::strong_count(&record) == 1
    })
    .await;
    let again = factory.informer::<ConfigMap>();
    factory.start();
    limit(again.synced()).await.expect("it syncs");
    assert_eq!(world.wire.asked(), ["stream", "stream"]);
}

#[limited::test(start_paused = true)]
async fn forbidden_resource_is_an_error_and_names_itself() {
    let world = World::new().await;
    for sort in ["list", "stream", "watch"] {
        world.wire.answer_all(sort, 403, "Forbidden");
    }
    let factory = Factory::new(world.wire.client());
    let _informer = factory.informer::<Namespace>();
    factory.start();
    let error = limit(factory.synced()).await.expect_err("it is forbidden");
    assert_eq!(error.to_string(), "/api/v1/namespaces did not sync");
}

#[limited::test(start_paused = true)]
async fn lister_answers_as_the_api_does() {
    let world = World::new().await;
    world.create("a").await;
    world.create("b").await;
    let factory = Factory::new(world.wire.client());
    let maps = factory.lister::<ConfigMap>();
    let deployments = factory.lister::<k8s_openapi::api::apps::v1::Deployment>();
    factory.start();
    limit(factory.synced()).await.expect("it syncs");
    let here = maps.namespaced("default");
    assert!(here.get("a").is_ok());
    assert!(maps.get("default/a").is_ok());
    let selector: Selector = [("app", "b")].into_iter().collect();
    assert_eq!(here.list(&selector).len(), 1);
    assert!(
        maps.namespaced("elsewhere")
            .list(&Selector::default())
            .is_empty()
    );
    let ours = here.get("none").expect_err("it is not there").to_string();
    let theirs = world
        .maps
        .get("none")
        .await
        .expect_err("it is not there")
        .to_string();
    assert_eq!(ours, theirs);
    let grouped = deployments
        .namespaced("default")
        .get("none")
        .expect_err("it is not there");
    assert!(
        grouped
            .to_string()
            .contains("deployments.apps \"none\" not found")
    );
}
