//! What an autoscaler remembers, and how it holds a recommendation back: windows, rates, bounds. Pure.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::autoscaling::v2::{
    HPAScalingRules, HorizontalPodAutoscalerBehavior, HorizontalPodAutoscalerSpec,
};
use kubewright_runtime::Selector;

/// For how long a scaling down waits for a better idea, unless the autoscaler says otherwise.
const DOWN_WINDOW: i32 = 300;
/// Without rules of its own an autoscaler at most doubles, but may always go up to this.
const UP_MINIMUM: i32 = 4;

/// What an autoscaler remembers between its runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    /// When it looks again. What happens before that waits.
    pub(super) due: Option<Timestamp>,
    /// The pods that it counts.
    pub(super) selector: Option<Selector>,
    recommendations: Vec<(Timestamp, i32)>,
    ups: Vec<(Timestamp, i32)>,
    downs: Vec<(Timestamp, i32)>,
}

/// A number of replicas, and why it is not another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Settled {
    pub(super) replicas: i32,
    pub(super) able: Reason,
    pub(super) limited: Limited,
}

/// Whether a recommendation was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limited {
    Yes(Reason),
    No,
}

/// A reason and what it is in words.
pub(super) type Reason = (&'static str, &'static str);

pub(super) const WITHIN: Reason = (
    "DesiredWithinRange",
    "the desired count is within the acceptable range",
);
const READY: Reason = ("ReadyForNewScale", "recommended size matches current size");
const DOWN_STABILIZED: Reason = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
);
const UP_STABILIZED: Reason = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
);
const TOO_MANY: Reason = (
    "TooManyReplicas",
    "the desired replica count is more than the maximum replica count",
);
const TOO_FEW: Reason = (
    "TooFewReplicas",
    "the desired replica count is less than the minimum replica count",
);
const UP_LIMIT: Reason = (
    "ScaleUpLimit",
    "the desired replica count is increasing faster than the maximum scale rate",
);
const DOWN_LIMIT: Reason = (
    "ScaleDownLimit",
    "the desired replica count is decreasing faster than the maximum scale rate",
);

impl Memory {
    /// Remembers where it all began, so that the first look does not scale down at once.
    pub(super) fn begin(&mut self, current: i32, now: Timestamp) {
        if self.recommendations.is_empty() {
            self.recommendations.push((now, current));
        }
    }

    /// Holds a recommendation back as the autoscaler's rules say.
    pub(super) fn settle(
        &mut self,
        spec: &HorizontalPodAutoscalerSpec,
        current: i32,
        wanted: i32,
        now: Timestamp,
    ) -> Settled {
        let (steady, able) = match &spec.behavior {
            None => self.steady(wanted, now),
            Some(behavior) => self.steady_by_rules(behavior, current, wanted, now),
        };
        let (replicas, why) = match &spec.behavior {
            None => within_bounds(spec, current, steady),
            Some(behavior) => self.within_rates(spec, behavior, current, steady, now),
        };
        Settled {
            replicas,
            able,
            limited: if replicas == steady {
                Limited::No
            } else {
                Limited::Yes(why)
            },
        }
    }

    /// Remembers that replicas were added or removed.
    pub(super) fn scaled(
        &mut self,
        behavior: Option<&HorizontalPodAutoscalerBehavior>,
        (from, to): (i32, i32),
        now: Timestamp,
    ) {
        let Some(behavior) = behavior else {
            return;
        };
        let (changes, rules) = if to > from {
            (&mut self.ups, &behavior.scale_up)
        } else {
            (&mut self.downs, &behavior.scale_down)
        };
        let policies = rules
            .iter()
            .flat_map(|rules| rules.policies.iter().flatten());
        let longest = policies.map(|policy| policy.period_seconds).max();
        let oldest = ago(now, longest.unwrap_or(0));
        changes.retain(|(at, _)| *at >= oldest);
        changes.push((now, (to - from).abs()));
    }

    fn steady(&mut self, wanted: i32, now: Timestamp) -> (i32, Reason) {
        let oldest = ago(now, DOWN_WINDOW);
        self.recommendations.retain(|(at, _)| *at >= oldest);
        let recent = self.recommendations.iter().map(|(_, replicas)| *replicas);
        let steady = recent.fold(wanted, i32::max);
        self.recommendations.push((now, wanted));
        if steady == wanted {
            (steady, READY)
        } else {
            (steady, DOWN_STABILIZED)
        }
    }

