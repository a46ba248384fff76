//! Ingresses and IngressClasses.

use std::net::IpAddr;

use kubewright_schema::FieldError;
use kubewright_schema::names;
use serde_json::{Value, json};

use crate::kinds::checks::{Errors, immutable, invalid_each, port_number, required_one_of};
use crate::kinds::path::Path;
use crate::kinds::strategy::{Generation, Strategy, UpdateOrder};
use crate::kinds::value::{ensure, is_empty, items, set, set_default, strings, text};

const SPEC: Path<'static> = Path::Root("spec");

pub(crate) static INGRESS: Strategy = Strategy {
    generation: Generation::Field("spec"),
    has_status: true,
    create: |object, _| set(object, "status", json!({"loadBalancer": {}})),
    validate: validate_ingress,
    validate_create_only: validate_class_annotation,
    ..Strategy::PLAIN
};

pub(crate) static INGRESS_CLASS: Strategy = Strategy {
    generation: Generation::Field("spec"),
    update_order: UpdateOrder::ChangeFirst,
    default: |object| {
        if let Some(parameters) = ensure(object, "spec").get_mut("parameters") {
            set_default(parameters, "scope", "Cluster");
        }
    },
    validate: validate_class,
    validate_update: |new, old, errors| {
        let (now, before) = (&new["spec"]["controller"], &old["spec"]["controller"]);
        immutable(now, before, &SPEC.child("controller"), errors);
    },
    ..Strategy::PLAIN
};

fn validate_ingress(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    let rules = items(&spec["rules"]);
    if rules.is_empty() && spec["defaultBackend"].is_null() {
        let text = "either `defaultBackend` or `rules` must be specified";
        errors.push(FieldError::invalid(SPEC, &spec["rules"], text));
    }
    if !spec["defaultBackend"].is_null() {
        validate_backend(
            &spec["defaultBackend"],
            &SPEC.child("defaultBackend"),
            errors,
        );
    }
    let path = SPEC.child("rules");
    for (i, rule) in rules.iter().enumerate() {
        validate_rule(rule, &path.index(i), errors);
    }
    let path = SPEC.child("tls");
    for (i, tls) in items(&spec["tls"]).iter().enumerate() {
        let at = path.index(i);
        let hosts = at.child("hosts");
        for (j, host) in strings(&tls["hosts"]).enumerate() {
            validate_host(host, &hosts.index(j), errors);
        }
        let secret = text(&tls["secretName"]);
        if !secret.is_empty() {
            invalid_each(
                names::dns1123_subdomain(secret),
                secret,
                &at.child("secretName"),
                errors,
            );
        }
    }
    if let Some(class) = spec["ingressClassName"].as_str() {
        let path = SPEC.child("ingressClassName");
        invalid_each(names::dns1123_subdomain(class), class, &path, errors);
    }
}

fn validate_host(host: &str, path: &Path<'_>, errors: &mut Errors) {
    let complaints = if host.contains('*') {
        names::wildcard_dns1123_subdomain(host)
    } else {
        names::dns1123_subdomain(host)
    };
    invalid_each(complaints, host, path, errors);
}

fn validate_rule(rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    let host = text(&rule["host"]);
    if !host.is_empty() {
        let path = path.child("host");
        if host.parse::<IpAddr>().is_ok() {
            let text = "must be a DNS name, not an IP address";
            errors.push(FieldError::invalid(path, &host.into(), text));
        }
        validate_host(host, &path, errors);
    }
    let http = &rule["http"];
    if http.is_null() {
        return;
    }
    let http_path = path.child("http");
    let paths = http_path.child("paths");
    if items(&http["paths"]).is_empty() {
        errors.push(FieldError::required(paths, ""));
    }
    for (i, one) in items(&http["paths"]).iter().enumerate() {
        validate_path(one, &paths.index(i), errors);
    }
}

fn validate_path(one: &Value, path: &Path<'_>, errors: &mut Errors) {
    let given = text(&one["path"]);
    let at = path.child("path");
    let mut complain = |text: &str| errors.push(FieldError::invalid(at, &given.into(), text));
    match one["pathType"].as_str() {
        None => {
            let text = "pathType must be specified";
            errors.push(FieldError::required(path.child("pathType"), text));
            return;
        }
        Some("Exact" | "Prefix") => {
            if !given.starts_with('/') {
                complain("must be an absolute path");
            }
            for sequence in ["//", "/./", "/../", "%2f", "%2F"] {
                if given.contains(sequence) {
                    complain(&format!("must not contain '{sequence}'"));
                }
            }
            for suffix in ["/..", "/."] {
                if given.ends_with(suffix) {
                    complain(&format!("cannot end with '{suffix}'"));
                }
            }
        }
        Some("ImplementationSpecific") => {
            if !given.is_empty() && !given.starts_with('/') {
                complain("must be an absolute path");
            }
        }
        Some(_) => errors.push(FieldError::not_supported(
            path.child("pathType"),
            &one["pathType"],
            &["Exact", "ImplementationSpecific", "Prefix"],
        )),
    }
    validate_backend(&one["backend"], &path.child("backend"), errors);
}

