//! What was measured for each metric of an autoscaler: by a metrics API that somebody registered, or else as declared.
//!
//! A cluster starts without any of the metrics APIs but the one of its own nodes. An APIService with a Service says that
//! somebody else answers for a group from then on; what is declared does not count for that group any more.

mod answers;
mod declared;
mod registered;
mod request;
mod served;

use k8s_openapi::api::autoscaling::v2::{
    ExternalMetricSource, MetricIdentifier, MetricSpec, MetricTarget, ObjectMetricSource,
    PodsMetricSource,
};

use super::calculate::Measurements;
pub(super) use declared::Declared;
use registered::Registered;
use request::MetricsApi;
pub(super) use served::{Served, registered_apis};

/// A metric, and what was measured for it.
#[derive(Debug)]
pub(super) enum Measure<'a> {
    /// What the pods use of a resource.
    Resource(Resource<'a>),
    /// A custom metric of the pods.
    Pods {
        source: &'a PodsMetricSource,
        found: Result<Measurements, ReadingError>,
    },
    /// A custom metric of another object, in thousandths.
    Object {
        source: &'a ObjectMetricSource,
        found: Result<i64, ReadingError>,
    },
    /// The sum of a metric from outside, in thousandths.
    External {
        source: &'a ExternalMetricSource,
        found: Result<i64, ReadingError>,
    },
    /// A source that is of no known type.
    Unknown(&'a str),
}

/// What the pods use of a resource, or one container of each.
#[derive(Debug)]
pub(super) struct Resource<'a> {
    pub(super) name: &'a str,
    pub(super) container: Option<&'a str>,
    pub(super) target: &'a MetricTarget,
    pub(super) found: Result<Measurements, ReadingError>,
}

/// Why nothing is known of a metric, in the words of the real controller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ReadingError {
    /// Nobody has measured it.
    #[error("no metrics returned from {0} metrics API")]
    Nothing(MetricsApi),
    /// A metrics API refused, or could not be reached.
    #[error("unable to fetch metrics from {api} metrics API: {why}")]
    Fetch { api: MetricsApi, why: String },
    /// A pod was measured, and one of its containers was not.
    #[error(
        "failed to get container metrics: container {container} not present in metrics for pod {namespace}/{pod}"
    )]
    NoContainer {
        container: String,
        namespace: String,
        pod: String,
    },
    /// The selector of a metric is not one.
    #[error("{0}")]
    Selector(String),
}

/// Where the metrics of one autoscaler are looked up.
#[derive(Debug)]
pub(super) struct Readings<'a> {
    pub(super) declared: Declared<'a>,
    /// The metrics APIs of others; none where there is nobody to ask.
    pub(super) served: Option<Served<'a>>,
}

impl Readings<'_> {
    /// Reads what was measured for each of these metrics, in their order.
    pub(super) async fn gather<'s>(&self, specs: &'s [MetricSpec]) -> Vec<Measure<'s>> {
        let mut measures = Vec::with_capacity(specs.len());
        for spec in specs {
            measures.push(self.measure(spec).await);
        }
        measures
    }

    async fn measure<'s>(&self, spec: &'s MetricSpec) -> Measure<'s> {
        match &*spec.type_ {
            "Resource" => match &spec.resource {
                Some(source) => self.resource(&source.name, None, &source.target).await,
                None => Measure::Unknown(&spec.type_),
            },
            "ContainerResource" => match &spec.container_resource {
                Some(source) => {
                    let container = Some(&*source.container);
                    self.resource(&source.name, container, &source.target).await
                }
                None => Measure::Unknown(&spec.type_),
            },
            "Pods" => match &spec.pods {
                Some(source) => Measure::Pods {
                    source,
                    found: self.of_pods(&source.metric).await,
                },
                None => Measure::Unknown(&spec.type_),
            },
            "Object" => match &spec.object {
                Some(source) => Measure::Object {
                    source,
                    found: self.of_object(source).await,
                },
                None => Measure::Unknown(&spec.type_),
            },
            "External" => match &spec.external {
                Some(source) => Measure::External {
                    source,
                    found: self.of_external(&source.metric).await,
                },
                None => Measure::Unknown(&spec.type_),
            },
            unknown => Measure::Unknown(unknown),
        }
    }

    async fn resource<'s>(
        &self,
        name: &'s str,
        container: Option<&'s str>,
        target: &'s MetricTarget,
    ) -> Measure<'s> {
        let found = match self.served.as_ref().filter(|s| s.registered.resource) {
            Some(served) => served.use_of_pods(name, container).await,
            None => self.declared.use_of_pods(name, container),
        };
        Measure::Resource(Resource {
            name,
            container,
            target,
            found,
        })
    }

    async fn of_pods(&self, metric: &MetricIdentifier) -> Result<Measurements, ReadingError> {
        match self.custom() {
            Some((served, version)) => served.of_pods(version, metric).await,
            None => self.declared.of_pods(metric),
        }
    }

    async fn of_object(&self, source: &ObjectMetricSource) -> Result<i64, ReadingError> {
        match self.custom() {
            Some((served, version)) => served.of_object(version, source).await,
            None => self.declared.of_object(source),
        }
    }

    async fn of_external(&self, metric: &MetricIdentifier) -> Result<i64, ReadingError> {
        match self.served.as_ref().filter(|s| s.registered.external) {
            Some(served) => served.of_external(metric).await,
            None => self.declared.of_external(metric),
        }
    }

    /// Who answers for custom metrics, and at which version.
    fn custom(&self) -> Option<(&Served<'_>, &'static str)> {
        let served = self.served.as_ref()?;
        Some((served, served.registered.custom?))
    }
}
