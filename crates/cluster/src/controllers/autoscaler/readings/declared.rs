//! What programs and annotations declare. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::autoscaling::v2::{MetricIdentifier, ObjectMetricSource};
use k8s_openapi::api::core::v1::Pod;
use kubewright_runtime::Selector;

use super::{MetricsApi, ReadingError};
use crate::controllers::autoscaler::calculate::Measurements;
use crate::metrics::Metrics;

/// The declared metrics of one autoscaler.
#[derive(Debug, Clone, Copy)]
pub(in crate::controllers::autoscaler) struct Declared<'a> {
    pub(in crate::controllers::autoscaler) metrics: &'a Metrics,
    pub(in crate::controllers::autoscaler) namespace: &'a str,
    pub(in crate::controllers::autoscaler) pods: &'a [Arc<Pod>],
}

impl Declared<'_> {
    pub(super) fn use_of_pods(
        &self,
        resource: &str,
        container: Option<&str>,
    ) -> Result<Measurements, ReadingError> {
        let used = |pod: &Pod| self.metrics.use_of(pod, container, resource);
        self.measure(MetricsApi::Resource, used)
    }

    pub(super) fn of_pods(&self, metric: &MetricIdentifier) -> Result<Measurements, ReadingError> {
        let value = |pod: &Pod| self.metrics.of_pod(pod, &metric.name);
        self.measure(MetricsApi::Custom, value)
    }

    fn measure(
        &self,
        api: MetricsApi,
        of: impl Fn(&Pod) -> Option<i64>,
    ) -> Result<Measurements, ReadingError> {
        let pods = self.pods.iter();
        let known = pods.filter_map(|pod| Some((pod.metadata.name.clone()?, of(pod)?)));
        let values: BTreeMap<String, i64> = known.collect();
        if values.is_empty() {
            return Err(ReadingError::Nothing(api));
        }
        Ok(Measurements {
            values,
            ..Measurements::default()
        })
    }

    pub(super) fn of_object(&self, source: &ObjectMetricSource) -> Result<i64, ReadingError> {
        let of = &source.described_object;
        let metric = &source.metric.name;
        let value = self
            .metrics
            .of_object(self.namespace, &of.kind, &of.name, metric);
        value.ok_or(ReadingError::Nothing(MetricsApi::Custom))
    }

    /// The sum of all that is selected.
    pub(super) fn of_external(&self, metric: &MetricIdentifier) -> Result<i64, ReadingError> {
        let selector = metric.selector.as_ref().map(Selector::try_from).transpose();
        let selector = selector.map_err(|error| ReadingError::Selector(error.to_string()))?;
        let selects =
            |labels: &BTreeMap<String, String>| selector.as_ref().is_none_or(|s| s.matches(labels));
        let values = self
            .metrics
            .of_external(self.namespace, &metric.name, selects);
        if values.is_empty() {
            return Err(ReadingError::Nothing(MetricsApi::External));
        }
        Ok(values.iter().fold(0, |sum, v| sum.saturating_add(*v)))
    }
}
