//! Who may do what: roles, their bindings, and service accounts.

use kubewright_schema::FieldError;
use kubewright_schema::catalog::Scope;
use kubewright_schema::names;
use serde_json::Value;

use super::checks::{Errors, invalid_each, one_of};
use super::name_rule::NameRule;
use super::path::Path;
use super::selector;
use super::strategy::Strategy;
use super::value::{alike, ensure, is_empty, items, items_mut, set_default_text, text};

const GROUP: &str = "rbac.authorization.k8s.io";

const PLAIN: Strategy = Strategy {
    name_rule: NameRule::PathSegment,
    allow_create_on_update: true,
    ..Strategy::PLAIN
};

/// Roles.
pub(super) static ROLE: Strategy = Strategy {
    validate: |object, errors| validate_rules(object, Scope::Namespaced, errors),
    ..PLAIN
};

/// ClusterRoles.
pub(super) static CLUSTER_ROLE: Strategy = Strategy {
    validate: |object, errors| {
        validate_rules(object, Scope::Cluster, errors);
        validate_aggregation(&object["aggregationRule"], errors);
    },
    ..PLAIN
};

/// RoleBindings.
pub(super) static ROLE_BINDING: Strategy = Strategy {
    default: default_binding,
    validate: |object, errors| {
        validate_binding(object, &["Role", "ClusterRole"], Scope::Namespaced, errors);
    },
    validate_update: validate_binding_update,
    ..PLAIN
};

/// ClusterRoleBindings.
pub(super) static CLUSTER_ROLE_BINDING: Strategy = Strategy {
    default: default_binding,
    validate: |object, errors| {
        validate_binding(object, &["ClusterRole"], Scope::Cluster, errors);
    },
    validate_update: validate_binding_update,
    ..PLAIN
};

/// ServiceAccounts.
pub(super) static SERVICE_ACCOUNT: Strategy = Strategy {
    returns_deleted_object: true,
    ..Strategy::PLAIN
};

fn default_binding(object: &mut Value) {
    set_default_text(ensure(object, "roleRef"), "apiGroup", GROUP);
    for subject in items_mut(object.get_mut("subjects")) {
        if matches!(text(&subject["kind"]), "User" | "Group") {
            set_default_text(subject, "apiGroup", GROUP);
        }
    }
}

fn validate_rules(object: &Value, scope: Scope, errors: &mut Errors) {
    let path = Path::Root("rules");
    for (i, rule) in items(&object["rules"]).iter().enumerate() {
        validate_rule(rule, scope, &path.index(i), errors);
    }
}

fn validate_rule(rule: &Value, scope: Scope, path: &Path<'_>, errors: &mut Errors) {
    if is_empty(&rule["verbs"]) {
        let text = "verbs must contain at least one value";
        errors.push(FieldError::required(path.child("verbs"), text));
    }
    let urls = &rule["nonResourceURLs"];
    if !is_empty(urls) {
        let path = path.child("nonResourceURLs");
        if scope == Scope::Namespaced {
            let text = "namespaced rules cannot apply to non-resource URLs";
            errors.push(FieldError::invalid(path, urls, text));
        }
        let resources = ["apiGroups", "resources", "resourceNames"];
        if resources.iter().any(|field| !is_empty(&rule[*field])) {
            let text = "rules cannot apply to both regular resources and non-resource URLs";
            errors.push(FieldError::invalid(path, urls, text));
        }
        return;
    }
    for (field, text) in [
        (
            "apiGroups",
            "resource rules must supply at least one api group",
        ),
        (
            "resources",
            "resource rules must supply at least one resource",
        ),
    ] {
        if is_empty(&rule[field]) {
            errors.push(FieldError::required(path.child(field), text));
        }
    }
}

fn validate_aggregation(rule: &Value, errors: &mut Errors) {
    if rule.is_null() {
        return;
    }
    let path = Path::Root("aggregationRule.clusterRoleSelectors");
    let selectors = items(&rule["clusterRoleSelectors"]);
    if selectors.is_empty() {
        let text = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.push(FieldError::required(path, text));
    }
    for (i, one) in selectors.iter().enumerate() {
        selector::validate(one, &path.index(i), errors);
    }
}

