//! FlowSchemas and PriorityLevelConfigurations.
//!
//! Mirrors `pkg/apis/flowcontrol` of Kubernetes: its defaults, and its validation of what flow control obeys.

use kubewright_schema::FieldError;
use serde_json::Value;

use super::checks::{Errors, in_range, non_negative, required, required_one_of};
use super::path::Path;
use super::strategy::{Generation, StatusMeta, Strategy};
use super::value::{ensure, items, set_default, text};

const LOWEST_PRECEDENCE: i64 = 10_000;

/// FlowSchemas.
pub(super) static FLOW_SCHEMA: Strategy = Strategy {
    default: |object| set_default(ensure(object, "spec"), "matchingPrecedence", 1_000),
    validate: validate_schema,
    ..COUNTED_WITH_STATUS
};

/// PriorityLevelConfigurations.
pub(super) static PRIORITY_LEVEL: Strategy = Strategy {
    default: default_level,
    validate: validate_level,
    ..COUNTED_WITH_STATUS
};

const COUNTED_WITH_STATUS: Strategy = Strategy {
    generation: Generation::Field("spec"),
    has_status: true,
    status_meta: StatusMeta::Closed,
    ..Strategy::PLAIN
};

fn default_level(object: &mut Value) {
    let spec = ensure(object, "spec");
    let (field, shares) = match text(&spec["type"]) {
        "Exempt" => ("exempt", 0),
        _ if spec["limited"].is_null() => return,
        _ => ("limited", 30),
    };
    let limits = ensure(spec, field);
    set_default(limits, "nominalConcurrencyShares", shares);
    set_default(limits, "lendablePercent", 0);
    if text(&limits["limitResponse"]["type"]) == "Queue" {
        let queuing = ensure(ensure(limits, "limitResponse"), "queuing");
        for (field, number) in [("queues", 64), ("handSize", 8), ("queueLengthLimit", 50)] {
            set_default(queuing, field, number);
        }
    }
}

fn validate_schema(object: &Value, errors: &mut Errors) {
    let (spec, path) = (&object["spec"], Path::Root("spec"));
    let (precedence, at) = (
        &spec["matchingPrecedence"],
        path.child("matchingPrecedence"),
    );
    let fault = match precedence.as_i64() {
        Some(n) if n <= 0 => Some("must be a positive value"),
        Some(n) if n > LOWEST_PRECEDENCE => Some("must not be greater than 10000"),
        Some(1) if object["metadata"]["name"] != "exempt" => {
            Some("only the schema named 'exempt' may have matchingPrecedence 1")
        }
        _ => None,
    };
    errors.extend(fault.map(|text| FieldError::invalid(at, precedence, text)));
    let methods = ["ByNamespace", "ByUser"];
    if !spec["distinguisherMethod"].is_null() {
        let at = path.child("distinguisherMethod.type");
        required_one_of(&spec["distinguisherMethod"]["type"], &methods, &at, errors);
    }
    let at = path.child("priorityLevelConfiguration.name");
    required(&spec["priorityLevelConfiguration"]["name"], &at, errors);
    let rules = path.child("rules");
    for (i, rule) in items(&spec["rules"]).iter().enumerate() {
        let at = rules.index(i);
        required(&rule["subjects"], &at.child("subjects"), errors);
        if items(&rule["resourceRules"]).is_empty() && items(&rule["nonResourceRules"]).is_empty() {
            let text = "at least one of resourceRules and nonResourceRules has to be non-empty";
            errors.push(FieldError::required(at, text));
        }
    }
}

