//! Who the components of a cluster are to its API server: the users and groups that they have on a real cluster, so that
//! roles bind them, and policies and webhooks that look at `userInfo` see what they would see there.
//!
//! All of them share one connection. Each request names its user in its extensions, which the server heeds for
//! [components](kubewright_server::Server::service_for_components) alone; over any other connection they are ignored.

use http::Request;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Request as Requests};
use kube::client::Body;
use kube::core::request::Error as RequestError;
use kube::{Client, Resource};
use kubewright_server::User;
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use tower::service_fn;

/// The namespace of the service accounts of controllers.
const NAMESPACE: &str = "kube-system";

/// The controllers' manager: whose informers all controllers share.
pub(crate) fn controller_manager() -> User {
    User::new("system:kube-controller-manager", [""; 0])
}

/// The scheduler's user.
pub(crate) fn scheduler() -> User {
    User::new("system:kube-scheduler", [""; 0])
}

/// The proxy of Services.
pub(crate) fn proxy() -> User {
    User::new("system:kube-proxy", [""; 0])
}

/// The service account of a controller, as `--use-service-account-credentials` gives each one its own.
pub(crate) fn controller(name: &str) -> User {
    let groups = [
        "system:serviceaccounts".to_owned(),
        format!("system:serviceaccounts:{NAMESPACE}"),
    ];
    User::new(format!("system:serviceaccount:{NAMESPACE}:{name}"), groups)
}

/// The kubelet of a node.
pub(crate) fn node(name: &str) -> User {
    User::new(format!("system:node:{name}"), ["system:nodes"])
}

/// A client whose requests are made as this user.
pub(crate) fn acting_as(kube: &Client, user: User) -> Client {
    let (kube, namespace) = (kube.clone(), kube.default_namespace().to_owned());
    let service = service_fn(move |mut request: Request<Body>| {
        request.extensions_mut().insert(user.clone());
        let kube = kube.clone();
        async move { kube.send(request).await }
    });
    Client::new(service, namespace)
}

/// One of very many users of a client: a node. It costs nothing but its name, where [`acting_as`] starts a task.
#[derive(Clone)]
pub(crate) struct Acting {
    kube: Client,
    /// None: whoever the client's requests are made as.
    user: Option<User>,
}

/// A request, or why it could not be made.
type Built = Result<Request<Vec<u8>>, RequestError>;

impl Acting {
    /// Whoever the client's requests are made as.
    pub(crate) fn of(kube: &Client) -> Self {
        Self {
            kube: kube.clone(),
            user: None,
        }
    }

    pub(crate) fn new(kube: &Client, user: User) -> Self {
        Self {
            kube: kube.clone(),
            user: Some(user),
        }
    }

    /// Another user of the same client.
    pub(crate) fn as_user(&self, user: User) -> Self {
        Self::new(&self.kube, user)
    }

    /// Sends a request.
    ///
    /// # Errors
    /// What the server answers.
    pub(crate) async fn send<T: DeserializeOwned>(&self, built: Built) -> Result<T, kube::Error> {
        let mut request = built.map_err(kube::Error::BuildRequest)?;
        if let Some(user) = &self.user {
            request.extensions_mut().insert(user.clone());
        }
        let answer = self.kube.request_text(request).await?;
        // As informers decode it, so that a type is read in one way only: that is half of the code which it costs.
        kubewright_cache::decode(answer.as_bytes()).map_err(kube::Error::SerdeError)
    }

    /// Reads an object, if it is there.
    ///
    /// # Errors
    /// What the server answers.
    pub(crate) async fn get_opt<K>(
        &self,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<K>, kube::Error>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let built = at::<K>(namespace).get(name, &Default::default());
        match self.send(built).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            other => other.map(Some),
        }
    }

    /// Creates an object.
    ///
    /// # Errors
    /// What the server answers.
    pub(crate) async fn create<K>(
        &self,
        namespace: Option<&str>,
        params: &PostParams,
        object: &K,
    ) -> Result<K, kube::Error>
    where
        K: Resource<DynamicType = ()> + Serialize + DeserializeOwned,
    {
        // By way of a value, as the client of controllers writes it: a type is written in one way only.
        let value = serde_json::to_value(object).map_err(kube::Error::SerdeError)?;
        let body = serde_json::to_vec(&value).map_err(kube::Error::SerdeError)?;
        self.send(at::<K>(namespace).create(params, body)).await
    }

    /// Creates an object, and does not read what becomes of it.
    ///
    /// # Errors
    /// What the server answers.
    pub(crate) async fn post<K: Resource<DynamicType = ()>>(
        &self,
        namespace: Option<&str>,
        params: &PostParams,
        object: &impl Serialize,
    ) -> Result<(), kube::Error> {
        let body = serde_json::to_vec(object).map_err(kube::Error::SerdeError)?;
        let built = at::<K>(namespace).create(params, body);
        self.send::<IgnoredAny>(built).await.map(drop)
    }

    /// Patches an object.
    ///
    /// # Errors
    /// What the server answers.
    pub(crate) async fn patch<K: Resource<DynamicType = ()>>(
        &self,
        (namespace, name): (Option<&str>, &str),
        params: &PatchParams,
        patch: &Patch<impl Serialize>,
    ) -> Result<(), kube::Error> {
        let built = at::<K>(namespace).patch(name, params, patch);
        self.send::<IgnoredAny>(built).await.map(drop)
    }

    /// Patches the status of an object. What comes back is not read unless it is asked for: nodes write far more often than
    /// they need to know what became of it, and to decode a whole object takes longer than to say what is new.
    ///
    /// # Errors
    /// What the server answers.
    pub(crate) async fn patch_status<K: Resource<DynamicType = ()>, T: DeserializeOwned>(
        &self,
        (namespace, name): (Option<&str>, &str),
        params: &PatchParams,
        patch: &Patch<impl Serialize>,
    ) -> Result<T, kube::Error> {
        let built = at::<K>(namespace).patch_subresource("status", name, params, patch);
        self.send(built).await
    }

    /// Deletes an object.
    ///
    /// # Errors
    /// What the server answers.
    pub(crate) async fn delete<K: Resource<DynamicType = ()>>(
        &self,
        namespace: Option<&str>,
        name: &str,
        params: &DeleteParams,
    ) -> Result<(), kube::Error> {
        let built = at::<K>(namespace).delete(name, params);
        self.send::<IgnoredAny>(built).await.map(drop)
    }
}

/// Requests about objects of a kind.
fn at<K: Resource<DynamicType = ()>>(namespace: Option<&str>) -> Requests {
    Requests::new(K::url_path(&(), namespace))
}
