//! Defaults of pods, pod templates and what they are made of.

use kubewright_schema::quantity::Quantity;
use serde_json::{Value, json};

use crate::kinds::value::{
    ensure, entries, is_empty, is_true, items_mut, map, set, set_default, set_default_text, text,
};

/// Defaults of a whole pod.
pub(super) fn pod(object: &mut Value) {
    let spec = ensure(object, "spec");
    pod_spec(spec);
    set_default(spec, "enableServiceLinks", true);
    let host_network = is_true(&spec["hostNetwork"]);
    for list in ["containers", "initContainers"] {
        for container in items_mut(spec.get_mut(list)) {
            requests_from_limits(container);
            if host_network {
                host_ports(container);
            }
        }
    }
}

/// Defaults of a `PodTemplateSpec`.
pub(crate) fn template(template: &mut Value) {
    ensure(template, "metadata");
    pod_spec(ensure(template, "spec"));
}

/// Defaults that pods and templates share.
fn pod_spec(spec: &mut Value) {
    set_default_text(spec, "dnsPolicy", "ClusterFirst");
    set_default_text(spec, "restartPolicy", "Always");
    set_default_text(spec, "schedulerName", "default-scheduler");
    set_default(spec, "securityContext", json!({}));
    set_default(spec, "terminationGracePeriodSeconds", 30);
    if !text(&spec["serviceAccountName"]).is_empty() {
        let account = spec["serviceAccountName"].clone();
        set(spec, "serviceAccount", account);
    } else if !text(&spec["serviceAccount"]).is_empty() {
        let account = spec["serviceAccount"].clone();
        set(spec, "serviceAccountName", account);
    }
    for volume in items_mut(spec.get_mut("volumes")) {
        super::volume::default(volume);
    }
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for one in items_mut(spec.get_mut(list)) {
            container(one);
        }
    }
    resource_list(spec.get_mut("overhead"));
    resources(spec.get_mut("resources"));
}

fn container(container: &mut Value) {
    if is_empty(&container["imagePullPolicy"]) {
        let policy = pull_policy(text(&container["image"]));
        set(container, "imagePullPolicy", policy);
    }
    set_default_text(container, "terminationMessagePath", "/dev/termination-log");
    set_default_text(container, "terminationMessagePolicy", "File");
    set_default(container, "resources", json!({}));
    resources(container.get_mut("resources"));
    for port in items_mut(container.get_mut("ports")) {
        set_default_text(port, "protocol", "TCP");
    }
    for variable in items_mut(container.get_mut("env")) {
        if let Some(field) = variable.pointer_mut("/valueFrom/fieldRef") {
            set_default_text(field, "apiVersion", "v1");
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(probe) {
            self::probe(probe);
        }
    }
    for hook in ["/lifecycle/postStart/httpGet", "/lifecycle/preStop/httpGet"] {
        http_get(container.pointer_mut(hook));
    }
}

/// `Always` for an image whose tag is `latest` or absent.
pub(super) fn pull_policy(image: &str) -> &'static str {
    if image_is_latest(image) {
        "Always"
    } else {
        "IfNotPresent"
    }
}

fn image_is_latest(image: &str) -> bool {
    let (name, digest) = image
        .split_once('@')
        .map_or((image, false), |(n, _)| (n, true));
    let path_start = name.rfind('/').map_or(0, |at| at + 1);
    let tag = name[path_start..].split_once(':').map(|(_, tag)| tag);
    // The server cannot parse names with upper case letters or spaces, and then leaves the tag alone.
    let repository = match name.split_once('/') {
        Some((host, rest)) if host.contains(['.', ':']) || host == "localhost" => rest,
        _ => name,
    };
    let repository = repository
        .strip_suffix(tag.unwrap_or_default())
        .unwrap_or(repository);
    let readable = !name.is_empty()
        && !repository.contains(|c: char| c.is_ascii_uppercase() || c.is_whitespace());
    readable && (tag == Some("latest") || (tag.is_none() && !digest))
}

fn probe(probe: &mut Value) {
    for (field, value) in [
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ] {
        if probe[field].as_i64().unwrap_or(0) == 0 {
            set(probe, field, value);
        }
    }
    http_get(probe.get_mut("httpGet"));
    if let Some(grpc) = probe.get_mut("grpc") {
        set_default(grpc, "service", "");
    }
}

fn http_get(action: Option<&mut Value>) {
    if let Some(action) = action {
        set_default_text(action, "path", "/");
        set_default_text(action, "scheme", "HTTP");
    }
}

fn requests_from_limits(container: &mut Value) {
    let limits = container["resources"]["limits"].clone();
    if !limits.is_object() {
        return;
    }
    let requests = map(ensure(ensure(container, "resources"), "requests"));
    for (name, limit) in entries(&limits) {
        requests.entry(name).or_insert_with(|| limit.clone());
    }
}

fn host_ports(container: &mut Value) {
    for port in items_mut(container.get_mut("ports")) {
        if port["hostPort"].as_i64().unwrap_or(0) == 0 {
            let number = port["containerPort"].clone();
            set(port, "hostPort", number);
        }
    }
}

fn resources(resources: Option<&mut Value>) {
    let Some(resources) = resources else { return };
    for list in ["limits", "requests"] {
        resource_list(resources.get_mut(list));
    }
}

/// Quantities finer than thousandths are rounded up.
pub(crate) fn resource_list(list: Option<&mut Value>) {
    let Some(list) = list.and_then(Value::as_object_mut) else {
        return;
    };
    for quantity in list.values_mut() {
        let Ok(exact) = Quantity::parse(text(quantity)) else {
            continue;
        };
        let rounded = exact.clone().rounded_up_to_milli();
        if rounded != exact {
            *quantity = rounded.to_string().into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_without_a_fixed_tag_are_always_pulled() {
        for (image, policy) in [
            ("nginx", "Always"),
            ("nginx:latest", "Always"),
            ("nginx:1", "IfNotPresent"),
            ("host:5000/nginx", "Always"),
            ("host:5000/a/nginx:2", "IfNotPresent"),
            ("nginx@sha256:00", "IfNotPresent"),
            ("nginx:latest@sha256:00", "Always"),
            ("NGINX", "IfNotPresent"),
            ("nginx:V1", "IfNotPresent"),
            ("", "IfNotPresent"),
        ] {
            assert_eq!(pull_policy(image), policy, "{image}");
        }
    }

    #[test]
    fn quantities_finer_than_thousandths_are_rounded_up() {
        let mut list = json!({"cpu": "100u", "a": "999999999n", "memory": "1Gi", "b": "10m"});
        resource_list(Some(&mut list));
        assert_eq!(
            list,
            json!({"cpu": "1m", "a": "1", "memory": "1Gi", "b": "10m"})
        );
    }
}
