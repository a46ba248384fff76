//! Why a metric asks for nothing, in the words of the real controller.

use crate::controllers::autoscaler::calculate::CalculateError;
use crate::controllers::autoscaler::readings::ReadingError;

/// Why a metric asks for nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum UnavailableMetric {
    #[error(transparent)]
    Calculate(#[from] CalculateError),
    /// The selector of a metric is not one.
    #[error(transparent)]
    Selector(ReadingError),
    #[error("unable to get metrics for resource {resource}: {error}")]
    Resource {
        resource: String,
        error: ReadingError,
    },
    #[error("unable to get metric {metric}: {error}")]
    Custom { metric: String, error: ReadingError },
    /// The order of the words is the real controller's.
    #[error("unable to get metric {metric}: {kind} on {namespace} {name}/{error}")]
    Object {
        metric: String,
        kind: String,
        namespace: String,
        name: String,
        error: Box<ReadingError>,
    },
    #[error("unable to get external metric {namespace}/{name}/{selector}: {error}")]
    External {
        namespace: String,
        name: String,
        selector: String,
        error: Box<ReadingError>,
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
