//! Horizontal pod autoscalers: as many replicas as their metrics ask for, and not more often than every 15 seconds.
//!
//! [`readings`] is what was measured, [`calculate`] says what a metric asks for, [`metric`] what all of them do, [`memory`]
//! how far and how fast that is followed. What an autoscaler remembers is lost with its controller, as on a real cluster.

mod calculate;
pub(super) mod memory;
mod metric;
mod readings;
mod target;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::autoscaling::v2::{
    HPAScalingRules, HorizontalPodAutoscaler, HorizontalPodAutoscalerCondition,
    HorizontalPodAutoscalerSpec, HorizontalPodAutoscalerStatus,
};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubewright_runtime::events::EventKind;
use kubewright_runtime::{Context, Controller, Error, Key, Outcome, Query, Reconciler, Selector};
use kubewright_schema::quantity::Quantity;
use parking_lot::Mutex;

use self::calculate::{Crowd, Tolerance};
use self::memory::{Limited, Memory, WITHIN};
use self::metric::{Scene, Verdict, assess};
use self::readings::{Declared, Readings, Served, registered_apis};
use self::target::{Target, TargetError};
use super::{Remembered, WORKERS};
use crate::metrics::Metrics;
use crate::writes::report;

/// How often an autoscaler looks.
const PERIOD: Duration = Duration::from_secs(15);
/// Tells a target that an autoscaler scaled to zero from one that somebody paused.
const SCALED_TO_ZERO: &str = "ScaledToZero";
/// By how much a metric may be off, unless the autoscaler says otherwise.
const TOLERANCE: f64 = 0.1;

/// The controller of horizontal pod autoscalers.
pub(crate) fn controller(metrics: Metrics, remembered: &Remembered) -> Controller {
    let scaler = Autoscaler {
        metrics,
        memories: remembered.autoscalers.clone(),
    };
    Controller::of::<HorizontalPodAutoscaler>("horizontal-pod-autoscaler")
        .workers(WORKERS)
        .reconciler(scaler)
}

struct Autoscaler {
    metrics: Metrics,
    memories: Arc<Mutex<BTreeMap<Key, Memory>>>,
}

/// One look of one autoscaler, and the status that comes of it.
struct Look<'a> {
    cx: &'a Context,
    scaler: &'a HorizontalPodAutoscaler,
    spec: HorizontalPodAutoscalerSpec,
    status: HorizontalPodAutoscalerStatus,
}

/// The result of one evaluation.
struct Decision {
    replicas: i32,
    reason: String,
}

/// A look ended early; what there was to say is in conditions and events.
struct Stopped;

impl Reconciler<HorizontalPodAutoscaler> for Autoscaler {
    async fn reconcile(
        &self,
        scaler: Arc<HorizontalPodAutoscaler>,
        cx: &Context,
    ) -> Result<Outcome, Error> {
        if let Some(wait) = self.wait(cx.key(), cx.now()) {
            return Ok(Outcome::requeue_after(wait));
        }
        let mut look = Look {
            cx,
            scaler: &scaler,
            spec: scaler.spec.clone(),
            status: scaler.status.clone().unwrap_or_default(),
        };
        let _: Result<(), Stopped> = self.look(&mut look).await;
        let status = look.status;
        report(cx.client(), &*scaler, |scaler| scaler.status = Some(status)).await?;
        Ok(Outcome::requeue_after(PERIOD))
    }

    async fn gone(&self, key: &Key, _cx: &Context) -> Result<Outcome, Error> {
        self.memories.lock().remove(key);
        Ok(Outcome::done())
    }
}

impl Autoscaler {
    /// How long there is to wait: the first look comes a period after an autoscaler was seen, changed or not.
    fn wait(&self, key: &Key, now: Timestamp) -> Option<Duration> {
        let mut memories = self.memories.lock();
        let memory = memories.entry(key.clone()).or_default();
        let period = SignedDuration::try_from(PERIOD).unwrap_or_default();
        let next = now.checked_add(period).unwrap_or(now);
        let due = *memory.due.get_or_insert(next);
        if due > now {
            // A memory may come from a cluster whose clock showed another time.
            return Some(due.duration_since(now).unsigned_abs().min(PERIOD));
        }
        memory.due = Some(next);
        None
    }

