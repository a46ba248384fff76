//! References to objects, however they are held.

use std::sync::Arc;

use kube::core::Resource;

/// A reference to an object of type `K`: `&K`, or `&Arc<K>` as caches and reconciles hand objects out.
///
/// Functions that take `impl AsObject<K>` accept both, so that nobody has to write `&*object`.
///
/// ```
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kubewright_cache::Key;
///
/// let mut config = ConfigMap::default();
/// config.metadata.name = Some("settings".to_owned());
/// config.metadata.namespace = Some("default".to_owned());
/// let shared = Arc::new(config.clone());
/// assert_eq!(Key::of(&config), Key::of(&shared));
/// ```
pub trait AsObject<K>: sealed::Sealed<K> {
    /// The object itself.
    fn as_object(&self) -> &K;
}

/// Keeps implementations of [`AsObject`] within this toolkit.
#[doc(hidden)]
pub mod sealed {
    pub trait Sealed<K> {}
}

// `&Arc<K>` matches the first implementation as well, with `Arc<K>` for `K`; the bound rules that out, which is what lets the
// compiler infer `K`.
impl<K: Resource> sealed::Sealed<K> for &K {}
impl<K: Resource> AsObject<K> for &K {
    fn as_object(&self) -> &K {
        self
    }
}

impl<K: Resource> sealed::Sealed<K> for &Arc<K> {}
impl<K: Resource> AsObject<K> for &Arc<K> {
    fn as_object(&self) -> &K {
        self
    }
}

impl<K: Resource> sealed::Sealed<K> for &&K {}
impl<K: Resource> AsObject<K> for &&K {
    fn as_object(&self) -> &K {
        self
    }
}

impl<K: Resource> sealed::Sealed<K> for &&Arc<K> {}
impl<K: Resource> AsObject<K> for &&Arc<K> {
    fn as_object(&self) -> &K {
        self
    }
}

/// As [`AsObject`], for functions that return a part of the object: it lives as long as the reference that was given.
pub trait AsObjectRef<'a, K: 'a>: AsObject<K> {
    /// The object itself, for as long as the reference to it lives.
    fn into_object_ref(self) -> &'a K;
}

impl<'a, K: Resource> AsObjectRef<'a, K> for &'a K {
    fn into_object_ref(self) -> &'a K {
        self
    }
}

impl<'a, K: Resource> AsObjectRef<'a, K> for &'a Arc<K> {
    fn into_object_ref(self) -> &'a K {
        self
    }
}

impl<'a, K: Resource> AsObjectRef<'a, K> for &'a &K {
    fn into_object_ref(self) -> &'a K {
        self
    }
}

impl<'a, K: Resource> AsObjectRef<'a, K> for &'a &Arc<K> {
    fn into_object_ref(self) -> &'a K {
        self
    }
}
