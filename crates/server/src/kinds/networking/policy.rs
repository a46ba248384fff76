//! NetworkPolicies.

use std::net::IpAddr;

use kubewright_schema::FieldError;
use serde_json::{Value, json};

use crate::kinds::checks::{Errors, one_of, one_of_if_set, port, port_number};
use crate::kinds::path::Path;
use crate::kinds::selector;
use crate::kinds::strategy::{Generation, Strategy};
use crate::kinds::value::{ensure, items, items_mut, set, set_default, strings, text};

const SPEC: Path<'static> = Path::Root("spec");

pub(crate) static NETWORK_POLICY: Strategy = Strategy {
    generation: Generation::Field("spec"),
    default,
    validate,
    ..Strategy::PLAIN
};

fn default(object: &mut Value) {
    let spec = ensure(object, "spec");
    ensure(spec, "podSelector");
    if items(&spec["policyTypes"]).is_empty() {
        let types = if items(&spec["egress"]).is_empty() {
            json!(["Ingress"])
        } else {
            json!(["Ingress", "Egress"])
        };
        set(spec, "policyTypes", types);
    }
    for direction in ["ingress", "egress"] {
        for rule in items_mut(spec.get_mut(direction)) {
            for port in items_mut(rule.get_mut("ports")) {
                set_default(port, "protocol", "TCP");
            }
        }
    }
}

fn validate(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    selector::validate(&spec["podSelector"], &SPEC.child("podSelector"), errors);
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        let path = SPEC.child(direction);
        for (i, rule) in items(&spec[direction]).iter().enumerate() {
            validate_rule(rule, peers, &path.index(i), errors);
        }
    }
    let types = items(&spec["policyTypes"]);
    let path = SPEC.child("policyTypes");
    if types.len() > 2 {
        let text = "may not specify more than two policyTypes";
        errors.push(FieldError::invalid(path, &spec["policyTypes"], text));
        return;
    }
    for (i, kind) in types.iter().enumerate() {
        one_of(kind, &["Ingress", "Egress"], &path.index(i), errors);
    }
}

fn validate_rule(rule: &Value, peers: &str, path: &Path<'_>, errors: &mut Errors) {
    let ports = path.child("ports");
    for (i, port) in items(&rule["ports"]).iter().enumerate() {
        validate_port(port, &ports.index(i), errors);
    }
    let path = path.child(peers);
    for (i, peer) in items(&rule[peers]).iter().enumerate() {
        validate_peer(peer, &path.index(i), errors);
    }
}

fn validate_port(one: &Value, path: &Path<'_>, errors: &mut Errors) {
    let protocols = ["TCP", "UDP", "SCTP"];
    one_of_if_set(
        &one["protocol"],
        &protocols,
        &path.child("protocol"),
        errors,
    );
    let (first, last) = (&one["port"], &one["endPort"]);
    if !first.is_null() {
        port(first, &path.child("port"), errors);
    }
    if last.is_null() {
        return;
    }
    let path = path.child("endPort");
    match first {
        Value::Null => {
            let text = "may not be specified when `port` is not specified";
            errors.push(FieldError::invalid(path, last, text));
        }
        Value::String(_) => {
            let text = "may not be specified when `port` is non-numeric";
            errors.push(FieldError::invalid(path, last, text));
        }
        _ => {
            if last.as_i64() < first.as_i64() {
                let text = "must be greater than or equal to `port`";
                errors.push(FieldError::invalid(path, first, text));
            }
            port_number(last, &path, errors);
        }
    }
}

fn validate_peer(peer: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut peers = 0;
    for field in ["podSelector", "namespaceSelector"] {
        if !peer[field].is_null() {
            peers += 1;
            selector::validate(&peer[field], &path.child(field), errors);
        }
    }
    let block = &peer["ipBlock"];
    if !block.is_null() {
        peers += 1;
        validate_block(block, &path.child("ipBlock"), errors);
    }
    if peers == 0 {
        errors.push(FieldError::required(path, "must specify a peer"));
    } else if peers > 1 && !block.is_null() {
        let text = "may not specify both ipBlock and another peer";
        errors.push(FieldError::forbidden(path, text));
    }
}

