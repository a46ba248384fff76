//! Writes that may refuse, say what they changed, and are not sent when nothing changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use kube::core::{ApiResource, DynamicObject};
use kubewright_runtime::finalizer::{self, Cleanup};
use kubewright_runtime::watch::OwnerScope;
use kubewright_runtime::{
    CacheOptions, CachePolicy, CancellationToken, Change, Client, ClientError, Context, Controller,
    Delete, Error, EventKind, Key, Manager, Outcome, Reconciler, is_controlled_by,
    set_controller_reference,
};
use kubewright_server::Server;
use kubewright_testing::{Wire, limit, until};
use serde_json::json;

/// A server, a wire that counts, and a client over it.
async fn world() -> (Server, Wire, Client) {
    let server = limit(Server::builder().start()).await.expect("a server");
    let wire = Wire::new(server.service());
    let client = Client::new(wire.client()).field_owner("tester");
    (server, wire, client)
}

fn writes(wire: &Wire) -> usize {
    let calls = wire.calls();
    calls
        .iter()
        .filter(|(call, _)| call.verb.is_write())
        .count()
}

fn config(name: &str) -> ConfigMap {
    let object = json!({"metadata": {"name": name, "namespace": "default"}, "data": {"a": "1"}});
    serde_json::from_value(object).expect("a ConfigMap")
}

fn bytes(value: &str) -> Option<BTreeMap<String, ByteString>> {
    let value = ByteString(value.as_bytes().to_vec());
    Some(BTreeMap::from([("value".to_owned(), value)]))
}

fn key(name: &str) -> Key {
    Key::new("default", name)
}

async fn created(client: &Client, name: &str) -> Arc<ConfigMap> {
    Arc::new(limit(client.create(&config(name))).await.expect("created"))
}

#[limited::test]
async fn closure_that_refuses_sends_nothing() {
    let (server, wire, client) = world().await;
    let present = created(&client, "present").await;
    limit(client.get::<ConfigMap>(&key("present")))
        .await
        .expect("the cache is filled");
    let (revision, sent) = (server.revision(), writes(&wire));
    let refuse = |config: &mut ConfigMap| {
        config.immutable = Some(true);
        Err(Error::msg("not this one"))
    };
    for name in ["present", "absent"] {
        let key = key(name);
        let updated = limit(client.create_or_update(&key, refuse)).await;
        let patched = limit(client.create_or_patch(&key, refuse)).await;
        for refused in [updated, patched] {
            let error = refused.expect_err("it is refused");
            let refusal = error.refusal().expect("by the closure").to_string();
            assert_eq!(refusal, "not this one");
            let report = Error::from(error).report();
            assert_eq!(
                report,
                format!("did not write configmaps default/{name}: not this one")
            );
        }
    }
    assert!(limit(client.modify(&present, refuse)).await.is_err());
    assert!(limit(client.modify_status(&present, refuse)).await.is_err());
    let owned = limit(client.apply_owned(&present, &key("child"), refuse)).await;
    assert!(owned.is_err());
    assert_eq!((server.revision(), writes(&wire)), (revision, sent));
}

#[limited::test]
async fn refusal_that_is_terminal_ends_the_reconcile_for_good() {
    let (_server, _wire, client) = world().await;
    for (refusal, terminal) in [
        (Error::msg("later"), false),
        (Error::terminal("never"), true),
    ] {
        let refuse = move |_: &mut ConfigMap| Err(refusal);
        let refused = limit(client.create_or_update(&key("a"), refuse)).await;
        let error = Error::from(refused.expect_err("it is refused"));
        assert_eq!(error.is_terminal(), terminal);
    }
}

