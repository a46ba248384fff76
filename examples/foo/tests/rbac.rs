//! The role in `rbac.yaml` is enough, and none of it is too much.

#![allow(clippy::disallowed_names, reason = "a Foo is called foo")]

mod world;

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Event;
use kube::CustomResourceExt;
use kubewright::prelude::*;
use kubewright_example_foo::{Foo, controller};
use kubewright_server::{Authorization, Server};
use kubewright_testing::rbac::{Grant, assert_exact};
use kubewright_testing::within;
use world::{Operator, admin};

const PATIENCE: Duration = Duration::from_secs(20);

/// A server with this grant, and the operator with nothing else, on a server that does not stream lists.
async fn start(grant: &Grant) -> (Server, Client, Operator) {
    let server = Server::builder().authorization(Authorization::Rbac).start();
    let server = server.await.expect("a server starts");
    let user = admin(&server);
    grant.install(&server).await.expect("it is granted");
    user.create(&Foo::crd())
        .await
        .expect("the definition is taken");
    let operator = Operator::start_on(grant.wire(&server), |_| controller());
    (server, user, operator)
}

/// A Foo gets its Deployment, is scaled and told of its Pods, and an event counts it all.
async fn does_its_work(grant: &Grant) -> bool {
    let (_server, user, _operator) = start(grant).await;
    let foo: Foo = serde_saphyr::from_str(include_str!("../sample.yaml")).expect("a Foo");
    let key = Key::new("default", "example-foo");
    let foo = user.create(&foo).await.expect("it is created");
    let made = within(PATIENCE, async || {
        user.live()
            .get::<Deployment>(&key)
            .await
            .expect("an answer")
    });
    let Some(made) = made.await else { return false };
    let available = user.modify_status(&made, |deployment| {
        let status = deployment.status.get_or_insert_default();
        status.replicas = Some(1);
        status.ready_replicas = Some(1);
        status.available_replicas = Some(1);
    });
    available.await.expect("the status is written");
    let scaled = user.modify(&foo, |foo| foo.spec.replicas = Some(3));
    scaled.await.expect("it is scaled");
    let done = within(PATIENCE, async || {
        let foo = user.live().get::<Foo>(&key).await.expect("an answer")?;
        let deployment = user
            .live()
            .get::<Deployment>(&key)
            .await
            .expect("an answer")?;
        let events = user
            .live()
            .list::<Event>(Query::all())
            .await
            .expect("an answer");
        let counted = events.iter().any(|event| event.count >= Some(2));
        let scaled = deployment.spec.replicas == Some(3);
        (counted && scaled && foo.status?.available_replicas == 1).then_some(())
    });
    done.await.is_some()
}

#[tokio::test(start_paused = true)]
async fn operator_needs_exactly_its_role() {
    let grant = Grant::read(include_str!("../rbac.yaml")).expect("a grant");
    assert_exact(&grant, does_its_work).await;
}
