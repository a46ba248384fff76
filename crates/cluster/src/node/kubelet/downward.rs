//! The downward API: fields and resources of a pod as text.

use k8s_openapi::api::core::v1::{Container, ObjectFieldSelector, Pod, ResourceFieldSelector};
use kubewright_schema::quantity::Quantity;

/// Where a pod is, for fields that its status does not have yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct Place {
    pub(crate) pod_ip: String,
    pub(crate) host_ip: String,
    pub(crate) node: String,
    /// What the node has, for limits that a container does not set.
    pub(crate) allocatable: (i64, i64),
}

/// The value of a field; nothing when there is no such field.
///
/// Mirrors `Kubelet.podFieldSelectorRuntimeValue` and `fieldpath.ExtractFieldPathAsString`.
pub(crate) fn field(selector: &ObjectFieldSelector, pod: &Pod, place: &Place) -> Option<String> {
    let meta = &pod.metadata;
    let spec = pod.spec.as_ref();
    let path = selector.field_path.as_str();
    for (prefix, map) in [
        ("metadata.labels", &meta.labels),
        ("metadata.annotations", &meta.annotations),
    ] {
        let Some(rest) = path.strip_prefix(prefix) else {
            continue;
        };
        if rest.is_empty() {
            let lines = map
                .iter()
                .flatten()
                .map(|(key, value)| format!("{key}={value:?}"));
            return Some(lines.collect::<Vec<_>>().join("\n"));
        }
        let key = rest.strip_prefix("['")?.strip_suffix("']")?;
        let found = map.as_ref().and_then(|map| map.get(key));
        return Some(found.cloned().unwrap_or_default());
    }
    let text = |value: Option<&String>| value.cloned().unwrap_or_default();
    Some(match path {
        "metadata.name" => text(meta.name.as_ref()),
        "metadata.namespace" => text(meta.namespace.as_ref()),
        "metadata.uid" => text(meta.uid.as_ref()),
        "spec.nodeName" => place.node.clone(),
        "spec.serviceAccountName" => text(spec.and_then(|s| s.service_account_name.as_ref())),
        "status.podIP" | "status.podIPs" => place.pod_ip.clone(),
        "status.hostIP" | "status.hostIPs" => place.host_ip.clone(),
        _ => return None,
    })
}

/// The value of a resource of a container; nothing when there is no such resource.
///
/// Mirrors `resource.ExtractContainerResourceValue`; limits that are not set are what the node has.
pub(crate) fn resource(
    selector: &ResourceFieldSelector,
    container: &Container,
    place: &Place,
) -> Option<String> {
    let (list, name) = selector.resource.split_once('.')?;
    let resources = container.resources.as_ref();
    let amounts = match list {
        "limits" => resources.and_then(|r| r.limits.as_ref()),
        "requests" => resources.and_then(|r| r.requests.as_ref()),
        _ => return None,
    };
    let milli = |text: &str| Quantity::parse(text).ok()?.milli_value();
    let set = amounts
        .and_then(|amounts| amounts.get(name))
        .map(|q| q.0.as_str());
    let value = match (set, list, name) {
        (Some(text), _, _) => milli(text)?,
        (None, "limits", "cpu") => place.allocatable.0,
        (None, "limits", "memory") => place.allocatable.1.saturating_mul(1000),
        _ => 0,
    };
    let divisor = selector.divisor.as_ref().map(|q| q.0.as_str());
    let divisor = divisor
        .and_then(milli)
        .filter(|divisor| *divisor > 0)
        .unwrap_or(1000);
    // Rounded up, as in the original.
    Some(
        value
            .div_euclid(divisor)
            .saturating_add(i64::from(value.rem_euclid(divisor) > 0))
            .to_string(),
    )
}
