//! Why a metric asks for nothing, in the words of the real controller.

use kubewright_runtime::SelectorError;

use crate::controllers::autoscaler::calculate::CalculateError;

/// Why a metric asks for nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum UnavailableMetric {
    #[error(transparent)]
    Calculate(#[from] CalculateError),
    #[error(transparent)]
    Selector(#[from] SelectorError),
    #[error(
        "unable to get metrics for resource {0}: no metrics returned from resource metrics API"
    )]
    NoResource(String),
    #[error("unable to get metric {0}: no metrics returned from custom metrics API")]
    NoCustom(String),
    /// The order of the words is the real controller's.
    #[error(
        "unable to get metric {metric}: {kind} on {namespace} {name}/no metrics returned from custom metrics API"
    )]
    NoObject {
        metric: String,
        kind: String,
        namespace: String,
        name: String,
    },
    #[error(
        "unable to get external metric {namespace}/{name}/{selector}: no metrics returned from external metrics API"
    )]
    NoExternal {
        namespace: String,
        name: String,
        selector: String,
    },
    #[error("failed to get {resource} usage: {error}")]
    Usage { resource: String, error: Box<Self> },
    #[error("failed to get {resource} utilization: {error}")]
    Utilization { resource: String, error: Box<Self> },
    #[error("failed to get {name} external metric: {error}")]
    ExternalAverage { name: String, error: Box<Self> },
    #[error("failed to get external metric {name}: {error}")]
    ExternalValue { name: String, error: Box<Self> },
    #[error(
        "invalid resource metric source: neither an average utilization target nor an average value (usage) target was set"
    )]
    NoResourceTarget,
    #[error(
        "invalid object metric source: neither a value target nor an average value target was set"
    )]
    NoObjectTarget,
    #[error(
        "invalid external metric source: neither a value target nor an average value target was set"
    )]
    NoExternalTarget,
}
