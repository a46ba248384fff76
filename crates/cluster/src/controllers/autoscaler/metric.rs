//! One metric of an autoscaler: what it asks for, how it is shown, and what is said when it cannot be had. Pure.

use std::sync::Arc;

use k8s_openapi::api::autoscaling::v2::{
    ContainerResourceMetricStatus, ExternalMetricSource, ExternalMetricStatus, MetricIdentifier,
    MetricSpec, MetricStatus, MetricTarget, MetricValueStatus, ObjectMetricSource,
    ObjectMetricStatus, PodsMetricSource, PodsMetricStatus, ResourceMetricStatus,
};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt};
use kubewright_schema::quantity::{Format, Quantity};

use super::calculate::{Crowd, Goal, Proposal, Samples, by_pods, by_share, by_value, requests};
use crate::metrics::Metrics;

/// What metrics are looked at in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scene<'a> {
    pub(super) namespace: &'a str,
    pub(super) crowd: Crowd<'a>,
    /// How many replicas the target says it has, which is not always how many it should have.
    pub(super) there: i32,
    pub(super) metrics: &'a Metrics,
}

/// What a metric asks for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Asked {
    pub(super) replicas: i32,
    /// What it is called where users read it.
    pub(super) name: String,
    pub(super) status: MetricStatus,
}

/// Why a metric asks for nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) reason: &'static str,
    pub(super) message: String,
    /// The same as it is told of among other metrics.
    pub(super) summary: String,
}

/// What all metrics together ask for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Verdict {
    pub(super) failures: Vec<Failure>,
    pub(super) statuses: Vec<MetricStatus>,
    /// The most that is asked for, and the metric that does; nothing when too little is known to act.
    pub(super) asked: Option<(i32, String)>,
}

/// What the metrics of an autoscaler ask for. The greatest number counts; metrics that cannot be had forbid to go down.
pub(super) fn assess(specs: &[MetricSpec], scene: &Scene<'_>) -> Verdict {
    let mut verdict = Verdict {
        failures: Vec::new(),
        statuses: Vec::new(),
        asked: None,
    };
    for spec in specs {
        match ask(spec, scene) {
            Ok(asked) => {
                verdict.statuses.push(asked.status);
                let most = verdict.asked.as_ref().map(|(replicas, _)| *replicas);
                if most.is_none_or(|most| most == 0 || asked.replicas > most) {
                    verdict.asked = Some((asked.replicas, asked.name));
                }
            }
            Err(failure) => {
                verdict.failures.push(failure);
                verdict.statuses.push(MetricStatus::default());
            }
        }
    }
    let down = |asked: &(i32, String)| asked.0 < scene.crowd.current;
    if !verdict.failures.is_empty() && verdict.asked.as_ref().is_some_and(down) {
        verdict.asked = None;
    }
    verdict
}

fn ask(spec: &MetricSpec, scene: &Scene<'_>) -> Result<Asked, Failure> {
    match (spec, &*spec.type_) {
        (
            MetricSpec {
                resource: Some(source),
                ..
            },
            "Resource",
        ) => {
            let (name, target) = (&*source.name, &source.target);
            resource(name, None, target, scene).map_err(|message| Failure {
                reason: "FailedGetResourceMetric",
                summary: format!("failed to get {name} resource metric value: {message}"),
                message,
            })
        }
        (
            MetricSpec {
                container_resource: Some(source),
                ..
            },
            "ContainerResource",
        ) => {
            let (name, container) = (&*source.name, Some(&*source.container));
            resource(name, container, &source.target, scene).map_err(|message| Failure {
                reason: "FailedGetContainerResourceMetric",
                summary: format!("failed to get {name} container metric value: {message}"),
                message,
            })
        }
        (
            MetricSpec {
                pods: Some(source), ..
            },
            "Pods",
        ) => pods(source, scene).map_err(|message| Failure {
            reason: "FailedGetPodsMetric",
            summary: format!("failed to get pods metric value: {message}"),
            message,
        }),
        (
            MetricSpec {
                object: Some(source),
                ..
            },
            "Object",
        ) => object(source, scene).map_err(|message| Failure {
            reason: "FailedGetObjectMetric",
            summary: format!("failed to get object metric value: {message}"),
            message,
        }),
        (
            MetricSpec {
                external: Some(source),
                ..
            },
            "External",
        ) => external(source, scene).map_err(|message| Failure {
            reason: "FailedGetExternalMetric",
            summary: format!(
                "failed to get {} external metric value: {message}",
                source.metric.name
            ),
            message,
        }),
        (_, kind) => {
            let message = format!("unknown metric source type {kind:?}");
            Err(Failure {
                reason: "InvalidMetricSourceType",
                summary: message.clone(),
                message,
            })
        }
    }
}

