//! Service accounts: each namespace has one called `default`, `kube-system` one for each controller, and all know whom to trust; secrets for tokens are filled, and go
//! with their account.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, ServiceAccount};
use kube::ResourceExt;
use kubewright_cache::{NAMESPACE_INDEX, Object};
use kubewright_runtime::{
    Client, ClientError, Context, Controller, Delete, Error, Key, Outcome, Reconciler, Watch,
};
use serde_json::{Value, json};

/// The service account of every namespace.
const DEFAULT: &str = "default";
/// The config map of every namespace that names the certificate authority.
const ROOT_CA: &str = "kube-root-ca.crt";
/// The type of secrets that hold a token.
const TOKEN: &str = "kubernetes.io/service-account-token";
const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
/// How long tokens in secrets are good, in seconds: as long as the server lets any be.
const FOR_EVER: i64 = 1 << 32;
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";
const DESCRIPTION: (&str, &str) = (
    "kubernetes.io/description",
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the \
     internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes \
     clusters.",
);

/// The namespace of the accounts of controllers.
const SYSTEM: &str = "kube-system";

/// Makes the service account of every namespace, and in `kube-system` those that controllers act as: on a real cluster each
/// controller has its own made when it first asks for a token.
pub(crate) fn controller(of_controllers: &'static [&'static str]) -> Controller {
    Controller::of::<Namespace>("serviceaccount")
        .watches(Watch::of::<ServiceAccount>().map(|account, _| named(account, DEFAULT)))
        .reconciler(Accounts { of_controllers })
}

/// Tells every namespace the certificate authority, PEM.
pub(crate) fn root_ca_controller(authority: String) -> Controller {
    Controller::of::<Namespace>("root-ca-certificate-publisher")
        .watches(Watch::of::<ConfigMap>().map(|map, _| named(map, ROOT_CA)))
        .reconciler(RootCa { authority })
}

/// Fills secrets that are for tokens of service accounts, and deletes those of accounts that are gone.
pub(crate) fn token_controller(authority: String) -> Controller {
    Controller::of::<Secret>("serviceaccount-token")
        .watches(Watch::of::<ServiceAccount>().map(tokens_of))
        .reconciler(Tokens { authority })
}

/// The secrets with tokens of a service account.
fn tokens_of(account: &ServiceAccount, client: &Client) -> Vec<Key> {
    let (namespace, name) = (account.namespace().unwrap_or_default(), account.name_any());
    let secrets = client.reader::<Secret>();
    let there = secrets.entries_by_index(NAMESPACE_INDEX, &namespace);
    let of_account = |secret: &&Arc<Object>| {
        let owner = secret.annotation(ACCOUNT_NAME);
        owner.is_some_and(|owner| owner == name)
    };
    let there = there.iter().flat_map(|found| found.objects());
    let found = there.filter(of_account);
    let mut keys: Vec<Key> = found.map(|secret| secret.key().clone()).collect();
    keys.sort();
    keys
}

/// The namespace of an object, if the object has this name.
fn named(object: &impl ResourceExt, name: &str) -> Vec<Key> {
    let namespace = object.namespace().filter(|_| object.name_any() == name);
    namespace.iter().map(|n| Key::cluster(n)).collect()
}

/// Whether objects can still be made in a namespace.
fn is_active(namespace: &Namespace) -> bool {
    namespace.metadata.deletion_timestamp.is_none()
}

/// A namespace may be deleted between the read and the write, and another may have been faster.
fn settled<T>(result: Result<T, ClientError>) -> Result<Outcome, Error> {
    match result {
        Ok(_) => Ok(Outcome::done()),
        Err(error) if error.is_already_exists() || error.is_not_found() => Ok(Outcome::done()),
        Err(error) if error.is_namespace_terminating() => Ok(Outcome::done()),
        Err(error) => Err(error.into()),
    }
}

struct Accounts {
    of_controllers: &'static [&'static str],
}

impl Reconciler<Namespace> for Accounts {
    async fn reconcile(&self, namespace: Arc<Namespace>, cx: &Context) -> Result<Outcome, Error> {
        if !is_active(&namespace) {
            return Ok(Outcome::done());
        }
        let of_controllers = self.of_controllers.iter();
        let of_controllers = of_controllers.filter(|_| cx.key().name() == SYSTEM);
        for name in [DEFAULT].iter().chain(of_controllers) {
            let key = Key::new(cx.key().name(), name);
            if cx.client().get::<ServiceAccount>(&key).await?.is_some() {
                continue;
            }
            let mut account = ServiceAccount::default();
            account.metadata.namespace = Some(cx.key().name().to_owned());
            account.metadata.name = Some((*name).to_owned());
            settled(cx.client().create(&account).await).map(drop)?;
        }
        Ok(Outcome::done())
    }
}

struct RootCa {
    authority: String,
}