    fn steady_by_rules(
        &mut self,
        behavior: &HorizontalPodAutoscalerBehavior,
        current: i32,
        wanted: i32,
        now: Timestamp,
    ) -> (i32, Reason) {
        let window = |rules: &Option<HPAScalingRules>, default: i32| {
            let seconds = rules.as_ref().and_then(|r| r.stabilization_window_seconds);
            ago(now, seconds.unwrap_or(default))
        };
        let up_from = window(&behavior.scale_up, 0);
        let down_from = window(&behavior.scale_down, DOWN_WINDOW);
        let since = |from: Timestamp| {
            let all = self.recommendations.iter();
            all.filter(move |(at, _)| *at > from)
                .map(|(_, replicas)| *replicas)
        };
        let (lowest, highest) = (
            since(up_from).fold(wanted, i32::min),
            since(down_from).fold(wanted, i32::max),
        );
        let steady = current.max(lowest).min(highest);
        self.recommendations
            .retain(|(at, _)| *at >= up_from.min(down_from));
        self.recommendations.push((now, wanted));
        let why = match (steady == wanted, wanted >= current) {
            (true, _) => READY,
            (false, true) => UP_STABILIZED,
            (false, false) => DOWN_STABILIZED,
        };
        (steady, why)
    }

    /// Bounds, and how fast the number may change.
    fn within_rates(
        &self,
        spec: &HorizontalPodAutoscalerSpec,
        behavior: &HorizontalPodAutoscalerBehavior,
        current: i32,
        wanted: i32,
        now: Timestamp,
    ) -> (i32, Reason) {
        if wanted > current {
            let limit = self.most(behavior.scale_up.as_ref(), current, now);
            let limit = limit.max(current);
            let (most, why) = if spec.max_replicas > limit {
                (limit, UP_LIMIT)
            } else {
                (spec.max_replicas, TOO_MANY)
            };
            return (wanted.min(most), why);
        }
        if wanted < current {
            let limit = self.fewest(behavior.scale_down.as_ref(), current, now);
            let limit = limit.min(current);
            let fewest = spec.min_replicas.unwrap_or(1);
            let (fewest, why) = if fewest < limit {
                (limit, DOWN_LIMIT)
            } else {
                (fewest, TOO_FEW)
            };
            return (wanted.max(fewest), why);
        }
        (wanted, WITHIN)
    }

    /// The most replicas that the policies of scaling up allow at this moment.
    fn most(&self, rules: Option<&HPAScalingRules>, current: i32, now: Timestamp) -> i32 {
        let limits = self.limits(rules, current, now, |begin, kind, value| match kind {
            "Pods" => f64::from(begin) + value,
            // Up, or one replica would never become more.
            _ => (f64::from(begin) * (1.0 + value / 100.0)).ceil(),
        });
        match select(rules) {
            "Disabled" => current,
            "Min" => limits.min().unwrap_or(0),
            _ => limits.max().unwrap_or(0),
        }
    }

    /// The fewest replicas that the policies of scaling down allow at this moment.
    fn fewest(&self, rules: Option<&HPAScalingRules>, current: i32, now: Timestamp) -> i32 {
        let limits = self.limits(rules, current, now, |begin, kind, value| match kind {
            "Pods" => f64::from(begin) - value,
            _ => (f64::from(begin) * (1.0 - value / 100.0)).trunc(),
        });
        match select(rules) {
            "Disabled" => current,
            // The policy with the smallest change leaves the most.
            "Min" => limits.max().unwrap_or(i32::MAX),
            _ => limits.min().unwrap_or(i32::MAX),
        }
    }

    /// What each policy makes of the number that there was when its period began.
    fn limits<'a>(
        &'a self,
        rules: Option<&'a HPAScalingRules>,
        current: i32,
        now: Timestamp,
        of: impl Fn(i32, &str, f64) -> f64 + 'a,
    ) -> impl Iterator<Item = i32> + 'a {
        let policies = rules.into_iter().flat_map(|r| r.policies.iter().flatten());
        policies.map(move |policy| {
            let from = ago(now, policy.period_seconds);
            let begin = current - sum(&self.ups, from) + sum(&self.downs, from);
            of(begin, &policy.type_, f64::from(policy.value)) as i32
        })
    }
}

/// Bounds of an autoscaler without rules of its own.
fn within_bounds(spec: &HorizontalPodAutoscalerSpec, current: i32, wanted: i32) -> (i32, Reason) {
    let limit = current.saturating_mul(2).max(UP_MINIMUM);
    let (most, why) = if spec.max_replicas > limit {
        (limit, UP_LIMIT)
    } else {
        (spec.max_replicas, TOO_MANY)
    };
    let fewest = spec.min_replicas.unwrap_or(1);
    match wanted {
        few if few < fewest => (fewest, TOO_FEW),
        many if many > most => (most, why),
        fine => (fine, WITHIN),
    }
}

fn select(rules: Option<&HPAScalingRules>) -> &str {
    rules
        .and_then(|rules| rules.select_policy.as_deref())
        .unwrap_or("Max")
}

fn sum(changes: &[(Timestamp, i32)], from: Timestamp) -> i32 {
    let recent = changes.iter().filter(|(at, _)| *at > from);
    recent.fold(0, |sum: i32, (_, by)| sum.saturating_add(*by))
}

fn ago(now: Timestamp, seconds: i32) -> Timestamp {
    let span = SignedDuration::from_secs(i64::from(seconds));
    now.checked_sub(span).unwrap_or(Timestamp::MIN)
}
