//! `LimitRanger`: containers get the defaults of their namespace, and nobody asks for more or less than it allows.

use std::collections::BTreeSet;

use kubewright_schema::quantity::Quantity;
use serde_json::{Value, json};

use super::PluginRefusal;
use super::attributes::{AdmissionRequest, Operation};
use super::resources::{Amounts, Side, amounts, of_pod};
use crate::kinds::value::{ensure, entries, is_empty, items, items_mut, map, text};
use crate::object;

const ANNOTATION: &str = "kubernetes.io/limit-ranger";
/// Amounts up to this compare by thousandths.
const MAX_MILLI: i64 = i64::MAX / 1000;

/// Whether limits matter: when containers are made or resized, and for claims.
pub(super) fn concerns(request: &AdmissionRequest<'_>, old: &Value) -> bool {
    if object::is_deleting(old) {
        return false;
    }
    match request.operation {
        Operation::Delete | Operation::Connect => false,
        Operation::Create => {
            request.is_whole("", "Pod") || request.is_whole("", "PersistentVolumeClaim")
        }
        Operation::Update => {
            request.is_whole("", "PersistentVolumeClaim")
                || (request.is("", "Pod") && request.subresource == "resize")
        }
    }
}

/// Gives containers the requests and limits that they lack.
pub(super) fn default(range: &Value, pod: &mut Value) {
    let mut defaulted = Vec::new();
    for (list, shown) in [
        ("containers", "container"),
        ("initContainers", "init container"),
    ] {
        for container in items_mut(ensure(pod, "spec").get_mut(list)) {
            default_container(range, container, shown, &mut defaulted);
        }
    }
    if !defaulted.is_empty() {
        let text = format!("LimitRanger plugin set: {}", defaulted.join("; "));
        map(ensure(ensure(pod, "metadata"), "annotations")).insert(ANNOTATION.into(), json!(text));
    }
}

fn default_container(
    range: &Value,
    container: &mut Value,
    shown: &str,
    defaulted: &mut Vec<String>,
) {
    let name = text(&container["name"]).to_owned();
    for (side, field, word) in [
        (Side::Requests, "defaultRequest", "request"),
        (Side::Limits, "default", "limit"),
    ] {
        let limits = items(&range["spec"]["limits"]).iter();
        let defaults: Vec<(&String, &Value)> = limits
            .filter(|limit| text(&limit["type"]) == "Container")
            .flat_map(|limit| entries(&limit[field]))
            .collect();
        if defaults.is_empty() {
            continue;
        }
        let list = map(ensure(ensure(container, "resources"), side.field()));
        let mut set = BTreeSet::new();
        for (resource, quantity) in defaults {
            if !list.contains_key(resource) {
                list.insert(resource.clone(), quantity.clone());
                set.insert(resource.as_str());
            }
        }
        if !set.is_empty() {
            let set: Vec<&str> = set.into_iter().collect();
            defaulted.push(format!("{} {word} for {shown} {name}", set.join(", ")));
        }
    }
}

/// What a pod or claim breaks.
pub(super) fn validate(range: &Value, kind: &str, object: &Value) -> Result<(), PluginRefusal> {
    let mut errors = Vec::new();
    for limit in items(&range["spec"]["limits"]) {
        let spec = &object["spec"];
        match (text(&limit["type"]), kind) {
            ("Container", "Pod") => {
                let containers = items(&spec["containers"]).iter();
                for container in containers.chain(items(&spec["initContainers"])) {
                    let of = |side: Side| amounts(&container["resources"][side.field()]);
                    bounds(limit, &of(Side::Requests), &of(Side::Limits), &mut errors);
                }
            }
            ("Pod", "Pod") => {
                let (requests, limits) = (of_pod(spec, Side::Requests), of_pod(spec, Side::Limits));
                bounds(limit, &requests, &limits, &mut errors);
            }
            ("PersistentVolumeClaim", "PersistentVolumeClaim") => {
                let requests = amounts(&spec["resources"]["requests"]);
                errors.extend(each(limit, "min", |name, bound| {
                    least(limit, name, bound, &requests, &Amounts::new())
                }));
                errors.extend(each(limit, "max", |name, bound| {
                    most_requested(limit, name, bound, &requests)
                }));
            }
            _ => {}
        }
    }
    match errors.as_slice() {
        [] => Ok(()),
        [one] => Err(PluginRefusal(one.clone())),
        many => Err(PluginRefusal(format!("[{}]", many.join(", ")))),
    }
}

fn bounds(limit: &Value, requests: &Amounts, limits: &Amounts, errors: &mut Vec<String>) {
    errors.extend(each(limit, "min", |name, bound| {
        least(limit, name, bound, requests, limits)
    }));
    errors.extend(each(limit, "max", |name, bound| {
        most(limit, name, bound, requests, limits)
    }));
    if !is_empty(&limit["maxLimitRequestRatio"]) {
        errors.extend(each(limit, "maxLimitRequestRatio", |name, bound| {
            ratio(limit, name, bound, requests, limits)
        }));
    }
}

fn each<'a>(
    limit: &'a Value,
    field: &str,
    check: impl Fn(&str, &Quantity) -> Option<String> + 'a,
) -> Vec<String> {
    let bounds = amounts(&limit[field]);
    let found = bounds.iter().filter_map(|(name, bound)| check(name, bound));
    found.collect()
}

