//! HorizontalPodAutoscalers, in the shape of `autoscaling/v2`; of `autoscaling/v1` what both share.

use kubewright_schema::FieldError;
use kubewright_schema::names;
use kubewright_schema::quantity::Quantity;
use serde_json::{Value, json};

use super::checks::{Errors, invalid_each, non_negative_fields, one_of, one_of_if_set};
use super::path::Path;
use super::strategy::Strategy;
use super::value::{ensure, is_empty, items, set, set_default, text};

const SPEC: Path<'static> = Path::Root("spec");

/// HorizontalPodAutoscalers.
pub(super) static HORIZONTAL_POD_AUTOSCALER: Strategy = Strategy {
    has_status: true,
    default,
    create: |object, _| {
        let status = if is_v1(object) {
            json!({"currentReplicas": 0, "desiredReplicas": 0})
        } else {
            json!({"desiredReplicas": 0})
        };
        set(object, "status", status);
    },
    validate,
    validate_status: |new, _, errors| {
        let counts = ["currentReplicas", "desiredReplicas"];
        non_negative_fields(&new["status"], &counts, &Path::Root("status"), errors);
    },
    ..Strategy::PLAIN
};

fn is_v1(object: &Value) -> bool {
    text(&object["apiVersion"]) == "autoscaling/v1"
}

fn default(object: &mut Value) {
    let v1 = is_v1(object);
    let spec = ensure(object, "spec");
    set_default(spec, "minReplicas", 1);
    if v1 {
        return;
    }
    if items(&spec["metrics"]).is_empty() {
        let target = json!({"type": "Utilization", "averageUtilization": 80});
        let metric = json!({"type": "Resource", "resource": {"name": "cpu", "target": target}});
        set(spec, "metrics", json!([metric]));
    }
    if spec["behavior"].is_null() {
        return;
    }
    let behavior = ensure(spec, "behavior");
    let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
    let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
    let up = ensure(behavior, "scaleUp");
    set_default(up, "stabilizationWindowSeconds", 0);
    set_default(up, "selectPolicy", "Max");
    set_default(up, "policies", json!([pods, percent]));
    let down = ensure(behavior, "scaleDown");
    set_default(down, "selectPolicy", "Max");
    set_default(down, "policies", json!([percent]));
}

fn validate(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    let least = &spec["minReplicas"];
    let most = spec["maxReplicas"].as_i64().unwrap_or(0);
    if least.as_i64().is_some_and(|n| n < 0) {
        let text = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(SPEC.child("minReplicas"), least, text));
    }
    // What runs nowhere says nothing of itself (`autoscaling/validation: validateMetrics`, HPAScaleToZero).
    let outside = |metric: &Value| matches!(text(&metric["type"]), "Object" | "External");
    if least.as_i64() == Some(0) && !items(&spec["metrics"]).iter().any(outside) {
        let text = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.push(FieldError::forbidden(SPEC.child("metrics"), text));
    }
    let path = SPEC.child("maxReplicas");
    if most < 1 {
        errors.push(FieldError::invalid(
            path,
            &most.into(),
            "must be greater than 0",
        ));
    }
    if least.as_i64().is_some_and(|least| most < least) {
        let text = "must be greater than or equal to `minReplicas`";
        errors.push(FieldError::invalid(path, &most.into(), text));
    }
    validate_reference(
        &spec["scaleTargetRef"],
        &SPEC.child("scaleTargetRef"),
        errors,
    );
    let path = SPEC.child("metrics");
    for (i, metric) in items(&spec["metrics"]).iter().enumerate() {
        validate_metric(metric, &path.index(i), errors);
    }
    let path = SPEC.child("behavior");
    for direction in ["scaleUp", "scaleDown"] {
        let rules = &spec["behavior"][direction];
        if !rules.is_null() {
            validate_rules(rules, &path.child(direction), errors);
        }
    }
}

fn validate_reference(reference: &Value, path: &Path<'_>, errors: &mut Errors) {
    for field in ["kind", "name"] {
        let path = path.child(field);
        match text(&reference[field]) {
            "" => errors.push(FieldError::required(path, "")),
            name => invalid_each(names::path_segment_name(name), name, &path, errors),
        }
    }
}

fn validate_metric(metric: &Value, path: &Path<'_>, errors: &mut Errors) {
    let kinds = [
        "ContainerResource",
        "External",
        "Object",
        "Pods",
        "Resource",
    ];
    let fields = [
        "containerResource",
        "external",
        "object",
        "pods",
        "resource",
    ];
    let kind = text(&metric["type"]);
    if kind.is_empty() {
        let text = "must specify a metric source type";
        errors.push(FieldError::required(path.child("type"), text));
    }
    one_of(&metric["type"], &kinds, &path.child("type"), errors);
    let expected = kinds.iter().position(|k| *k == kind).map(|at| fields[at]);
    if let Some(field) = expected {
        let source = &metric[field];
        let path = path.child(field);
        if source.is_null() {
            let text = "must populate information for the given metric source";
            errors.push(FieldError::required(path, text));
        } else {
            validate_source(field, source, &path, errors);
        }
    }
    for field in fields {
        if Some(field) != expected && !metric[field].is_null() {
            let text = "must populate the given metric source only";
            errors.push(FieldError::forbidden(path.child(field), text));
        }
    }
}

