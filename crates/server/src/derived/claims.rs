//! IPAddresses: who has an address, and whether the server keeps the object.

use serde_json::{Value, json};

use crate::kinds::value::text;
use crate::object;

/// Says who keeps an IPAddress.
const MANAGED_BY: &str = "ipaddress.kubernetes.io/managed-by";
const FAMILY: &str = "ipaddress.kubernetes.io/ip-family";
/// The part of the server that keeps those of Services (ipallocator.go: ControllerName).
const ALLOCATOR: &str = "ipallocator.k8s.io";

/// What an IPAddress says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AddressClaim {
    /// Whether the server makes it and takes it away.
    pub(crate) is_managed: bool,
    /// The key of the Service that has the address; empty for another parent.
    pub(crate) parent: String,
}

impl AddressClaim {
    pub(crate) fn read(object: &Value) -> Self {
        let parent = object.pointer("/spec/parentRef").unwrap_or(&Value::Null);
        let field = |name: &str| parent.get(name).map(text).unwrap_or_default();
        let is_service = field("group").is_empty() && field("resource") == "services";
        Self {
            is_managed: object::labels(object).get(MANAGED_BY) == Some(ALLOCATOR),
            parent: if is_service {
                format!("{}/{}", field("namespace"), field("name"))
            } else {
                String::new()
            },
        }
    }
}

/// The IPAddress of the Service with this key (ipallocator.go: createIPAddress, serviceToRef).
pub(crate) fn ip_address(address: &str, service: &str) -> Value {
    let (namespace, name) = service.split_once('/').unwrap_or(("", service));
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "IPAddress",
        "metadata": { "name": address, "labels": { FAMILY: "IPv4", MANAGED_BY: ALLOCATOR } },
        "spec": { "parentRef": { "resource": "services", "namespace": namespace, "name": name } },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_of_a_service_is_read_as_it_was_made() {
        let mut object = ip_address("10.96.0.7", "default/a");
        let claim = AddressClaim::read(&object);
        assert!(claim.is_managed);
        assert_eq!(claim.parent, "default/a");
        object["metadata"]["labels"] = json!({});
        object["spec"]["parentRef"]["resource"] = json!("gateways");
        let claim = AddressClaim::read(&object);
        assert!(!claim.is_managed);
        assert_eq!(claim.parent, "");
    }
}
