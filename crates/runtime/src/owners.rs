//! Owner references: who owns an object, and so what the garbage collector may delete with its owner.
//!
//! A reference over namespaces makes the collector delete live objects, so such references are refused here.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;
use kubewright_cache::{AsObject, AsObjectRef};

use crate::described::Described;

/// Why a reference was not set. The object is as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OwnerError {
    /// Another controller manages the object.
    #[error("Object {object} is already owned by another {kind} controller {name}")]
    AlreadyOwned {
        /// The object, with its namespace.
        object: String,
        /// The kind of the controller.
        kind: String,
        /// The name of the controller.
        name: String,
    },
    /// The object exists and no controller manages it, so it is not this owner's to write.
    #[error("{object} already exists and is not managed by {kind}")]
    NotOwned {
        /// The object, with its namespace.
        object: String,
        /// The kind of the owner that does not manage it.
        kind: String,
    },
    /// The owner does not say what kind it is: a dynamic object that did not come from a server.
    #[error("the owner does not say what kind it is")]
    UnknownKind,
    /// The owner is in a namespace and the object is in none.
    #[error(
        "cluster-scoped resource must not have a namespace-scoped owner, owner's namespace {namespace}"
    )]
    ClusterScoped {
        /// The namespace of the owner.
        namespace: String,
    },
    /// Owner and object are in different namespaces.
    #[error(
        "cross-namespace owner references are disallowed, owner's namespace {owner}, obj's namespace {object}"
    )]
    CrossNamespace {
        /// The namespace of the owner.
        owner: String,
        /// The namespace of the object.
        object: String,
    },
    /// The owner has no name or no UID yet: it has not been created.
    #[error("the owner has no name or uid: it has not been created")]
    Uncreated,
}

impl OwnerError {
    /// The object exists, and another controller or nobody manages it.
    pub fn is_not_owned(&self) -> bool {
        matches!(self, Self::AlreadyOwned { .. } | Self::NotOwned { .. })
    }
}

/// Whether the owner waits for the object when it is deleted in the foreground.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OwnerDeletion {
    /// The object blocks the deletion of the owner.
    Blocked,
    /// The object does not.
    #[default]
    Free,
}

/// Makes `owner` the managing controller of the object, which then blocks the owner's deletion in the foreground.
///
/// ```
/// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// # let meta = |name: &str| kube::core::ObjectMeta {
/// #     name: Some(name.to_owned()),
/// #     namespace: Some("default".to_owned()),
/// #     uid: Some(format!("uid-of-{name}")),
/// #     ..Default::default()
/// # };
/// # let owner = ConfigMap { metadata: meta("owner"), ..Default::default() };
/// # let mut child = Secret { metadata: meta("child"), ..Default::default() };
/// use kubewright_runtime::owners;
///
/// owners::set_controller_reference(&owner, &mut child).unwrap();
/// assert!(owners::is_controlled_by(&owner, &child));
///
/// let other = ConfigMap { metadata: meta("other"), ..Default::default() };
/// assert!(owners::set_controller_reference(&other, &mut child).is_err(), "there is at most one");
/// ```
///
/// # Errors
/// When another controller manages the object, or scopes do not fit.
pub fn set_controller_reference<O, K>(
    owner: impl AsObject<O>,
    object: &mut K,
) -> Result<(), OwnerError>
where
    O: Described,
    K: Resource,
{
    let mut reference = reference_to(owner.as_object(), object)?;
    reference.controller = Some(true);
    reference.block_owner_deletion = Some(true);
    if let Some(other) = controller_of(&*object).filter(|other| !is_same(other, &reference)) {
        return Err(OwnerError::AlreadyOwned {
            object: place(object),
            kind: other.kind.clone(),
            name: other.name.clone(),
        });
    }
    put(object, reference);
    Ok(())
}

