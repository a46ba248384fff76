//! Why a read or a write failed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube::core::Status;
use kubewright_cache::{Key, SyncError, Undecodable, UnknownIndex};

use crate::Error;
use crate::owners::OwnerError;

/// Why a call of the [`Client`](super::Client) failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server refused the request.
    #[error("cannot {verb} {resource} {name}: {}", said(.status))]
    Status {
        /// The verb of the request.
        verb: &'static str,
        /// The resource, as `deployments.apps`.
        resource: Arc<str>,
        /// Namespace and name; empty for a list.
        name: String,
        /// The answer of the server, with its reason.
        status: Box<Status>,
    },
    /// The function that was to change the object refused to, so nothing was sent.
    #[error("did not write {resource} {key}")]
    Refused {
        /// The resource, as `deployments.apps`.
        resource: Arc<str>,
        /// The object that would have been written.
        key: Key,
        /// The error that the function returned.
        #[source]
        source: Box<Refusal>,
    },
    /// The server could not be reached, or its answer could not be read.
    #[error("cannot {verb} {resource} {name}")]
    Call {
        /// What was asked for.
        verb: &'static str,
        /// The resource, as `deployments.apps`.
        resource: Arc<str>,
        /// Namespace and name; empty for a list.
        name: String,
        /// What came back.
        #[source]
        source: Box<kube::Error>,
    },
    /// The server did not answer in time. A write may have happened.
    #[error("cannot {verb} {resource} {name}: no answer within {waited:?}")]
    Timeout {
        /// The verb of the request.
        verb: &'static str,
        /// The resource, as `deployments.apps`.
        resource: Arc<str>,
        /// Namespace and name; empty for a list.
        name: String,
        /// How long the client waited.
        waited: Duration,
    },
    /// The lease of this process ran out, so nothing is written any more: another one may lead.
    #[error("did not {verb} {resource} {name}: the lease of this process ran out")]
    LeaseLost {
        /// The verb of the request.
        verb: &'static str,
        /// The resource, as `deployments.apps`.
        resource: Arc<str>,
        /// Namespace and name.
        name: String,
    },
    /// The cache has not got its first state.
    #[error("the cache of {resource} has no state yet")]
    NotSynced {
        /// The resource.
        resource: Arc<str>,
        /// Why.
        #[source]
        source: SyncError,
    },
    /// The cache has not got its first state in time.
    #[error(
        "the cache of {resource} got no state within {waited:?}; does the server answer its watch?"
    )]
    SyncTimeout {
        /// The resource.
        resource: Arc<str>,
        /// How long it was waited for.
        waited: Duration,
    },
    /// The cache has not reached what this client wrote itself.
    #[error("the cache of {resource} is behind this manager's own write of {key} after {waited:?}")]
    Stale {
        /// The resource.
        resource: Arc<str>,
        /// The object.
        key: Key,
        /// How long it was waited for.
        waited: Duration,
    },
    /// The object is gone, was made again or has another spec than the one that was read.
    #[error("{resource} {key} has changed since it was read")]
    Changed {
        /// The resource.
        resource: Arc<str>,
        /// The object.
        key: Key,
    },
    /// A query names an index that was not added.
    #[error("{resource} cannot be queried like that")]
    Query {
        /// The resource.
        resource: Arc<str>,
        /// Why.
        #[source]
        source: UnknownIndex,
    },
    /// The object exists and does not decode as the type that it was asked for.
    #[error("{resource} {} cannot be read", .source.key)]
    Undecodable {
        /// The resource.
        resource: Arc<str>,
        /// Which object, and what the decoder says.
        #[source]
        source: Box<Undecodable>,
    },
    /// The cache does not hold what was asked for: another namespace, an object that exists and that the selectors of its policy do
    /// not choose, or one of another replica's shard, which may exist.
    #[error("the cache of {resource} holds {holds}, and not {what}")]
    OutOfScope {
        /// The resource.
        resource: Arc<str>,
        /// The key or the namespace that was asked for.
        what: String,
        /// What is cached, in words: which namespaces, labels and fields, or shards.
        holds: String,
    },
    /// The kind is not cached in the way that it was asked for.
    #[error("{resource} cannot be read from the cache: {problem}")]
    Policy {
        /// The resource.
        resource: Arc<str>,
        /// What is wrong with the policy, or with asking for more than it says.
        problem: String,
    },
    /// The manager has no cluster of this name.
    #[error("no cluster is called {name:?}; the further clusters of the manager are: {}", named(.known))]
    UnknownCluster {
        /// The name that was asked for.
        name: String,
        /// The names that the manager was given, with commas in between; empty if there are none.
        known: String,
    },
    /// The object cannot be written as it is.
    #[error("{resource} {problem}")]
    Object {
        /// The resource.
        resource: Arc<str>,
        /// What is missing or wrong.
        problem: String,
    },
}

