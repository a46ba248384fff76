//! `DefaultTolerationSeconds`: a pod stays for five minutes on a node that is not ready or out of reach.

use serde_json::{Value, json};

use super::attributes::{AdmissionRequest, Operation};
use crate::kinds::value::{ensure, items, map, text};

const KEYS: [&str; 2] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
];
const SECONDS: u32 = 300;

/// Whether it is about a pod that is created or changed.
pub(super) fn concerns(request: &AdmissionRequest<'_>) -> bool {
    request.operation != Operation::Delete && request.is_whole("", "Pod")
}

/// Adds the tolerations that a pod does not have already.
pub(super) fn default(pod: &mut Value) {
    let spec = ensure(pod, "spec");
    for key in KEYS {
        let is = |toleration: &Value, field: &str, value: &str| {
            // What is left out stands for everything.
            let own = text(&toleration[field]);
            own.is_empty() || own == value
        };
        let tolerated = items(&spec["tolerations"])
            .iter()
            .any(|t| is(t, "key", key) && is(t, "effect", "NoExecute"));
        if tolerated {
            continue;
        }
        let toleration = json!({
            "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": SECONDS,
        });
        let list = map(spec).entry("tolerations").or_insert_with(|| json!([]));
        if let Some(list) = list.as_array_mut() {
            list.push(toleration);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_tolerated_already_is_not_added() {
        let keys = |tolerations: Value| {
            let mut pod = json!({ "spec": { "tolerations": tolerations } });
            default(&mut pod);
            let list = items(&pod["spec"]["tolerations"]).iter();
            list.map(|t| text(&t["key"]).to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(keys(json!([])), KEYS);
        assert_eq!(keys(json!([{ "operator": "Exists" }])), [""]);
        let own = json!([{ "key": KEYS[1], "effect": "NoExecute", "tolerationSeconds": 5 }]);
        assert_eq!(keys(own), [KEYS[1], KEYS[0]]);
        let other = json!([{ "key": KEYS[0], "effect": "NoSchedule" }]);
        assert_eq!(keys(other), [KEYS[0], KEYS[0], KEYS[1]]);
    }
}
