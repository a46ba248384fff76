//! Where a pod may run: tolerations, affinity, spreading, gates.

use std::collections::BTreeSet;

use kubewright_schema::FieldError;
use kubewright_schema::names;
use serde_json::Value;

use crate::kinds::checks::{Errors, invalid_each, one_of, one_of_if_set};
use crate::kinds::path::Path;
use crate::kinds::selector;
use crate::kinds::value::{items, strings, text};

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Checks node and pod affinity.
pub(super) fn validate_affinity(affinity: &Value, path: &Path<'_>, errors: &mut Errors) {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
    let node = path.child("nodeAffinity");
    let required = &affinity["nodeAffinity"][REQUIRED];
    if !required.is_null() {
        validate_node_selector(required, &node.child(REQUIRED), errors);
    }
    let preferred = node.child(PREFERRED);
    for (i, term) in items(&affinity["nodeAffinity"][PREFERRED])
        .iter()
        .enumerate()
    {
        let at = preferred.index(i);
        validate_weight(term, &at, errors);
        validate_node_term(&term["preference"], &at.child("preference"), errors);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let path = path.child(kind);
        let required = path.child(REQUIRED);
        for (i, term) in items(&affinity[kind][REQUIRED]).iter().enumerate() {
            validate_pod_term(term, &required.index(i), errors);
        }
        let preferred = path.child(PREFERRED);
        for (i, term) in items(&affinity[kind][PREFERRED]).iter().enumerate() {
            let at = preferred.index(i);
            validate_weight(term, &at, errors);
            validate_pod_term(
                &term["podAffinityTerm"],
                &at.child("podAffinityTerm"),
                errors,
            );
        }
    }
}

fn validate_weight(term: &Value, path: &Path<'_>, errors: &mut Errors) {
    let weight = term["weight"].as_i64().unwrap_or(0);
    if !(1..=100).contains(&weight) {
        let text = "must be in the range 1-100";
        errors.push(FieldError::invalid(
            path.child("weight"),
            &weight.into(),
            text,
        ));
    }
}

/// Checks a `NodeSelector` that is present.
pub(crate) fn validate_node_selector(required: &Value, path: &Path<'_>, errors: &mut Errors) {
    let terms = path.child("nodeSelectorTerms");
    if items(&required["nodeSelectorTerms"]).is_empty() {
        let text = "must have at least one node selector term";
        errors.push(FieldError::required(terms, text));
        return;
    }
    for (i, term) in items(&required["nodeSelectorTerms"]).iter().enumerate() {
        validate_node_term(term, &terms.index(i), errors);
    }
}

fn validate_node_term(term: &Value, path: &Path<'_>, errors: &mut Errors) {
    let expressions = path.child("matchExpressions");
    for (i, requirement) in items(&term["matchExpressions"]).iter().enumerate() {
        validate_node_requirement(requirement, &expressions.index(i), errors);
    }
}

fn validate_node_requirement(requirement: &Value, path: &Path<'_>, errors: &mut Errors) {
    let count = items(&requirement["values"]).len();
    let values = path.child("values");
    match (text(&requirement["operator"]), count) {
        ("In" | "NotIn", 0) => errors.push(FieldError::required(
            values,
            "must be specified when `operator` is 'In' or 'NotIn'",
        )),
        ("Exists" | "DoesNotExist", 1..) => errors.push(FieldError::forbidden(
            values,
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        )),
        ("Gt" | "Lt", 1) | ("In" | "NotIn" | "Exists" | "DoesNotExist", _) => {}
        ("Gt" | "Lt", _) => errors.push(FieldError::required(
            values,
            "must be specified single value when `operator` is 'Lt' or 'Gt'",
        )),
        (other, _) => errors.push(FieldError::invalid(
            path.child("operator"),
            &other.into(),
            "not a valid selector operator",
        )),
    }
    let key = text(&requirement["key"]);
    invalid_each(names::qualified_name(key), key, &path.child("key"), errors);
}

fn validate_pod_term(term: &Value, path: &Path<'_>, errors: &mut Errors) {
    for field in ["labelSelector", "namespaceSelector"] {
        selector::validate(&term[field], &path.child(field), errors);
    }
    for name in strings(&term["namespaces"]) {
        invalid_each(
            names::dns1123_label(name),
            name,
            &path.child("namespace"),
            errors,
        );
    }
    let topology = text(&term["topologyKey"]);
    let path = path.child("topologyKey");
    if topology.is_empty() {
        errors.push(FieldError::required(path, "can not be empty"));
    }
    invalid_each(names::qualified_name(topology), topology, &path, errors);
}