fn validate_source(kind: &str, source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let resource = matches!(kind, "resource" | "containerResource");
    if resource && is_empty(&source["name"]) {
        let text = "must specify a resource name";
        errors.push(FieldError::required(path.child("name"), text));
    }
    if !resource && is_empty(&source["metric"]["name"]) {
        let text = "must specify a metric name";
        errors.push(FieldError::required(path.child("metric.name"), text));
    }
    let (target, path) = (&source["target"], path.child("target"));
    validate_target(target, &path, errors);
    let has = |field: &str| !target[field].is_null();
    if resource && !has("averageUtilization") && !has("averageValue") {
        let text = "must set either a target raw value or a target utilization";
        errors.push(FieldError::required(path.child("averageUtilization"), text));
    }
    if resource && has("averageUtilization") && has("averageValue") {
        let text = "may not set both a target raw value and a target utilization";
        errors.push(FieldError::forbidden(path.child("averageValue"), text));
    }
    if kind == "pods" && !has("averageValue") {
        let text = "must specify a positive target averageValue";
        errors.push(FieldError::required(path.child("averageValue"), text));
    }
    if kind == "external" && !has("value") && !has("averageValue") {
        let text = "must set either a target value for metric or a per-pod target";
        errors.push(FieldError::required(path.child("averageValue"), text));
    }
    if kind == "object" && !has("value") && !has("averageValue") {
        let text = "must set either a target value or averageValue";
        errors.push(FieldError::required(path.child("averageValue"), text));
    }
}

fn validate_target(target: &Value, path: &Path<'_>, errors: &mut Errors) {
    let kind = text(&target["type"]);
    if kind.is_empty() {
        let text = "must specify a metric target type";
        errors.push(FieldError::required(path.child("type"), text));
    }
    if !matches!(kind, "Utilization" | "Value" | "AverageValue") {
        let text = "must be either Utilization, Value, or AverageValue";
        errors.push(FieldError::invalid(path.child("type"), &kind.into(), text));
    }
    for field in ["value", "averageValue"] {
        let quantity = Quantity::parse(text(&target[field]));
        if quantity.is_ok_and(|quantity| !quantity.is_positive()) {
            let path = path.child(field);
            errors.push(FieldError::invalid(
                path,
                &target[field],
                "must be positive",
            ));
        }
    }
    let utilization = &target["averageUtilization"];
    if utilization.as_i64().is_some_and(|n| n < 1) {
        let path = path.child("averageUtilization");
        errors.push(FieldError::invalid(
            path,
            utilization,
            "must be greater than 0",
        ));
    }
}

fn validate_rules(rules: &Value, path: &Path<'_>, errors: &mut Errors) {
    let window = &rules["stabilizationWindowSeconds"];
    let at = path.child("stabilizationWindowSeconds");
    match window.as_i64() {
        Some(..=-1) => {
            let text = "must be greater than or equal to zero";
            errors.push(FieldError::invalid(at, window, text));
        }
        Some(3601..) => {
            let text = "must be less than or equal to 3600";
            errors.push(FieldError::invalid(at, window, text));
        }
        _ => {}
    }
    let choices = ["Disabled", "Max", "Min"];
    one_of_if_set(
        &rules["selectPolicy"],
        &choices,
        &path.child("selectPolicy"),
        errors,
    );
    let path = path.child("policies");
    if items(&rules["policies"]).is_empty() {
        errors.push(FieldError::required(
            path,
            "must specify at least one Policy",
        ));
    }
    for (i, policy) in items(&rules["policies"]).iter().enumerate() {
        let path = path.index(i);
        one_of(
            &policy["type"],
            &["Percent", "Pods"],
            &path.child("type"),
            errors,
        );
        for field in ["value", "periodSeconds"] {
            let number = policy[field].as_i64().unwrap_or(0);
            let complaint = match (field, number) {
                (_, ..=0) => "must be greater than zero",
                ("periodSeconds", 1801..) => "must be less than or equal to 1800",
                _ => continue,
            };
            errors.push(FieldError::invalid(
                path.child(field),
                &number.into(),
                complaint,
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::testing::{create, create_errors};

    fn scaler(spec: Value) -> Value {
        let mut spec = spec;
        set_default(
            &mut spec,
            "scaleTargetRef",
            json!({"kind": "Deployment", "name": "d"}),
        );
        set_default(&mut spec, "maxReplicas", 3);
        json!({"metadata": {"name": "h", "namespace": "d"}, "spec": spec})
    }

    #[test]
    fn scalers_watch_the_processor_by_default() {
        let object = create(
            "autoscaling",
            "HorizontalPodAutoscaler",
            scaler(json!({"behavior": {}})),
        );
        let spec = &object["spec"];
        assert_eq!(spec["minReplicas"], 1);
        assert_eq!(
            spec["metrics"],
            json!([{"type": "Resource", "resource": {
                "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}])
        );
        assert_eq!(spec["behavior"]["scaleDown"]["selectPolicy"], "Max");
        let mut old = scaler(json!({}));
        old["apiVersion"] = json!("autoscaling/v1");
        let object = create("autoscaling", "HorizontalPodAutoscaler", old);
        assert!(object["spec"]["metrics"].is_null());
    }

    #[test]
    fn broken_scalers_are_refused() {
        for (spec, expect) in [
            (
                json!({"maxReplicas": 0}),
                vec![
                    "spec.maxReplicas: Invalid value: 0: must be greater than 0",
                    "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
                ],
            ),
            (
                json!({"scaleTargetRef": {"kind": "D"}}),
                vec!["spec.scaleTargetRef.name: Required value"],
            ),
            (
                json!({"metrics": [{"type": "Resource"}]}),
                vec![
                    "spec.metrics[0].resource: Required value: must populate information for the given metric source",
                ],
            ),
        ] {
            assert_eq!(
                create_errors("autoscaling", "HorizontalPodAutoscaler", scaler(spec)),
                expect
            );
        }
    }
}
