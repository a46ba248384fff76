//! `PodResizeValidator`: a pod is not resized beyond what its node has for pods (podresize/admission.go).

use kubewright_schema::quantity::Quantity;
use serde_json::Value;

use super::attributes::{AdmissionRequest, Operation};
use super::resources::{Side, add, amounts, of_pod};
use crate::kinds::value::text;
use crate::object;
use crate::status::ApiError;

/// Whether it is about a pod on a node that is to have other resources.
pub(super) fn concerns(request: &AdmissionRequest<'_>, pod: &Value, old: &Value) -> bool {
    request.operation == Operation::Update
        && request.is("", "Pod")
        && request.subresource == "resize"
        && !node_name(pod).is_empty()
        && object::generation(pod) != object::generation(old)
}

pub(super) fn node_name(pod: &Value) -> &str {
    text(&pod["spec"]["nodeName"])
}

/// Refuses to resize a pod on this node, if it is there.
pub(super) fn check(
    request: &AdmissionRequest<'_>,
    pod: &Value,
    node: Option<&Value>,
) -> Result<(), ApiError> {
    let refuse = |why: &str| request.forbidden(pod, why);
    let name = node_name(pod);
    let Some(node) = node else {
        return Err(refuse(&format!("node {name:?} not found")));
    };
    let os = text(&node["metadata"]["labels"]["kubernetes.io/os"]);
    if !matches!(os, "" | "linux") {
        let why = format!("pod resize is only supported on linux nodes, node {name:?} is {os:?}");
        return Err(refuse(&why).with_cause("UnsupportedPlatform", "", ""));
    }
    match excess(&pod["spec"], node) {
        None => Ok(()),
        Some(why) => Err(refuse(&why).with_cause("NodeCapacity", "", "")),
    }
}

/// What a pod wants beyond what its node has, if it does.
fn excess(spec: &Value, node: &Value) -> Option<String> {
    let mut wanted = of_pod(spec, Side::Requests);
    add(&mut wanted, &amounts(&spec["overhead"]));
    let allocatable = amounts(&node["status"]["allocatable"]);
    let beyond = |resource: &str, count: fn(&Quantity) -> Option<i64>| {
        let wanted = wanted.get(resource)?;
        let given = allocatable.get(resource);
        if given.is_some_and(|given| wanted <= given) || wanted.is_zero() {
            return None;
        }
        let number = |amount: Option<&Quantity>| amount.and_then(count).unwrap_or(0);
        let (wanted, given) = (number(Some(wanted)), number(given));
        Some(format!(
            "{resource}, requested: {wanted}, allocatable: {given}"
        ))
    };
    let found = [
        beyond("cpu", Quantity::milli_value),
        beyond("memory", Quantity::value),
    ];
    let found: Vec<String> = found.into_iter().flatten().collect();
    (!found.is_empty()).then(|| {
        format!(
            "node didn't have enough allocatable resources: {}",
            found.join("; ")
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// `validateRequestsWithinAllocatable`.
    #[test]
    fn pod_wants_no_more_than_its_node_has() {
        let node = json!({"status": {"allocatable": {"cpu": "4", "memory": "1Gi"}}});
        let spec = |cpu: &str, memory: &str| {
            json!({"containers": [{"name": "a", "resources": {"requests": {"cpu": cpu, "memory": memory}}}],
                "overhead": {"cpu": "500m"}})
        };
        let prefix = "node didn't have enough allocatable resources: ";
        for (spec, expect) in [
            (spec("3500m", "1Gi"), None),
            (
                spec("4", "1Gi"),
                Some("cpu, requested: 4500, allocatable: 4000"),
            ),
            (
                spec("5", "2Gi"),
                Some(
                    "cpu, requested: 5500, allocatable: 4000; memory, requested: 2147483648, allocatable: 1073741824",
                ),
            ),
        ] {
            let expect = expect.map(|text| format!("{prefix}{text}"));
            assert_eq!(excess(&spec, &node), expect, "{spec}");
        }
    }
}
