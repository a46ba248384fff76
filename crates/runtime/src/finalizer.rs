//! Finalizers: something to do before an object goes away, with the promise that it is done.
//!
//! [`finalize`] is the whole protocol in one call: it adds the finalizer before anything is created that needs a
//! clean-up, and removes it after the clean-up. Each write carries the resource version that was read, so a stale cache
//! loses to the server, never the other way round.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use kube::Resource;
use kube::api::Patch;
use kubewright_cache::{AsObject, Key};
use serde_json::json;

use crate::client::{Client, ClientError, Object, Objects, TypedObject};

/// How often a removal is tried again when somebody else wrote the object meanwhile: the clean-up is done and costs
/// more than a few requests.
const TRIES: usize = 5;

/// How far a clean-up has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cleanup<T> {
    /// Nothing is left; the finalizer goes.
    Done,
    /// Something is still going away; the finalizer stays.
    NotYet(T),
}

/// What a call of [`finalize`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finalized<T> {
    /// The object lives, has the finalizer, and was applied.
    Applied(T),
    /// The object is going, and the clean-up takes longer.
    NotYet(T),
    /// The clean-up is done and the finalizer is gone.
    Removed,
    /// The object is going and does not have the finalizer: others hold it.
    Absent,
}

/// Why [`finalize`] failed, and on which object. Each time the finalizer is still there, if it was.
#[derive(Debug)]
#[non_exhaustive]
pub struct FinalizeError<E> {
    /// The object, as `configmaps default/a`.
    pub object: Box<str>,
    /// The name of the finalizer.
    pub finalizer: Box<str>,
    /// The step that failed, with its cause.
    pub failure: FinalizeFailure<E>,
}

/// What of [`finalize`] failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum FinalizeFailure<E> {
    /// The object has no name; it did not come from a server.
    Unnamed,
    /// The finalizer was not added.
    Add(Box<ClientError>),
    /// The caller's apply failed.
    Apply(E),
    /// The caller's clean-up failed.
    Cleanup(E),
    /// The clean-up is done and the finalizer was not removed.
    Remove(Box<ClientError>),
}

impl<E> FinalizeError<E> {
    /// Whether somebody else changed the object first. The cache will catch up: try again.
    pub fn is_conflict(&self) -> bool {
        let (FinalizeFailure::Add(error) | FinalizeFailure::Remove(error)) = &self.failure else {
            return false;
        };
        error.is_conflict()
    }
}

impl<E> fmt::Display for FinalizeError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (object, name) = (&self.object, &self.finalizer);
        match self.failure {
            FinalizeFailure::Unnamed => f.write_str("the object has no name"),
            FinalizeFailure::Add(_) => write!(f, "adding finalizer {name} to {object} failed"),
            FinalizeFailure::Apply(_) => {
                write!(f, "applying {object} with finalizer {name} failed")
            }
            FinalizeFailure::Cleanup(_) => {
                write!(f, "cleaning up {object} for finalizer {name} failed")
            }
            FinalizeFailure::Remove(_) => {
                write!(f, "removing finalizer {name} from {object} failed")
            }
        }
    }
}

impl<E: Error + 'static> Error for FinalizeError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.failure {
            FinalizeFailure::Unnamed => None,
            FinalizeFailure::Add(error) | FinalizeFailure::Remove(error) => Some(&**error),
            FinalizeFailure::Apply(error) | FinalizeFailure::Cleanup(error) => Some(error),
        }
    }
}

impl From<FinalizeError<crate::Error>> for crate::Error {
    /// Says what failed before the error behind it. A terminal error of the caller's own functions stays terminal.
    fn from(error: FinalizeError<crate::Error>) -> Self {
        let what = error.to_string();
        let cause: Self = match error.failure {
            FinalizeFailure::Unnamed => return Self::msg(what),
            FinalizeFailure::Add(error) | FinalizeFailure::Remove(error) => (*error).into(),
            FinalizeFailure::Apply(error) | FinalizeFailure::Cleanup(error) => error,
        };
        cause.context(what)
    }
}

/// Whether the object has this finalizer.
///
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// use kubewright_runtime::finalizer;
///
/// let mut map = ConfigMap::default();
/// assert!(!finalizer::contains(&map, "example.com/bucket"));
/// # finalizer::add(&mut map, "example.com/bucket");
/// ```
pub fn contains<K: Resource>(object: impl AsObject<K>, name: &str) -> bool {
    finalizers(object.as_object())
        .iter()
        .any(|finalizer| finalizer == name)
}

/// Adds the finalizer and says whether it was missing.
///
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// use kubewright_runtime::finalizer;
///
/// let mut map = ConfigMap::default();
/// assert!(finalizer::add(&mut map, "example.com/bucket"));
/// assert!(!finalizer::add(&mut map, "example.com/bucket"), "it is there already");
/// ```
pub fn add(object: &mut impl Resource, name: &str) -> bool {
    if contains(&*object, name) {
        return false;
    }
    let finalizers = object.meta_mut().finalizers.get_or_insert_default();
    finalizers.push(name.into());
    true
}

/// Removes the finalizer and says whether it was there.
///
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// use kubewright_runtime::finalizer;
///
/// let mut map = ConfigMap::default();
/// finalizer::add(&mut map, "example.com/bucket");
/// assert!(finalizer::remove(&mut map, "example.com/bucket"));
/// ```
pub fn remove(object: &mut impl Resource, name: &str) -> bool {
    let there = contains(&*object, name);
    if let Some(finalizers) = &mut object.meta_mut().finalizers {
        finalizers.retain(|finalizer| finalizer != name);
    }
    there
}

