//! The role in `rbac.yaml` is enough, and none of it is too much.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{Event, Secret};
use kube::CustomResourceExt;
use kubewright::prelude::*;
use kubewright::runtime::Environment;
use kubewright::runtime::client::TypedObject;
use kubewright::runtime::environment::VirtualClock;
use kubewright_example_cloud_manager::{CloudManager, Phase, controller, sample};
use kubewright_server::{Authorization, Server};
use kubewright_testing::rbac::{Grant, assert_exact};
use kubewright_testing::within;
use tokio_util::sync::{CancellationToken, DropGuard};

/// How long the answer to a change may take. What is tried again and not told comes later than that.
const SOON: Duration = Duration::from_secs(2);
/// How long until whatever is tried again is tried seldom.
const LONG: Duration = Duration::from_secs(120);

struct World {
    user: Client,
    _operator: DropGuard,
    _server: Server,
}

impl World {
    /// A server with this grant, the operator with nothing else, and the sample.
    async fn new(grant: &Grant) -> Self {
        let server = Server::builder().authorization(Authorization::Rbac).start();
        let server = server.await.expect("a server starts");
        grant.install(&server).await.expect("it is granted");
        let user = Client::new(kube::Client::new(server.service(), "default"));
        user.create(&CloudManager::crd())
            .await
            .expect("the kind is installed");
        let clock = VirtualClock::starting_at(jiff::Timestamp::UNIX_EPOCH);
        let stop = CancellationToken::new();
        let manager = Manager::new(grant.wire(&server).client())
            .name("CloudManager")
            .environment(Environment::seeded(clock, 1))
            .controller(controller());
        tokio::spawn(manager.run_until(stop.clone()));
        user.create(&sample().expect("a sample"))
            .await
            .expect("it is created");
        Self {
            user,
            _operator: stop.drop_guard(),
            _server: server,
        }
    }

    async fn live<K: TypedObject>(&self, name: &str) -> Option<K> {
        let found = self.user.live().get(&Key::new("default", name)).await;
        found.expect("the server answers")
    }

    async fn all<K: TypedObject>(&self) -> Vec<K> {
        let here = Query::all().namespace("default");
        let found = self.user.live().list(here).await;
        found.expect("the server answers")
    }

    async fn change(&self, change: impl FnOnce(&mut CloudManager)) {
        let manager: CloudManager = self.live("cloudmanager-sample").await.expect("is there");
        let changed = self.user.modify(&manager, change).await;
        changed.expect("it is changed");
    }

    /// Says of everything that it runs, as the controllers of a cluster would.
    async fn run_all(&self) {
        for object in self.all::<Deployment>().await {
            let running = self.user.modify_status(&object, |object| {
                let status = object.status.get_or_insert_default();
                status.observed_generation = object.metadata.generation;
                status.replicas = object.spec.replicas;
                status.ready_replicas = object.spec.replicas;
            });
            running.await.expect("it runs");
        }
        for object in self.all::<StatefulSet>().await {
            let running = self.user.modify_status(&object, |object| {
                let status = object.status.get_or_insert_default();
                status.observed_generation = object.metadata.generation;
                status.replicas = object.spec.replicas.unwrap_or(1);
                status.ready_replicas = object.spec.replicas;
            });
            running.await.expect("it runs");
        }
    }

    /// Whether the phase gets to be ready, each part soon after the one before.
    async fn gets_ready(&self) -> bool {
        // One after the other, from the first look of the operator on.
        for _ in 0..6 {
            self.run_all().await;
            tokio::time::sleep(SOON).await;
        }
        let manager: Option<CloudManager> = self.live("cloudmanager-sample").await;
        let status = manager.and_then(|manager| manager.status);
        status.and_then(|status| status.phase) == Some(Phase::Ready)
    }

    /// Whether a change is followed in place.
    async fn follows(&self) -> bool {
        self.change(|manager| {
            manager.spec.front.deployment.replicas = Some(5);
            manager.spec.db.root_pass = "other".to_owned();
            manager.spec.db.stateful_set.workload.image = "mariadb:11".to_owned();
        })
        .await;
        // The database comes after the others, and they are waited for anew.
        if !self.gets_ready().await {
            return false;
        }
        let front: Option<Deployment> = self.live("ake-front").await;
        let database: Option<StatefulSet> = self.live("cm-db").await;
        let pod = database.and_then(|set| set.spec.template.spec);
        let image = pod.and_then(|pod| pod.containers[0].image.clone());
        front.and_then(|front| front.spec.replicas) == Some(5)
            && image.as_deref() == Some("mariadb:11")
            && self.password("cm-dbauth").await == Some(b"other".to_vec())
    }

    async fn password(&self, name: &str) -> Option<Vec<u8>> {
        let secret: Secret = self.live(name).await?;
        Some(secret.data?.remove("password")?.0)
    }

    /// Whether a Secret that is deleted comes back.
    async fn restores(&self) -> bool {
        let secret: Option<Secret> = self.live("cm-dbauth").await;
        let secret = secret.expect("it is there");
        let deleted = self.user.delete(&secret, Delete::background()).await;
        deleted.expect("it is deleted");
        let back = within(SOON, async || self.password("cm-dbauth").await);
        back.await.is_some()
    }

    /// Whether parts of other names take the place of the old ones.
    async fn renames(&self) -> bool {
        self.change(|manager| {
            manager.spec.front.deployment.name = "new-front".to_owned();
            manager.spec.db.stateful_set.workload.name = "new-db".to_owned();
        })
        .await;
        self.gets_ready().await
            && self.live::<Deployment>("ake-front").await.is_none()
            && self.live::<StatefulSet>("cm-db").await.is_none()
            && self.live::<Secret>("cm-dbauth").await.is_none()
            && self.password("new-dbauth").await.is_some()
    }

    /// Whether an event counts how often it became ready.
    async fn counts(&self) -> bool {
        let counted = within(LONG, async || {
            let events = self.all::<Event>().await;
            let ready = "Update cm.status.phase: ready";
            events
                .iter()
                .any(|event| event.message.as_deref() == Some(ready) && event.count >= Some(2))
                .then_some(())
        });
        counted.await.is_some()
    }
}

/// Three parts come up, follow changes, come back and are renamed, and an event counts it.
async fn does_its_work(grant: &Grant) -> bool {
    let world = World::new(grant).await;
    if !world.gets_ready().await {
        return false;
    }
    tokio::time::sleep(LONG).await;
    world.follows().await && world.restores().await && world.renames().await && world.counts().await
}

#[tokio::test(start_paused = true)]
async fn operator_needs_exactly_its_role() {
    let grant = Grant::read(include_str!("../rbac.yaml")).expect("a grant");
    Box::pin(assert_exact(&grant, does_its_work)).await;
}
