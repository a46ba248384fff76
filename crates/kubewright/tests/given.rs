//! What registered controllers are given, and controllers of requests among them.

use k8s_openapi::api::core::v1::{ConfigMap, LimitRange, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubewright::cache::source::BoxFuture;
use kubewright::prelude::*;
use kubewright::runtime::watch::{Channel, EventQueue, Running, Source, SourceError};
use kubewright::runtime::{Event, Request, RequestReconciler, Requests};
use kubewright::testing::World;

/// A part of the world, which is what a controller is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Zone(String);

impl Request for Zone {
    fn key(&self) -> Key {
        Key::cluster(&self.0)
    }
}

/// What the operator gives: how zones are called, and which are there from the beginning.
struct Catalog {
    prefix: &'static str,
    first: Vec<Zone>,
}

impl Catalog {
    fn zone(&self, name: &str) -> Zone {
        Zone(format!("{}-{name}", self.prefix))
    }
}

/// How many workers there are.
struct Workers(usize);

/// The zones that are there from the beginning.
struct First;

impl Source<Zone> for First {
    fn start(
        self: Box<Self>,
        client: Client,
        requests: Requests<Zone>,
    ) -> BoxFuture<'static, Result<Running, SourceError>> {
        Box::pin(async move {
            let catalog = client.state::<Catalog>();
            let catalog = catalog.map_err(|error| SourceError::Other(error.to_string()))?;
            catalog
                .first
                .iter()
                .for_each(|zone| requests.add(zone.clone()));
            Ok(Running::until(|| {}))
        })
    }

    fn describe(&self) -> String {
        "the catalog".to_owned()
    }
}

/// Makes a ConfigMap for each zone.
struct Zones;

#[kubewright::rbac(
    groups = "",
    resources = "configmaps",
    verbs = "create;get;list;patch;update;watch"
)]
impl RequestReconciler<Zone> for Zones {
    async fn reconcile(&self, zone: Zone, cx: &Context) -> Result<Outcome> {
        let prefix = cx.state::<Catalog>()?.prefix.to_owned();
        let key = Key::new("default", &zone.0);
        let write = |map: &mut ConfigMap| {
            map.data = Some([("prefix".to_owned(), prefix.clone())].into());
        };
        cx.client()
            .create_or_update::<ConfigMap>(&key, write)
            .await?;
        Ok(Outcome::done())
    }
}

#[kubewright::controller]
fn zones(channel: Option<&Channel<Zone>>, workers: Option<&Workers>) -> Controller<Zone> {
    let secrets = Watch::of::<Secret>().map(|secret, client| {
        let name = secret.metadata.name.as_deref();
        let catalog = client.state::<Catalog>().ok();
        let zone = catalog.zip(name).map(|(catalog, name)| catalog.zone(name));
        zone.into_iter().collect()
    });
    let handle = |event: &Event<LimitRange>, queue: &EventQueue<'_, Zone>| {
        if let Ok(catalog) = queue.client().state::<Catalog>() {
            queue.add(catalog.zone(event.object().key().name()));
        }
    };
    Controller::for_requests("zones")
        .workers(workers.map_or(1, |workers| workers.0))
        .watches(channel.cloned())
        .watches(First)
        .watches(secrets)
        .watches(Watch::of::<LimitRange>().handler(handle))
        .reconciler(Zones)
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some("default".to_owned()),
        ..ObjectMeta::default()
    }
}

async fn until_made(world: &World, name: &str) {
    let key = Key::new("default", name);
    let made = world
        .until(&key, |map: Option<&ConfigMap>| map.is_some())
        .await;
    let data = made.expect("it is made").data.unwrap_or_default();
    assert_eq!(data.get("prefix").map(String::as_str), Some("zone"));
}

#[test]
fn controllers_of_requests_are_described_and_get_a_role() {
    let inventory = kubewright::registered::inventory();
    assert_eq!(inventory.controllers, ["zones"]);
    let resources: Vec<_> = inventory
        .rules
        .iter()
        .flat_map(|rule| &rule.resources)
        .collect();
    for read in ["secrets", "limitranges"] {
        assert!(
            resources.iter().any(|it| *it == read),
            "{read}: {resources:?}"
        );
    }
}

/// The world has the generated role: what is not in it fails the waits.
#[tokio::test]
async fn state_reaches_sources_mappers_handlers_and_reconcilers() {
    let (sender, channel) = Channel::new();
    let world = World::builder().manager(move |manager| {
        let catalog = Catalog {
            prefix: "zone",
            first: vec![Zone("zone-first".to_owned())],
        };
        manager
            .state(catalog)
            .state(channel.clone())
            .state(Workers(3))
    });
    let world = world.start().await;
    until_made(&world, "zone-first").await;

    let secret = Secret {
        metadata: named("mapped"),
        ..Secret::default()
    };
    world.client.create(&secret).await.expect("it is created");
    until_made(&world, "zone-mapped").await;

    let range = LimitRange {
        metadata: named("handled"),
        ..LimitRange::default()
    };
    world.client.create(&range).await.expect("it is created");
    until_made(&world, "zone-handled").await;

    sender
        .send(Zone("zone-sent".to_owned()))
        .await
        .expect("somebody listens");
    until_made(&world, "zone-sent").await;
}

#[test]
fn functions_get_what_is_given_as_parameters() {
    let (_sender, channel) = Channel::<Zone>::new();
    let nothing = zones(None, None);
    assert_eq!(nothing.kinds().len(), 2);
    let given = zones(Some(&channel), Some(&Workers(2)));
    assert_eq!(given.kinds(), nothing.kinds());
}