impl RootCa {
    /// The config map as it should be. What others have added to it besides stays.
    fn desire(&self, map: &mut ConfigMap) {
        map.data = Some(BTreeMap::from([(
            "ca.crt".to_owned(),
            self.authority.clone(),
        )]));
        let annotations = map.metadata.annotations.get_or_insert_default();
        annotations.insert(DESCRIPTION.0.to_owned(), DESCRIPTION.1.to_owned());
    }
}

impl Reconciler<Namespace> for RootCa {
    async fn reconcile(&self, namespace: Arc<Namespace>, cx: &Context) -> Result<Outcome, Error> {
        if !is_active(&namespace) {
            return Ok(Outcome::done());
        }
        let key = Key::new(cx.key().name(), ROOT_CA);
        let client = cx.client();
        settled(client.create_or_update(&key, |map| self.desire(map)).await)
    }
}

struct Tokens {
    authority: String,
}

impl Reconciler<Secret> for Tokens {
    async fn reconcile(&self, secret: Arc<Secret>, cx: &Context) -> Result<Outcome, Error> {
        let Some((name, uid)) = account_of(&secret) else {
            return Ok(Outcome::done());
        };
        let key = Key::new(cx.key().namespace().unwrap_or_default(), name);
        // Asks the server itself: a token must not be lost to a cache that lags behind.
        let account = cx.client().live().get::<ServiceAccount>(&key).await?;
        let is_it = |account: &ServiceAccount| {
            uid.is_none_or(|uid| account.metadata.uid.as_deref() == Some(uid))
        };
        match account.filter(is_it) {
            None => settled(cx.client().delete(&*secret, Delete::background()).await),
            Some(account) => self.fill(&secret, &key, &account, cx.client()).await,
        }
    }
}

impl Tokens {
    async fn fill(
        &self,
        secret: &Secret,
        key: &Key,
        account: &ServiceAccount,
        client: &Client,
    ) -> Result<Outcome, Error> {
        let filled = secret
            .data
            .as_ref()
            .is_some_and(|data| data.contains_key("token"));
        if filled || secret.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::done());
        }
        let bound = json!({
            "apiVersion": "v1", "kind": "Secret",
            "name": secret.metadata.name, "uid": secret.metadata.uid,
        });
        let request = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"audiences": [], "boundObjectRef": bound, "expirationSeconds": FOR_EVER},
        });
        let accounts = client.of::<ServiceAccount>();
        let made: Value = accounts.create_subresource(key, "token", &request).await?;
        let token = made["status"]["token"].as_str().unwrap_or_default();
        let mut filled = secret.clone();
        self.write(&mut filled, account, token);
        settled(client.update(&filled).await)
    }

    /// Writes what a client in the cluster needs to reach the server.
    fn write(&self, secret: &mut Secret, account: &ServiceAccount, token: &str) {
        let namespace = secret.metadata.namespace.clone().unwrap_or_default();
        let data = secret.data.get_or_insert_default();
        for (name, text) in [
            ("token", token),
            ("ca.crt", &self.authority),
            ("namespace", &namespace),
        ] {
            data.insert(name.to_owned(), ByteString(text.as_bytes().to_vec()));
        }
        let annotations = secret.metadata.annotations.get_or_insert_default();
        let uid = account.metadata.uid.clone().unwrap_or_default();
        annotations.insert(ACCOUNT_UID.to_owned(), uid);
    }
}

/// The name of the service account that a secret is of, and its uid if that is known.
fn account_of(secret: &Secret) -> Option<(&str, Option<&str>)> {
    let annotations = secret.metadata.annotations.as_ref()?;
    let name = annotations.get(ACCOUNT_NAME)?;
    (secret.type_.as_deref() == Some(TOKEN))
        .then_some((name, annotations.get(ACCOUNT_UID).map(|u| &**u)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_another_type_are_of_no_account() {
        let mut secret = Secret::default();
        let annotations = BTreeMap::from([(ACCOUNT_NAME.to_owned(), "robot".to_owned())]);
        secret.metadata.annotations = Some(annotations);
        assert_eq!(account_of(&secret), None);
        secret.type_ = Some(TOKEN.to_owned());
        assert_eq!(account_of(&secret), Some(("robot", None)));
    }

    #[test]
    fn additions_of_others_to_the_config_map_stay_in_its_metadata_alone() {
        let authority = RootCa {
            authority: "PEM".to_owned(),
        };
        let mut map = ConfigMap::default();
        map.metadata.labels = Some(BTreeMap::from([("a".to_owned(), "b".to_owned())]));
        map.data = Some(BTreeMap::from([("other".to_owned(), "x".to_owned())]));
        authority.desire(&mut map);
        assert_eq!(
            map.data,
            Some(BTreeMap::from([("ca.crt".to_owned(), "PEM".to_owned())]))
        );
        assert!(map.metadata.labels.is_some());
    }
}
