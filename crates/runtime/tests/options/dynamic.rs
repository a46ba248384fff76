//! Controllers that own, watch and index kinds which are not known at compile time.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::core::{ApiResource, DynamicObject};
use kubewright_runtime::watch::{OwnedBy, OwnerScope};
use kubewright_runtime::{
    Client, Context, Controller, Index, Manager, Outcome, Query, Reconciler, Watch, from_fn,
    set_controller_reference, set_owner_reference,
};
use kubewright_testing::limit;
use tokio::sync::mpsc;

use super::{config, here, run, server};

fn kinds() -> [ApiResource; 2] {
    [
        ApiResource::erase::<ConfigMap>(&()),
        ApiResource::erase::<Secret>(&()),
    ]
}

fn secret(name: &str) -> Secret {
    let mut secret = Secret::default();
    secret.metadata.name = Some(name.to_owned());
    secret.metadata.namespace = Some("default".to_owned());
    secret
}

/// Tells the names of what is reconciled.
fn naming(sender: mpsc::Sender<String>) -> impl Reconciler<DynamicObject> {
    from_fn(move |_: Arc<DynamicObject>, cx: Context| {
        // The test may be over.
        let _ = sender.try_send(cx.key().name().to_owned());
        async { Ok(Outcome::done()) }
    })
}

#[limited::test(start_paused = true)]
async fn dynamic_objects_that_are_owned_lead_to_their_owner() {
    for which in [OwnedBy::Controller, OwnedBy::Anyone] {
        let (_server, kube) = server().await;
        let client = Client::new(kube.clone());
        let owner = limit(client.create(&config("owner"))).await;
        let owner = owner.expect("created");
        let (sender, mut heard) = mpsc::channel(16);
        let [configs, secrets] = kinds();
        let described =
            Controller::dynamic("owner", &configs, OwnerScope::Namespaced).scope(here());
        let mut owned = secret("owned");
        let described = if which == OwnedBy::Controller {
            set_controller_reference(&owner, &mut owned).expect("it fits");
            described.owns_dynamic(&secrets)
        } else {
            set_owner_reference(&owner, &mut owned, Default::default()).expect("it fits");
            let watch = described.owned_dynamic(&secrets, which);
            described.watches(watch.scope(here()))
        };
        let running = run(Manager::new(kube).controller(described.reconciler(naming(sender))));
        assert_eq!(limit(heard.recv()).await.as_deref(), Some("owner"));
        limit(client.create(&owned)).await.expect("created");
        assert_eq!(
            limit(heard.recv()).await.as_deref(),
            Some("owner"),
            "{which:?}"
        );
        running.end().await;
    }
}

#[limited::test(start_paused = true)]
async fn dynamic_index_leads_from_a_change_to_what_refers_to_it() {
    let (_server, kube) = server().await;
    let client = Client::new(kube.clone());
    let mut refers = config("refers");
    refers.metadata.labels = Some([("secret".to_owned(), "password".to_owned())].into());
    limit(client.create(&refers)).await.expect("created");
    let (sender, mut heard) = mpsc::channel(16);
    let [configs, secrets] = kinds();
    let watch = Watch::dynamic(&secrets).scope(here()).map_by_dynamic_index(
        &configs,
        "by-secret",
        |secret| secret.metadata.name.clone().into_iter().collect(),
    );
    let controller = Controller::dynamic("refers", &configs, OwnerScope::Namespaced)
        .scope(here())
        .index_dynamic(&configs, "by-secret", Index::by_label("secret"))
        .watches(watch)
        .reconciler(naming(sender));
    let manager = Manager::new(kube);
    let cached = manager.client();
    let running = run(manager.controller(controller));
    assert_eq!(limit(heard.recv()).await.as_deref(), Some("refers"));
    let query = Query::all().index("by-secret", "password");
    let found = limit(cached.dynamic(&configs).list(query)).await;
    assert_eq!(found.expect("it is indexed").len(), 1);
    for name in ["other", "password"] {
        limit(client.create(&secret(name))).await.expect("created");
    }
    assert_eq!(
        limit(heard.recv()).await.as_deref(),
        Some("refers"),
        "the second Secret is the one that it refers to"
    );
    running.end().await;
}
