//! What comes of one step of a pod's life.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::PodStatus;
use kubewright_runtime::EventKind;

use super::signal::Order;

/// What a step leads to.
#[derive(Debug, Default)]
pub(crate) struct Step {
    /// The status, if it differs from the one that was written last.
    pub(crate) status: Option<PodStatus>,
    /// The events about the pod.
    pub(crate) notes: Vec<Note>,
    /// What the containers wrote.
    pub(crate) output: Vec<Output>,
    /// What the runtime has to do.
    pub(crate) orders: Vec<Order>,
    /// When to step again if nothing happens before.
    pub(crate) wake: Option<Timestamp>,
    /// The conditions that the pod has no longer.
    pub(crate) gone: Vec<&'static str>,
    pub(crate) fate: Fate,
}

/// What becomes of the pod object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Fate {
    #[default]
    Stays,
    /// Everything has stopped: the object can go.
    Goes,
}

/// An event about a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) kind: EventKind,
    pub(crate) reason: Cow<'static, str>,
    pub(crate) message: String,
    /// The part of the pod that it is about: `spec.containers{app}`.
    pub(crate) part: Option<String>,
}

/// Something in the log of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Output {
    pub(crate) container: String,
    pub(crate) what: Written,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Written {
    /// A run begins; what was there is the log of the run before.
    Begin,
    Line(String),
    /// The run is over.
    End,
}
