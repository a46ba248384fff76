//! What an autoscaler aims at: `cpu: 50%/80%, memory: 100Mi/200Mi + 1 more...`.
//!
//! `autoscaling/v2` lists metrics; `v1` has one number for the processor and carries the rest as JSON in
//! annotations, whose fields have older names. Both are read here.

use serde_json::{Value, json};

use crate::printers::view::{View, at, scalar, text, with_more};

/// How many metrics a cell shows.
const SHOWN: usize = 2;
/// The target of `v1` by default, in percent.
const DEFAULT_UTILIZATION: i64 = 80;
const SPECS_ANNOTATION: &str = "autoscaling.alpha.kubernetes.io/metrics";
const STATUSES_ANNOTATION: &str = "autoscaling.alpha.kubernetes.io/current-metrics";

pub(super) fn targets(view: &View<'_>) -> String {
    if view.text("apiVersion") == "autoscaling/v1" {
        return format(&first_version_specs(view), &first_version_statuses(view));
    }
    format(
        view.list("spec.metrics"),
        view.list("status.currentMetrics"),
    )
}

fn first_version_specs(view: &View<'_>) -> Vec<Value> {
    let mut specs = annotated(view, SPECS_ANNOTATION).unwrap_or_default();
    let utilization = match view.at("spec.targetCPUUtilizationPercentage") {
        Some(target) => target.clone(),
        None if specs.is_empty() => DEFAULT_UTILIZATION.into(),
        None => return specs,
    };
    specs.push(json!({"type": "Resource", "resource": {
        "name": "cpu", "target": {"averageUtilization": utilization}}}));
    specs
}

fn first_version_statuses(view: &View<'_>) -> Vec<Value> {
    if let Some(statuses) = annotated(view, STATUSES_ANNOTATION) {
        return statuses;
    }
    match view.at("status.currentCPUUtilizationPercentage") {
        Some(current) => vec![json!({"type": "Resource", "resource": {
            "name": "cpu", "current": {"averageUtilization": current}}})],
        None => Vec::new(),
    }
}

fn annotated(view: &View<'_>, key: &str) -> Option<Vec<Value>> {
    serde_json::from_str(view.annotation(key)?).ok()
}

fn format(specs: &[Value], statuses: &[Value]) -> String {
    if specs.is_empty() {
        return "<none>".to_owned();
    }
    let shown: Vec<String> = specs
        .iter()
        .take(SHOWN)
        .enumerate()
        .map(|(index, spec)| metric(spec, statuses.get(index)))
        .collect();
    with_more(&shown, ", ", SHOWN, specs.len())
}

fn metric(spec: &Value, status: Option<&Value>) -> String {
    let source = match text(spec, "type") {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    let target = at(spec, source).unwrap_or(&Value::Null);
    let current = status.and_then(|status| at(status, source));
    match source {
        "pods" => format!("{}/{}", average(current), known(target_average(target))),
        "external" | "object" => value_metric(target, current),
        _ => resource_metric(target, current),
    }
}

/// A metric from outside or of an object: its value, or its value per pod.
fn value_metric(target: &Value, current: Option<&Value>) -> String {
    if let Some(aim) = target_average(target) {
        let now = current.and_then(current_average);
        let now = now.unwrap_or_else(|| "<unknown>".to_owned());
        return format!("{now}/{aim} (avg)");
    }
    let now = current.map_or_else(
        || "<unknown>".to_owned(),
        |current| known(first(current, &["current.value", "currentValue"])),
    );
    let aim = known(first(target, &["target.value", "targetValue"]));
    format!("{now}/{aim}")
}

/// A resource of the pods or of one container: an amount, or a percentage of what is requested.
fn resource_metric(target: &Value, current: Option<&Value>) -> String {
    let name = text(target, "name");
    if let Some(aim) = target_average(target) {
        return format!("{name}: {}/{aim}", average(current));
    }
    let percentage = |value: &Value, paths: &[&str]| first(value, paths).map(|n| format!("{n}%"));
    let now = current.and_then(|current| {
        percentage(
            current,
            &["current.averageUtilization", "currentAverageUtilization"],
        )
    });
    let aim = percentage(
        target,
        &["target.averageUtilization", "targetAverageUtilization"],
    );
    format!(
        "{name}: {}/{}",
        now.unwrap_or_else(|| "<unknown>".to_owned()),
        aim.unwrap_or_else(|| "<auto>".to_owned())
    )
}

fn target_average(target: &Value) -> Option<String> {
    first(
        target,
        &["target.averageValue", "targetAverageValue", "averageValue"],
    )
}

fn current_average(current: &Value) -> Option<String> {
    first(
        current,
        &[
            "current.averageValue",
            "currentAverageValue",
            "averageValue",
        ],
    )
}

fn average(current: Option<&Value>) -> String {
    current.map_or_else(
        || "<unknown>".to_owned(),
        |current| known(current_average(current)),
    )
}

/// A quantity that should be there and is not prints as Go prints a nil one.
fn known(quantity: Option<String>) -> String {
    quantity.unwrap_or_else(|| "<nil>".to_owned())
}

fn first(value: &Value, paths: &[&str]) -> Option<String> {
    paths.iter().find_map(|path| scalar(value, path))
}