/// Whoever writes first and looks at the owner afterwards has taken it over by then.
#[limited::test]
async fn secret_of_another_controller_is_not_overwritten() {
    let (server, wire, client) = world().await;
    let (mine, theirs) = (
        created(&client, "mine").await,
        created(&client, "theirs").await,
    );
    let mut foreign = Secret {
        data: bytes("theirs"),
        ..Secret::default()
    };
    foreign.metadata.name = Some("secret".to_owned());
    foreign.metadata.namespace = Some("default".to_owned());
    set_controller_reference(&theirs, &mut foreign).expect("it can be owned");
    let foreign = limit(client.create(&foreign)).await.expect("created");
    let mut orphan = config("orphan");
    orphan.data = None;
    limit(client.create(&orphan)).await.expect("created");
    let (revision, sent) = (server.revision(), writes(&wire));

    let place = key("secret");
    let replaced = limit(client.create_or_update(&place, |secret: &mut Secret| {
        set_controller_reference(&mine, secret)?;
        secret.data = bytes("mine");
        Ok(())
    }));
    assert!(replaced.await.expect_err("it is refused").is_not_owned());
    let fill = |secret: &mut Secret| secret.data = bytes("mine");
    let applied = limit(client.apply_owned(&mine, &key("secret"), fill)).await;
    let error = applied.expect_err("it is refused");
    assert!(error.is_not_owned());
    let report = Error::from(error).report();
    assert!(
        report.ends_with("is already owned by another ConfigMap controller theirs"),
        "{report}"
    );
    // What nobody controls is not ours either.
    let fill = |config: &mut ConfigMap| config.data = None;
    let applied = limit(client.apply_owned(&mine, &key("orphan"), fill)).await;
    assert!(applied.expect_err("it is refused").is_not_owned());

    assert_eq!((server.revision(), writes(&wire)), (revision, sent));
    let now = limit(client.live().get::<Secret>(&key("secret"))).await;
    let now = now.expect("an answer").expect("it is there");
    assert_eq!(
        (now.data.clone(), now.uid()),
        (bytes("theirs"), foreign.uid())
    );
}

#[limited::test]
async fn object_outside_of_a_selective_cache_is_not_overwritten_either() {
    let (_server, wire, _) = world().await;
    let policy = CachePolicy::of::<Secret>().labels("mine=yes");
    let client = Client::builder(wire.client())
        .cache(CacheOptions::new().policy(policy))
        .build();
    let mine = created(&client, "mine").await;
    let mut foreign = Secret::default();
    foreign.metadata.name = Some("secret".to_owned());
    foreign.metadata.namespace = Some("default".to_owned());
    limit(client.create(&foreign)).await.expect("created");
    let fill = |secret: &mut Secret| secret.data = bytes("mine");
    let applied = limit(client.apply_owned(&mine, &key("secret"), fill)).await;
    assert!(applied.expect_err("it is refused").is_not_owned());
}

#[limited::test]
async fn apply_is_sent_when_it_changes_something_and_not_otherwise() {
    let (server, wire, client) = world().await;
    let owner = created(&client, "owner").await;
    let fill = |value: &'static str| move |secret: &mut Secret| secret.data = bytes(value);
    let apply = async |value| {
        let place = key("child");
        let applied = client.apply_owned(&owner, &place, fill(value));
        limit(applied).await.expect("it is applied")
    };
    let first = apply("one").await;
    assert_eq!(first.change, Change::Created);
    assert!(is_controlled_by(&owner, &first));
    let (revision, sent) = (server.revision(), writes(&wire));
    for _ in 0..3 {
        assert_eq!(apply("one").await.change, Change::Unchanged);
    }
    assert_eq!((server.revision(), writes(&wire)), (revision, sent));

    // Other fields are others'.
    let person = Client::new(kube::Client::new(server.service(), "default")).field_owner("person");
    let label = |secret: &mut Secret| {
        secret
            .labels_mut()
            .insert("team".to_owned(), "a".to_owned());
    };
    let labelled = limit(person.modify(&first, label)).await.expect("labelled");
    until("the cache shows the label", async || {
        let cached = limit(client.get::<Secret>(&key("child")))
            .await
            .expect("read")?;
        (cached.resource_version() == labelled.resource_version()).then_some(())
    })
    .await;
    assert_eq!(apply("one").await.change, Change::Unchanged);
    assert_eq!(writes(&wire), sent);

    // Its own fields are put back.
    let edit = |secret: &mut Secret| secret.data = bytes("edited");
    let edited = limit(person.modify(&labelled, edit)).await.expect("edited");
    until("the cache shows the edit", async || {
        let cached = limit(client.get::<Secret>(&key("child")))
            .await
            .expect("read")?;
        (cached.resource_version() == edited.resource_version()).then_some(())
    })
    .await;
    let put_back = apply("one").await;
    assert_eq!(
        (put_back.change, &put_back.data),
        (Change::Updated, &bytes("one"))
    );
    assert_eq!(put_back.labels().get("team").map(String::as_str), Some("a"));
    assert_eq!(apply("two").await.change, Change::Updated);
    assert_eq!(writes(&wire), sent + 2);

    // Who knows nothing of it sends it once, and the server changes nothing.
    let revision = server.revision();
    let restarted = Client::new(wire.client()).field_owner("tester");
    for sent_in_all in [sent + 3, sent + 3] {
        let place = key("child");
        let applied = restarted.apply_owned(&owner, &place, fill("two"));
        assert_eq!(
            limit(applied).await.expect("applied").change,
            Change::Unchanged
        );
        assert_eq!((server.revision(), writes(&wire)), (revision, sent_in_all));
    }
}

