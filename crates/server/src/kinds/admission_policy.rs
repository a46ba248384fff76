//! Admission policies and their bindings.

use std::collections::BTreeSet;

use kubewright_schema::FieldError;
use kubewright_schema::cel::{Expression, Type};
use kubewright_schema::names;
use serde_json::{Value, json};

use super::admission::validate_rule;
use super::checks::{Errors, invalid_each, one_of, one_of_if_set};
use super::path::Path;
use super::scope::{NAMES, SCOPE, declare};
use super::selector;
use super::strategy::{Generation, StatusMeta, Strategy};
use super::value::{ensure, is_empty, items, items_mut, set_default, strings, text};

const SPEC: Path<'static> = Path::Root("spec");
/// Most conditions of a webhook or policy.
const MAX_CONDITIONS: usize = 64;

/// ValidatingAdmissionPolicies and MutatingAdmissionPolicies.
pub(super) static ADMISSION_POLICY: Strategy = Strategy {
    generation: Generation::Field("spec"),
    has_status: true,
    status_meta: StatusMeta::Closed,
    allow_unconditional_update: false,
    default: |object| {
        let spec = ensure(object, "spec");
        set_default(spec, "failurePolicy", "Fail");
        let constraints = spec.get_mut("matchConstraints");
        if let Some(constraints) = constraints.filter(|c| c.is_object()) {
            default_match(constraints);
        }
    },
    validate: validate_policy,
    ..Strategy::PLAIN
};

/// Bindings of admission policies.
pub(super) static ADMISSION_POLICY_BINDING: Strategy = Strategy {
    generation: Generation::Field("spec"),
    allow_unconditional_update: false,
    default: |object| {
        let resources = ensure(object, "spec").get_mut("matchResources");
        if let Some(resources) = resources.filter(|r| r.is_object()) {
            default_match(resources);
        }
    },
    validate: validate_binding,
    ..Strategy::PLAIN
};

fn default_match(resources: &mut Value) {
    set_default(resources, "matchPolicy", "Equivalent");
    set_default(resources, "namespaceSelector", json!({}));
    set_default(resources, "objectSelector", json!({}));
    for list in ["resourceRules", "excludeResourceRules"] {
        for rule in items_mut(resources.get_mut(list)) {
            set_default(rule, "scope", "*");
        }
    }
}

fn validate_policy(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    let failure = ["Fail", "Ignore"];
    let path = SPEC.child("failurePolicy");
    one_of_if_set(&spec["failurePolicy"], &failure, &path, errors);
    if spec["paramKind"].is_object() {
        for field in ["apiVersion", "kind"] {
            if is_empty(&spec["paramKind"][field]) {
                let path = SPEC.child("paramKind");
                errors.push(FieldError::required(path.child(field), ""));
            }
        }
    }
    let constraints = SPEC.child("matchConstraints");
    if spec["matchConstraints"].is_null() {
        errors.push(FieldError::required(constraints, ""));
    } else {
        validate_match(&spec["matchConstraints"], &constraints, errors);
        if is_empty(&spec["matchConstraints"]["resourceRules"]) {
            errors.push(FieldError::required(constraints.child("resourceRules"), ""));
        }
    }
    let conditions = SPEC.child("matchConditions");
    validate_conditions(&spec["matchConditions"], &NAMES, &conditions, errors);
    validate_variables(&spec["variables"], &SPEC.child("variables"), errors);
    match text(&object["kind"]) {
        "MutatingAdmissionPolicy" => validate_mutations(spec, errors),
        _ => validate_validations(spec, errors),
    }
}

fn validate_match(resources: &Value, path: &Path<'_>, errors: &mut Errors) {
    let policies = ["Equivalent", "Exact"];
    let at = path.child("matchPolicy");
    one_of_if_set(&resources["matchPolicy"], &policies, &at, errors);
    for field in ["namespaceSelector", "objectSelector"] {
        selector::validate(&resources[field], &path.child(field), errors);
    }
    for list in ["resourceRules", "excludeResourceRules"] {
        let path = path.child(list);
        for (i, rule) in items(&resources[list]).iter().enumerate() {
            validate_rule(rule, &path.index(i), errors);
        }
    }
}

