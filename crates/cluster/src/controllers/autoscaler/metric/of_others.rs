//! Metrics of other objects and of what is outside of the cluster. Pure.

use k8s_openapi::api::autoscaling::v2::{
    ExternalMetricSource, ExternalMetricStatus, MetricIdentifier, MetricStatus, MetricValueStatus,
    ObjectMetricSource, ObjectMetricStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::error::UnavailableMetric;
use super::{Asked, Scene, average, milli, quantity};
use crate::controllers::autoscaler::calculate::{Proposal, by_share, by_value};
use crate::controllers::autoscaler::readings::ReadingError;

/// What a metric of an object asks for.
pub(super) fn object(
    source: &ObjectMetricSource,
    found: Result<i64, ReadingError>,
    scene: &Scene<'_>,
) -> Result<Asked, UnavailableMetric> {
    let (metric, of) = (&source.metric.name, &source.described_object);
    let value = found.map_err(|error| match error {
        ReadingError::Selector(_) => UnavailableMetric::Selector(error),
        _ => UnavailableMetric::Object {
            metric: metric.clone(),
            kind: of.kind.clone(),
            namespace: scene.namespace.to_owned(),
            name: of.name.clone(),
            error: Box::new(error),
        },
    })?;
    let (replicas, current, name) = match (
        milli(&source.target.value),
        milli(&source.target.average_value),
    ) {
        (Some(target), _) if source.target.type_ == "Value" => {
            let proposal = by_value(&scene.crowd, value, target)?;
            let name = format!("{} metric {metric}", of.kind);
            (proposal.replicas, whole(proposal), name)
        }
        (_, Some(target)) => {
            let proposal = by_share(scene.there, scene.crowd.tolerance, value, target);
            (proposal.replicas, average(proposal), title(&source.metric))
        }
        _ => {
            return Err(UnavailableMetric::NoObjectTarget);
        }
    };
    let status = ObjectMetricStatus {
        current,
        described_object: of.clone(),
        metric: source.metric.clone(),
    };
    Ok(Asked {
        replicas,
        name,
        status: MetricStatus {
            type_: "Object".to_owned(),
            object: Some(status),
            ..MetricStatus::default()
        },
    })
}

/// What a metric from outside asks for.
pub(super) fn external(
    source: &ExternalMetricSource,
    found: Result<i64, ReadingError>,
    scene: &Scene<'_>,
) -> Result<Asked, UnavailableMetric> {
    let metric = &source.metric;
    let value = found.map_err(|error| match error {
        ReadingError::Selector(_) => UnavailableMetric::Selector(error),
        _ => UnavailableMetric::External {
            namespace: scene.namespace.to_owned(),
            name: metric.name.clone(),
            selector: in_go(metric.selector.as_ref()),
            error: Box::new(error),
        },
    });
    let target = &source.target;
    let (replicas, current) = match (milli(&target.average_value), milli(&target.value)) {
        (Some(target), _) => {
            let failed = |error| UnavailableMetric::ExternalAverage {
                name: metric.name.clone(),
                error: Box::new(error),
            };
            let value = value.map_err(failed)?;
            let proposal = by_share(scene.there, scene.crowd.tolerance, value, target);
            (proposal.replicas, average(proposal))
        }
        (None, Some(target)) => {
            let proposal = value.and_then(|value| Ok(by_value(&scene.crowd, value, target)?));
            let failed = |error| UnavailableMetric::ExternalValue {
                name: metric.name.clone(),
                error: Box::new(error),
            };
            let proposal = proposal.map_err(failed)?;
            (proposal.replicas, whole(proposal))
        }
        (None, None) => {
            return Err(UnavailableMetric::NoExternalTarget);
        }
    };
    let status = ExternalMetricStatus {
        current,
        metric: metric.clone(),
    };
    Ok(Asked {
        replicas,
        name: title(metric),
        status: MetricStatus {
            type_: "External".to_owned(),
            external: Some(status),
            ..MetricStatus::default()
        },
    })
}

fn title(metric: &MetricIdentifier) -> String {
    let selector = in_go(metric.selector.as_ref());
    format!("external metric {}({selector})", metric.name)
}

/// A selector as the messages of Kubernetes show one.
fn in_go(selector: Option<&LabelSelector>) -> String {
    let Some(selector) = selector else {
        return "nil".to_owned();
    };
    let labels = selector.match_labels.iter().flatten();
    let labels: String = labels
        .map(|(key, value)| format!("{key}: {value},"))
        .collect();
    let rules = selector.match_expressions.iter().flatten();
    let rules: String = rules
        .map(|rule| {
            let values = rule.values.iter().flatten().cloned();
            let values = values.collect::<Vec<_>>().join(" ");
            let (key, operator) = (&rule.key, &rule.operator);
            format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},")
        })
        .collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{rules}}},}}"
    )
}

fn whole(proposal: Proposal) -> MetricValueStatus {
    MetricValueStatus {
        value: Some(quantity(proposal.value)),
        ..MetricValueStatus::default()
    }
}