fn validate_backend(backend: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (resource, service) = (&backend["resource"], &backend["service"]);
    let nothing = Value::from("");
    match (resource.is_null(), service.is_null()) {
        (false, false) => {
            let text = "cannot set both resource and service backends";
            errors.push(FieldError::invalid(path, &nothing, text));
        }
        (true, true) => {
            let text = "resource or service backend is required";
            errors.push(FieldError::invalid(path, &nothing, text));
        }
        (false, true) => {
            let path = path.child("resource");
            for field in ["kind", "name"] {
                if is_empty(&resource[field]) {
                    errors.push(FieldError::required(path.child(field), ""));
                }
            }
        }
        (true, false) => validate_service(service, path, errors),
    }
}

fn validate_service(service: &Value, path: &Path<'_>, errors: &mut Errors) {
    let at = path.child("service");
    match text(&service["name"]) {
        "" => errors.push(FieldError::required(at.child("name"), "")),
        name => invalid_each(names::dns1035_label(name), name, &at.child("name"), errors),
    }
    let name = text(&service["port"]["name"]);
    let number = &service["port"]["number"];
    match (name, number.as_i64().unwrap_or(0)) {
        ("", 0) => errors.push(FieldError::required(
            path,
            "port name or number is required",
        )),
        ("", _) => port_number(number, &at.child("port.number"), errors),
        (_, 0) => invalid_each(names::port_name(name), name, &at.child("port.name"), errors),
        _ => {
            let text = "cannot set both port name & port number";
            errors.push(FieldError::invalid(path, &"".into(), text));
        }
    }
}

fn validate_class_annotation(object: &Value, errors: &mut Errors) {
    let key = "kubernetes.io/ingress.class";
    let annotation = &object["metadata"]["annotations"][key];
    let class = &object["spec"]["ingressClassName"];
    if !annotation.is_null() && !class.is_null() && annotation != class {
        let path = Path::Root("annotations");
        let text = "must match `ingressClassName` when both are specified";
        errors.push(FieldError::invalid(path.child(key), annotation, text));
    }
}

fn validate_class(object: &Value, errors: &mut Errors) {
    let controller = text(&object["spec"]["controller"]);
    let path = SPEC.child("controller");
    if controller.len() > 250 {
        errors.push(FieldError::too_long(path, 250));
    }
    match controller.split_once('/') {
        _ if controller.is_empty() => errors.push(FieldError::required(path, "")),
        Some((host, rest)) if !host.is_empty() && !rest.is_empty() => {
            invalid_each(names::dns1123_subdomain(host), host, &path, errors);
        }
        _ => {
            let text = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            errors.push(FieldError::invalid(path, &controller.into(), text));
        }
    }
    let parameters = &object["spec"]["parameters"];
    if parameters.is_null() {
        return;
    }
    let path = SPEC.child("parameters");
    let scope = &parameters["scope"];
    required_one_of(
        scope,
        &["Cluster", "Namespace"],
        &path.child("scope"),
        errors,
    );
    match (text(scope), is_empty(&parameters["namespace"])) {
        ("Namespace", true) => errors.push(FieldError::required(
            path.child("namespace"),
            "`parameters.scope` is set to 'Namespace'",
        )),
        ("Cluster", false) => errors.push(FieldError::forbidden(
            path.child("namespace"),
            "`parameters.scope` is set to 'Cluster'",
        )),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::testing::{create, create_errors, update_errors};

    const GROUP: &str = "networking.k8s.io";

    fn ingress(path: Value) -> Value {
        json!({
            "metadata": {"name": "i", "namespace": "d"},
            "spec": {"rules": [{"host": "ex.io", "http": {"paths": [path]}}]},
        })
    }

    fn backend() -> Value {
        json!({"service": {"name": "s", "port": {"number": 80}}})
    }

    #[test]
    fn good_ingresses_pass() {
        let good = ingress(json!({"path": "/", "pathType": "Prefix", "backend": backend()}));
        assert_eq!(
            create(GROUP, "Ingress", good.clone())["status"],
            json!({"loadBalancer": {}})
        );
        assert_eq!(create_errors(GROUP, "Ingress", good), Vec::<String>::new());
    }

    #[test]
    fn broken_paths_are_named() {
        let path = "spec.rules[0].http.paths[0]";
        for (given, expect) in [
            (
                json!({"path": "/", "backend": backend()}),
                format!("{path}.pathType: Required value: pathType must be specified"),
            ),
            (
                json!({"path": "a", "pathType": "Exact", "backend": backend()}),
                format!("{path}.path: Invalid value: \"a\": must be an absolute path"),
            ),
            (
                json!({"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "s"}}}),
                format!("{path}.backend: Required value: port name or number is required"),
            ),
            (
                json!({"path": "/", "pathType": "Prefix", "backend": {}}),
                format!(
                    "{path}.backend: Invalid value: \"\": resource or service backend is required"
                ),
            ),
        ] {
            assert_eq!(create_errors(GROUP, "Ingress", ingress(given)), [expect]);
        }
        let empty = json!({"metadata": {"name": "i", "namespace": "d"}, "spec": {}});
        assert_eq!(
            create_errors(GROUP, "Ingress", empty),
            ["spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"]
        );
    }

    #[test]
    fn controllers_of_classes_stay() {
        let class = json!({"metadata": {"name": "c"}, "spec": {"controller": "ex.io/c"}});
        let errors = update_errors(GROUP, "IngressClass", class, |new| {
            new["spec"]["controller"] = json!("ex.io/d");
        });
        assert_eq!(
            errors,
            ["spec.controller: Invalid value: \"ex.io/d\": field is immutable"]
        );
    }
}