#[limited::test]
async fn fields_that_are_no_longer_applied_are_removed() {
    let (_server, _wire, client) = world().await;
    let owner = created(&client, "owner").await;
    let both = |config: &mut ConfigMap| {
        let data = [("a", "1"), ("b", "2")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        config.data = Some(BTreeMap::from(data));
    };
    limit(client.apply_owned(&owner, &key("child"), both))
        .await
        .expect("applied");
    let one = |config: &mut ConfigMap| {
        config.data = Some(BTreeMap::from([("a".to_owned(), "1".to_owned())]));
    };
    let less = limit(client.apply_owned(&owner, &key("child"), one)).await;
    let less = less.expect("applied");
    let names: Vec<&str> = less
        .data
        .iter()
        .flatten()
        .map(|(name, _)| &**name)
        .collect();
    assert_eq!((less.change, names), (Change::Updated, vec!["a"]));
}

#[limited::test]
async fn optimistic_lock_makes_a_patch_of_an_older_state_a_conflict() {
    let (_server, _wire, client) = world().await;
    let deployment = json!({"metadata": {"name": "d", "namespace": "default"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    }});
    let deployment: Deployment = serde_json::from_value(deployment).expect("a Deployment");
    let first = Arc::new(limit(client.create(&deployment)).await.expect("created"));
    let label = |d: &mut Deployment| {
        d.labels_mut().insert("x".to_owned(), "y".to_owned());
    };
    limit(client.modify(&first, label)).await.expect("changed");
    let scale = |d: &mut Deployment| d.spec.replicas = Some(2);
    let status = |d: &mut Deployment| d.status.get_or_insert_default().replicas = Some(1);
    let locked = client.optimistic_lock();
    let scaled = limit(locked.modify(&first, scale)).await;
    assert!(scaled.expect_err("it is older").is_conflict());
    let reported = limit(locked.modify_status(&first, status)).await;
    assert!(reported.expect_err("it is older").is_conflict());
    let scaled = limit(client.modify(&first, scale))
        .await
        .expect("nobody minds");
    assert_eq!(scaled.change, Change::Updated);
    assert_eq!(scaled.labels().get("x").map(String::as_str), Some("y"));
    let again = limit(locked.modify(&scaled, scale))
        .await
        .expect("it is the newest");
    assert_eq!(again.change, Change::Unchanged);
}

#[limited::test]
async fn errors_have_the_reason_of_the_server() {
    let (_server, _wire, client) = world().await;
    let first = created(&client, "a").await;
    let error = limit(client.create(&config("a")))
        .await
        .expect_err("it exists");
    let text = r#"cannot create configmaps default/a: configmaps "a" already exists"#;
    assert_eq!(error.to_string(), text);
    assert_eq!(Error::from(error).report(), text);
    let label = |c: &mut ConfigMap| {
        c.labels_mut().insert("x".to_owned(), "y".to_owned());
    };
    limit(client.modify(&first, label)).await.expect("changed");
    let stale = limit(client.update(&first)).await.expect_err("it is older");
    assert!(stale.is_conflict() && Error::from(stale).is_conflict());
}

#[limited::test]
async fn every_write_has_the_name_of_its_operator() {
    let (_server, wire, _) = world().await;
    let manager = Manager::new(wire.client()).name("printer");
    let client = manager.client();
    let made = limit(client.create(&config("a"))).await.expect("created");
    let label = |c: &mut ConfigMap| {
        c.labels_mut().insert("x".to_owned(), "y".to_owned());
    };
    let modified = limit(client.modify(&made, label)).await.expect("changed");
    limit(client.apply(&config("b"))).await.expect("applied");
    let managers = |object: &ConfigMap| -> Vec<String> {
        let fields = object.managed_fields().iter();
        fields.filter_map(|entry| entry.manager.clone()).collect()
    };
    assert_eq!(managers(&modified), ["printer"]);
    let applied = limit(client.live().get::<ConfigMap>(&key("b"))).await;
    assert_eq!(
        managers(&applied.expect("read").expect("there")),
        ["printer"]
    );
}

/// Counts its clean-ups, and wants two of them for each object.
struct Careful;

fn note(object: &mut impl kube::Resource, name: &str) {
    let notes = object.meta_mut().annotations.get_or_insert_default();
    notes.insert(name.to_owned(), "yes".to_owned());
}

impl Reconciler<ConfigMap> for Careful {
    async fn reconcile(&self, object: Arc<ConfigMap>, cx: &Context) -> Result<Outcome, Error> {
        if !finalizer::contains(&object, "example.com/held") {
            return Err(Error::terminal("it is not held yet"));
        }
        cx.client().modify(&object, |it| note(it, "seen")).await?;
        Ok(Outcome::done())
    }

    async fn cleanup(
        &self,
        object: Arc<ConfigMap>,
        cx: &Context,
    ) -> Result<Cleanup<Outcome>, Error> {
        if object.annotations().contains_key("cleaned") {
            return Ok(Cleanup::Done);
        }
        cx.client()
            .modify(&object, |it| note(it, "cleaned"))
            .await?;
        Ok(Cleanup::NotYet(Outcome::requeue()))
    }
}

#[limited::test]
async fn finalizer_of_a_controller_holds_objects_until_they_are_cleaned_up() {
    let (_server, wire, client) = world().await;
    let controller = Controller::of::<ConfigMap>("careful")
        .finalizer("example.com/held")
        .reconciler(Careful);
    let stop = CancellationToken::new();
    let manager = Manager::new(wire.client()).controller(controller);
    let running = tokio::spawn(manager.run_until(stop.clone()));
    created(&client, "a").await;
    let read = async || {
        let read = limit(client.live().get::<ConfigMap>(&key("a"))).await;
        read.expect("an answer")
    };
    let seen = until("it is reconciled", async || {
        read()
            .await
            .filter(|it| it.annotations().contains_key("seen"))
    })
    .await;
    assert!(finalizer::contains(&seen, "example.com/held"));
    limit(client.delete(&seen, Delete::background()))
        .await
        .expect("deleted");
    until("it is gone", async || read().await.is_none().then_some(())).await;
    stop.cancel();
    limit(running)
        .await
        .expect("no panic")
        .expect("it ends well");
}

/// Holds objects whose type it does not know, and gives each a Secret and an event.
struct AnyKind;

impl Reconciler<DynamicObject> for AnyKind {
    async fn reconcile(&self, object: Arc<DynamicObject>, cx: &Context) -> Result<Outcome, Error> {
        let fill = |secret: &mut Secret| secret.data = bytes("made");
        let key = cx.key().sibling("made");
        cx.client().apply_owned(&object, &key, fill).await?;
        cx.event(&object, EventKind::Normal, "Made", "made a Secret");
        Ok(Outcome::done())
    }
}

#[limited::test]
async fn dynamic_objects_own_children_have_events_and_are_held_by_finalizers() {
    let (_server, wire, client) = world().await;
    let resource = ApiResource::erase::<ConfigMap>(&());
    let controller = Controller::dynamic("any", &resource, OwnerScope::Namespaced)
        .finalizer("example.com/held")
        .reconciler(AnyKind);
    let stop = CancellationToken::new();
    let manager = Manager::new(wire.client()).controller(controller);
    let running = tokio::spawn(manager.run_until(stop.clone()));
    let owner = created(&client, "a").await;
    let child = until("it has a child", async || {
        let read = limit(client.live().get::<Secret>(&key("made"))).await;
        read.expect("an answer")
    })
    .await;
    assert!(is_controlled_by(&owner, &child));
    let reference = &child.owner_references()[0];
    assert_eq!(
        (&*reference.api_version, &*reference.kind),
        ("v1", "ConfigMap")
    );
    until("there is an event", async || {
        let query = kubewright_runtime::Query::all();
        let events = client
            .live()
            .list::<k8s_openapi::api::core::v1::Event>(query);
        let events = limit(events).await.expect("an answer");
        let about = |event: &k8s_openapi::api::core::v1::Event| {
            let object = &event.involved_object;
            object.kind.as_deref() == Some("ConfigMap") && object.name.as_deref() == Some("a")
        };
        events.iter().any(about).then_some(())
    })
    .await;
    limit(client.delete(&owner, Delete::background()))
        .await
        .expect("deleted");
    until("it is gone", async || {
        let read = limit(client.live().get::<ConfigMap>(&key("a"))).await;
        read.expect("an answer").is_none().then_some(())
    })
    .await;
    stop.cancel();
    limit(running)
        .await
        .expect("no panic")
        .expect("it ends well");
}

#[test]
fn client_errors_stay_small() {
    assert!(
        size_of::<ClientError>() <= 80,
        "{}",
        size_of::<ClientError>()
    );
}

/// What an old spec does not name may be what the present one asks for, so deletions ask the server first.
#[limited::test]
async fn object_is_current_until_its_spec_changes_or_it_is_made_again() {
    let (_server, _wire, client) = world().await;
    let labels = json!({"app": "web"});
    let deployment = json!({
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": "web"}]},
            },
        },
    });
    let deployment: Deployment = serde_json::from_value(deployment).expect("a Deployment");
    let read = limit(client.create(&deployment)).await.expect("created");
    let label = |it: &mut Deployment| {
        it.labels_mut().insert("a".to_owned(), "1".to_owned());
    };
    limit(client.modify(&read, label)).await.expect("written");
    let current = limit(client.live().ensure_current(&read)).await;
    current.expect("a label does not belong to the spec");

    let scale = |it: &mut Deployment| it.spec.replicas = Some(3);
    let scaled = limit(client.modify(&read, scale)).await.expect("scaled");
    let changed = limit(client.live().ensure_current(&read)).await;
    let changed = changed.expect_err("the spec is another one");
    assert!(changed.is_conflict(), "{changed}");
    assert_eq!(
        changed.to_string(),
        "deployments.apps default/web has changed since it was read"
    );

    let deleted = client.delete(&scaled.object, Delete::background());
    limit(deleted).await.expect("deleted");
    let gone = limit(client.live().ensure_current(&scaled.object)).await;
    assert!(gone.expect_err("it is gone").is_conflict());
    let again = limit(client.create(&deployment)).await.expect("made again");
    assert_eq!(again.metadata.generation, read.metadata.generation);
    // Objects of a cache are shared, and taken as they are.
    let current = limit(client.live().ensure_current(&Arc::new(again))).await;
    current.expect("it is this one");
    let another = limit(client.live().ensure_current(&read)).await;
    assert!(another.expect_err("it has another uid").is_conflict());

    // Nobody counts the generations of a ConfigMap.
    let map = json!({"metadata": {"name": "web", "namespace": "default"}});
    let map: ConfigMap = serde_json::from_value(map).expect("a ConfigMap");
    let read = limit(client.create(&map)).await.expect("created");
    let current = limit(client.live().ensure_current(&read)).await;
    current.expect("nothing has changed");
    let fill = |it: &mut ConfigMap| {
        let data = it.data.get_or_insert_default();
        data.insert("a".to_owned(), "1".to_owned());
    };
    limit(client.modify(&read, fill)).await.expect("written");
    let changed = limit(client.live().ensure_current(&read)).await;
    assert!(changed.expect_err("it has other data").is_conflict());
}
