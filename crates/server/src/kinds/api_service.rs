//! APIServices: who answers for a group and version (kube-aggregator: pkg/apis/apiregistration/validation).

use kubewright_schema::{FieldError, names};
use serde::Deserialize;
use serde_json::{Value, json};

use super::checks::{Errors, invalid_each, required};
use super::name_rule::NameRule;
use super::path::Path;
use super::strategy::Strategy;
use crate::object;

const NAME: Path<'static> = Path::Root("metadata.name");
const SPEC: Path<'static> = Path::Root("spec");

/// APIServices.
pub(super) static API_SERVICE: Strategy = Strategy {
    name_rule: NameRule::PathSegment,
    has_status: true,
    allow_unconditional_update: false,
    default: |object| {
        if let Some(service) = object.pointer_mut("/spec/service")
            && let Some(service) = service.as_object_mut()
        {
            service.entry("port").or_insert(json!(443));
        }
    },
    validate: |object, errors| {
        let spec = Spec::of(object);
        validate_name(object::name(object), &spec, errors);
        validate_group_version(&spec, errors);
        validate_priorities(&spec, errors);
        validate_service(&spec, errors);
    },
    ..Strategy::PLAIN
};

/// What is validated of a spec. Its types were checked when it was decoded.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    group: String,
    version: String,
    group_priority_minimum: i64,
    version_priority: i64,
    ca_bundle: String,
    #[serde(rename = "insecureSkipTLSVerify")]
    skips_verification: bool,
    service: Option<ServiceReference>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ServiceReference {
    namespace: String,
    name: String,
    port: i64,
}

impl Spec {
    fn of(object: &Value) -> Self {
        let spec = object.get("spec").map(Self::deserialize);
        spec.and_then(Result::ok).unwrap_or_default()
    }
}

/// The name says for which group and version it is, so that there is one for each.
fn validate_name(name: &str, spec: &Spec, errors: &mut Errors) {
    let expected = format!("{}.{}", spec.version, spec.group);
    if name != expected && names::path_segment_name(name).is_empty() {
        let why = format!("must be `spec.version+\".\"+spec.group`: {expected:?}");
        errors.push(FieldError::invalid(NAME, &json!(name), &why));
    }
}

fn validate_group_version(spec: &Spec, errors: &mut Errors) {
    let (group, version) = (spec.group.as_str(), spec.version.as_str());
    let path = SPEC.child("group");
    if group.is_empty() && version != "v1" {
        let why = "only v1 may have an empty group and it better be legacy kube";
        errors.push(FieldError::required(path, why));
    } else if !group.is_empty() {
        invalid_each(names::dns1123_subdomain(group), group, &path, errors);
    }
    let path = SPEC.child("version");
    invalid_each(names::dns1035_label(version), version, &path, errors);
}

fn validate_priorities(spec: &Spec, errors: &mut Errors) {
    for (field, priority, most) in [
        ("groupPriorityMinimum", spec.group_priority_minimum, 20_000),
        ("versionPriority", spec.version_priority, 1_000),
    ] {
        if !(1..=most).contains(&priority) {
            let why = format!("must be positive and less than {most}");
            let error = FieldError::invalid(SPEC.child(field), &json!(priority), &why);
            errors.push(error);
        }
    }
}

fn validate_service(spec: &Spec, errors: &mut Errors) {
    let (bundle_path, skip_path) = (SPEC.child("caBundle"), SPEC.child("insecureSkipTLSVerify"));
    let Some(service) = &spec.service else {
        if !spec.ca_bundle.is_empty() {
            let shown = json!(format!("{} bytes", spec.ca_bundle.len() / 4 * 3));
            let why = "local APIServices may not have a caBundle";
            errors.push(FieldError::invalid(bundle_path, &shown, why));
        }
        if spec.skips_verification {
            let why = "local APIServices may not have insecureSkipTLSVerify";
            errors.push(FieldError::invalid(skip_path, &json!(true), why));
        }
        return;
    };
    let path = SPEC.child("service");
    required(&json!(service.namespace), &path.child("namespace"), errors);
    required(&json!(service.name), &path.child("name"), errors);
    let complaints = names::in_range(service.port, 1, 65_535);
    if !complaints.is_empty() {
        let why = format!("port is not valid: {}", complaints.join(","));
        let error = FieldError::invalid(path.child("port"), &json!(service.port), &why);
        errors.push(error);
    }
    if spec.skips_verification && !spec.ca_bundle.is_empty() {
        let why = "may not be true if caBundle is present";
        errors.push(FieldError::invalid(skip_path, &json!(true), why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::testing::create_errors;

    fn errors(edit: impl Fn(&mut Value)) -> Vec<String> {
        let mut object = json!({
            "metadata": {"name": "v1.gauges.example.com"},
            "spec": {
                "group": "gauges.example.com", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 15,
                "service": {"namespace": "system", "name": "gauges"},
            },
        });
        edit(&mut object);
        create_errors("apiregistration.k8s.io", "APIService", object)
    }

    #[test]
    fn names_are_those_of_the_version_and_the_group() {
        assert_eq!(errors(|_| {}), [""; 0]);
        let named =
            |name: &'static str| errors(move |object| object["metadata"]["name"] = json!(name));
        assert_eq!(
            named("gauges"),
            [
                "metadata.name: Invalid value: \"gauges\": must be `spec.version+\".\"+spec.group`: \"v1.gauges.example.com\""
            ]
        );
        assert_eq!(
            named("a/b"),
            ["metadata.name: Invalid value: \"a/b\": may not contain '/'"]
        );
    }

    #[test]
    fn specs_say_what_is_served_and_by_whom() {
        let spec = |field: &'static str, value: Value| {
            errors(move |object| object["spec"][field] = value.clone())
        };
        let prefix = "spec.groupPriorityMinimum: Invalid value: 0";
        assert_eq!(
            spec("groupPriorityMinimum", json!(0)),
            [format!("{prefix}: must be positive and less than 20000")]
        );
        assert_eq!(
            spec("service", json!({"name": "a", "port": 0}))[0],
            "spec.service.namespace: Required value"
        );
        assert_eq!(
            errors(|object| {
                object["spec"]["service"] = Value::Null;
                object["spec"]["insecureSkipTLSVerify"] = json!(true);
            }),
            [
                "spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have insecureSkipTLSVerify"
            ]
        );
        let group = |object: &mut Value| {
            object["metadata"]["name"] = json!("v2.");
            object["spec"]["group"] = json!("");
            object["spec"]["version"] = json!("v2");
        };
        assert_eq!(
            errors(group),
            [
                "spec.group: Required value: only v1 may have an empty group and it better be legacy kube"
            ]
        );
    }
}