impl ClientError {
    /// The HTTP code of the server's answer.
    pub fn code(&self) -> Option<u16> {
        self.status().map(|status| status.code)
    }

    /// The server's answer, where there was one.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Status { status, .. } => Some(status),
            _ => None,
        }
    }

    /// What went wrong with a request: the server's own answer, or whatever kept it from answering.
    pub(super) fn of_request(
        verb: &'static str,
        resource: Arc<str>,
        name: &str,
        error: kube::Error,
    ) -> Self {
        let name = name.to_owned();
        match error {
            kube::Error::Api(status) => Self::Status {
                verb,
                resource,
                name,
                status,
            },
            error => Self::Call {
                verb,
                resource,
                name,
                source: Box::new(error),
            },
        }
    }

    /// The error of the function that refused to change an object, if that is what failed.
    pub fn refusal(&self) -> Option<&Error> {
        match self {
            Self::Refused { source, .. } => Some(&source.0),
            _ => None,
        }
    }

    /// Nothing was sent, because the object exists and the owner that was named does not control it.
    pub fn is_not_owned(&self) -> bool {
        let cause = self.refusal().map(Error::cause);
        let owner = cause.and_then(|cause| cause.downcast_ref::<OwnerError>());
        owner.is_some_and(OwnerError::is_not_owned)
    }

    /// The object exists and does not decode.
    pub fn is_undecodable(&self) -> bool {
        matches!(self, Self::Undecodable { .. })
    }

    /// The cache does not hold what was asked for.
    pub fn is_out_of_scope(&self) -> bool {
        matches!(self, Self::OutOfScope { .. })
    }

    fn reason(&self) -> &str {
        self.status().map_or("", |status| status.reason.as_str())
    }

    /// The server did not answer in time.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Timeout { .. })
    }

    /// There is no such object, or no such resource.
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
    /// let map = client.create(&map("a")).await?;
    /// client.delete(&map, Delete::background()).await?;
    /// let error = client.update(&map).await.unwrap_err();
    /// assert!(error.is_not_found());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    /// Somebody else changed the object first, or a precondition does not hold.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Changed { .. })
            || self.code() == Some(409) && !self.is_already_exists()
    }

    /// The server has no memory of that moment any more, as when pages of a list are read too slowly.
    pub fn is_expired(&self) -> bool {
        self.code() == Some(410)
    }

    /// There is already an object of that name.
    pub fn is_already_exists(&self) -> bool {
        self.reason() == "AlreadyExists"
    }

    /// Whether the server refused because of missing rights.
    pub fn is_forbidden(&self) -> bool {
        self.code() == Some(403)
    }

    /// The object breaks a rule.
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
    /// let error = client.create(&map("Not_A_Name")).await.unwrap_err();
    /// assert!(error.is_invalid());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_invalid(&self) -> bool {
        self.code() == Some(422)
    }

    /// The namespace is being deleted: nothing can be created in it any more.
    pub fn is_namespace_terminating(&self) -> bool {
        let details = self.status().and_then(|status| status.details.as_ref());
        let mut causes = details.into_iter().flat_map(|details| &details.causes);
        causes.any(|cause| cause.reason == "NamespaceTerminating")
    }
}

/// The server's message, or its reason where the message is empty.
fn said(status: &Status) -> &str {
    if status.message.is_empty() {
        &status.reason
    } else {
        &status.message
    }
}

/// Names in a sentence, where there may be none.
fn named(names: &str) -> &str {
    if names.is_empty() { "none" } else { names }
}

/// The error of a function that refused to change an object.
pub struct Refusal(pub(super) Error);

impl Refusal {
    /// The error that the function returned.
    pub fn error(&self) -> &Error {
        &self.0
    }
}

impl fmt::Debug for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl std::error::Error for Refusal {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.cause().source()
    }
}

/// Turns the absence of an object into an answer: deleting what is gone, reading what may be there.
pub trait IgnoreNotFound<T>: sealed::Sealed {
    /// Nothing where the object does not exist.
    ///
    /// # Errors
    /// Any other failure.
    fn ignore_not_found(self) -> Result<Option<T>, ClientError>;
}

mod sealed {
    pub trait Sealed {}
    impl<T> Sealed for Result<T, super::ClientError> {}
}

impl<T> IgnoreNotFound<T> for Result<T, ClientError> {
    fn ignore_not_found(self) -> Result<Option<T>, ClientError> {
        match self {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }
}
