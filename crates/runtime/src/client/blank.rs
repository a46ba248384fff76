//! Objects that are made with nothing in them, so that a closure can fill them.

use kube::core::{ApiResource, DynamicObject, Resource};

use super::Object;

/// An object that can be made of its kind alone: every typed object that has a default, and a dynamic one.
///
/// Calls that create what does not exist, such as [`Objects::apply_owned`](super::Objects::apply_owned), take any of them.
pub trait Blank: Object {
    /// Makes an object of this resource that has no name yet.
    fn blank(resource: &ApiResource) -> Self;
}

impl<K: Object> Blank for K
where
    K::DynamicType: BlankOf<K>,
{
    fn blank(resource: &ApiResource) -> Self {
        <K::DynamicType as BlankOf<K>>::blank_of(resource)
    }
}

/// How an object is made, by what its type leaves open about its kind.
#[doc(hidden)]
pub trait BlankOf<K> {
    fn blank_of(resource: &ApiResource) -> K;
}

impl<K: Resource<DynamicType = ()> + Default> BlankOf<K> for () {
    fn blank_of(_resource: &ApiResource) -> K {
        K::default()
    }
}

impl BlankOf<DynamicObject> for ApiResource {
    fn blank_of(resource: &ApiResource) -> DynamicObject {
        let fields = serde_json::Value::Object(serde_json::Map::new());
        DynamicObject::new("", resource).data(fields)
    }
}