/// Runs `apply` while the object lives and `cleanup` once it is being deleted, with the finalizer in place between the
/// first and the last. Both must bear being run twice: a crash may come after them and before it is noted.
///
/// `apply` gets the object as it is after the finalizer was added. A controller that always does this declares its
/// [finalizer](crate::controller::Builder::finalizer) instead.
///
/// # Errors
/// When a function of the caller's fails, or a request; the next reconcile takes up where this one ended.
pub async fn finalize<K, T, E>(
    client: &Client,
    object: Arc<K>,
    name: &str,
    apply: impl AsyncFnOnce(Arc<K>) -> Result<T, E>,
    cleanup: impl AsyncFnOnce(Arc<K>) -> Result<Cleanup<T>, E>,
) -> Result<Finalized<T>, FinalizeError<E>>
where
    K: TypedObject,
{
    client.of().finalize(object, name, apply, cleanup).await
}

impl<K: Object> Objects<K> {
    /// Runs `apply` while the object lives and `cleanup` once it is being deleted: [`finalize`], for objects of any kind.
    ///
    /// # Errors
    /// When a function of the caller's fails, or a request; the next reconcile takes up where this one ended.
    pub async fn finalize<T, E>(
        &self,
        object: Arc<K>,
        name: &str,
        apply: impl AsyncFnOnce(Arc<K>) -> Result<T, E>,
        cleanup: impl AsyncFnOnce(Arc<K>) -> Result<Cleanup<T>, E>,
    ) -> Result<Finalized<T>, FinalizeError<E>> {
        let given = object.clone();
        let done = self.finalized(object, name, apply, cleanup).await;
        done.map_err(|failure| FinalizeError {
            object: format!("{} {}", self.name(), Key::of(&*given)).into(),
            finalizer: name.into(),
            failure,
        })
    }

    async fn finalized<T, E>(
        &self,
        object: Arc<K>,
        name: &str,
        apply: impl AsyncFnOnce(Arc<K>) -> Result<T, E>,
        cleanup: impl AsyncFnOnce(Arc<K>) -> Result<Cleanup<T>, E>,
    ) -> Result<Finalized<T>, FinalizeFailure<E>> {
        match step(&*object, name)? {
            Step::Apply => applied(apply(object).await),
            Step::Add => {
                let added = write_added(self, &*object, name).await?;
                applied(apply(Arc::new(added)).await)
            }
            Step::Nothing => Ok(Finalized::Absent),
            Step::Cleanup => match cleanup(object.clone()).await {
                Err(error) => Err(FinalizeFailure::Cleanup(error)),
                Ok(Cleanup::NotYet(value)) => Ok(Finalized::NotYet(value)),
                Ok(Cleanup::Done) => write_removed(self, &*object, name).await,
            },
        }
    }
}

/// What an object with a finalizer needs next.
enum Step {
    /// The object lives and has the finalizer.
    Apply,
    /// The object lives, and the finalizer comes before anything that needs a clean-up.
    Add,
    /// The object is being deleted and has the finalizer.
    Cleanup,
    /// The object is being deleted, and others hold it.
    Nothing,
}

fn step<E>(object: &impl Resource, name: &str) -> Result<Step, FinalizeFailure<E>> {
    if object.meta().name.as_deref().is_none_or(str::is_empty) {
        return Err(FinalizeFailure::Unnamed);
    }
    let is_deleted = object.meta().deletion_timestamp.is_some();
    Ok(match (is_deleted, contains(object, name)) {
        (false, true) => Step::Apply,
        (false, false) => Step::Add,
        (true, true) => Step::Cleanup,
        (true, false) => Step::Nothing,
    })
}

fn applied<T, E>(result: Result<T, E>) -> Result<Finalized<T>, FinalizeFailure<E>> {
    result
        .map(Finalized::Applied)
        .map_err(FinalizeFailure::Apply)
}

async fn write_added<K: Object, E>(
    objects: &Objects<K>,
    object: &K,
    name: &str,
) -> Result<K, FinalizeFailure<E>> {
    let mut finalizers = finalizers(object).to_vec();
    finalizers.push(name.into());
    let result = write(objects, object, &finalizers).await;
    result.map_err(|error| FinalizeFailure::Add(Box::new(error)))
}

async fn write_removed<K: Object, T, E>(
    objects: &Objects<K>,
    object: &K,
    name: &str,
) -> Result<Finalized<T>, FinalizeFailure<E>> {
    let mut newer = None;
    for attempt in 1.. {
        let present: &K = newer.as_ref().unwrap_or(object);
        if present.meta().uid != object.meta().uid || !contains(present, name) {
            break;
        }
        let keep: Vec<String> = finalizers(present)
            .iter()
            .filter(|finalizer| *finalizer != name)
            .cloned()
            .collect();
        match write(objects, present, &keep).await {
            Ok(_) => break,
            Err(error) if error.is_not_found() => break,
            Err(error) if attempt >= TRIES || !error.is_conflict() => {
                return Err(FinalizeFailure::Remove(Box::new(error)));
            }
            Err(_) => {}
        }
        newer = match objects.get_live(&Key::of(object)).await {
            Ok(Some(read)) => Some(read),
            Ok(None) => break,
            Err(error) => return Err(FinalizeFailure::Remove(Box::new(error))),
        };
    }
    Ok(Finalized::Removed)
}

/// Writes the list of finalizers, if the object is still what was read.
async fn write<K: Object>(
    objects: &Objects<K>,
    object: &K,
    finalizers: &[String],
) -> Result<K, ClientError> {
    let metadata = object.meta();
    let patch = json!({"metadata": {
        "resourceVersion": metadata.resource_version,
        "uid": metadata.uid,
        "finalizers": finalizers,
    }});
    let patch = Patch::Merge(patch);
    objects.patch_with(&Key::of(object), &patch).await
}

fn finalizers(object: &impl Resource) -> &[String] {
    object.meta().finalizers.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests;
