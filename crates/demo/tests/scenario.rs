//! S12 line by line, on a cluster with nodes, in virtual time.

use std::ops::Deref;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{Event, PersistentVolumeClaim, Pod, Secret};
use kubewright::prelude::*;
use kubewright::runtime::client::TypedObject;
use kubewright::testing::World;
use kubewright_demo::{CloudManager, Phase, sample};

/// A cluster with the sample in it, and the operator with its role.
struct Scenario(World);

impl Deref for Scenario {
    type Target = World;

    fn deref(&self) -> &World {
        &self.0
    }
}

impl Scenario {
    async fn new() -> Self {
        let world = World::builder()
            .role(include_str!("../rbac.yaml"))
            .manager(|manager| manager.name("CloudManager"))
            .time_limit(Duration::from_secs(1000))
            .nodes(3)
            .seed(1)
            .start()
            .await;
        let sample = sample().expect("a sample");
        world.client.create(&sample).await.expect("it is created");
        Self(world)
    }

    async fn live<K: TypedObject>(&self, name: &str) -> Option<K> {
        let found = self.client.live().get(&Key::new("default", name)).await;
        found.expect("the server answers")
    }

    async fn all<K: TypedObject>(&self) -> Vec<K> {
        let here = Query::all().namespace("default");
        let found = self.client.live().list(here).await;
        found.expect("the server answers")
    }

    async fn manager(&self) -> CloudManager {
        self.live("cloudmanager-sample").await.expect("it is there")
    }

    async fn change(&self, change: impl FnOnce(&mut CloudManager)) {
        let manager = self.manager().await;
        let changed = self.client.modify(&manager, change).await;
        changed.expect("it is changed");
    }

    async fn ready(&self) {
        let is_ready = |manager: Option<&CloudManager>| {
            let status = manager.and_then(|manager| manager.status.as_ref());
            status.is_some_and(|status| status.phase == Some(Phase::Ready))
        };
        let key = Key::new("default", "cloudmanager-sample");
        self.until(&key, is_ready).await;
    }

    async fn reported(&self, reason: &str, message: &str) {
        let is_it = |event: &Event| {
            event.reason.as_deref() == Some(reason) && event.message.as_deref() == Some(message)
        };
        let here = Query::all().namespace("default");
        self.until_all(here, |events: &[Event]| events.iter().any(is_it))
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn parts_come_up_in_order_until_it_is_ready() {
    let world = Scenario::new().await;
    // Looked at all the time: no part is there before the one before has a ready majority.
    world
        .until_some("it is ready", async || {
            let front: Option<Deployment> = world.live("ake-front").await;
            let identity: Option<Deployment> = world.live("cm-identity").await;
            let set: Option<StatefulSet> = world.live("cm-db").await;
            let ready = |d: &Option<Deployment>| {
                let status = d.as_ref().and_then(|d| d.status.as_ref());
                status.and_then(|status| status.ready_replicas).unwrap_or(0)
            };
            assert!(identity.is_none() || ready(&front) >= 2, "{front:?}");
            assert!(set.is_none() || ready(&identity) >= 2, "{identity:?}");
            let manager = world.manager().await;
            (manager.status.and_then(|status| status.phase) == Some(Phase::Ready)).then_some(())
        })
        .await;
    world
        .reported("Updated", "Update cm.status.phase: ready")
        .await;
    world.settled().await;
    world.assert_no_writes(Duration::from_secs(600)).await;
    let secret: Secret = world.live("cm-dbauth").await.expect("it is there");
    let password = secret.data.and_then(|mut data| data.remove("password"));
    assert_eq!(password.map(|bytes| bytes.0), Some(b"123456".to_vec()));
    let set: StatefulSet = world.live("cm-db").await.expect("it is there");
    let pod = set.spec.template.spec.expect("a pod");
    let env = pod.containers[0].env.clone().unwrap_or_default();
    let from = env[0]
        .value_from
        .as_ref()
        .and_then(|from| from.secret_key_ref.as_ref());
    assert_eq!(from.map(|from| from.name.as_str()), Some("cm-dbauth"));
    assert!(
        world
            .live::<PersistentVolumeClaim>("datadir-cm-db-0")
            .await
            .is_some()
    );
    assert_eq!(world.all::<Pod>().await.len(), 3 + 2 + 1);
}

#[tokio::test(start_paused = true)]
async fn renamed_part_is_made_anew_and_the_old_one_deleted() {
    let world = Scenario::new().await;
    world.ready().await;
    world
        .change(|manager| manager.spec.front.deployment.name = "new-front".to_owned())
        .await;
    world
        .reported("Deleted", r#"Deleted deployment "ake-front""#)
        .await;
    world
        .until_some("the new one is there", async || {
            (world.live::<Deployment>("new-front").await.is_some()
                && world.live::<Deployment>("ake-front").await.is_none())
            .then_some(())
        })
        .await;
    world.ready().await;
}

#[tokio::test(start_paused = true)]
async fn image_and_replicas_are_changed_in_place() {
    let world = Scenario::new().await;
    world.ready().await;
    let before: Deployment = world.live("ake-front").await.expect("it is there");
    world
        .change(|manager| {
            manager.spec.front.deployment.image = "nginx:1.27".to_owned();
            manager.spec.front.deployment.replicas = Some(5);
        })
        .await;
    world
        .until_some("five pods of the new image", async || {
            let pods = world.all::<Pod>().await;
            let image = |pod: &Pod| {
                pod.spec
                    .as_ref()
                    .and_then(|spec| spec.containers[0].image.clone())
            };
            let nginx = pods
                .iter()
                .filter_map(image)
                .filter(|image| image.starts_with("nginx"));
            let nginx: Vec<String> = nginx.collect();
            (nginx.len() == 5 && nginx.iter().all(|image| image == "nginx:1.27")).then_some(())
        })
        .await;
    let after: Deployment = world.live("ake-front").await.expect("it is there");
    assert_eq!(
        before.metadata.uid, after.metadata.uid,
        "it is the same object"
    );
    world.ready().await;
}

#[tokio::test(start_paused = true)]
async fn everything_goes_with_it_and_what_is_deleted_comes_back() {
    let world = Scenario::new().await;
    world.ready().await;
    let front: Deployment = world.live("ake-front").await.expect("it is there");
    world
        .client
        .delete(&front, Delete::background())
        .await
        .expect("it is deleted");
    world
        .until_some("it is back", async || {
            let back: Option<Deployment> = world.live("ake-front").await;
            (back.is_some_and(|back| back.metadata.uid != front.metadata.uid)).then_some(())
        })
        .await;
    world.ready().await;
    let manager = world.manager().await;
    world
        .client
        .delete(&manager, Delete::background())
        .await
        .expect("it is deleted");
    world
        .until_some("all is gone", async || {
            (world.all::<Deployment>().await.is_empty()
                && world.all::<StatefulSet>().await.is_empty()
                && world.live::<Secret>("cm-dbauth").await.is_none()
                && world.all::<Pod>().await.is_empty())
            .then_some(())
        })
        .await;
}