/// Makes `owner` one of the owners of the object. A reference that is there to the same owner is replaced.
///
/// ```
/// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// # let meta = |name: &str| kube::core::ObjectMeta {
/// #     name: Some(name.to_owned()),
/// #     namespace: Some("default".to_owned()),
/// #     uid: Some(format!("uid-of-{name}")),
/// #     ..Default::default()
/// # };
/// # let owner = ConfigMap { metadata: meta("owner"), ..Default::default() };
/// # let mut child = Secret { metadata: meta("child"), ..Default::default() };
/// use kubewright_runtime::owners;
///
/// owners::set_owner_reference(&owner, &mut child, owners::OwnerDeletion::Free).unwrap();
/// assert!(owners::has_owner_reference(&owner, &child));
/// assert!(!owners::has_controller_reference(&child));
/// ```
///
/// # Errors
/// When scopes do not fit.
pub fn set_owner_reference<O, K>(
    owner: impl AsObject<O>,
    object: &mut K,
    deletion: OwnerDeletion,
) -> Result<(), OwnerError>
where
    O: Described,
    K: Resource,
{
    let mut reference = reference_to(owner.as_object(), object)?;
    if deletion == OwnerDeletion::Blocked {
        reference.block_owner_deletion = Some(true);
    }
    put(object, reference);
    Ok(())
}

/// Removes the reference to `owner` and says whether it was there.
///
/// ```
/// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// # let meta = |name: &str| kube::core::ObjectMeta {
/// #     name: Some(name.to_owned()),
/// #     namespace: Some("default".to_owned()),
/// #     uid: Some(format!("uid-of-{name}")),
/// #     ..Default::default()
/// # };
/// # let owner = ConfigMap { metadata: meta("owner"), ..Default::default() };
/// # let mut child = Secret { metadata: meta("child"), ..Default::default() };
/// use kubewright_runtime::owners;
///
/// owners::set_controller_reference(&owner, &mut child).unwrap();
/// assert!(owners::remove_owner_reference(&owner, &mut child));
/// assert!(!owners::has_owner_reference(&owner, &child));
/// ```
pub fn remove_owner_reference<O, K>(owner: impl AsObject<O>, object: &mut K) -> bool
where
    O: Described,
    K: Resource,
{
    let owner = owner.as_object();
    remove(object, |reference| names(reference, owner))
}

/// Removes the reference to `owner` if it is the managing controller, and says whether it was.
pub fn remove_controller_reference<O, K>(owner: impl AsObject<O>, object: &mut K) -> bool
where
    O: Described,
    K: Resource,
{
    let owner = owner.as_object();
    remove(object, |reference| {
        reference.controller == Some(true) && names(reference, owner)
    })
}

/// Whether `owner` is among the owners of the object, by group, kind and name.
pub fn has_owner_reference<O, K>(owner: impl AsObject<O>, object: impl AsObject<K>) -> bool
where
    O: Described,
    K: Resource,
{
    let owner = owner.as_object();
    references(object.as_object())
        .iter()
        .any(|reference| names(reference, owner))
}

/// Whether the object has a managing controller at all.
pub fn has_controller_reference<K: Resource>(object: impl AsObject<K>) -> bool {
    controller_of(object.as_object()).is_some()
}

/// Whether `owner`, and not another one of its name, manages the object.
///
/// ```
/// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// # let meta = |name: &str| kube::core::ObjectMeta {
/// #     name: Some(name.to_owned()),
/// #     namespace: Some("default".to_owned()),
/// #     uid: Some(format!("uid-of-{name}")),
/// #     ..Default::default()
/// # };
/// # let owner = ConfigMap { metadata: meta("owner"), ..Default::default() };
/// # let mut child = Secret { metadata: meta("child"), ..Default::default() };
/// use kubewright_runtime::owners;
///
/// assert!(!owners::is_controlled_by(&owner, &child));
/// owners::set_controller_reference(&owner, &mut child).unwrap();
/// assert!(owners::is_controlled_by(&owner, &child));
/// ```
pub fn is_controlled_by<O, K>(owner: impl AsObject<O>, object: impl AsObject<K>) -> bool
where
    O: Resource,
    K: Resource,
{
    let uid = owner.as_object().meta().uid.as_deref();
    let controller = controller_of(object.as_object());
    uid.is_some() && controller.map(|reference| reference.uid.as_str()) == uid
}

