//! Endpoints and EndpointSlices.

use std::collections::BTreeSet;
use std::net::IpAddr;

use kubewright_schema::FieldError;
use kubewright_schema::names;
use serde_json::Value;

use super::checks::{Errors, immutable, invalid_each, port_number, required_one_of};
use super::path::Path;
use super::strategy::{Generation, Strategy};
use super::value::{items, items_mut, set_default, set_default_text, strings, text};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// Endpoints.
pub(super) static ENDPOINTS: Strategy = Strategy {
    allow_create_on_update: true,
    default: |object| {
        for subset in items_mut(object.get_mut("subsets")) {
            for port in items_mut(subset.get_mut("ports")) {
                set_default_text(port, "protocol", "TCP");
            }
        }
    },
    validate: validate_endpoints,
    ..Strategy::PLAIN
};

/// EndpointSlices.
pub(super) static ENDPOINT_SLICE: Strategy = Strategy {
    generation: Generation::ContentAndLabels,
    default: |object| {
        for port in items_mut(object.get_mut("ports")) {
            set_default(port, "name", "");
            set_default(port, "protocol", "TCP");
        }
    },
    validate: validate_slice,
    validate_update: |new, old, errors| {
        let field = "addressType";
        immutable(&new[field], &old[field], &Path::Root(field), errors);
    },
    ..Strategy::PLAIN
};

fn validate_endpoints(object: &Value, errors: &mut Errors) {
    let path = Path::Root("subsets");
    for (i, subset) in items(&object["subsets"]).iter().enumerate() {
        let path = path.index(i);
        let ready = items(&subset["addresses"]);
        if ready.is_empty() && items(&subset["notReadyAddresses"]).is_empty() {
            let text = "must specify `addresses` or `notReadyAddresses`";
            errors.push(FieldError::required(path, text));
        }
        for list in ["addresses", "notReadyAddresses"] {
            let path = path.child(list);
            for (j, address) in items(&subset[list]).iter().enumerate() {
                let (at, ip) = (path.index(j), text(&address["ip"]));
                invalid_each(names::ip_address(ip), ip, &at.child("ip"), errors);
            }
        }
        let ports = items(&subset["ports"]);
        let path = path.child("ports");
        for (j, port) in ports.iter().enumerate() {
            validate_port(port, ports.len() > 1, &path.index(j), errors);
        }
    }
}

fn validate_port(port: &Value, several: bool, path: &Path<'_>, errors: &mut Errors) {
    match text(&port["name"]) {
        "" if several => errors.push(FieldError::required(path.child("name"), "")),
        "" => {}
        name => invalid_each(
            names::dns1123_label(name),
            name,
            &path.child("name"),
            errors,
        ),
    }
    port_number(&port["port"], &path.child("port"), errors);
    required_one_of(
        &port["protocol"],
        &PROTOCOLS,
        &path.child("protocol"),
        errors,
    );
}

fn validate_slice(object: &Value, errors: &mut Errors) {
    let kind = text(&object["addressType"]);
    let kinds = ["FQDN", "IPv4", "IPv6"];
    required_one_of(
        &object["addressType"],
        &kinds,
        &Path::Root("addressType"),
        errors,
    );
    let path = Path::Root("ports");
    let mut seen = BTreeSet::new();
    for (i, port) in items(&object["ports"]).iter().enumerate() {
        let (path, name) = (path.index(i), text(&port["name"]));
        if !name.is_empty() {
            invalid_each(
                names::dns1123_label(name),
                name,
                &path.child("name"),
                errors,
            );
        }
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(path.child("name"), &name.into()));
        }
        required_one_of(
            &port["protocol"],
            &PROTOCOLS,
            &path.child("protocol"),
            errors,
        );
    }
    let endpoints = items(&object["endpoints"]);
    let path = Path::Root("endpoints");
    if endpoints.len() > 1000 {
        errors.push(FieldError::too_many(path, endpoints.len(), 1000));
        return;
    }
    for (i, endpoint) in endpoints.iter().enumerate() {
        let path = path.index(i);
        validate_addresses(endpoint, kind, &path.child("addresses"), errors);
        let hostname = text(&endpoint["hostname"]);
        if !hostname.is_empty() {
            invalid_each(
                names::dns1123_label(hostname),
                hostname,
                &path.child("hostname"),
                errors,
            );
        }
    }
}

fn validate_addresses(endpoint: &Value, kind: &str, path: &Path<'_>, errors: &mut Errors) {
    let count = items(&endpoint["addresses"]).len();
    if count == 0 {
        errors.push(FieldError::required(
            path,
            "must contain at least 1 address",
        ));
    } else if count > 100 {
        errors.push(FieldError::too_many(path, count, 100));
    }
    for (i, address) in strings(&endpoint["addresses"]).enumerate() {
        if kind == "FQDN" {
            invalid_each(
                names::dns1123_subdomain(address),
                address,
                &path.index(i),
                errors,
            );
            continue;
        }
        invalid_each(names::ip_address(address), address, &path.index(i), errors);
        let wrong = match address.parse::<IpAddr>() {
            Ok(parsed) => parsed.is_ipv4() != (kind == "IPv4"),
            Err(_) => false,
        };
        if wrong {
            let text = format!("must be an {kind} address");
            errors.push(FieldError::invalid(path, &address.into(), &text));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::testing::{create, create_errors, update, update_errors};

    fn slice() -> Value {
        json!({
            "metadata": {"name": "s", "namespace": "d"},
            "addressType": "IPv4",
            "ports": [{"port": 80}],
            "endpoints": [{"addresses": ["10.0.0.1"]}],
        })
    }

    #[test]
    fn slices_have_names_protocols_and_one_family() {
        let group = "discovery.k8s.io";
        let object = create(group, "EndpointSlice", slice());
        assert_eq!(
            object["ports"],
            json!([{"port": 80, "name": "", "protocol": "TCP"}])
        );
        let labelled = update(group, "EndpointSlice", &object, |new| {
            new["metadata"]["labels"] = json!({"a": "b"});
        });
        assert_eq!(labelled["metadata"]["generation"], 2);
        let mut mixed = slice();
        mixed["endpoints"] = json!([{"addresses": ["::1"]}]);
        assert_eq!(
            create_errors(group, "EndpointSlice", mixed),
            ["endpoints[0].addresses: Invalid value: \"::1\": must be an IPv4 address"]
        );
        let errors = update_errors(group, "EndpointSlice", slice(), |new| {
            new["addressType"] = json!("IPv6");
            new["endpoints"] = json!([]);
        });
        assert_eq!(
            errors,
            ["addressType: Invalid value: \"IPv6\": field is immutable"]
        );
    }

    #[test]
    fn endpoints_hold_addresses() {
        let endpoints = json!({"metadata": {"name": "e", "namespace": "d"}, "subsets": [{"ports": [{"port": 0}]}]});
        assert_eq!(
            create_errors("", "Endpoints", endpoints),
            [
                "subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`",
                "subsets[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
            ]
        );
    }
}
