//! Metrics of the pods themselves: resources of pods and of containers, and numbers of any other kind. Pure.

use k8s_openapi::api::autoscaling::v2::{
    ContainerResourceMetricStatus, MetricStatus, MetricValueStatus, PodsMetricSource,
    PodsMetricStatus, ResourceMetricStatus,
};

use super::error::UnavailableMetric;
use super::{Asked, Scene, average, milli, quantity};
use crate::controllers::autoscaler::calculate::{Goal, Measurements, Proposal, by_pods, requests};
use crate::controllers::autoscaler::readings::{ReadingError, Resource};

/// What a resource of the pods asks for, or of one container of each.
pub(super) fn resource(
    measure: Resource<'_>,
    scene: &Scene<'_>,
) -> Result<Asked, UnavailableMetric> {
    let (name, container, target) = (measure.name, measure.container, measure.target);
    let part = container.map_or("", |_| "container ");
    let found = measure.found.map_err(|error| UnavailableMetric::Resource {
        resource: name.to_owned(),
        error,
    });
    let (proposal, title) = match (milli(&target.average_value), target.average_utilization) {
        (Some(value), _) => {
            let goal = Goal::Average(value);
            let found = found.and_then(|found| Ok(by_pods(&scene.crowd, found, goal, Some(name))?));
            let found = found.map_err(|error| UnavailableMetric::Usage {
                resource: name.to_owned(),
                error: Box::new(error),
            })?;
            (found, format!("{name} {part}resource"))
        }
        (None, Some(percent)) => {
            let found =
                found.and_then(|found| utilization((name, container), percent, found, scene));
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

fn utilization(
    (name, container): (&str, Option<&str>),
    percent: i32,
    found: Measurements,
    scene: &Scene<'_>,
) -> Result<Proposal, UnavailableMetric> {
    let requests = requests(scene.crowd.pods, container, name)?;
    let goal = Goal::Utilization {
        percent,
        requests: &requests,
    };
    Ok(by_pods(&scene.crowd, found, goal, Some(name))?)
}

/// What a custom metric of the pods asks for.
pub(super) fn pods(
    source: &PodsMetricSource,
    found: Result<Measurements, ReadingError>,
    scene: &Scene<'_>,
) -> Result<Asked, UnavailableMetric> {
    let name = &source.metric.name;
    let target = milli(&source.target.average_value).unwrap_or(0);
    let found = found.map_err(|error| match error {
        ReadingError::Selector(_) => UnavailableMetric::Selector(error),
        _ => UnavailableMetric::Custom {
            metric: name.clone(),
            error,
        },
    })?;
    let proposal = by_pods(&scene.crowd, found, Goal::Average(target), None)?;
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
