//! Ranges that addresses of Services come from, and addresses that are taken (pkg/apis/networking/validation).

use std::net::IpAddr;

use kubewright_schema::{FieldError, names};
use serde_json::{Value, json};

use crate::kinds::checks::{Errors, immutable, invalid_each, required};
use crate::kinds::name_rule::NameRule;
use crate::kinds::path::Path;
use crate::kinds::strategy::{StatusMeta, Strategy};
use crate::kinds::value::{strings, text};
use crate::object;

const CIDRS: Path<'static> = Path::Root("spec.cidrs");
const PARENT: Path<'static> = Path::Root("spec.parentRef");

/// An address that something has; its name is the address.
pub(crate) static IP_ADDRESS: Strategy = Strategy {
    name_rule: NameRule::PathSegment,
    validate: |object, errors| {
        let name = object::name(object);
        let complaints = match name.parse::<IpAddr>() {
            Ok(address) if address.to_string() == name => Vec::new(),
            Ok(address) => vec![format!(
                "must be in canonical form ({:?})",
                address.to_string()
            )],
            Err(_) => names::ip_address(name),
        };
        invalid_each(complaints, name, &Path::Root("metadata.name"), errors);
        validate_parent(&object["spec"]["parentRef"], errors);
    },
    validate_update: |new, old, errors| {
        let parent = |object: &Value| object["spec"]["parentRef"].clone();
        immutable(&parent(new), &parent(old), &PARENT, errors);
    },
    ..Strategy::PLAIN
};

/// Up to two ranges, one for each family of addresses.
pub(crate) static SERVICE_CIDR: Strategy = Strategy {
    has_status: true,
    status_meta: StatusMeta::Closed,
    validate: |object, errors| {
        let ranges: Vec<&str> = strings(&object["spec"]["cidrs"]).collect();
        if ranges.is_empty() {
            return errors.push(FieldError::required(CIDRS, "at least one CIDR required"));
        }
        if ranges.len() > 2 {
            let why = "may only hold up to 2 values";
            return errors.push(FieldError::invalid(CIDRS, &object["spec"], why));
        }
        let families: Vec<Option<Family>> = ranges.iter().map(|range| family(range)).collect();
        for (i, _) in families.iter().enumerate().filter(|(_, f)| f.is_none()) {
            let why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
            errors.push(FieldError::invalid(CIDRS.index(i), &json!(ranges[i]), why));
        }
        if let [Some(a), Some(b)] = families[..]
            && a == b
        {
            let why = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
            errors.push(FieldError::invalid(CIDRS, &json!(ranges), why));
        }
    },
    validate_update: |new, old, errors| {
        let ranges = |object: &Value| {
            object["spec"]["cidrs"]
                .as_array()
                .cloned()
                .unwrap_or_default()
        };
        // A second family may be added.
        let kept = ranges(new).into_iter().take(ranges(old).len());
        let kept = Value::Array(kept.collect());
        immutable(&kept, &old["spec"]["cidrs"], &CIDRS, errors);
    },
    ..Strategy::PLAIN
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    V4,
    V6,
}

/// The family of a range; none when it is not one.
fn family(range: &str) -> Option<Family> {
    let (address, bits) = range.split_once('/')?;
    let bits: u8 = bits.parse().ok()?;
    match address.parse().ok()? {
        IpAddr::V4(_) => (bits <= 32).then_some(Family::V4),
        IpAddr::V6(_) => (bits <= 128).then_some(Family::V6),
    }
}

fn validate_parent(parent: &Value, errors: &mut Errors) {
    if parent.is_null() {
        return errors.push(FieldError::required(PARENT, ""));
    }
    let group = text(&parent["group"]);
    if !group.is_empty() {
        invalid_each(
            names::dns1123_subdomain(group),
            group,
            &PARENT.child("group"),
            errors,
        );
    }
    for field in ["resource", "name"] {
        required(&parent[field], &PARENT.child(field), errors);
    }
    for field in ["resource", "name", "namespace"] {
        let value = text(&parent[field]);
        if !value.is_empty() {
            invalid_each(
                names::path_segment_name(value),
                value,
                &PARENT.child(field),
                errors,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::testing::{create_errors, update_errors};

    #[test]
    fn addresses_are_named_by_themselves() {
        let errors = |name: &str| {
            let parent = json!({"resource": "services", "namespace": "a", "name": "b"});
            let object = json!({"metadata": {"name": name}, "spec": {"parentRef": parent}});
            create_errors("networking.k8s.io", "IPAddress", object)
        };
        for name in ["10.96.0.1", "fe80::42:1dff:fe84:f9e2"] {
            assert_eq!(errors(name), Vec::<String>::new(), "{name}");
        }
        for name in ["not-an-ip", "FE80::1", "10.96.0.01"] {
            assert_eq!(errors(name).len(), 1, "{name}");
        }
    }

    #[test]
    fn ranges_are_one_of_each_family_and_stay() {
        let object = |cidrs: Value| json!({"metadata": {"name": "a"}, "spec": {"cidrs": cidrs}});
        let errors = |cidrs| create_errors("networking.k8s.io", "ServiceCIDR", object(cidrs));
        assert_eq!(
            errors(json!(["10.0.0.0/24", "2001:db8::/64"])),
            Vec::<String>::new()
        );
        for cidrs in [
            json!([]),
            json!(["foo"]),
            json!(["10.0.0.0/33"]),
            json!(["10.0.0.0/24", "10.1.0.0/24"]),
        ] {
            assert_eq!(errors(cidrs.clone()).len(), 1, "{cidrs}");
        }
        let update = |cidrs: Value| {
            let old = object(json!(["10.0.0.0/24"]));
            let change = move |new: &mut Value| new["spec"]["cidrs"] = cidrs.clone();
            update_errors("networking.k8s.io", "ServiceCIDR", old, change)
        };
        assert_eq!(
            update(json!(["10.0.0.0/24", "2001:db8::/64"])),
            Vec::<String>::new()
        );
        assert_eq!(update(json!(["10.1.0.0/24"])).len(), 1);
    }
}
