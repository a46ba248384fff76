//! The role in `rbac.yaml` is enough, and none of it is too much.

#![allow(clippy::disallowed_names, reason = "a Foo is called foo")]

mod world;

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Event, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::CustomResourceExt;
use kubewright::prelude::*;
use kubewright_example_foo::{Foo, controller};
use kubewright_server::{Authorization, Server, User};
use kubewright_testing::{Fault, Wire};
use world::{Operator, admin, within};

const PATIENCE: Duration = Duration::from_secs(20);

fn documents() -> (ServiceAccount, ClusterRole, ClusterRoleBinding) {
    let text = include_str!("../rbac.yaml");
    let [account, role, binding] = text.split("---\n").collect::<Vec<_>>()[..] else {
        panic!("three documents")
    };
    (
        serde_saphyr::from_str(account).expect("a service account"),
        serde_saphyr::from_str(role).expect("a role"),
        serde_saphyr::from_str(binding).expect("a binding"),
    )
}

/// A server with this role, and the operator with nothing else, on a server that does not stream lists.
async fn start(role: &ClusterRole) -> (Server, Client, Operator) {
    let server = Server::builder().authorization(Authorization::Rbac).start();
    let server = server.await.expect("a server starts");
    let user = admin(&server);
    let (account, _, binding) = documents();
    user.create(&account).await.expect("the account is created");
    user.create(role).await.expect("the role is created");
    user.create(&binding).await.expect("the binding is created");
    user.create(&Foo::crd())
        .await
        .expect("the definition is taken");
    let name = "system:serviceaccount:default:sample-controller";
    let groups = ["system:serviceaccounts", "system:serviceaccounts:default"];
    let wire = Wire::new(server.service_as(User::new(name, groups)));
    wire.plan(|call| match call.query.contains("sendInitialEvents") {
        true => Fault::Refuse {
            code: 422,
            reason: "Invalid",
        },
        false => Fault::None,
    });
    let operator = Operator::start_on(wire, |_| controller());
    (server, user, operator)
}

/// A Foo gets its Deployment, is scaled and told of its Pods, and an event counts it all.
async fn does_its_work(role: &ClusterRole) -> bool {
    let (_server, user, _operator) = start(role).await;
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
    let (_, role, _) = documents();
    assert!(does_its_work(&role).await, "the role is enough");
    for (number, rule) in role.rules.iter().flatten().enumerate() {
        for verb in &rule.verbs {
            let mut less = role.clone();
            let rules = less.rules.as_mut().expect("rules");
            rules[number].verbs.retain(|other| other != verb);
            if rules[number].verbs.is_empty() {
                rules.remove(number);
            }
            let resources = rule.resources.as_deref().unwrap_or_default();
            assert!(
                !does_its_work(&less).await,
                "{verb} of {resources:?} is too much"
            );
        }
    }
}