    async fn look(&self, look: &mut Look<'_>) -> Result<(), Stopped> {
        let (cx, now) = (look.cx, look.cx.now());
        let namespace = cx.key().namespace().unwrap_or_default();
        let found = Target::find(cx.client(), namespace, &look.spec.scale_target_ref).await;
        let target = found.map_err(|error| look.no_scale(&error))?;
        let able = "the HPA controller was able to get the target's current scale";
        look.condition("AbleToScale", "True", "SucceededGetScale", able);
        let current = target.wanted();
        self.with_memory(cx.key(), |memory| memory.begin(current, now));
        look.status.current_replicas = Some(current);
        let Some(decision) = self.decide(look, &target).await? else {
            look.status.desired_replicas = current;
            return Ok(());
        };
        self.rescale(look, &target, decision).await
    }

    async fn rescale(
        &self,
        look: &mut Look<'_>,
        target: &Target,
        Decision { replicas, reason }: Decision,
    ) -> Result<(), Stopped> {
        let (cx, now) = (look.cx, look.cx.now());
        if let Err(error) = target.rescale(cx.client(), replicas).await {
            let message = format!("New size: {replicas}; reason: {reason}; error: {error}");
            look.warn("FailedRescale", message);
            let text = format!("the HPA controller was unable to update the target scale: {error}");
            look.condition("AbleToScale", "False", "FailedUpdateScale", text);
            return Err(Stopped);
        }
        let text = format!("the HPA controller was able to update the target scale to {replicas}");
        look.condition("AbleToScale", "True", "SucceededRescale", text);
        let message = format!("New size: {replicas}; reason: {reason}");
        cx.event(look.scaler, EventKind::Normal, "SuccessfulRescale", message);
        self.with_memory(cx.key(), |memory| {
            let change = (target.wanted(), replicas);
            memory.scaled(look.spec.behavior.as_ref(), change, now);
        });
        look.status.desired_replicas = replicas;
        look.status.last_scale_time = Some(Time(now));
        look.tell_of_zero(replicas);
        Ok(())
    }

    /// To how many replicas to go and why; nothing if all is as it should be.
    async fn decide(
        &self,
        look: &mut Look<'_>,
        target: &Target,
    ) -> Result<Option<Decision>, Stopped> {
        let current = target.wanted();
        let (fewest, most) = (look.spec.min_replicas.unwrap_or(1), look.spec.max_replicas);
        let to = |replicas, reason: &str| {
            let reason = reason.to_owned();
            Ok(Some(Decision { replicas, reason }))
        };
        // Whoever else set it to zero paused it (`horizontal.go: reconcileAutoscaler`).
        if current == 0 && (fewest != 0 || !look.scaled_to_zero()) {
            let text = "scaling is disabled since the replica count of the target is zero";
            look.condition("ScalingActive", "False", "ScalingDisabled", text);
            look.status.current_metrics = None;
            return Ok(None);
        }
        if current > most {
            look.status.current_metrics = None;
            return to(most, "Current number of replicas above Spec.MaxReplicas");
        }
        if current < fewest {
            look.status.current_metrics = None;
            return to(fewest, "Current number of replicas below Spec.MinReplicas");
        }
        let (wanted, metric) = self.measure(look, target).await?;
        let reason = if wanted > current {
            format!("{metric} above target")
        } else {
            "All metrics below target".to_owned()
        };
        let (key, now) = (look.cx.key(), look.cx.now());
        let settled = self.with_memory(key, |memory| {
            memory.settle(&look.spec, current, wanted, now)
        });
        look.condition("AbleToScale", "True", settled.able.0, settled.able.1);
        let (status, why) = match settled.limited {
            Limited::Yes(why) => ("True", why),
            Limited::No => ("False", WITHIN),
        };
        look.condition("ScalingLimited", status, why.0, why.1);
        let replicas = settled.replicas;
        Ok((replicas != current).then_some(Decision { replicas, reason }))
    }

