//! Whose an object is: a controller owns what refers to it, adopts matching orphans, releases what matches no more.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use kube::Resource;
use kubewright_runtime::Selector;
use kubewright_runtime::owners::{controller_of, is_controlled_by};

/// What a controller has to do about an object to own it, or not to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// It is the controller's and matches.
    Ours,
    /// It is an orphan that matches.
    Adopt,
    /// It is the controller's and matches no more.
    Release,
    /// It is somebody else's, or nobody's business.
    NotOurs,
}

/// Whether an object's labels and name are what a controller looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    /// The object is one that the controller looks for.
    Yes,
    /// The object is another one.
    No,
}

impl From<bool> for Match {
    fn from(matches: bool) -> Self {
        if matches { Self::Yes } else { Self::No }
    }
}

/// What the owner has to do about an object. An owner that goes away takes no steps.
pub(crate) fn claim(owner: &impl Resource, object: &impl Resource, found: Match) -> Claim {
    let leaving = owner.meta().deletion_timestamp.is_some();
    match controller_of(object) {
        Some(_) if !is_controlled_by(owner, object) => Claim::NotOurs,
        Some(_) if found == Match::Yes => Claim::Ours,
        Some(_) if leaving => Claim::NotOurs,
        Some(_) => Claim::Release,
        None if found == Match::No || leaving => Claim::NotOurs,
        None if object.meta().deletion_timestamp.is_some() => Claim::NotOurs,
        None if owner.meta().namespace != object.meta().namespace => Claim::NotOurs,
        None => Claim::Adopt,
    }
}

/// The reference by which `owner` controls an object, and holds its own deletion in the foreground until that is gone.
pub(crate) fn controller_reference<K>(owner: &K) -> OwnerReference
where
    K: Resource<DynamicType = ()>,
{
    let metadata = owner.meta();
    OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: metadata.name.clone().unwrap_or_default(),
        uid: metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// The owners of an adopted object.
pub(crate) fn adopted(object: &ObjectMeta, by: OwnerReference) -> Vec<OwnerReference> {
    let mut owners = released(object, &by.uid);
    owners.push(by);
    owners
}

/// The owners of an object that a controller lets go.
pub(crate) fn released(object: &ObjectMeta, by: &str) -> Vec<OwnerReference> {
    let owners = object.owner_references.iter().flatten();
    owners.filter(|owner| owner.uid != by).cloned().collect()
}

/// A selector that can be asked. One that says nothing, or does not read, selects nothing: a controller without a
/// selector must not take all pods of its namespace.
pub(crate) fn selector(labels: &LabelSelector) -> Option<Selector> {
    let selector = Selector::try_from(labels).ok()?;
    (!selector.selects_all()).then_some(selector)
}

/// Whether a selector selects an object.
pub(crate) fn selects(selector: &Selector, object: &ObjectMeta) -> bool {
    static NONE: BTreeMap<String, String> = BTreeMap::new();
    selector.matches(object.labels.as_ref().unwrap_or(&NONE))
}