/// Checks the conditions of a webhook or policy, which see these variables.
pub(super) fn validate_conditions(
    conditions: &Value,
    variables: &[&str],
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let list = items(conditions);
    if list.len() > MAX_CONDITIONS {
        errors.push(FieldError::too_many(path, list.len(), MAX_CONDITIONS));
    }
    let mut seen = BTreeSet::new();
    for (i, condition) in list.iter().enumerate() {
        let path = path.index(i);
        let (name, at) = (text(&condition["name"]), path.child("name"));
        if is_empty(&condition["expression"]) {
            errors.push(FieldError::required(path.child("expression"), ""));
        } else {
            let at = path.child("expression");
            validate_expression(
                &condition["expression"],
                variables,
                &[Type::Bool],
                &at,
                errors,
            );
        }
        if name.is_empty() {
            errors.push(FieldError::required(at, ""));
            continue;
        }
        invalid_each(names::qualified_name(name), name, &at, errors);
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(at, &name.into()));
        }
    }
}

/// An expression compiles, to a value of one of these types or one that shows only when evaluated.
fn validate_expression(
    expression: &Value,
    variables: &[&str],
    types: &[Type],
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let compiled = Expression::compile(text(expression).trim(), &declare(variables));
    let complaint = match compiled {
        Err(error) => format!("compilation failed: {error}"),
        Ok(compiled) if types.contains(compiled.ty()) || *compiled.ty() == Type::Dyn => return,
        Ok(_) => match types {
            [one] => format!("must evaluate to {one}"),
            many => {
                let many: Vec<String> = many.iter().map(ToString::to_string).collect();
                format!("must evaluate to one of: [{}]", many.join(" "))
            }
        },
    };
    errors.push(FieldError::invalid(path, expression, &complaint));
}

fn validate_variables(variables: &Value, path: &Path<'_>, errors: &mut Errors) {
    const MISSING: &str = "is not specified";
    for (i, variable) in items(variables).iter().enumerate() {
        let path = path.index(i);
        let name = text(&variable["name"]);
        let mut characters = name.chars();
        let starts = characters
            .next()
            .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        if name.is_empty() {
            let at = path.child("name");
            errors.push(FieldError::required(at, &format!("name {MISSING}")));
        } else if !starts || !characters.all(|c| c.is_ascii_alphanumeric() || c == '_') {
            let complaint = "must be a valid CEL identifier";
            errors.push(FieldError::invalid(
                path.child("name"),
                &name.into(),
                complaint,
            ));
        }
        let at = path.child("expression");
        match Expression::compile(text(&variable["expression"]).trim(), &declare(&SCOPE)) {
            _ if is_empty(&variable["expression"]) => {
                errors.push(FieldError::required(at, &format!("expression {MISSING}")));
            }
            Ok(_) => {}
            Err(error) => {
                let complaint = format!("compilation failed: {error}");
                errors.push(FieldError::invalid(at, &variable["expression"], &complaint));
            }
        }
    }
}

fn validate_validations(spec: &Value, errors: &mut Errors) {
    if is_empty(&spec["validations"]) && is_empty(&spec["auditAnnotations"]) {
        let text = "validations or auditAnnotations must contain at least one item";
        for field in ["validations", "auditAnnotations"] {
            errors.push(FieldError::required(SPEC.child(field), text));
        }
    }
    let path = SPEC.child("validations");
    for (i, rule) in items(&spec["validations"]).iter().enumerate() {
        validate_validation(rule, &path.index(i), errors);
    }
}

fn validate_validation(rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    let expression = text(&rule["expression"]).trim();
    let at = path.child("expression");
    if expression.is_empty() {
        errors.push(FieldError::required(at, "expression is not specified"));
    } else {
        validate_expression(&rule["expression"], &SCOPE, &[Type::Bool], &at, errors);
    }
    let message_expression = &rule["messageExpression"];
    if !text(message_expression).trim().is_empty() {
        let at = path.child("messageExpression");
        validate_expression(message_expression, &SCOPE, &[Type::String], &at, errors);
    }
    let (message, at) = (text(&rule["message"]), path.child("message"));
    if !message.is_empty() && message.trim().is_empty() {
        let text = "must be non-empty if specified";
        errors.push(FieldError::invalid(at, &rule["message"], text));
    } else if message.contains('\n') {
        let text = "must not contain line breaks";
        errors.push(FieldError::invalid(at, &rule["message"], text));
    } else if message.is_empty() && expression.contains('\n') {
        let text = "message must be specified if expression contains line breaks";
        errors.push(FieldError::required(at, text));
    }
    let reasons = [
        "Forbidden",
        "Invalid",
        "RequestEntityTooLarge",
        "Unauthorized",
    ];
    one_of_if_set(&rule["reason"], &reasons, &path.child("reason"), errors);
}

