//! One metric of an autoscaler: what it asks for, how it is shown, and what is reported when it is not available. Pure.

mod error;
mod of_others;
mod of_pods;

use k8s_openapi::api::autoscaling::v2::{MetricStatus, MetricValueStatus};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use kubewright_schema::quantity::{Format, Quantity};

use self::error::UnavailableMetric;
use self::of_others::{external, object};
use self::of_pods::{pods, resource};
use super::calculate::{Crowd, Proposal};
use super::readings::Measure;

/// What metrics are looked at in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scene<'a> {
    pub(super) namespace: &'a str,
    pub(super) crowd: Crowd<'a>,
    /// How many replicas the target says it has, which is not always how many it should have.
    pub(super) there: i32,
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
    /// The message as it appears in a list with other metrics.
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
pub(super) fn assess(measures: Vec<Measure<'_>>, scene: &Scene<'_>) -> Verdict {
    let mut verdict = Verdict {
        failures: Vec::new(),
        statuses: Vec::new(),
        asked: None,
    };
    for measure in measures {
        match ask(measure, scene) {
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

fn ask(measure: Measure<'_>, scene: &Scene<'_>) -> Result<Asked, Failure> {
    let failed = |reason, what: String| {
        move |error: UnavailableMetric| Failure {
            reason,
            summary: format!("failed to get {what} metric value: {error}"),
            message: error.to_string(),
        }
    };
    match measure {
        Measure::Resource(measure) => {
            let (reason, part) = match measure.container {
                None => ("FailedGetResourceMetric", "resource"),
                Some(_) => ("FailedGetContainerResourceMetric", "container"),
            };
            let what = format!("{} {part}", measure.name);
            resource(measure, scene).map_err(failed(reason, what))
        }
        Measure::Pods { source, found } => {
            let failed = failed("FailedGetPodsMetric", "pods".to_owned());
            pods(source, found, scene).map_err(failed)
        }
        Measure::Object { source, found } => {
            let failed = failed("FailedGetObjectMetric", "object".to_owned());
            object(source, found, scene).map_err(failed)
        }
        Measure::External { source, found } => {
            let what = format!("{} external", source.metric.name);
            let failed = failed("FailedGetExternalMetric", what);
            external(source, found, scene).map_err(failed)
        }
        Measure::Unknown(kind) => {
            let message = format!("unknown metric source type {kind:?}");
            Err(Failure {
                reason: "InvalidMetricSourceType",
                summary: message.clone(),
                message,
            })
        }
    }
}

fn average(proposal: Proposal) -> MetricValueStatus {
    MetricValueStatus {
        average_value: Some(quantity(proposal.value)),
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