fn validate_level(object: &Value, errors: &mut Errors) {
    let (spec, path) = (&object["spec"], Path::Root("spec"));
    let kinds = ["Exempt", "Limited"];
    required_one_of(&spec["type"], &kinds, &path.child("type"), errors);
    match text(&spec["type"]) {
        "Exempt" if !spec["limited"].is_null() => {
            let text = "must be nil if the type is not Limited";
            errors.push(FieldError::forbidden(path.child("limited"), text));
        }
        "Limited" if spec["limited"].is_null() => {
            let text = "must not be empty when type is Limited";
            errors.push(FieldError::required(path.child("limited"), text));
        }
        "Limited" => validate_limits(&spec["limited"], &path.child("limited"), errors),
        _ => {}
    }
}

fn validate_limits(limits: &Value, path: &Path<'_>, errors: &mut Errors) {
    let shares = "nominalConcurrencyShares";
    non_negative(&limits[shares], &path.child(shares), errors);
    let lendable = "lendablePercent";
    in_range(&limits[lendable], 0, 100, &path.child(lendable), errors);
    let borrowing = "borrowingLimitPercent";
    non_negative(&limits[borrowing], &path.child(borrowing), errors);
    let (response, path) = (&limits["limitResponse"], path.child("limitResponse"));
    required_one_of(
        &response["type"],
        &["Queue", "Reject"],
        &path.child("type"),
        errors,
    );
    let (queuing, path) = (&response["queuing"], path.child("queuing"));
    if text(&response["type"]) == "Reject" {
        if !queuing.is_null() {
            let text = "must be nil if limited.limitResponse.type is not Limited";
            errors.push(FieldError::forbidden(path, text));
        }
        return;
    }
    for field in ["queueLengthLimit", "queues", "handSize"] {
        let number = &queuing[field];
        if number.as_i64().is_some_and(|n| n <= 0) {
            let text = "must be positive";
            errors.push(FieldError::invalid(path.child(field), number, text));
        }
    }
    let (hand, queues) = (&queuing["handSize"], &queuing["queues"]);
    if hand.as_i64() > queues.as_i64() {
        let text = format!("should not be greater than queues ({queues})");
        errors.push(FieldError::invalid(path.child("handSize"), hand, &text));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::kinds::testing::create_errors;

    const GROUP: &str = "flowcontrol.apiserver.k8s.io";

    fn level(limited: Value) -> Value {
        json!({"metadata": {"name": "l"}, "spec": {"type": "Limited", "limited": limited}})
    }

    #[test]
    fn levels_get_the_numbers_that_they_leave_out() {
        let mut object = level(json!({"limitResponse": {"type": "Queue"}}));
        default_level(&mut object);
        let queuing = json!({"queues": 64, "handSize": 8, "queueLengthLimit": 50});
        let response = json!({"type": "Queue", "queuing": queuing});
        assert_eq!(
            object["spec"]["limited"],
            json!({"nominalConcurrencyShares": 30, "lendablePercent": 0, "limitResponse": response})
        );
        assert!(create_errors(GROUP, "PriorityLevelConfiguration", object).is_empty());
    }

    #[test]
    fn numbers_that_make_no_sense_are_refused() {
        let queuing = json!({"queues": 2, "handSize": 3, "queueLengthLimit": 0});
        let limits = json!({
            "nominalConcurrencyShares": -1, "lendablePercent": 101,
            "limitResponse": {"type": "Queue", "queuing": queuing},
        });
        assert_eq!(
            create_errors(GROUP, "PriorityLevelConfiguration", level(limits)),
            [
                "spec.limited.nominalConcurrencyShares: Invalid value: -1: must be greater than or equal to 0",
                "spec.limited.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive",
                "spec.limited.limitResponse.queuing.queueLengthLimit: Invalid value: 0: must be positive",
                "spec.limited.limitResponse.queuing.handSize: Invalid value: 3: should not be greater than queues (2)",
            ]
        );
        let schema = json!({"metadata": {"name": "s"}, "spec": {"matchingPrecedence": 1}});
        assert_eq!(
            create_errors(GROUP, "FlowSchema", schema),
            [
                "spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1",
                "spec.priorityLevelConfiguration.name: Required value",
            ]
        );
    }
}
