//! What the metrics APIs of others say, asked through the API server as the autoscaler's service account. The requests are
//! those of `podautoscaler/metrics/client.go`.

use std::time::Duration;

use http::Request;
use k8s_openapi::api::autoscaling::v2::{MetricIdentifier, ObjectMetricSource};
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::core::ApiResource;
use kubewright_runtime::{Client, ClientError, Query};
use kubewright_schema::selector::LabelSelector;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;

use super::answers::{ExternalMetricValueList, MetricValueList, PodMetricsList};
use super::request::Asking;
use super::{MetricsApi, ReadingError, Registered};
use crate::controllers::autoscaler::calculate::Measurements;
use crate::controllers::autoscaler::target::resource;

/// How long a metrics API may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Which metrics APIs others answer for at this moment.
///
/// # Errors
/// When the APIServices cannot be read.
pub(in crate::controllers::autoscaler) async fn registered_apis(
    client: &Client,
) -> Result<Registered, ClientError> {
    let services = client.list::<APIService>(Query::all()).await?;
    let specs = services.iter().filter_map(|service| service.spec.as_ref());
    Ok(Registered::among(specs))
}

/// The metrics APIs of others, for one autoscaler.
#[derive(Clone, Copy)]
pub(in crate::controllers::autoscaler) struct Served<'a> {
    pub(in crate::controllers::autoscaler) registered: Registered,
    pub(in crate::controllers::autoscaler) client: &'a Client,
    pub(in crate::controllers::autoscaler) namespace: &'a str,
    /// Which pods the target counts, as its scale says.
    pub(in crate::controllers::autoscaler) selector: &'a str,
}

impl std::fmt::Debug for Served<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Served({:?})", self.registered)
    }
}

impl Served<'_> {
    pub(super) async fn use_of_pods(
        &self,
        resource: &str,
        container: Option<&str>,
    ) -> Result<Measurements, ReadingError> {
        let asking = Asking {
            query: vec![("labelSelector", self.pod_selector()?)],
            ..self.asking(MetricsApi::Resource, "v1beta1", "pods")
        };
        let list: PodMetricsList = self.ask(&asking).await?;
        list.measurements(resource, container)
    }

    pub(super) async fn of_pods(
        &self,
        version: &str,
        metric: &MetricIdentifier,
    ) -> Result<Measurements, ReadingError> {
        let asking = Asking {
            name: Some("*"),
            metric: Some(&metric.name),
            query: vec![
                ("labelSelector", self.pod_selector()?),
                ("metricLabelSelector", metric_selector(metric)?),
            ],
            ..self.asking(MetricsApi::Custom, version, "pods")
        };
        let list: MetricValueList = self.ask(&asking).await?;
        list.measurements()
    }

    pub(super) async fn of_object(
        &self,
        version: &str,
        source: &ObjectMetricSource,
    ) -> Result<i64, ReadingError> {
        let (of, metric) = (&source.described_object, &source.metric);
        let api_version = of.api_version.as_deref().unwrap_or_default();
        let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
        let query = vec![("metricLabelSelector", metric_selector(metric)?)];
        // Of a namespace it is always its own: a reference cannot lead out of it.
        let is_namespace = group.is_empty() && of.kind == "Namespace";
        let known = if is_namespace {
            "metrics".to_owned()
        } else {
            self.qualified(group, &of.kind).await?
        };
        let (name, metric) = if is_namespace {
            (&metric.name, None)
        } else {
            (&of.name, Some(&*metric.name))
        };
        let asking = Asking {
            name: Some(name),
            metric,
            query,
            ..self.asking(MetricsApi::Custom, version, &known)
        };
        let list: MetricValueList = self.ask(&asking).await?;
        list.value()
    }

    pub(super) async fn of_external(&self, metric: &MetricIdentifier) -> Result<i64, ReadingError> {
        let asking = Asking {
            query: vec![("labelSelector", metric_selector(metric)?)],
            ..self.asking(MetricsApi::External, "v1beta1", &metric.name)
        };
        let list: ExternalMetricValueList = self.ask(&asking).await?;
        list.sum()
    }

    fn asking<'b>(&'b self, api: MetricsApi, version: &'b str, resource: &'b str) -> Asking<'b> {
        Asking {
            api,
            version,
            namespace: self.namespace,
            resource,
            name: None,
            metric: None,
            query: Vec::new(),
        }
    }

    /// A resource with its group, as in `ingresses.networking.k8s.io`.
    async fn qualified(&self, group: &str, kind: &str) -> Result<String, ReadingError> {
        let found = resource(self.client, group, kind).await;
        let ApiResource { group, plural, .. } = found.map_err(|error| {
            let kind = if group.is_empty() {
                kind.to_owned()
            } else {
                format!("{kind}.{group}")
            };
            let why = format!("unable to map kind {kind} to resource: {error}");
            failed(MetricsApi::Custom, why)
        })?;
        Ok(if group.is_empty() {
            plural
        } else {
            format!("{plural}.{group}")
        })
    }

    /// The selector of the pods with its requirements in the order in which clients send them.
    fn pod_selector(&self) -> Result<String, ReadingError> {
        let selector = LabelSelector::parse(self.selector);
        let selector = selector.map_err(|error| ReadingError::Selector(error.to_string()))?;
        Ok(selector.to_string())
    }

    async fn ask<T: DeserializeOwned>(&self, asking: &Asking<'_>) -> Result<T, ReadingError> {
        let api = asking.api;
        let request = Request::get(asking.path()).body(Vec::new());
        let request = request.map_err(|error| failed(api, error.to_string()))?;
        let answer = timeout(PATIENCE, self.client.kube().request_text(request)).await;
        let text = match answer {
            Ok(Ok(text)) => text,
            Ok(Err(kube::Error::Api(status))) => return Err(failed(api, asking.refusal(&status))),
            Ok(Err(error)) => return Err(failed(api, error.to_string())),
            Err(_) => return Err(failed(api, "context deadline exceeded".to_owned())),
        };
        kubewright_cache::decode(text.as_bytes()).map_err(|error| failed(api, error.to_string()))
    }
}

fn failed(api: MetricsApi, why: String) -> ReadingError {
    ReadingError::Fetch { api, why }
}

/// The selector of a metric. Without one nothing is sent, as with an empty one.
fn metric_selector(metric: &MetricIdentifier) -> Result<String, ReadingError> {
    let object = metric.selector.as_ref().map(serde_json::to_value);
    let object = object.transpose();
    let object = object.map_err(|error| ReadingError::Selector(error.to_string()))?;
    let selector = LabelSelector::from_object(&object.unwrap_or(Value::Null));
    let selector = selector.map_err(|error| ReadingError::Selector(error.to_string()))?;
    Ok(selector.to_string())
}
