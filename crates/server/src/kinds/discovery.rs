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

/// Whether endpoints may be at loopback addresses: where pods are processes of this machine they have to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loopback {
    Allowed,
    Refused,
}

/// Refuses endpoints that no client in a cluster could reach, in Endpoints and EndpointSlices. What an object has already
/// stays (`validation.go: ValidateNonSpecialIP`, and that an update which changes no address is not validated again).
pub(crate) fn validate_addresses_are_usable(
    new: &Value,
    old: Option<&Value>,
    loopback: Loopback,
    errors: &mut Errors,
) {
    let unchanged = |field: &str| old.is_some_and(|old| old[field] == new[field]);
    let check = |address: &str, path: &Path<'_>, errors: &mut Errors| {
        if let Some(why) = special(address, loopback) {
            errors.push(FieldError::invalid(path, &address.into(), why));
        }
    };
    let path = Path::Root("endpoints");
    let endpoints = items(&new["endpoints"]).iter().enumerate();
    for (i, endpoint) in endpoints.filter(|_| !unchanged("endpoints")) {
        let path = path.index(i);
        let path = path.child("addresses");
        for (j, address) in strings(&endpoint["addresses"]).enumerate() {
            check(address, &path.index(j), errors);
        }
    }
    let path = Path::Root("subsets");
    let subsets = items(&new["subsets"]).iter().enumerate();
    for (i, subset) in subsets.filter(|_| !unchanged("subsets")) {
        let path = path.index(i);
        for list in ["addresses", "notReadyAddresses"] {
            let path = path.child(list);
            for (j, address) in items(&subset[list]).iter().enumerate() {
                let at = path.index(j);
                check(text(&address["ip"]), &at.child("ip"), errors);
            }
        }
    }
}

/// Why an address cannot be an endpoint's.
fn special(address: &str, loopback: Loopback) -> Option<&'static str> {
    let address: IpAddr = address.parse().ok()?;
    let (link_local, multicast) = match address {
        IpAddr::V4(v4) => (v4.is_link_local(), v4.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(v6) => (v6.is_unicast_link_local(), v6.segments()[0] == 0xff02),
    };
    if address.is_unspecified() {
        Some("may not be unspecified (0.0.0.0 or ::)")
    } else if address.is_loopback() && loopback == Loopback::Refused {
        Some("may not be in the loopback range (127.0.0.0/8, ::1/128)")
    } else if link_local {
        Some("may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    } else if multicast {
        Some("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")
    } else {
        None
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
    fn endpoints_are_at_addresses_that_clients_can_reach() {
        let slice = |address: &str| {
            let mut slice = slice();
            slice["endpoints"] = json!([{"addresses": [address]}]);
            slice
        };
        let check = |new: &Value, old: Option<&Value>, loopback| {
            let mut errors = Errors::new();
            validate_addresses_are_usable(new, old, loopback, &mut errors);
            errors.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let own = slice("127.0.0.1");
        let refused =
            "Invalid value: \"127.0.0.1\": may not be in the loopback range (127.0.0.0/8, ::1/128)";
        let expected = [format!("endpoints[0].addresses[0]: {refused}")];
        assert_eq!(check(&own, None, Loopback::Refused), expected);
        assert_eq!(
            check(&own, Some(&slice("10.0.0.1")), Loopback::Refused),
            expected
        );
        assert_eq!(check(&own, Some(&own), Loopback::Refused), [""; 0]);
        assert_eq!(check(&own, None, Loopback::Allowed), [""; 0]);
        for address in [
            "0.0.0.0",
            "169.254.169.254",
            "224.0.0.1",
            "fe80::1",
            "ff02::1",
        ] {
            assert_eq!(
                check(&slice(address), None, Loopback::Allowed).len(),
                1,
                "{address}"
            );
        }
        let endpoints =
            json!({"subsets": [{"addresses": [{"ip": "10.0.0.1"}, {"ip": "127.0.0.1"}]}]});
        let expected = [format!("subsets[0].addresses[1].ip: {refused}")];
        assert_eq!(check(&endpoints, None, Loopback::Refused), expected);
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