fn resource(
    name: &str,
    container: Option<&str>,
    target: &MetricTarget,
    scene: &Scene<'_>,
) -> Result<Asked, String> {
    let part = container.map_or("", |_| "container ");
    let (proposal, title) = match (milli(&target.average_value), target.average_utilization) {
        (Some(value), _) => {
            let found = measure_resource(name, container, scene).and_then(|samples| {
                by_pods(&scene.crowd, samples, Goal::Average(value), Some(name))
            });
            let found = found.map_err(|error| format!("failed to get {name} usage: {error}"))?;
            (found, format!("{name} {part}resource"))
        }
        (None, Some(percent)) => {
            let found = utilization(name, container, percent, scene);
            let found =
                found.map_err(|error| format!("failed to get {name} utilization: {error}"))?;
            let title = format!("{name} {part}resource utilization (percentage of request)");
            (found, title)
        }
        (None, None) => {
            return Err("invalid resource metric source: neither an average utilization target nor an average value (usage) target was set".to_owned());
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
    name: &str,
    container: Option<&str>,
    percent: i32,
    scene: &Scene<'_>,
) -> Result<Proposal, String> {
    let samples = measure_resource(name, container, scene)?;
    let requests = requests(scene.crowd.pods, container, name)?;
    let goal = Goal::Utilization {
        percent,
        requests: &requests,
    };
    by_pods(&scene.crowd, samples, goal, Some(name))
}

fn measure_resource(
    name: &str,
    container: Option<&str>,
    scene: &Scene<'_>,
) -> Result<Samples, String> {
    let samples = measure(scene.crowd.pods, |pod| {
        scene.metrics.use_of(pod, container, name)
    });
    match samples.is_empty() {
        true => Err(format!(
            "unable to get metrics for resource {name}: no metrics returned from resource metrics API"
        )),
        false => Ok(samples),
    }
}

fn measure(pods: &[Arc<Pod>], of: impl Fn(&Pod) -> Option<i64>) -> Samples {
    let known = pods
        .iter()
        .filter_map(|pod| Some((pod.metadata.name.clone()?, of(pod)?)));
    known.collect()
}

fn pods(source: &PodsMetricSource, scene: &Scene<'_>) -> Result<Asked, String> {
    let name = &source.metric.name;
    let target = milli(&source.target.average_value).unwrap_or(0);
    let samples = measure(scene.crowd.pods, |pod| scene.metrics.of_pod(pod, name));
    if samples.is_empty() {
        return Err(format!(
            "unable to get metric {name}: no metrics returned from custom metrics API"
        ));
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

fn object(source: &ObjectMetricSource, scene: &Scene<'_>) -> Result<Asked, String> {
    let (metric, of) = (&source.metric.name, &source.described_object);
    let value = scene
        .metrics
        .of_object(scene.namespace, &of.kind, &of.name, metric);
    let value = value.ok_or_else(|| {
        // The order of the words is the real controller's.
        let (kind, name, namespace) = (&of.kind, &of.name, scene.namespace);
        format!("unable to get metric {metric}: {kind} on {namespace} {name}/no metrics returned from custom metrics API")
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
            return Err("invalid object metric source: neither a value target nor an average value target was set".to_owned());
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

fn external(source: &ExternalMetricSource, scene: &Scene<'_>) -> Result<Asked, String> {
    let metric = &source.metric;
    let value = external_value(metric, scene);
    let target = &source.target;
    let (replicas, current) = match (milli(&target.average_value), milli(&target.value)) {
        (Some(target), _) => {
            let failed = |error| format!("failed to get {} external metric: {error}", metric.name);
            let value = value.map_err(failed)?;
            let proposal = by_share(scene.there, scene.crowd.tolerance, value, target);
            (proposal.replicas, average(proposal))
        }
        (None, Some(target)) => {
            let proposal = value.and_then(|value| by_value(&scene.crowd, value, target));
            let failed = |error| format!("failed to get external metric {}: {error}", metric.name);
            let proposal = proposal.map_err(failed)?;
            (proposal.replicas, whole(proposal))
        }
        (None, None) => {
            return Err("invalid external metric source: neither a value target nor an average value target was set".to_owned());
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

/// The sum of all that is selected.
fn external_value(metric: &MetricIdentifier, scene: &Scene<'_>) -> Result<i64, String> {
    let selector = metric.selector.clone().map(Selector::try_from).transpose();
    let selector = selector.map_err(|error| error.to_string())?;
    let values = scene
        .metrics
        .of_external(scene.namespace, &metric.name, |labels| {
            selector.as_ref().is_none_or(|s| s.matches(labels))
        });
    if values.is_empty() {
        return Err(format!(
            "unable to get external metric {}/{}/{}: no metrics returned from external metrics API",
            scene.namespace,
            metric.name,
            in_go(metric.selector.as_ref())
        ));
    }
    Ok(values.iter().fold(0, |sum, v| sum.saturating_add(*v)))
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

fn average(proposal: Proposal) -> MetricValueStatus {
    MetricValueStatus {
        average_value: Some(quantity(proposal.value)),
        ..MetricValueStatus::default()
    }
}

fn whole(proposal: Proposal) -> MetricValueStatus {
    MetricValueStatus {
        value: Some(quantity(proposal.value)),
        ..MetricValueStatus::default()
    }
}

fn quantity(milli: i64) -> Text {
    Text(Quantity::from_milli(milli, Format::DecimalSi).to_string())
}

fn milli(text: &Option<Text>) -> Option<i64> {
    let milli = Quantity::parse(&text.as_ref()?.0).ok()?.milli_value()?;
    // Validation asks for more than zero.
    (milli > 0).then_some(milli)
}