/// Checks topology spread constraints.
pub(super) fn validate_spread(constraints: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for (i, constraint) in items(constraints).iter().enumerate() {
        let path = path.index(i);
        let skew = constraint["maxSkew"].as_i64().unwrap_or(0);
        if skew <= 0 {
            let text = "must be greater than zero";
            errors.push(FieldError::invalid(
                path.child("maxSkew"),
                &skew.into(),
                text,
            ));
        }
        let topology = text(&constraint["topologyKey"]);
        if topology.is_empty() {
            errors.push(FieldError::required(
                path.child("topologyKey"),
                "can not be empty",
            ));
        }
        let action = &constraint["whenUnsatisfiable"];
        let actions = ["DoNotSchedule", "ScheduleAnyway"];
        one_of(action, &actions, &path.child("whenUnsatisfiable"), errors);
        let key = format!("{{{topology}, {}}}", text(action));
        if !seen.insert(key.clone()) {
            let path = path.child("{topologyKey, whenUnsatisfiable}");
            errors.push(FieldError::duplicate(path, &key.into()));
        }
        for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            one_of_if_set(
                &constraint[policy],
                &["Honor", "Ignore"],
                &path.child(policy),
                errors,
            );
        }
        selector::validate(
            &constraint["labelSelector"],
            &path.child("labelSelector"),
            errors,
        );
    }
}

/// Checks tolerations.
pub(super) fn validate_tolerations(tolerations: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (i, toleration) in items(tolerations).iter().enumerate() {
        validate_toleration(toleration, &path.index(i), errors);
    }
}

fn validate_toleration(toleration: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (key, operator) = (text(&toleration["key"]), text(&toleration["operator"]));
    let (value, effect) = (text(&toleration["value"]), text(&toleration["effect"]));
    if !key.is_empty() {
        invalid_each(names::qualified_name(key), key, &path.child("key"), errors);
    } else if operator != "Exists" {
        let text = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        errors.push(FieldError::invalid(
            path.child("operator"),
            &operator.into(),
            text,
        ));
    }
    if !toleration["tolerationSeconds"].is_null() && effect != "NoExecute" {
        let text = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.push(FieldError::invalid(
            path.child("effect"),
            &effect.into(),
            text,
        ));
    }
    let operator_path = path.child("operator");
    match operator {
        "" | "Equal" => {
            let complaints = names::label_value(value);
            if !complaints.is_empty() {
                let text = complaints.join(";");
                errors.push(FieldError::invalid(operator_path, &value.into(), &text));
            }
        }
        "Exists" if value.is_empty() => {}
        "Exists" => {
            let text = "value must be empty when `operator` is 'Exists'";
            errors.push(FieldError::invalid(operator_path, &value.into(), text));
        }
        _ => {
            let allowed = ["Equal", "Exists"];
            errors.push(FieldError::not_supported(
                operator_path,
                &operator.into(),
                &allowed,
            ));
        }
    }
    if !effect.is_empty() {
        one_of(
            &toleration["effect"],
            &EFFECTS,
            &path.child("effect"),
            errors,
        );
    }
}

/// Checks the taints of a node: well formed, each pair of key and effect once.
pub(crate) fn validate_taints(taints: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for (i, taint) in items(taints).iter().enumerate() {
        let path = path.index(i);
        let (key, value) = (text(&taint["key"]), text(&taint["value"]));
        invalid_each(names::qualified_name(key), key, &path.child("key"), errors);
        let complaints = names::label_value(value);
        if !complaints.is_empty() {
            let text = complaints.join(";");
            errors.push(FieldError::invalid(
                path.child("value"),
                &value.into(),
                &text,
            ));
        }
        let effect = text(&taint["effect"]);
        if effect.is_empty() {
            errors.push(FieldError::required(path.child("effect"), ""));
        } else {
            one_of(&taint["effect"], &EFFECTS, &path.child("effect"), errors);
        }
        if !seen.insert((key, effect)) {
            errors.push(FieldError::duplicate(path, taint));
        }
    }
}

/// Checks scheduling gates: qualified names, each once.
pub(super) fn validate_gates(gates: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for (i, gate) in items(gates).iter().enumerate() {
        let name = text(&gate["name"]);
        invalid_each(names::qualified_name(name), name, &path.index(i), errors);
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(path.index(i), &name.into()));
        }
    }
}