fn validate_mutations(spec: &Value, errors: &mut Errors) {
    let path = SPEC.child("mutations");
    if is_empty(&spec["mutations"]) {
        let text = "mutations must contain at least one item";
        errors.push(FieldError::required(path, text));
    }
    for (i, mutation) in items(&spec["mutations"]).iter().enumerate() {
        validate_mutation(mutation, &path.index(i), errors);
    }
    let path = SPEC.child("reinvocationPolicy");
    if is_empty(&spec["reinvocationPolicy"]) {
        errors.push(FieldError::required(path, ""));
    } else {
        one_of(
            &spec["reinvocationPolicy"],
            &["IfNeeded", "Never"],
            &path,
            errors,
        );
    }
}

fn validate_mutation(mutation: &Value, path: &Path<'_>, errors: &mut Errors) {
    let kind = text(&mutation["patchType"]);
    let (field, other) = match kind {
        "" => return errors.push(FieldError::required(path.child("patchType"), "")),
        "JSONPatch" => ("jsonPatch", "applyConfiguration"),
        "ApplyConfiguration" => ("applyConfiguration", "jsonPatch"),
        _ => {
            let allowed = ["ApplyConfiguration", "JSONPatch"];
            return one_of(
                &mutation["patchType"],
                &allowed,
                &path.child("patchType"),
                errors,
            );
        }
    };
    if !mutation[other].is_null() {
        let text = format!("must not be specified when patchType is {kind}");
        let shown = format!("{{{other}}}");
        errors.push(FieldError::invalid(path.child(other), &shown.into(), &text));
    }
    let at = path.child(field);
    if mutation[field].is_null() {
        let text = format!("must be specified when patchType is {kind}");
        return errors.push(FieldError::required(at, &text));
    }
    let (expression, at) = (&mutation[field]["expression"], at.child("expression"));
    if text(expression).trim().is_empty() {
        return errors.push(FieldError::required(at, ""));
    }
    if let Err(error) = Expression::compile_mutation(text(expression).trim(), &declare(&SCOPE)) {
        let complaint = format!("compilation failed: {error}");
        errors.push(FieldError::invalid(at, expression, &complaint));
    }
}

fn validate_binding(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    let path = SPEC.child("policyName");
    let name = text(&spec["policyName"]);
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else {
        invalid_each(names::dns1123_subdomain(name), name, &path, errors);
    }
    if spec["paramRef"].is_object() {
        validate_param_ref(&spec["paramRef"], &SPEC.child("paramRef"), errors);
    }
    if !spec["matchResources"].is_null() {
        validate_match(
            &spec["matchResources"],
            &SPEC.child("matchResources"),
            errors,
        );
    }
    if text(&object["kind"]) != "MutatingAdmissionPolicyBinding" {
        validate_actions(&spec["validationActions"], errors);
    }
}

fn validate_param_ref(reference: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (named, selects) = (
        !is_empty(&reference["name"]),
        !reference["selector"].is_null(),
    );
    match (named, selects) {
        (true, true) => {
            for field in ["name", "selector"] {
                let text = "name and selector are mutually exclusive";
                errors.push(FieldError::forbidden(path.child(field), text));
            }
        }
        (false, false) => {
            let text = "one of name or selector must be specified";
            errors.push(FieldError::required(path, text));
        }
        _ => selector::validate(&reference["selector"], &path.child("selector"), errors),
    }
    let at = path.child("parameterNotFoundAction");
    match &reference["parameterNotFoundAction"] {
        Value::Null => errors.push(FieldError::required(at, "")),
        action => one_of(action, &["Deny", "Allow"], &at, errors),
    }
}

