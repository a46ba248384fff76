//! Registered webhooks of every form, asked by a server.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, LimitRange, ResourceQuota, Secret, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubewright::prelude::*;
use kubewright::testing::World;
use kubewright::webhook::{Denial, Request, Validating, ValidationResult, Webhooks};

/// What the operator gives to its webhooks.
struct Team(&'static str);

/// Given to nobody.
#[derive(Debug)]
struct Missing;

#[kubewright::webhook(validating, verbs = "delete")]
fn keep(map: &ConfigMap) -> Result<(), Denial> {
    match map.data.as_ref().and_then(|data| data.get("keep")) {
        Some(reason) => Err(Denial::new(format!("it is kept: {reason}"))),
        None => Ok(()),
    }
}

#[kubewright::webhook(mutating)]
async fn assign(quota: &mut ResourceQuota, request: &Request) -> Result<(), Denial> {
    tokio::task::yield_now().await;
    let team = request.state::<Team>()?;
    let user = request.user_info.username.clone().unwrap_or_default();
    let labels = quota.metadata.labels.get_or_insert_default();
    labels.insert("team".to_owned(), team.0.to_owned());
    labels.insert("user".to_owned(), user.replace(':', "."));
    Ok(())
}

#[kubewright::webhook(validating)]
async fn only_grow(
    _range: &LimitRange,
    old: Option<&LimitRange>,
    request: &Request,
) -> Result<(), Denial> {
    tokio::task::yield_now().await;
    match (old, request.dry_run) {
        (None, _) => Ok(()),
        (Some(_), true) => Err(Denial::new("a dry run changes nothing")),
        (Some(_), false) => request.state::<Missing>().map(|_| ()),
    }
}

#[derive(Default)]
struct Secrets;

#[kubewright::webhook(validating)]
impl Validating<Secret> for Secrets {
    async fn create(&self, secret: &Secret, _: &Request) -> ValidationResult {
        match secret.data {
            Some(_) => Ok(vec!["write it down".to_owned()]),
            None => Err(Denial::invalid("an empty secret")),
        }
    }

    async fn delete(&self, old: &Secret, request: &Request) -> ValidationResult {
        let name = old.metadata.name.as_deref().unwrap_or_default();
        assert_eq!(name, request.name, "it is the object that is deleted");
        Err(Denial::new(format!("{name} is still in use")))
    }
}

/// Needs a value that no default knows.
#[kubewright::webhook(
    validating,
    name = "vserviceaccount.my.domain",
    path = "/validate-accounts",
    groups = "",
    versions = "v1",
    resources = "serviceaccounts",
    verbs = "create"
)]
struct Forbidden(&'static str);

impl Validating<ServiceAccount> for Forbidden {
    async fn create(&self, account: &ServiceAccount, _: &Request) -> ValidationResult {
        if account.metadata.name.as_deref() == Some(self.0) {
            return Err(Denial::new("this name is forbidden"));
        }
        Ok(Vec::new())
    }
}

#[kubewright::controller]
fn accounts() -> Controller {
    let reconciler = kubewright::runtime::from_fn(|_: std::sync::Arc<ServiceAccount>, _| async {
        Ok(Outcome::done())
    });
    Controller::of::<ServiceAccount>("accounts").reconciler(reconciler)
}

async fn world() -> World {
    let hooks = Webhooks::new().validating("/validate-accounts", Forbidden("root"));
    let world = World::builder().webhooks(hooks);
    let world = world.manager(|manager| manager.state(Team("blue")));
    world.start().await
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some("default".to_owned()),
        ..ObjectMeta::default()
    }
}

#[test]
fn verbs_of_an_implementation_are_its_methods() {
    let hooks = kubewright::registered::inventory().webhooks;
    let verbs = |path: &str| {
        let hook = hooks.iter().find(|hook| hook.path == path);
        hook.expect("it is registered").verbs.join(";")
    };
    assert_eq!(verbs("/validate--v1-secret"), "create;delete");
    assert_eq!(verbs("/validate--v1-configmap"), "delete");
    assert_eq!(verbs("/validate--v1-limitrange"), "create;update");
}

#[tokio::test]
async fn functions_and_types_are_asked_about_deletions() {
    let world = world().await;
    let mut map = ConfigMap {
        metadata: named("a"),
        data: Some([("keep".to_owned(), "it is the last one".to_owned())].into()),
        ..ConfigMap::default()
    };
    let stored = world
        .client
        .create(&map)
        .await
        .expect("creations are not asked about");
    let refused = world.client.delete(&stored, Delete::background()).await;
    let refused = refused.expect_err("it is kept").to_string();
    assert!(
        refused.contains("it is kept: it is the last one"),
        "{refused}"
    );
    map.metadata = named("b");
    map.data = None;
    let stored = world.client.create(&map).await.expect("it is created");
    let deleted = world.client.delete(&stored, Delete::background()).await;
    deleted.expect("nobody keeps it");

    let secret = Secret {
        metadata: named("token"),
        data: Some([("a".to_owned(), ByteString(b"b".to_vec()))].into()),
        ..Secret::default()
    };
    let stored = world.client.create(&secret).await.expect("it has data");
    let refused = world.client.delete(&stored, Delete::background()).await;
    let refused = refused.expect_err("it is in use").to_string();
    assert!(refused.contains("token is still in use"), "{refused}");
    let empty = Secret {
        data: None,
        metadata: named("empty"),
        ..secret
    };
    let refused = world.client.create(&empty).await.expect_err("it is empty");
    assert!(refused.to_string().contains("an empty secret"), "{refused}");
}

#[tokio::test]
async fn async_functions_have_the_request_and_the_state_of_the_manager() {
    let world = world().await;
    let quota = ResourceQuota {
        metadata: named("a"),
        ..ResourceQuota::default()
    };
    let stored = world.client.create(&quota).await.expect("it is defaulted");
    let labels = stored.metadata.labels.unwrap_or_default();
    let label = |name: &str| labels.get(name).map(String::as_str);
    assert_eq!(label("team"), Some("blue"));
    assert!(
        label("user").is_some_and(|user| !user.is_empty()),
        "{labels:?}"
    );

    let range = LimitRange {
        metadata: named("a"),
        ..LimitRange::default()
    };
    let mut stored = world.client.create(&range).await.expect("it is new");
    stored.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
    let tried = world.client.dry_run().update(&stored).await;
    let tried = tried.expect_err("a dry run is seen").to_string();
    assert!(tried.contains("a dry run changes nothing"), "{tried}");
    let refused = world
        .client
        .update(&stored)
        .await
        .expect_err("a state is missing");
    assert!(
        refused.to_string().contains("there is no state of type"),
        "{refused}"
    );
}

#[tokio::test]
async fn worlds_serve_what_operators_are_given() {
    let world = world().await;
    let account = |name: &str| ServiceAccount {
        metadata: named(name),
        ..ServiceAccount::default()
    };
    let refused = world.client.create(&account("root")).await;
    let refused = refused.expect_err("a name is forbidden").to_string();
    assert!(refused.contains("this name is forbidden"), "{refused}");
    let other = world.client.create(&account("other")).await;
    other.expect("another name is allowed");
}
