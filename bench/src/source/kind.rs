//! The kinds that the source can serve.

/// A kind, and how the source knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A built-in kind, which is also written as protobuf.
    Pod,
    /// A custom kind: JSON and nothing else.
    Foo,
}

impl Kind {
    /// Where its objects are.
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Pod => "/api/v1/pods",
            Self::Foo => "/apis/samplecontroller.k8s.io/v1alpha1/foos",
        }
    }

    /// Its version and its name.
    pub(super) fn type_meta(self) -> (&'static str, &'static str) {
        match self {
            Self::Pod => ("v1", "Pod"),
            Self::Foo => ("samplecontroller.k8s.io/v1alpha1", "Foo"),
        }
    }

    /// The first object, with everything in it that differs from one to the next.
    pub(super) fn first(self) -> &'static str {
        match self {
            Self::Pod => include_str!("pod.json"),
            Self::Foo => include_str!("foo.json"),
        }
    }
}
