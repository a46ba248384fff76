//! Facts about finalizers, against the server.

use std::convert::Infallible;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::{DeleteParams, PatchParams, PostParams};
use kubewright_server::Server;

use super::*;

const NAME: &str = "example.com/cleanup";

async fn client() -> (Server, Client) {
    let server = Server::builder().start().await.expect("starts");
    let client = Client::new(kube::Client::new(server.service(), "default"));
    (server, client)
}

async fn created(client: &Client) -> (Api<ConfigMap>, ConfigMap) {
    let api: Api<ConfigMap> = Api::default_namespaced(client.kube().clone());
    let object = serde_json::from_value(json!({"metadata": {"name": "one"}})).expect("is one");
    let object = api.create(&PostParams::default(), &object).await;
    (api, object.expect("created"))
}

async fn run(
    client: &Client,
    object: &ConfigMap,
    cleanup: Cleanup<&'static str>,
) -> Result<Finalized<&'static str>, FinalizeError<Infallible>> {
    let object = Arc::new(object.clone());
    let apply = async |object: Arc<ConfigMap>| {
        assert!(contains(&object, NAME), "it is there before anything else");
        Ok("applied")
    };
    finalize(client, object, NAME, apply, async move |_| Ok(cleanup)).await
}

#[test]
fn finalizers_are_added_and_removed_once() {
    let mut object = ConfigMap::default();
    assert!(add(&mut object, "a") && add(&mut object, "b") && !add(&mut object, "a"));
    assert!(contains(&object, "a"));
    assert!(remove(&mut object, "a") && !remove(&mut object, "a"));
    assert_eq!(finalizers(&object), ["b"]);
}

#[limited::test]
async fn object_is_held_until_its_cleanup_is_done() {
    let (_server, client) = client().await;
    let (api, object) = created(&client).await;
    let outcome = run(&client, &object, Cleanup::Done).await.expect("applies");
    assert_eq!(outcome, Finalized::Applied("applied"));
    let held = api.get("one").await.expect("read");
    assert!(contains(&held, NAME));
    api.delete("one", &DeleteParams::default())
        .await
        .expect("asked");
    let going = api.get("one").await.expect("it is held");
    let outcome = run(&client, &going, Cleanup::NotYet("wait")).await;
    assert_eq!(outcome.expect("runs"), Finalized::NotYet("wait"));
    let outcome = run(&client, &going, Cleanup::Done).await.expect("runs");
    assert_eq!(outcome, Finalized::Removed);
    assert_eq!(api.get_opt("one").await.expect("asked"), None);
    let outcome = run(&client, &going, Cleanup::Done)
        .await
        .expect("gone is fine");
    assert_eq!(outcome, Finalized::Removed);
}

#[limited::test]
async fn stale_object_gets_no_finalizer() {
    let (_server, client) = client().await;
    let (api, stale) = created(&client).await;
    let change = Patch::Merge(json!({"data": {"a": "1"}}));
    let changed = api.patch("one", &PatchParams::default(), &change).await;
    let error = run(&client, &stale, Cleanup::Done)
        .await
        .expect_err("stale");
    assert!(error.is_conflict(), "{error}");
    run(&client, &changed.expect("changed"), Cleanup::Done)
        .await
        .expect("fresh");
}

#[limited::test]
async fn removal_survives_a_write_in_between_and_keeps_others() {
    let (_server, client) = client().await;
    let (api, object) = created(&client).await;
    run(&client, &object, Cleanup::Done).await.expect("applies");
    api.delete("one", &DeleteParams::default())
        .await
        .expect("asked");
    let stale = api.get("one").await.expect("it is held");
    let change = Patch::Merge(json!({"data": {"a": "1"}}));
    let params = PatchParams::default();
    api.patch("one", &params, &change).await.expect("changed");
    let outcome = run(&client, &stale, Cleanup::Done).await.expect("runs");
    assert_eq!(outcome, Finalized::Removed);
    assert_eq!(api.get_opt("one").await.expect("asked"), None);
}