fn validate_binding(object: &Value, kinds: &[&str], scope: Scope, errors: &mut Errors) {
    let reference = &object["roleRef"];
    let path = Path::Root("roleRef");
    one_of(
        &reference["apiGroup"],
        &[GROUP],
        &path.child("apiGroup"),
        errors,
    );
    one_of(&reference["kind"], kinds, &path.child("kind"), errors);
    match text(&reference["name"]) {
        "" => errors.push(FieldError::required(path.child("name"), "")),
        name => invalid_each(
            names::path_segment_name(name),
            name,
            &path.child("name"),
            errors,
        ),
    }
    let path = Path::Root("subjects");
    for (i, subject) in items(&object["subjects"]).iter().enumerate() {
        validate_subject(subject, scope, &path.index(i), errors);
    }
}

fn validate_subject(subject: &Value, scope: Scope, path: &Path<'_>, errors: &mut Errors) {
    let name = text(&subject["name"]);
    if name.is_empty() {
        errors.push(FieldError::required(path.child("name"), ""));
    }
    let group = path.child("apiGroup");
    match text(&subject["kind"]) {
        "ServiceAccount" => {
            if !name.is_empty() {
                invalid_each(
                    names::dns1123_subdomain(name),
                    name,
                    &path.child("name"),
                    errors,
                );
            }
            if !is_empty(&subject["apiGroup"]) {
                errors.push(FieldError::not_supported(
                    group,
                    &subject["apiGroup"],
                    &[""],
                ));
            }
            if scope == Scope::Cluster && is_empty(&subject["namespace"]) {
                errors.push(FieldError::required(path.child("namespace"), ""));
            }
        }
        "User" | "Group" => one_of(&subject["apiGroup"], &[GROUP], &group, errors),
        kind => {
            let kinds = ["ServiceAccount", "User", "Group"];
            errors.push(FieldError::not_supported(
                path.child("kind"),
                &kind.into(),
                &kinds,
            ));
        }
    }
}

fn validate_binding_update(new: &Value, old: &Value, errors: &mut Errors) {
    if !alike(&new["roleRef"], &old["roleRef"]) {
        errors.push(FieldError::invalid(
            "roleRef",
            &new["roleRef"],
            "cannot change roleRef",
        ));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::testing::{create, create_errors, update_errors};

    fn binding() -> Value {
        json!({
            "metadata": {"name": "system:b", "namespace": "default"},
            "roleRef": {"kind": "Role", "name": "r"},
            "subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s"}],
        })
    }

    #[test]
    fn references_name_the_group() {
        let object = create(GROUP, "RoleBinding", binding());
        assert_eq!(object["roleRef"]["apiGroup"], GROUP);
        assert_eq!(object["subjects"][0]["apiGroup"], GROUP);
        assert!(object["subjects"][1]["apiGroup"].is_null());
        assert_eq!(
            create_errors(GROUP, "RoleBinding", binding()),
            Vec::<String>::new()
        );
    }

    #[test]
    fn role_reference_stays() {
        let errors = update_errors(GROUP, "RoleBinding", binding(), |new| {
            new["roleRef"]["name"] = json!("q")
        });
        assert_eq!(errors.len(), 1);
        assert!(errors[0].ends_with(": cannot change roleRef"), "{errors:?}");
    }

    #[test]
    fn rules_say_what_they_cover() {
        let role =
            |rule: Value| json!({"metadata": {"name": "r", "namespace": "d"}, "rules": [rule]});
        for (rule, expect) in [
            (
                json!({"apiGroups": [""], "resources": ["pods"]}),
                "rules[0].verbs: Required value: verbs must contain at least one value",
            ),
            (
                json!({"verbs": ["get"], "apiGroups": [""]}),
                "rules[0].resources: Required value: resource rules must supply at least one resource",
            ),
            (
                json!({"verbs": ["get"], "nonResourceURLs": ["/healthz"]}),
                "rules[0].nonResourceURLs: Invalid value: [\"/healthz\"]: namespaced rules cannot apply to non-resource URLs",
            ),
        ] {
            assert_eq!(create_errors(GROUP, "Role", role(rule)), [expect]);
        }
    }
}