/// The reference to the managing controller of the object.
///
/// ```
/// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// # let meta = |name: &str| kube::core::ObjectMeta {
/// #     name: Some(name.to_owned()),
/// #     namespace: Some("default".to_owned()),
/// #     uid: Some(format!("uid-of-{name}")),
/// #     ..Default::default()
/// # };
/// # let owner = ConfigMap { metadata: meta("owner"), ..Default::default() };
/// # let mut child = Secret { metadata: meta("child"), ..Default::default() };
/// use kubewright_runtime::owners;
///
/// owners::set_controller_reference(&owner, &mut child).unwrap();
/// assert_eq!(owners::controller_of(&child).unwrap().name, "owner");
/// ```
pub fn controller_of<'a, K: Resource + 'a>(
    object: impl AsObjectRef<'a, K>,
) -> Option<&'a OwnerReference> {
    references(object.into_object_ref())
        .iter()
        .find(|reference| reference.controller == Some(true))
}

fn references(object: &impl Resource) -> &[OwnerReference] {
    object
        .meta()
        .owner_references
        .as_deref()
        .unwrap_or_default()
}

fn reference_to<O, K>(owner: &O, object: &K) -> Result<OwnerReference, OwnerError>
where
    O: Described,
    K: Resource,
{
    check_scopes(namespace(owner), namespace(object))?;
    let types = owner.type_meta().ok_or(OwnerError::UnknownKind)?;
    let named = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let (name, uid) = (named(&owner.meta().name), named(&owner.meta().uid));
    Ok(OwnerReference {
        api_version: types.api_version,
        kind: types.kind,
        name: name.ok_or(OwnerError::Uncreated)?,
        uid: uid.ok_or(OwnerError::Uncreated)?,
        ..OwnerReference::default()
    })
}

fn check_scopes(owner: &str, object: &str) -> Result<(), OwnerError> {
    match (owner, object) {
        ("", _) => Ok(()),
        (owner, "") => Err(OwnerError::ClusterScoped {
            namespace: owner.into(),
        }),
        (owner, object) if owner != object => Err(OwnerError::CrossNamespace {
            owner: owner.into(),
            object: object.into(),
        }),
        _ => Ok(()),
    }
}

fn put(object: &mut impl Resource, reference: OwnerReference) {
    let references = object.meta_mut().owner_references.get_or_insert_default();
    match references.iter_mut().find(|r| is_same(r, &reference)) {
        Some(present) => *present = reference,
        None => references.push(reference),
    }
}

fn remove(object: &mut impl Resource, wanted: impl Fn(&OwnerReference) -> bool) -> bool {
    let Some(references) = &mut object.meta_mut().owner_references else {
        return false;
    };
    let before = references.len();
    references.retain(|reference| !wanted(reference));
    let removed = references.len() != before;
    if references.is_empty() {
        object.meta_mut().owner_references = None;
    }
    removed
}

/// The version is the one that was current when a reference was written, and an owner that was created anew takes the
/// place of its predecessor; so neither version nor UID counts.
fn is_same(a: &OwnerReference, b: &OwnerReference) -> bool {
    group(&a.api_version) == group(&b.api_version) && a.kind == b.kind && a.name == b.name
}

fn names<O: Described>(reference: &OwnerReference, owner: &O) -> bool {
    let is_of = |types: kube::core::TypeMeta| {
        group(&reference.api_version) == group(&types.api_version) && reference.kind == types.kind
    };
    owner.type_meta().is_some_and(is_of) && Some(&reference.name) == owner.meta().name.as_ref()
}

fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

fn namespace(object: &impl Resource) -> &str {
    object.meta().namespace.as_deref().unwrap_or_default()
}

fn place(object: &impl Resource) -> String {
    let name = object.meta().name.as_deref().unwrap_or_default();
    format!("{}/{name}", namespace(object))
}

#[cfg(test)]
mod tests;
