//! The part of an object that a request is about.

/// Which part of an object a write may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Everything but the status.
    Whole,
    /// The status, through its subresource.
    Status,
    /// The number of replicas, written as a `Scale`.
    Scale,
    /// What the subresource of this name changed. Its own code has restored the rest.
    Own(&'static str),
}

impl Part {
    /// The name of the subresource; empty for the object itself.
    pub(crate) fn subresource(self) -> &'static str {
        match self {
            Part::Whole => "",
            Part::Status => "status",
            Part::Scale => "scale",
            Part::Own(name) => name,
        }
    }

    /// Whether the kind's rules for the whole object hold, as they do for one that is scaled.
    pub(crate) fn is_main(self) -> bool {
        matches!(self, Part::Whole | Part::Scale)
    }
}
