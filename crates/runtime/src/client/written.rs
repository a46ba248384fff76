//! What a write did, and the closures that say what is to be written.

use std::ops::Deref;

use kube::core::Resource;
use kubewright_cache::{AsObject, sealed};

use crate::Error;

/// What a write did to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// The object did not exist before.
    Created,
    /// The object existed and is different now.
    Updated,
    /// The object is as it was: nothing was sent, or what was sent changed nothing.
    Unchanged,
}

/// An object after a write, and what the write did to it. It can be used like the object itself.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use k8s_openapi::api::apps::v1::Deployment;
/// # use kubewright_runtime::{Client, ClientError};
/// # async fn example(client: Client, deployment: Arc<Deployment>) -> Result<(), ClientError> {
/// let scaled = client.modify(&deployment, |d| d.spec.replicas = Some(3)).await?;
/// if scaled.is_changed() {
///     println!("{} pods are wanted now", scaled.spec.replicas.unwrap_or(1));
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Written<K> {
    /// The object as the server has it after the write.
    pub object: K,
    /// What the write did to the object.
    pub change: Change,
}

impl<K> Written<K> {
    pub(crate) fn new(object: K, change: Change) -> Self {
        Self { object, change }
    }

    /// Whether the object was created or is different than before.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_runtime::{Change, Client, Delete, Index, Key, Query};
    /// # fn map(name: &str) -> ConfigMap {
    /// #     let mut map = ConfigMap::default();
    /// #     map.metadata.name = Some(name.to_owned());
    /// #     map.metadata.namespace = Some("default".to_owned());
    /// #     map
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kubewright_server::Server::builder().start().await?;
    /// # let client = Client::new(kube::Client::new(server.service(), "default"));
    /// let written = client.apply(&map("a")).await?;
    /// assert!(written.is_changed());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_changed(&self) -> bool {
        self.change != Change::Unchanged
    }

    /// Returns the object without what happened to it.
    pub fn into_object(self) -> K {
        self.object
    }
}

impl<K: Resource> Written<K> {
    /// The object after a write that was sent. Versions are compared: a server keeps the version where nothing changed.
    pub(super) fn since(old: &K, object: K) -> Self {
        let before = old.meta().resource_version.as_ref();
        let change = if before == object.meta().resource_version.as_ref() {
            Change::Unchanged
        } else {
            Change::Updated
        };
        Self { object, change }
    }
}

impl<K> Deref for Written<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.object
    }
}

impl<K: Resource> sealed::Sealed<K> for &Written<K> {}
impl<K: Resource> AsObject<K> for &Written<K> {
    fn as_object(&self) -> &K {
        &self.object
    }
}

/// A function that changes an object, and may refuse to: every closure of `&mut K` that returns nothing, or a
/// `Result<(), Error>`. When it returns an error nothing is sent, and the call fails with
/// [`ClientError::Refused`](super::ClientError::Refused).
///
/// ```no_run
/// # use std::sync::Arc;
/// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// # use kubewright_runtime::{Client, ClientError, Key, set_controller_reference};
/// # async fn example(client: Client, key: &Key, owner: Arc<ConfigMap>) -> Result<(), ClientError> {
/// client
///     .create_or_update(key, |secret: &mut Secret| {
///         // The Secret of another controller is left alone.
///         set_controller_reference(&owner, secret)?;
///         secret.immutable = Some(true);
///         Ok(())
///     })
///     .await?;
/// # Ok(())
/// # }
/// ```
// `FnOnce` is a supertrait so that the types of a closure's parameters are inferred.
pub trait Mutate<K>: FnOnce(&mut K) -> Self::Answer + answer::Sealed<K> {
    /// What the function returns: nothing, or a result.
    type Answer;

    /// Changes the object.
    ///
    /// # Errors
    /// When the function refuses; the object may be half changed then.
    fn mutate(self, object: &mut K) -> Result<(), Error>;
}

impl<K, F, R> Mutate<K> for F
where
    F: FnOnce(&mut K) -> R,
    R: answer::Answer,
{
    type Answer = R;

    fn mutate(self, object: &mut K) -> Result<(), Error> {
        self(object).into_result()
    }
}

/// What a function that changes an object may return.
mod answer {
    use crate::Error;

    pub trait Sealed<K> {}

    impl<K, F, R: Answer> Sealed<K> for F where F: FnOnce(&mut K) -> R {}

    pub trait Answer {
        fn into_result(self) -> Result<(), Error>;
    }

    impl Answer for () {
        fn into_result(self) -> Result<(), Error> {
            Ok(())
        }
    }

    impl Answer for Result<(), Error> {
        fn into_result(self) -> Result<(), Error> {
            self
        }
    }
}