    /// What the metrics ask for, and which of them asks for the most.
    async fn measure(
        &self,
        look: &mut Look<'_>,
        target: &Target,
    ) -> Result<(i32, String), Stopped> {
        let pods = self.pods(look, target).await?;
        let namespace = look.cx.key().namespace().unwrap_or_default();
        let specs = look.spec.metrics.clone().unwrap_or_default();
        let client = look.cx.client();
        let registered = registered_apis(client).await;
        let registered = registered.map_err(|error| look.no_metrics(&error.to_string()))?;
        let readings = Readings {
            declared: Declared {
                metrics: &self.metrics,
                namespace,
                pods: &pods,
            },
            served: Some(Served {
                registered,
                client,
                namespace,
                selector: target.selector(),
            }),
        };
        let measures = readings.gather(&specs).await;
        let scene = Scene {
            namespace,
            crowd: Crowd {
                pods: &pods,
                current: target.wanted(),
                tolerance: tolerance(&look.spec),
                now: look.cx.now(),
            },
            there: target.there(),
        };
        let verdict = assess(measures, &scene);
        look.tell(&verdict, specs.len())
    }

    /// The pods of the target, if nobody else scales them.
    async fn pods(&self, look: &mut Look<'_>, target: &Target) -> Result<Vec<Arc<Pod>>, Stopped> {
        let selector = look.selector(target.selector())?;
        let key = look.cx.key();
        let all = Query::all().namespace(key.namespace().unwrap_or_default());
        let pods = look.cx.client().list::<Pod>(all).await;
        let mut pods = pods.map_err(|error| look.no_metrics(&error.to_string()))?;
        pods.retain(|pod| selects(&selector, pod));
        self.with_memory(key, |memory| memory.selector = Some(selector));
        let scalers = self.scalers_of(key.namespace(), &pods);
        if scalers.len() > 1 {
            let (text, scalers) = (target.selector(), scalers.join(" "));
            let message =
                format!("pods by selector {text} are controlled by multiple HPAs: [{scalers}]");
            return Err(look.unselected("AmbiguousSelector", &message));
        }
        Ok(pods)
    }

    /// The autoscalers of a namespace that count any of these pods, as messages show them.
    fn scalers_of(&self, namespace: Option<&str>, pods: &[Arc<Pod>]) -> Vec<String> {
        let memories = self.memories.lock();
        let scalers = memories.iter().filter(|(key, memory)| {
            let counts = |selector: &Selector| pods.iter().any(|pod| selects(selector, pod));
            key.namespace() == namespace && memory.selector.as_ref().is_some_and(counts)
        });
        let shown = |key: &Key| format!("{{{} {}}}", key.name(), namespace.unwrap_or_default());
        scalers.map(|(key, _)| shown(key)).collect()
    }

    fn with_memory<T>(&self, key: &Key, then: impl FnOnce(&mut Memory) -> T) -> T {
        then(self.memories.lock().entry(key.clone()).or_default())
    }
}

