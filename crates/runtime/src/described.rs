//! Objects that say of themselves what kind they are, known at compile time or not.

use kube::core::{ApiResource, DynamicObject, PartialObjectMeta, Resource, TypeMeta};

/// An object that knows its own kind: every typed object, and a dynamic one that came from a server.
///
/// What refers to an object (owner references, events) needs its kind, and takes any object that has one.
pub trait Described: Resource + sealed::Sealed {
    /// The API version and kind of the object. None for a dynamic object that was made without them.
    fn type_meta(&self) -> Option<TypeMeta>;
}

impl<K: Resource> Described for K
where
    K::DynamicType: KindOf<K>,
{
    fn type_meta(&self) -> Option<TypeMeta> {
        K::DynamicType::type_meta(self)
    }
}

impl<K: Resource> sealed::Sealed for K where K::DynamicType: KindOf<K> {}

/// How the kind of an object is found, by what its type leaves open.
#[doc(hidden)]
pub trait KindOf<K> {
    fn type_meta(object: &K) -> Option<TypeMeta>;
}

impl<K: Resource<DynamicType = ()>> KindOf<K> for () {
    fn type_meta(_object: &K) -> Option<TypeMeta> {
        Some(TypeMeta {
            api_version: K::api_version(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
        })
    }
}

impl KindOf<DynamicObject> for ApiResource {
    fn type_meta(object: &DynamicObject) -> Option<TypeMeta> {
        object.types.clone()
    }
}

impl KindOf<PartialObjectMeta<DynamicObject>> for ApiResource {
    fn type_meta(object: &PartialObjectMeta<DynamicObject>) -> Option<TypeMeta> {
        // Servers write the kind of the answer, not that of the object, into it.
        let types = object.types.clone();
        types.filter(|types| types.kind != "PartialObjectMetadata")
    }
}

mod sealed {
    pub trait Sealed {}
}