#[limited::test]
async fn object_that_others_hold_is_left_alone() {
    let (_server, client) = client().await;
    let (api, object) = created(&client).await;
    let other = Patch::Merge(json!({"metadata": {"finalizers": ["other.com/x"]}}));
    let params = PatchParams::default();
    api.patch("one", &params, &other).await.expect("patched");
    api.delete("one", &DeleteParams::default())
        .await
        .expect("asked");
    let going = api.get("one").await.expect("it is held");
    assert_eq!(going.metadata.uid, object.metadata.uid);
    let outcome = run(&client, &going, Cleanup::Done).await.expect("runs");
    assert_eq!(outcome, Finalized::Absent);
}

#[limited::test]
async fn cluster_scoped_objects_have_finalizers_too() {
    let (_server, client) = client().await;
    let api: Api<Namespace> = Api::all(client.kube().clone());
    let object = Arc::new(api.get("default").await.expect("there"));
    let apply = async |_| Ok::<_, Infallible>(());
    let future = finalize(&client, object, NAME, apply, async |_| Ok(Cleanup::Done));
    // Reconcilers run on many threads.
    fn is_send<F: Send>(future: F) -> F {
        future
    }
    is_send(future).await.expect("applies");
    assert!(contains(&api.get("default").await.expect("there"), NAME));
}

#[limited::test]
async fn failure_names_the_object_the_finalizer_and_its_cause() {
    let (_server, client) = client().await;
    let (api, object) = created(&client).await;
    let attempt = async |object: ConfigMap, error: fn() -> crate::Error| {
        let (apply, cleanup) = (
            async |_: Arc<ConfigMap>| Err::<(), _>(error()),
            async |_: Arc<ConfigMap>| Err::<Cleanup<()>, _>(error()),
        );
        let result = finalize(&client, Arc::new(object), NAME, apply, cleanup).await;
        crate::Error::from(result.expect_err("it fails"))
    };
    let error = attempt(object, || crate::Error::msg("no bucket")).await;
    let expected =
        "applying configmaps default/one with finalizer example.com/cleanup failed: no bucket";
    assert_eq!(error.report(), expected);
    assert!(!error.is_terminal());
    api.delete("one", &DeleteParams::default())
        .await
        .expect("asked");
    let going = api.get("one").await.expect("it is held");
    let error = attempt(going.clone(), || crate::Error::terminal("no such region")).await;
    let expected = "cleaning up configmaps default/one for finalizer example.com/cleanup failed: no such region";
    assert_eq!(error.report(), expected);
    assert!(error.is_terminal(), "as its cause is");
    let cleanup = async |_: Arc<ConfigMap>| Err::<Cleanup<()>, _>(std::fmt::Error);
    let apply = async |_: Arc<ConfigMap>| Ok(());
    let error = finalize(&client, Arc::new(going), NAME, apply, cleanup).await;
    let error = error.expect_err("it fails");
    let source = error.source().map(ToString::to_string);
    assert_eq!(source, Some(std::fmt::Error.to_string()));
    assert!(error.to_string().starts_with("cleaning up"), "{error}");
}

#[limited::test]
async fn conflict_stays_one_behind_what_failed() {
    let (_server, client) = client().await;
    let (api, stale) = created(&client).await;
    let change = Patch::Merge(json!({"data": {"a": "1"}}));
    let changed = api.patch("one", &PatchParams::default(), &change).await;
    changed.expect("changed");
    let apply = async |_: Arc<ConfigMap>| Ok::<_, crate::Error>(());
    let cleanup = async |_: Arc<ConfigMap>| Ok(Cleanup::Done);
    let result = finalize(&client, Arc::new(stale), NAME, apply, cleanup).await;
    let error = crate::Error::from(result.expect_err("stale"));
    assert!(error.is_conflict(), "{}", error.report());
    let expected =
        "adding finalizer example.com/cleanup to configmaps default/one failed: cannot patch";
    assert!(error.report().starts_with(expected), "{}", error.report());
}