fn validate_actions(actions: &Value, errors: &mut Errors) {
    let path = SPEC.child("validationActions");
    let mut seen = BTreeSet::new();
    for (i, action) in items(actions).iter().enumerate() {
        one_of(action, &["Audit", "Deny", "Warn"], &path.index(i), errors);
        if !seen.insert(text(action)) {
            errors.push(FieldError::duplicate(path.index(i), action));
        }
    }
    if strings(actions).any(|a| a == "Deny") && strings(actions).any(|a| a == "Warn") {
        let text = "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)";
        errors.push(FieldError::invalid(path, actions, text));
    }
    if seen.is_empty() {
        let text = "at least one validation action is required";
        errors.push(FieldError::required(path, text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::testing::{Edit, create_errors};

    const GROUP: &str = "admissionregistration.k8s.io";

    fn policy(kind: &str, edit: Edit) -> Value {
        let rule = json!({"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]});
        let mut spec = json!({"matchConstraints": {"resourceRules": [rule]}});
        if kind == "MutatingAdmissionPolicy" {
            let expression = "Object{metadata: Object.metadata{labels: {'a': 'b'}}}";
            spec["reinvocationPolicy"] = json!("Never");
            spec["mutations"] = json!([
                {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}},
            ]);
        } else {
            spec["validations"] = json!([{"expression": "object.spec.hostNetwork != true"}]);
        }
        edit(&mut spec);
        json!({"kind": kind, "metadata": {"name": "p"}, "spec": spec})
    }

    fn check(kind: &str, edit: Edit, expect: &[&str]) {
        assert_eq!(create_errors(GROUP, kind, policy(kind, edit)), expect);
    }

    #[test]
    fn policies_that_cannot_work_are_refused() {
        let kind = "ValidatingAdmissionPolicy";
        check(kind, |_| {}, &[]);
        check(
            kind,
            |spec| spec["matchConstraints"] = Value::Null,
            &["spec.matchConstraints: Required value"],
        );
        check(
            kind,
            |spec| spec["validations"] = json!([]),
            &[
                "spec.validations: Required value: validations or auditAnnotations must contain at least one item",
                "spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item",
            ],
        );
        check(
            kind,
            |spec| spec["validations"][0]["expression"] = json!("1 + 1"),
            &["spec.validations[0].expression: Invalid value: \"1 + 1\": must evaluate to bool"],
        );
        check(
            kind,
            |spec| spec["variables"] = json!([{"name": "1a", "expression": "true"}]),
            &["spec.variables[0].name: Invalid value: \"1a\": must be a valid CEL identifier"],
        );
    }

    #[test]
    fn expressions_that_do_not_compile_are_refused() {
        let broken = policy("ValidatingAdmissionPolicy", |spec| {
            spec["validations"][0]["expression"] = json!("nothing")
        });
        let found = create_errors(GROUP, "ValidatingAdmissionPolicy", broken);
        assert!(
            found[0].starts_with("spec.validations[0].expression: Invalid value: \"nothing\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'nothing'"),
            "{found:?}"
        );
    }

    #[test]
    fn mutations_say_what_they_are() {
        let kind = "MutatingAdmissionPolicy";
        check(kind, |_| {}, &[]);
        check(
            kind,
            |spec| spec["mutations"][0]["patchType"] = json!("JSONPatch"),
            &[
                "spec.mutations[0].applyConfiguration: Invalid value: \"{applyConfiguration}\": must not be specified when patchType is JSONPatch",
                "spec.mutations[0].jsonPatch: Required value: must be specified when patchType is JSONPatch",
            ],
        );
        check(
            kind,
            |spec| spec["reinvocationPolicy"] = Value::Null,
            &["spec.reinvocationPolicy: Required value"],
        );
    }

    #[test]
    fn bindings_name_a_policy_and_what_it_leads_to() {
        let binding = |spec: Value| {
            let kind = "ValidatingAdmissionPolicyBinding";
            create_errors(
                GROUP,
                kind,
                json!({"kind": kind, "metadata": {"name": "b"}, "spec": spec}),
            )
        };
        assert!(binding(json!({"policyName": "p", "validationActions": ["Deny"]})).is_empty());
        assert_eq!(
            binding(json!({"policyName": "p"})),
            ["spec.validationActions: Required value: at least one validation action is required"]
        );
        let both = binding(json!({"policyName": "p", "validationActions": ["Deny", "Warn"]}));
        assert!(
            both[0].contains("must not contain both Deny and Warn"),
            "{both:?}"
        );
    }
}
