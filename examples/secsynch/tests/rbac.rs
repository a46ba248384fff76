//! The role in `rbac.yaml` is enough, and none of it is too much.

mod world;

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Event, Namespace, Secret};
use kube::CustomResourceExt;
use kubewright::prelude::*;
use kubewright_example_secsynch::{SecSynch, controller};
use kubewright_server::{Authorization, Server};
use kubewright_testing::rbac::{Grant, assert_exact};
use kubewright_testing::within;
use world::{Operator, admin};

const PATIENCE: Duration = Duration::from_secs(60);

/// A server with this grant, and the operator with nothing else, on a server that does not stream lists.
async fn start(grant: &Grant) -> (Server, Client, Operator) {
    let server = Server::builder().authorization(Authorization::Rbac).start();
    let server = server.await.expect("a server starts");
    let user = admin(&server);
    grant.install(&server).await.expect("it is granted");
    user.create(&SecSynch::crd())
        .await
        .expect("the definition is taken");
    let operator = Operator::start_on(grant.wire(&server), |_| controller());
    (server, user, operator)
}

/// Copies come, follow their source, reach a namespace that is late, and go; an event counts how often it was.
async fn does_its_work(grant: &Grant) -> bool {
    let (_server, user, _operator) = start(grant).await;
    let text = include_str!("../sample.yaml");
    let (secret, synch) = text.split_once("---\n").expect("two documents");
    let secret: Secret = serde_saphyr::from_str(secret).expect("a Secret");
    let synch: SecSynch = serde_saphyr::from_str(synch).expect("a SecSynch");
    create_namespace(&user, "team-a").await;
    let secret = user.create(&secret).await.expect("it is created");
    let synch = user.create(&synch).await.expect("it is created");
    if !copied(&user, "team-a", "not-a-secret").await || !warned(&user).await {
        return false;
    }
    create_namespace(&user, "team-b").await;
    if !copied(&user, "team-b", "not-a-secret").await {
        return false;
    }
    let other = ByteString(b"other".to_vec());
    let changed = user.modify(&secret, |secret| {
        secret.data = Some(BTreeMap::from([("token".to_owned(), other)]));
    });
    changed.await.expect("it is changed");
    if !copied(&user, "team-a", "other").await || !is_told(&user, &synch).await {
        return false;
    }
    user.delete(&synch, Delete::background())
        .await
        .expect("it is deleted");
    let gone = within(PATIENCE, async || {
        let key = Key::new("team-a", "registry");
        let copy = user.live().get::<Secret>(&key).await.expect("an answer");
        let key = Key::new("default", "registry");
        let synch = user.live().get::<SecSynch>(&key).await;
        let synch = synch.expect("an answer");
        (copy.is_none() && synch.is_none()).then_some(())
    });
    gone.await.is_some()
}

async fn create_namespace(user: &Client, name: &str) {
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(name.to_owned());
    user.create(&namespace).await.expect("it is created");
}

/// Whether there comes to be such a copy, within two seconds: the next try is later than that.
async fn copied(user: &Client, namespace: &str, value: &str) -> bool {
    let key = Key::new(namespace, "registry");
    let found = within(Duration::from_secs(2), async || {
        let copy = user.live().get::<Secret>(&key).await.expect("an answer")?;
        let found = copy.data?.remove("token")?;
        (found.0 == value.as_bytes()).then_some(())
    });
    found.await.is_some()
}

/// Whether there comes to be a warning that is counted.
async fn warned(user: &Client) -> bool {
    let warned = within(PATIENCE, async || {
        let events = user
            .live()
            .list::<Event>(Query::all())
            .await
            .expect("an answer");
        // So often that the next try is many seconds away.
        events
            .iter()
            .any(|event| event.count >= Some(12))
            .then_some(())
    });
    warned.await.is_some()
}

/// Whether the status has a time.
async fn is_told(user: &Client, synch: &SecSynch) -> bool {
    let key = Key::new(
        "default",
        synch.metadata.name.as_deref().unwrap_or_default(),
    );
    let told = within(PATIENCE, async || {
        let synch = user
            .live()
            .get::<SecSynch>(&key)
            .await
            .expect("an answer")?;
        synch.status?.last_sync_time
    });
    told.await.is_some()
}

#[tokio::test(start_paused = true)]
async fn operator_needs_exactly_its_role() {
    let grant = Grant::read(include_str!("../rbac.yaml")).expect("a grant");
    assert_exact(&grant, does_its_work).await;
}
