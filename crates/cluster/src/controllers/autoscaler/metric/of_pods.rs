//! Metrics of the pods themselves: resources of pods and of containers, and numbers of any other kind. Pure.

use std::sync::Arc;

use k8s_openapi::api::autoscaling::v2::{
    ContainerResourceMetricStatus, MetricStatus, MetricTarget, MetricValueStatus, PodsMetricSource,
    PodsMetricStatus, ResourceMetricStatus,
};
use k8s_openapi::api::core::v1::Pod;

use super::error::UnavailableMetric;
use super::{Asked, Scene, average, milli, quantity};
use crate::controllers::autoscaler::calculate::{Goal, Proposal, Samples, by_pods, requests};

/// What a resource of the pods asks for, or of one container of each.
pub(super) fn resource(
    name: &str,
    container: Option<&str>,
    target: &MetricTarget,
    scene: &Scene<'_>,
) -> Result<Asked, UnavailableMetric> {
    let part = container.map_or("", |_| "container ");
    let (proposal, title) = match (milli(&target.average_value), target.average_utilization) {
        (Some(value), _) => {
            let found = usage(name, container, value, scene);
            let found = found.map_err(|error| UnavailableMetric::Usage {
                resource: name.to_owned(),
                error: Box::new(error),
            })?;
            (found, format!("{name} {part}resource"))
        }
        (None, Some(percent)) => {
            let found = utilization(name, container, percent, scene);
            let found = found.map_err(|error| UnavailableMetric::Utilization {
                resource: name.to_owned(),
                error: Box::new(error),
            })?;
            let title = format!("{name} {part}resource utilization (percentage of request)");
            (found, title)
        }
        (None, None) => {
            return Err(UnavailableMetric::NoResourceTarget);
        }
    };
    let current = MetricValueStatus {
        average_utilization: proposal.utilization,
        average_value: Some(quantity(proposal.value)),
        value: None,
    };
    let name = name.to_owned();
    let status = match container {
        None => MetricStatus {
            type_: "Resource".to_owned(),
            resource: Some(ResourceMetricStatus { current, name }),
            ..MetricStatus::default()
        },
        Some(container) => MetricStatus {
            type_: "ContainerResource".to_owned(),
            container_resource: Some(ContainerResourceMetricStatus {
                container: container.to_owned(),
                current,
                name,
            }),
            ..MetricStatus::default()
        },
    };
    Ok(Asked {
        replicas: proposal.replicas,
        name: title,
        status,
    })
}

fn usage(
    name: &str,
    container: Option<&str>,
    average: i64,
    scene: &Scene<'_>,
) -> Result<Proposal, UnavailableMetric> {
    let samples = measure_resource(name, container, scene)?;
    let goal = Goal::Average(average);
    Ok(by_pods(&scene.crowd, samples, goal, Some(name))?)
}

fn utilization(
    name: &str,
    container: Option<&str>,
    percent: i32,
    scene: &Scene<'_>,
) -> Result<Proposal, UnavailableMetric> {
    let samples = measure_resource(name, container, scene)?;
    let requests = requests(scene.crowd.pods, container, name)?;
    let goal = Goal::Utilization {
        percent,
        requests: &requests,
    };
    Ok(by_pods(&scene.crowd, samples, goal, Some(name))?)
}

fn measure_resource(
    name: &str,
    container: Option<&str>,
    scene: &Scene<'_>,
) -> Result<Samples, UnavailableMetric> {
    let samples = measure(scene.crowd.pods, |pod| {
        scene.metrics.use_of(pod, container, name)
    });
    if samples.is_empty() {
        Err(UnavailableMetric::NoResource(name.to_owned()))
    } else {
        Ok(samples)
    }
}

fn measure(pods: &[Arc<Pod>], of: impl Fn(&Pod) -> Option<i64>) -> Samples {
    let known = pods
        .iter()
        .filter_map(|pod| Some((pod.metadata.name.clone()?, of(pod)?)));
    known.collect()
}

/// What a custom metric of the pods asks for.
pub(super) fn pods(
    source: &PodsMetricSource,
    scene: &Scene<'_>,
) -> Result<Asked, UnavailableMetric> {
    let name = &source.metric.name;
    let target = milli(&source.target.average_value).unwrap_or(0);
    let samples = measure(scene.crowd.pods, |pod| scene.metrics.of_pod(pod, name));
    if samples.is_empty() {
        return Err(UnavailableMetric::NoCustom(name.clone()));
    }
    let proposal = by_pods(&scene.crowd, samples, Goal::Average(target), None)?;
    let current = average(proposal);
    let status = PodsMetricStatus {
        current,
        metric: source.metric.clone(),
    };
    Ok(Asked {
        replicas: proposal.replicas,
        name: format!("pods metric {name}"),
        status: MetricStatus {
            type_: "Pods".to_owned(),
            pods: Some(status),
            ..MetricStatus::default()
        },
    })
}
