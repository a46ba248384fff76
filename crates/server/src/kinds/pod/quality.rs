//! The quality of service a pod gets, from its requests and limits.

use std::collections::BTreeMap;

use kubewright_schema::quantity::Quantity;
use serde_json::Value;

use crate::kinds::value::{entries, items, text};

const COMPUTE: [&str; 2] = ["cpu", "memory"];

/// `Guaranteed`, `Burstable` or `BestEffort`.
pub(crate) fn class(spec: &Value) -> &'static str {
    let of_pod = !spec["resources"].is_null();
    let holders: Vec<&Value> = if of_pod {
        vec![spec]
    } else {
        items(&spec["containers"])
            .iter()
            .chain(items(&spec["initContainers"]))
            .collect()
    };
    let (mut requested, mut guaranteed) = (false, true);
    for holder in holders {
        let requests = compute(&holder["resources"]["requests"]);
        let limits = compute(&holder["resources"]["limits"]);
        requested |= !requests.is_empty() || !limits.is_empty();
        guaranteed &= limits.len() == COMPUTE.len() && (requests.is_empty() || requests == limits);
    }
    match (requested, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

fn compute(list: &Value) -> BTreeMap<&str, Quantity> {
    entries(list)
        .filter(|(name, _)| COMPUTE.contains(&name.as_str()))
        .filter_map(|(name, quantity)| Some((name.as_str(), Quantity::parse(text(quantity)).ok()?)))
        .filter(|(_, quantity)| !quantity.is_zero())
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn quality_follows_requests_and_limits() {
        let both = json!({"cpu": "1", "memory": "1Gi"});
        for (resources, expect) in [
            (json!({}), "BestEffort"),
            (json!({"requests": {"cpu": "0"}}), "BestEffort"),
            (json!({"requests": {"cpu": "1"}}), "Burstable"),
            (
                json!({"limits": both, "requests": {"cpu": "500m", "memory": "1Gi"}}),
                "Burstable",
            ),
            (json!({"limits": both, "requests": both}), "Guaranteed"),
            (
                json!({"limits": both, "requests": {"cpu": "1000m", "memory": "1024Mi"}}),
                "Guaranteed",
            ),
        ] {
            let spec = json!({"containers": [{"resources": resources}]});
            assert_eq!(class(&spec), expect, "{spec}");
        }
    }
}
