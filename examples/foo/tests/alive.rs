//! S11 on a cluster that is alive: Deployments make Pods, Pods come up on nodes, and the Foo's status follows.

#![allow(clippy::disallowed_names, reason = "a Foo is called foo")]

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::CustomResourceExt;
use kubewright::prelude::*;
use kubewright::runtime::client::TypedObject;
use kubewright_cluster::{Clock, Cluster};
use kubewright_example_foo::{Foo, FooSpec, controller};
use kubewright_testing::until;
use tokio_util::sync::CancellationToken;

/// A cluster with two nodes and the operator.
struct Alive {
    user: Client,
    stop: CancellationToken,
    _cluster: Cluster,
}

impl Alive {
    async fn new() -> Self {
        let start = "2030-01-01T00:00:00Z".parse().expect("a moment");
        let clock = Clock::starting_at(start);
        let cluster = Cluster::builder().nodes(2).seed(1).clock(clock).start();
        let cluster = cluster.await.expect("a cluster starts");
        let user = Client::new(cluster.client());
        let installed = user.create(&Foo::crd()).await;
        installed.expect("the kind is installed");
        let manager = Manager::new(cluster.client())
            .name("sample-controller")
            .controller(controller());
        let stop = CancellationToken::new();
        tokio::spawn(manager.run_until(stop.clone()));
        Self {
            user,
            stop,
            _cluster: cluster,
        }
    }

    async fn all<K: TypedObject>(&self) -> Vec<K> {
        let here = Query::all().namespace("default");
        let listed = self.user.live().list(here).await;
        listed.expect("the server answers")
    }

    async fn foo(&self) -> Option<Foo> {
        let key = Key::new("default", "example");
        self.user
            .live()
            .get(&key)
            .await
            .expect("the server answers")
    }

    async fn scale(&self, replicas: i32) {
        let foo = self.foo().await.expect("it is there");
        let scaled = self
            .user
            .modify(&foo, |foo| foo.spec.replicas = Some(replicas));
        scaled.await.expect("it is scaled");
    }

    /// Waits until the Foo's status says so many, and looks whether it is true.
    async fn available(&self, replicas: i32) {
        until("as many Pods are available as were asked for", async || {
            let status = self.foo().await?.status?;
            (status.available_replicas == replicas).then_some(())
        })
        .await;
        let deployments = self.all::<Deployment>().await;
        let [deployment] = &deployments[..] else {
            panic!("{deployments:?}")
        };
        let status = deployment.status.clone().unwrap_or_default();
        assert_eq!(status.available_replicas, Some(replicas));
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn foo() -> Foo {
    let spec = FooSpec {
        deployment_name: "web".to_owned(),
        replicas: Some(2),
    };
    let mut foo = Foo::new("example", spec);
    foo.metadata.namespace = Some("default".to_owned());
    foo
}

#[tokio::test(start_paused = true)]
async fn status_follows_a_deployment_whose_pods_come_and_go() {
    let alive = Alive::new().await;
    let made = alive.user.create(&foo()).await.expect("it is created");
    alive.available(2).await;
    assert_eq!(alive.all::<Pod>().await.len(), 2);

    alive.scale(4).await;
    alive.available(4).await;
    alive.scale(1).await;
    alive.available(1).await;

    let events = alive.all::<Event>().await;
    let synced: Vec<_> = events
        .iter()
        .filter(|event| event.reason.as_deref() == Some("Synced"))
        .collect();
    let [event] = &synced[..] else {
        panic!("one event that is counted: {synced:?}")
    };
    assert!(event.count >= Some(4), "{event:?}");

    let deleted = alive.user.delete(&made, Delete::background()).await;
    deleted.expect("it is deleted");
    until("nothing of it is left", async || {
        let (deployments, pods) = (alive.all::<Deployment>().await, alive.all::<Pod>().await);
        (deployments.is_empty() && pods.is_empty()).then_some(())
    })
    .await;
}
