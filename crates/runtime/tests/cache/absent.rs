//! What reads and writes make of objects that the cache does not hold: absent is what does not exist.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::ApiResource;
use kubewright_cache::Selection;
use kubewright_runtime::{CacheOptions, CachePolicy, Change, Client, ClientError, Key};
use kubewright_testing::{Verb, limit, until};
use tokio::sync::watch;

use super::{Setup, config, setup};

fn key(name: &str) -> Key {
    Key::new("default", name)
}

async fn get(client: &Client, name: &str) -> Result<Option<Arc<ConfigMap>>, ClientError> {
    limit(client.get::<ConfigMap>(&key(name))).await
}

/// ConfigMaps `web` and `db` with their names as labels, and a client that caches some of them.
async fn narrowed(policy: CachePolicy) -> (Setup, Client) {
    let setup = setup().await;
    for name in ["web", "db"] {
        let config = config("default", name, Some(name));
        setup.other.create(&config).await.expect("it is created");
    }
    let client = setup.client(CacheOptions::new().policy(policy));
    (setup, client)
}

#[limited::test(start_paused = true)]
async fn object_that_selectors_leave_out_is_out_of_scope_and_not_absent() {
    let labelled = CachePolicy::of::<ConfigMap>().labels("app=web");
    let (setup, client) = narrowed(labelled).await;
    assert!(get(&client, "web").await.expect("read").is_some());
    assert_eq!(setup.gets(), 0, "it is in the cache");
    let error = get(&client, "db").await.expect_err("it exists");
    assert!(error.is_out_of_scope());
    assert_eq!(
        error.to_string(),
        "the cache of configmaps holds objects with the labels app=web, and not default/db"
    );
    assert!(get(&client, "none").await.expect("read").is_none());
    assert_eq!(
        setup.gets(),
        2,
        "the server is asked about what the cache lacks"
    );
}

#[limited::test(start_paused = true)]
async fn selector_of_names_says_what_it_leaves_out_without_the_server() {
    let named = |name: &str| {
        let selector = format!("metadata.name={name}");
        CachePolicy::of::<ConfigMap>().fields(selector)
    };
    let (setup, client) = narrowed(named("web")).await;
    assert!(get(&client, "web").await.expect("read").is_some());
    for name in ["db", "none"] {
        let error = get(&client, name).await.expect_err("it may exist");
        assert!(error.is_out_of_scope(), "{error}");
    }
    let (other, client) = narrowed(named("none")).await;
    assert!(get(&client, "none").await.expect("read").is_none());
    assert_eq!((setup.gets(), other.gets()), (0, 0));
}

#[limited::test(start_paused = true)]
async fn objects_that_the_cache_does_not_hold_are_changed_and_not_created_again() {
    let labelled = CachePolicy::of::<ConfigMap>().labels("app=web");
    let (setup, client) = narrowed(labelled).await;
    let set = |value: &'static str| {
        move |config: &mut ConfigMap| {
            let data = config.data.get_or_insert_default();
            data.insert("n".to_owned(), value.to_owned());
        }
    };
    for (value, expected) in [("2", Change::Updated), ("2", Change::Unchanged)] {
        let updated = limit(client.create_or_update(&key("db"), set(value))).await;
        assert_eq!(updated.expect("it is written").change, expected);
    }
    for (value, expected) in [("3", Change::Updated), ("3", Change::Unchanged)] {
        let patched = limit(client.create_or_patch(&key("db"), set(value))).await;
        assert_eq!(patched.expect("it is written").change, expected);
    }
    assert_eq!(setup.wire.count(Verb::Create), 0);
    let created = limit(client.create_or_update(&key("new"), set("1"))).await;
    assert_eq!(created.expect("it is written").change, Change::Created);
}

#[limited::test(start_paused = true)]
async fn objects_of_other_shards_are_out_of_scope_and_those_that_are_still_to_come_are_read() {
    let (setup, client) = narrowed(CachePolicy::of::<ConfigMap>()).await;
    let (changes, changed) = watch::channel(0);
    let is_own = Arc::new(AtomicBool::new(false));
    let holds = is_own.clone();
    let selection = Selection::new(changed, move |_| holds.load(Ordering::Relaxed));
    let resource = ApiResource::erase::<ConfigMap>(&());
    client.factory().select(&resource, selection);
    for name in ["web", "none"] {
        let error = get(&client, name).await.expect_err("it may exist");
        assert!(error.is_out_of_scope());
        assert_eq!(
            error.to_string(),
            format!(
                "the cache of configmaps holds objects of this replica's shards, and not default/{name}"
            )
        );
    }
    let unchanged = limit(client.create_or_update(&key("web"), |_: &mut ConfigMap| {})).await;
    let unchanged = unchanged.expect("it is there");
    assert_eq!((unchanged.change, setup.gets()), (Change::Unchanged, 1));

    // The shard is here before its objects are.
    is_own.store(true, Ordering::Relaxed);
    assert!(client.reader::<ConfigMap>().is_empty());
    assert!(get(&client, "web").await.expect("read").is_some());
    assert!(get(&client, "none").await.expect("read").is_none());
    assert_eq!(setup.gets(), 3);
    changes.send_replace(1);
    until("the shard is read", async || {
        (!client.reader::<ConfigMap>().is_empty()).then_some(())
    })
    .await;
    assert!(get(&client, "web").await.expect("read").is_some());
    assert_eq!(setup.gets(), 3);
}