fn validate_block(block: &Value, path: &Path<'_>, errors: &mut Errors) {
    let cidr = text(&block["cidr"]);
    if cidr.is_empty() {
        errors.push(FieldError::required(path.child("cidr"), ""));
        return;
    }
    validate_cidr(cidr, &path.child("cidr"), errors);
    let except = path.child("except");
    for (i, one) in strings(&block["except"]).enumerate() {
        validate_cidr(one, &except.index(i), errors);
        if let (Some(whole), Some(part)) = (parse(cidr), parse(one))
            && !contains(whole, part)
        {
            let text = "must be a strict subset of `cidr`";
            errors.push(FieldError::invalid(except.index(i), &one.into(), text));
        }
    }
}

fn validate_cidr(cidr: &str, path: &Path<'_>, errors: &mut Errors) {
    if parse(cidr).is_none() {
        let text = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
        errors.push(FieldError::invalid(path, &cidr.into(), text));
    }
}

/// Address bits, aligned to the top, and length of the prefix.
fn parse(cidr: &str) -> Option<(bool, u128, u32)> {
    let (address, length) = cidr.split_once('/')?;
    let length: u32 = length.parse().ok()?;
    match address.parse::<IpAddr>().ok()? {
        IpAddr::V4(v4) if length <= 32 => Some((true, u128::from(v4.to_bits()) << 96, length)),
        IpAddr::V6(v6) if length <= 128 => Some((false, v6.to_bits(), length)),
        _ => None,
    }
}

fn contains(whole: (bool, u128, u32), part: (bool, u128, u32)) -> bool {
    let mask = u128::MAX.checked_shl(128 - whole.2).unwrap_or(0);
    whole.0 == part.0 && whole.2 < part.2 && whole.1 & mask == part.1 & mask
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::testing::{create, create_errors};

    fn policy(spec: Value) -> Value {
        json!({"metadata": {"name": "p", "namespace": "d"}, "spec": spec})
    }

    #[test]
    fn directions_follow_from_the_rules() {
        let types = |spec: Value| {
            create("networking.k8s.io", "NetworkPolicy", policy(spec))["spec"]["policyTypes"]
                .clone()
        };
        assert_eq!(types(json!({})), json!(["Ingress"]));
        assert_eq!(types(json!({"egress": [{}]})), json!(["Ingress", "Egress"]));
        assert_eq!(types(json!({"policyTypes": ["Egress"]})), json!(["Egress"]));
    }

    #[test]
    fn broken_peers_and_ports_are_named() {
        for (rule, expect) in [
            (
                json!({"from": [{}]}),
                "spec.ingress[0].from[0]: Required value: must specify a peer",
            ),
            (
                json!({"ports": [{"endPort": 90}]}),
                "spec.ingress[0].ports[0].endPort: Invalid value: 90: may not be specified when `port` is not specified",
            ),
            (
                json!({"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/9"]}}]}),
                "spec.ingress[0].from[0].ipBlock.except[0]: Invalid value: \"11.0.0.0/9\": must be a strict subset of `cidr`",
            ),
            (
                json!({"from": [{"ipBlock": {"cidr": "0.0.0.0/33"}}]}),
                "spec.ingress[0].from[0].ipBlock.cidr: Invalid value: \"0.0.0.0/33\": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
            ),
        ] {
            let object = policy(json!({"ingress": [rule]}));
            assert_eq!(
                create_errors("networking.k8s.io", "NetworkPolicy", object),
                [expect]
            );
        }
        let all = policy(
            json!({"ingress": [{"from": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8"]}}]}]}),
        );
        assert_eq!(
            create_errors("networking.k8s.io", "NetworkPolicy", all),
            Vec::<String>::new()
        );
    }
}
