use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kubewright_server::Server;
use kubewright_testing::{Wire, limit};

use kubewright_cache::Key;

use super::*;

async fn wire() -> (Server, Wire) {
    let server = Server::builder().start().await.expect("a server starts");
    let wire = Wire::new(server.service());
    (server, wire)
}

fn config(name: &str) -> ConfigMap {
    let mut config = ConfigMap::default();
    config.metadata.name = Some(name.to_owned());
    config.metadata.namespace = Some("default".to_owned());
    config
}

fn remembered(client: &Client) -> usize {
    client.of::<ConfigMap>().form.entry.remembered()
}

#[limited::test(start_paused = true)]
async fn writes_to_a_kind_that_nobody_reads_are_not_remembered() {
    let (_server, wire) = wire().await;
    let client = Client::new(wire.client());
    for number in 0..50 {
        let created = client.create(&config(&number.to_string())).await;
        let created = created.expect("it is created");
        if number % 2 == 0 {
            let deleted = client.delete(&created, Delete::background()).await;
            deleted.expect("it is deleted");
        }
    }
    assert_eq!(remembered(&client), 0);
    let listed = limit(client.list::<ConfigMap>(Query::all().namespace("default"))).await;
    assert_eq!(listed.expect("read").len(), 25);
}

#[limited::test(start_paused = true)]
async fn write_is_forgotten_when_every_informer_has_shown_it_or_stopped() {
    let (_server, wire) = wire().await;
    wire.delay_watches(|| Duration::from_secs(1));
    let client = Client::new(wire.client());
    let key = Key::new("default", "a");
    let resource = ApiResource::erase::<ConfigMap>(&());
    let metadata = client.metadata(&resource);
    limit(client.get::<ConfigMap>(&key)).await.expect("read");
    limit(metadata.get(&key)).await.expect("read");
    client.create(&config("a")).await.expect("it is created");
    assert_eq!(remembered(&client), 2, "by each informer");
    let read = limit(client.get::<ConfigMap>(&key)).await;
    assert!(read.expect("read").is_some());
    assert_eq!(remembered(&client), 1, "the other informer may be behind");
    let read = limit(metadata.get(&key)).await;
    assert!(read.expect("read").is_some());
    assert_eq!(remembered(&client), 0);

    client.create(&config("b")).await.expect("it is created");
    client.remove_informer::<ConfigMap>();
    assert_eq!(remembered(&client), 1);
    metadata.remove_informer();
    assert_eq!(remembered(&client), 0, "nobody is left who could read it");
}

#[limited::test(start_paused = true)]
async fn nothing_is_remembered_where_reads_do_not_wait() {
    let (_server, wire) = wire().await;
    let eventual = Client::builder(wire.client()).consistency(Consistency::Eventual);
    let client = eventual.build();
    let read = limit(client.get::<ConfigMap>(&Key::new("default", "a"))).await;
    assert!(read.expect("read").is_none());
    client.create(&config("a")).await.expect("it is created");
    assert_eq!(remembered(&client), 0);
}

#[limited::test(start_paused = true)]
async fn client_that_outlives_its_reconcile_keeps_no_account_of_writes() {
    let (_server, wire) = wire().await;
    let reconcile = Client::new(wire.client()).with_trail();
    let background = reconcile.clone();
    reconcile.create(&config("a")).await.expect("it is created");
    assert_eq!(reconcile.take_traces().writes.len(), 1);
    for number in 0..10 {
        let mut secret = Secret::default();
        secret.metadata.name = Some(number.to_string());
        secret.metadata.namespace = Some("default".to_owned());
        background.create(&secret).await.expect("it is created");
    }
    assert!(background.take_traces().writes.is_empty());
}

/// A scope whose name ends as that of another one does.
struct NotClusterResourceScope;

/// An object of that scope.
#[derive(Debug, Clone, Default, Serialize, serde::Deserialize)]
struct Odd {
    metadata: kube::core::ObjectMeta,
}

impl Resource for Odd {
    type DynamicType = ();
    type Scope = NotClusterResourceScope;

    fn kind(_: &()) -> std::borrow::Cow<'_, str> {
        "Odd".into()
    }

    fn group(_: &()) -> std::borrow::Cow<'_, str> {
        "example.com".into()
    }

    fn version(_: &()) -> std::borrow::Cow<'_, str> {
        "v1".into()
    }

    fn plural(_: &()) -> std::borrow::Cow<'_, str> {
        "odds".into()
    }

    fn meta(&self) -> &kube::core::ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut kube::core::ObjectMeta {
        &mut self.metadata
    }
}

#[test]
fn scope_of_a_kind_is_known_by_its_type_and_not_by_its_name() {
    use k8s_openapi::api::core::v1::Node;
    assert!(is_cluster_scoped::<Node>() && !is_namespaced::<Node>());
    assert!(is_namespaced::<ConfigMap>() && !is_cluster_scoped::<ConfigMap>());
    assert!(!is_cluster_scoped::<Odd>());
}