fn least(
    limit: &Value,
    name: &str,
    bound: &Quantity,
    requests: &Amounts,
    limits: &Amounts,
) -> Option<String> {
    let head = format!(
        "minimum {name} usage per {} is {bound}",
        text(&limit["type"])
    );
    match (requests.get(name), limits.get(name)) {
        (None, _) => Some(format!("{head}.  No request is specified")),
        (Some(request), _) if request < bound => Some(format!("{head}, but request is {request}")),
        (_, Some(most)) if most < bound => Some(format!("{head}, but limit is {most}")),
        _ => None,
    }
}

fn most(
    limit: &Value,
    name: &str,
    bound: &Quantity,
    requests: &Amounts,
    limits: &Amounts,
) -> Option<String> {
    let head = format!(
        "maximum {name} usage per {} is {bound}",
        text(&limit["type"])
    );
    match (requests.get(name), limits.get(name)) {
        (_, None) => Some(format!("{head}.  No limit is specified")),
        (_, Some(most)) if most > bound => Some(format!("{head}, but limit is {most}")),
        (Some(request), _) if request > bound => Some(format!("{head}, but request is {request}")),
        _ => None,
    }
}

fn most_requested(
    limit: &Value,
    name: &str,
    bound: &Quantity,
    requests: &Amounts,
) -> Option<String> {
    let head = format!(
        "maximum {name} usage per {} is {bound}",
        text(&limit["type"])
    );
    match requests.get(name) {
        None => Some(format!("{head}.  No request is specified")),
        Some(request) if request > bound => Some(format!("{head}, but request is {request}")),
        Some(_) => None,
    }
}

fn ratio(
    limit: &Value,
    name: &str,
    bound: &Quantity,
    requests: &Amounts,
    limits: &Amounts,
) -> Option<String> {
    let kind = text(&limit["type"]);
    let head = format!("{name} max limit to request ratio per {kind} is {bound}");
    let given = |amounts: &Amounts| amounts.get(name).filter(|q| !q.is_zero()).cloned();
    let Some(request) = given(requests) else {
        return Some(format!(
            "{head}, but no request is specified or request is 0"
        ));
    };
    let Some(most) = given(limits) else {
        return Some(format!("{head}, but no limit is specified or limit is 0"));
    };
    let found = most.approximate() / request.approximate();
    let allowed = match bound.value() {
        Some(whole) if whole <= MAX_MILLI => bound.milli_value().map(|m| m as f64 / 1000.0),
        whole => whole.map(|whole| whole as f64),
    };
    (found > allowed.unwrap_or(f64::INFINITY))
        .then(|| format!("{head}, but provided ratio is {found:.6}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(limit: Value) -> Value {
        json!({"spec": {"limits": [limit]}})
    }

    fn pod(resources: Value) -> Value {
        json!({"spec": {"containers": [{"name": "a", "resources": resources}]}})
    }

    #[test]
    fn containers_get_what_they_lack() {
        let limits = range(json!({
            "type": "Container", "default": {"cpu": "1", "memory": "1Gi"}, "defaultRequest": {"cpu": "100m"},
        }));
        let mut pod = pod(json!({"limits": {"cpu": "2"}}));
        default(&limits, &mut pod);
        assert_eq!(
            pod["spec"]["containers"][0]["resources"],
            json!({"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "100m"}})
        );
        assert_eq!(
            pod["metadata"]["annotations"][ANNOTATION],
            "LimitRanger plugin set: cpu request for container a; memory limit for container a"
        );
        let before = pod.clone();
        default(&limits, &mut pod);
        assert_eq!(pod, before);
    }

    #[test]
    fn bounds_are_said_in_the_words_of_kubernetes() {
        let memory = |side: &str, amount: &str| json!({side: {"memory": amount}});
        let container =
            |field: &str, bound: &str| json!({"type": "Container", field: {"memory": bound}});
        let cases = [
            (container("max", "1Gi"), memory("limits", "1Gi"), None),
            (
                container("max", "1Gi"),
                memory("limits", "2Gi"),
                Some("maximum memory usage per Container is 1Gi, but limit is 2Gi"),
            ),
            (
                container("max", "1Gi"),
                json!({}),
                Some("maximum memory usage per Container is 1Gi.  No limit is specified"),
            ),
            (
                container("min", "1Gi"),
                json!({}),
                Some("minimum memory usage per Container is 1Gi.  No request is specified"),
            ),
            (
                container("min", "1Gi"),
                memory("requests", "1Mi"),
                Some("minimum memory usage per Container is 1Gi, but request is 1Mi"),
            ),
            (
                container("maxLimitRequestRatio", "2"),
                json!({"limits": {"memory": "3"}, "requests": {"memory": "1"}}),
                Some(
                    "memory max limit to request ratio per Container is 2, but provided ratio is 3.000000",
                ),
            ),
            (
                json!({"type": "Pod", "max": {"memory": "1Gi"}}),
                memory("limits", "2Gi"),
                Some("maximum memory usage per Pod is 1Gi, but limit is 2Gi"),
            ),
        ];
        for (limit, resources, expect) in cases {
            let found = validate(&range(limit.clone()), "Pod", &pod(resources)).err();
            let found = found.map(|why| why.to_string());
            assert_eq!(found.as_deref(), expect, "{limit}");
        }
    }

    #[test]
    fn claims_are_bound_by_what_they_request() {
        let limits = range(
            json!({"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}}),
        );
        let claim = |size: &str| json!({"spec": {"resources": {"requests": {"storage": size}}}});
        let check = |size| {
            let found = validate(&limits, "PersistentVolumeClaim", &claim(size)).err();
            found.map(|why| why.to_string())
        };
        assert_eq!(check("1Gi"), None);
        assert_eq!(
            check("3Gi").as_deref(),
            Some("maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi")
        );
    }
}
