//! The role in `rbac.yaml` is enough, and none of it is too much.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{Event, Secret};
use kubewright::prelude::*;
use kubewright::runtime::client::TypedObject;
use kubewright::testing::rbac::assert_exact;
use kubewright::testing::{Call, Fault, Grant, World};
use kubewright_demo::{CloudManager, Phase, sample};
use tokio::time::{Instant, sleep};

/// How long the answer to a change may take. What is tried again and not reported comes later than that.
const SOON: Duration = Duration::from_secs(2);
/// How long until whatever is tried again is tried seldom.
const LONG: Duration = Duration::from_secs(120);

struct Scenario {
    world: World,
}

impl Scenario {
    /// A server with the sample, and the operator with this grant and nothing else.
    async fn new(grant: &Grant) -> Self {
        let world = World::builder()
            .grant(grant.clone())
            .manager(|manager| manager.name("CloudManager"))
            .faults(refuse_streams)
            .tolerate_refusals()
            .without_controllers()
            .start()
            .await;
        let sample = sample().expect("a sample");
        world.client.create(&sample).await.expect("it is created");
        Self { world }
    }

    async fn live<K: TypedObject>(&self, name: &str) -> Option<K> {
        let found = self
            .world
            .client
            .live()
            .get(&Key::new("default", name))
            .await;
        found.expect("the server answers")
    }

    async fn all<K: TypedObject>(&self) -> Vec<K> {
        let here = Query::all().namespace("default");
        let found = self.world.client.live().list(here).await;
        found.expect("the server answers")
    }

    async fn change(&self, change: impl FnOnce(&mut CloudManager)) {
        let manager: CloudManager = self.live("cloudmanager-sample").await.expect("is there");
        let changed = self.world.client.modify(&manager, change).await;
        changed.expect("it is changed");
    }

    /// Says of everything that it runs, as the controllers of a cluster would.
    async fn run_all(&self) {
        for object in self.all::<Deployment>().await {
            let running = self.world.client.modify_status(&object, |object| {
                let status = object.status.get_or_insert_default();
                status.observed_generation = object.metadata.generation;
                status.replicas = object.spec.replicas;
                status.ready_replicas = object.spec.replicas;
            });
            running.await.expect("it runs");
        }
        for object in self.all::<StatefulSet>().await {
            let running = self.world.client.modify_status(&object, |object| {
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
        let deleted = self
            .world
            .client
            .delete(&secret, Delete::background())
            .await;
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
    let world = Box::pin(Scenario::new(grant)).await;
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

/// A server that does not stream lists: an operator that may run on one needs the verb `list`.
fn refuse_streams(call: &Call) -> Fault {
    if call.query.contains("sendInitialEvents") {
        return Fault::Refuse {
            code: 422,
            reason: "Invalid",
        };
    }
    Fault::None
}

/// What is found within a time, or nothing.
async fn within<T>(time: Duration, mut look: impl AsyncFnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + time;
    loop {
        let found = look().await;
        if found.is_some() || Instant::now() > end {
            return found;
        }
        sleep(Duration::from_millis(100)).await;
    }
}