impl Look<'_> {
    fn no_scale(&mut self, error: &TargetError) -> Stopped {
        self.warn("FailedGetScale", error);
        let text =
            format!("the HPA controller was unable to get the target's current scale: {error}");
        self.condition("AbleToScale", "False", "FailedGetScale", text);
        Stopped
    }

    fn no_metrics(&self, error: &str) -> Stopped {
        self.warn("FailedComputeMetricsReplicas", error);
        Stopped
    }

    /// Reads the selector of the target.
    fn selector(&mut self, text: &str) -> Result<Selector, Stopped> {
        if text.is_empty() {
            let message = "the HPA target's scale is missing a selector";
            self.warn("SelectorRequired", "selector is required");
            self.condition("ScalingActive", "False", "InvalidSelector", message);
            return Err(self.no_metrics("selector is required"));
        }
        Selector::parse(text).map_err(|error| {
            let message = format!(
                "couldn't convert selector into a corresponding internal selector object: {error}"
            );
            self.unselected("InvalidSelector", &message)
        })
    }

    /// Stops because the pods of the target cannot be determined.
    fn unselected(&mut self, reason: &'static str, message: &str) -> Stopped {
        self.warn(reason, message);
        self.condition("ScalingActive", "False", reason, message);
        self.no_metrics(message)
    }

    /// Tells of the metrics, and what they ask for.
    fn tell(&mut self, verdict: &Verdict, metrics: usize) -> Result<(i32, String), Stopped> {
        for failure in &verdict.failures {
            self.warn(failure.reason, &failure.message);
        }
        let Some((wanted, metric)) = &verdict.asked else {
            let failed = verdict.failures.len();
            let Some(first) = verdict.failures.first() else {
                // No metrics at all: the server's defaults do not let that happen.
                return Err(Stopped);
            };
            let text = format!(
                "the HPA was unable to compute the replica count: {}",
                first.message
            );
            self.condition("ScalingActive", "False", first.reason, text);
            let summary = &first.summary;
            return Err(self.no_metrics(&format!(
                "invalid metrics ({failed} invalid out of {metrics}), first error is: {summary}"
            )));
        };
        let text =
            format!("the HPA was able to successfully calculate a replica count from {metric}");
        self.condition("ScalingActive", "True", "ValidMetricFound", text);
        self.status.current_metrics = Some(verdict.statuses.clone());
        Ok((*wanted, metric.clone()))
    }

    /// Whether this autoscaler has scaled its target to zero, and nobody else.
    fn scaled_to_zero(&self) -> bool {
        let conditions = self.status.conditions.iter().flatten();
        let mut zero = conditions.filter(|condition| condition.type_ == SCALED_TO_ZERO);
        zero.any(|condition| condition.status == "True")
    }

    /// Says whether the target is at zero by this autoscaler's doing.
    fn tell_of_zero(&mut self, replicas: i32) {
        let (status, reason, text) = if replicas == 0 {
            let text = "the HPA controller scaled the workload to zero";
            ("True", "ScaledToZero", text)
        } else {
            let text = "the HPA controller did not scale the workload to zero";
            ("False", "NotScaledToZero", text)
        };
        self.condition(SCALED_TO_ZERO, status, reason, text);
    }

    fn warn(&self, reason: &'static str, message: impl Display) {
        self.cx
            .event(self.scaler, EventKind::Warning, reason, message);
    }

    fn condition(&mut self, kind: &str, status: &str, reason: &str, message: impl Into<String>) {
        let now = Time(self.cx.now());
        let conditions = self.status.conditions.get_or_insert_default();
        let at = conditions.iter().position(|known| known.type_ == kind);
        let at = at.unwrap_or_else(|| {
            conditions.push(HorizontalPodAutoscalerCondition {
                type_: kind.to_owned(),
                ..HorizontalPodAutoscalerCondition::default()
            });
            conditions.len() - 1
        });
        let condition = &mut conditions[at];
        if condition.status != status {
            condition.last_transition_time = Some(now);
        }
        condition.status = status.to_owned();
        condition.reason = Some(reason.to_owned());
        condition.message = Some(message.into());
    }
}

fn selects(selector: &Selector, pod: &Pod) -> bool {
    selector.matches_by(|label| pod.metadata.labels.as_ref()?.get(label))
}

fn tolerance(spec: &HorizontalPodAutoscalerSpec) -> Tolerance {
    let of = |rules: Option<&HPAScalingRules>| {
        let text = rules.and_then(|rules| rules.tolerance.as_ref());
        let parsed = text.and_then(|text| Quantity::parse(&text.0).ok());
        parsed.map_or(TOLERANCE, |parsed| parsed.approximate())
    };
    let behavior = spec.behavior.as_ref();
    Tolerance {
        up: of(behavior.and_then(|b| b.scale_up.as_ref())),
        down: of(behavior.and_then(|b| b.scale_down.as_ref())),
    }
}
