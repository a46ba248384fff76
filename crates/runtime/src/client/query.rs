//! What a list asks for, and how writes and deletes are made.

use std::fmt;
use std::time::Duration;

use http::Uri;
use kube::api::{DeleteParams, PatchParams, PostParams, Preconditions, PropagationPolicy};
use kube::core::request::Error as RequestError;
use kubewright_cache::Selector;

use super::Client;
use super::write::Built;
use crate::identity::program_name;

/// What a list asks of the cache, or of the server.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Query {
    pub(crate) namespace: Option<String>,
    pub(crate) labels: Option<Selector>,
    pub(crate) fields: Option<String>,
    pub(crate) index: Option<(String, String)>,
    pub(crate) limit: Option<usize>,
}

impl Query {
    /// Asks for every object that is cached.
    ///
    /// ```
    /// # use kubewright_runtime::Query;
    /// let query = Query::all().namespace("default").limit(10);
    /// assert_eq!(query.to_string(), "in default at most 10");
    /// ```
    pub fn all() -> Self {
        Self::default()
    }

    /// Objects of one namespace.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Objects with these labels: pairs, a [`Selector`], or one of `kube`.
    ///
    /// ```
    /// use kubewright_runtime::{Query, Selector};
    ///
    /// assert_eq!(Query::all().labels([("app", "web")]).to_string(), "with app=web");
    /// let query = Query::all().labels(Selector::parse("app=web,tier in (a,b)")?);
    /// assert_eq!(query.to_string(), "with app=web,tier in (a,b)");
    /// # Ok::<(), kubewright_runtime::SelectorError>(())
    /// ```
    pub fn labels(mut self, selector: impl Into<Selector>) -> Self {
        self.labels = Some(selector.into());
        self
    }

    /// Objects that a field selector chooses, as `spec.nodeName=n1`: for live lists and deletions, since only the server knows which
    /// fields of a kind can be selected. A cached list has an [index](Query::index) for that and refuses this.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_runtime::{Client, Query};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kubewright_server::Server::builder().start().await?;
    /// # let client = Client::new(kube::Client::new(server.service(), "default"));
    /// let named = Query::all().namespace("default").fields("metadata.name=settings");
    /// assert!(client.live().list::<ConfigMap>(named).await?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.fields = Some(selector.into());
        self
    }

    /// Objects that have this value in an index of that name, which must have been added to the cache.
    ///
    /// ```
    /// # use kubewright_runtime::Query;
    /// let query = Query::all().index("by-secret", "credentials");
    /// assert_eq!(query.to_string(), "by by-secret=credentials");
    /// ```
    pub fn index(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.index = Some((name.into(), value.into()));
        self
    }

    /// At most so many.
    pub fn limit(mut self, objects: usize) -> Self {
        self.limit = Some(objects);
        self
    }
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        parts.extend(self.namespace.iter().map(|name| format!("in {name}")));
        let labels = self.labels.iter().filter(|labels| !labels.selects_all());
        parts.extend(labels.map(|labels| format!("with {labels}")));
        parts.extend(self.fields.iter().map(|fields| format!("where {fields}")));
        let index = self.index.iter();
        parts.extend(index.map(|(name, value)| format!("by {name}={value}")));
        parts.extend(self.limit.iter().map(|limit| format!("at most {limit}")));
        f.write_str(&parts.join(" "))
    }
}

/// How a client writes.
#[derive(Debug, Clone, Default)]
#[must_use]
#[non_exhaustive]
pub struct WriteOptions {
    /// Whether the server keeps what is written.
    pub dry_run: DryRun,
    /// The name under which fields are managed; without one the name of the program.
    pub field_owner: Option<String>,
    /// Whether an apply takes fields from others.
    pub ownership: Ownership,
    /// Whether a patch is a conflict if the object has changed since it was read.
    pub locking: Locking,
    /// What the server does about fields that it does not know, or that are there twice.
    pub field_validation: FieldValidation,
}

/// Whether the server keeps what is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum DryRun {
    /// The write is kept.
    #[default]
    Off,
    /// The server goes through all steps of the write and keeps nothing.
    All,
}

/// What a patch does about changes since the object was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Locking {
    /// The patch is made to whatever state the object has: changes of other fields stay.
    #[default]
    None,
    /// The patch names the version that was read, and is a conflict if the object has another one.
    Optimistic,
}

/// What the server does about fields of a written object that it does not know, or that are there twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum FieldValidation {
    /// It drops them and [warns](super::ServerWarning) of them, which is what servers do by themselves.
    #[default]
    Warn,
    /// It refuses the write and names them.
    Strict,
    /// It drops them without a word.
    Ignore,
}

