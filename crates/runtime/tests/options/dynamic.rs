//! Controllers that own, watch and index kinds which are not known at compile time.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::core::{ApiResource, DynamicObject};
use kubewright_runtime::watch::{OwnedBy, OwnerScope};
use kubewright_runtime::{
    Change, Client, Context, Controller, Index, Key, Manager, Outcome, Query, Reconciler, Watch,
    from_fn, is_controlled_by, set_controller_reference, set_owner_reference,
};
use kubewright_testing::limit;
use serde_json::json;
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
async fn dynamic_children_are_applied_created_and_changed() {
    let (_server, kube) = server().await;
    let client = Client::new(kube);
    let [configs, secrets] = kinds();
    let owner = limit(client.create(&config("owner"))).await;
    let owner = owner.expect("created");
    let (owners, children) = (client.dynamic(&configs), client.dynamic(&secrets));
    let key = |name| Key::new("default", name);
    let dynamic = limit(owners.get(&key("owner"))).await.expect("read");
    let dynamic = dynamic.expect("it is there");
    let fill = |value: &'static str| {
        move |child: &mut DynamicObject| child.data["stringData"]["a"] = json!(value)
    };
    let mark = |child: &mut DynamicObject| child.data["immutable"] = json!(false);

    for (name, expected) in [("typed", Change::Created), ("typed", Change::Unchanged)] {
        let applied = limit(children.apply_owned(&owner, &key(name), mark)).await;
        assert_eq!(applied.expect("it is applied").change, expected);
    }
    let applied = limit(children.apply_owned(&dynamic, &key("dynamic"), fill("1"))).await;
    let applied = applied.expect("it is applied");
    assert!(is_controlled_by(&owner, &*applied));
    let foreign = limit(children.apply_owned(&applied.object, &key("typed"), mark)).await;
    assert!(foreign.expect_err("it is the owner's").is_not_owned());

    for expected in [Change::Created, Change::Unchanged] {
        let updated = limit(children.create_or_update(&key("updated"), mark)).await;
        assert_eq!(updated.expect("it is written").change, expected);
        let patched = limit(children.create_or_patch(&key("patched"), mark)).await;
        assert_eq!(patched.expect("it is written").change, expected);
    }
    let updated = limit(children.create_or_update(&key("updated"), fill("2"))).await;
    assert_eq!(updated.expect("it is written").change, Change::Updated);
    let patched = limit(children.create_or_patch(&key("patched"), fill("3"))).await;
    assert_eq!(patched.expect("it is written").change, Change::Updated);
    for (name, value) in [("dynamic", "1"), ("updated", "2"), ("patched", "3")] {
        let read = limit(client.get::<Secret>(&key(name))).await.expect("read");
        let data = read.expect("it is there").data.clone().unwrap_or_default();
        assert_eq!(data["a"].0, value.as_bytes(), "{name}");
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