impl FieldValidation {
    /// The same request, which asks for this.
    pub(super) fn asked_for_by(self, built: Built) -> Built {
        let how = match self {
            Self::Warn => return built,
            Self::Strict => "Strict",
            Self::Ignore => "Ignore",
        };
        let mut request = built?;
        let query = request.uri().query().filter(|query| !query.is_empty());
        let others = query.map_or_else(String::new, |query| format!("{query}&"));
        let uri = format!("{}?{others}fieldValidation={how}", request.uri().path());
        let uri = Uri::try_from(uri).map_err(|error| RequestError::BuildRequest(error.into()))?;
        *request.uri_mut() = uri;
        Ok(request)
    }
}

impl Client {
    /// The same client, whose writes say what the server does about fields that it does not know: refuse the write, say, where it
    /// would only warn.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube::core::{ApiResource, DynamicObject};
    /// # use kubewright_runtime::Client;
    /// use kubewright_runtime::client::FieldValidation;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kubewright_server::Server::builder().start().await?;
    /// # let client = Client::new(kube::Client::new(server.service(), "default"));
    ///
    /// let resource = ApiResource::erase::<ConfigMap>(&());
    /// let misspelled = DynamicObject::new("a", &resource)
    ///     .within("default")
    ///     .data(serde_json::json!({"dta": {"color": "blue"}}));
    /// let strict = client.field_validation(FieldValidation::Strict);
    /// let error = strict.dynamic(&resource).create(&misspelled).await.unwrap_err();
    /// assert!(error.to_string().contains("unknown field \"dta\""));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn field_validation(&self, how: FieldValidation) -> Self {
        self.with(|write| write.field_validation = how)
    }
}

/// What an apply does about fields that others manage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Ownership {
    /// It takes them, as controllers should for the fields they are about.
    #[default]
    Force,
    /// It fails with a conflict.
    Respect,
}

impl WriteOptions {
    /// The name under which fields are managed: the one that was set, else the program's.
    pub(crate) fn owner(&self) -> &str {
        match &self.field_owner {
            Some(owner) => owner,
            None => program_name(),
        }
    }

    pub(crate) fn post(&self) -> PostParams {
        PostParams {
            dry_run: self.dry_run == DryRun::All,
            field_manager: Some(self.owner().to_owned()),
        }
    }

    pub(crate) fn patch(&self) -> PatchParams {
        PatchParams {
            dry_run: self.dry_run == DryRun::All,
            field_manager: Some(self.owner().to_owned()),
            ..PatchParams::default()
        }
    }

    pub(crate) fn apply(&self) -> PatchParams {
        PatchParams {
            force: self.ownership == Ownership::Force,
            ..self.patch()
        }
    }
}

/// How an object is deleted. By default only the very object that is given, whatever its version, its dependents in the
/// background.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Delete {
    propagation: Option<PropagationPolicy>,
    grace: Option<Duration>,
    version: Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Version {
    #[default]
    Any,
    AsGiven,
}

impl Delete {
    /// The object goes at once, its dependents afterwards.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::batch::v1::Job;
    /// # use kubewright_runtime::{Client, ClientError, Delete};
    /// # async fn example(client: Client, job: Job) -> Result<(), ClientError> {
    /// client.delete(&job, Delete::background()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn background() -> Self {
        Self {
            propagation: Some(PropagationPolicy::Background),
            ..Self::default()
        }
    }

    /// Deletes dependents before the object itself.
    pub fn foreground() -> Self {
        Self {
            propagation: Some(PropagationPolicy::Foreground),
            ..Self::default()
        }
    }

    /// Deletes the object and keeps its dependents.
    pub fn orphan() -> Self {
        Self {
            propagation: Some(PropagationPolicy::Orphan),
            ..Self::default()
        }
    }

    /// How long it may take to end; nothing for at once.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use kubewright_runtime::Delete;
    /// let at_once = Delete::background().grace(Duration::ZERO);
    /// let careful = Delete::foreground().unchanged();
    /// # drop((at_once, careful));
    /// ```
    pub fn grace(mut self, period: Duration) -> Self {
        self.grace = Some(period);
        self
    }

    /// Only in the version that is given: a conflict if it changed since.
    pub fn unchanged(mut self) -> Self {
        self.version = Version::AsGiven;
        self
    }

    pub(crate) fn params(
        &self,
        write: &WriteOptions,
        uid: Option<String>,
        resource_version: Option<String>,
    ) -> DeleteParams {
        let resource_version = match self.version {
            Version::Any => None,
            Version::AsGiven => resource_version,
        };
        let preconditions =
            (uid.is_some() || resource_version.is_some()).then_some(Preconditions {
                resource_version,
                uid,
            });
        DeleteParams {
            dry_run: write.dry_run == DryRun::All,
            grace_period_seconds: self
                .grace
                .map(|grace| u32::try_from(grace.as_secs()).unwrap_or(u32::MAX)),
            propagation_policy: self.propagation.clone(),
            preconditions,
        }
    }
}
