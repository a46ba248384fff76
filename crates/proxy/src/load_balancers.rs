//! Addresses of load balancers: each Service of that type gets one, and keeps it.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::{LoadBalancerIngress, LoadBalancerStatus, Service};

use crate::range::Ipv4Range;

/// What is to become of the address of a Service.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Assignment {
    /// It has what it should have.
    Keep,
    /// It gets this address.
    Give(Ipv4Addr),
    /// It is not a load balancer any more.
    TakeBack,
    /// All addresses are taken, or the one that it asks for is.
    Unavailable,
}

/// Decides about one Service, where these addresses belong to others.
pub fn assign(service: &Service, range: Ipv4Range, taken: &BTreeSet<Ipv4Addr>) -> Assignment {
    let own = addresses(service).find(|address| range.contains(*address));
    let Some(spec) = service.spec.as_ref() else {
        return Assignment::Keep;
    };
    // A class names another implementation.
    let ours = spec.type_.as_deref() == Some("LoadBalancer") && spec.load_balancer_class.is_none();
    if !ours {
        return if own.is_some() {
            Assignment::TakeBack
        } else {
            Assignment::Keep
        };
    }
    let asked = spec
        .load_balancer_ip
        .as_ref()
        .and_then(|ip| ip.parse::<Ipv4Addr>().ok());
    let free = |address: &Ipv4Addr| range.contains(*address) && !taken.contains(address);
    match (asked, own) {
        (Some(asked), Some(own)) if asked == own => Assignment::Keep,
        (Some(asked), _) if free(&asked) => Assignment::Give(asked),
        (Some(_), _) => Assignment::Unavailable,
        (None, Some(own)) if !taken.contains(&own) => Assignment::Keep,
        (None, _) => first_free(range, taken).map_or(Assignment::Unavailable, Assignment::Give),
    }
}

/// The addresses that the status of a Service has.
pub fn addresses(service: &Service) -> impl Iterator<Item = Ipv4Addr> {
    let status = service
        .status
        .as_ref()
        .and_then(|status| status.load_balancer.as_ref());
    let ingress = status
        .into_iter()
        .flat_map(|status| status.ingress.iter().flatten());
    ingress.filter_map(|ingress| ingress.ip.as_ref()?.parse().ok())
}

/// The status with this address, or with none.
pub fn status(address: Option<Ipv4Addr>) -> LoadBalancerStatus {
    let ingress = address.map(|address| LoadBalancerIngress {
        ip: Some(address.to_string()),
        ip_mode: Some("VIP".to_owned()),
        ..LoadBalancerIngress::default()
    });
    LoadBalancerStatus {
        ingress: ingress.map(|ingress| vec![ingress]),
    }
}

/// The first address names the network, the last is for broadcasts.
fn first_free(range: Ipv4Range, taken: &BTreeSet<Ipv4Addr>) -> Option<Ipv4Addr> {
    let last = u32::try_from(range.size() - 1).ok()?;
    let mut all = (1..last).filter_map(|offset| range.address(offset));
    all.find(|address| !taken.contains(address))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(spec: Value, own: Option<&str>, taken: &[&str], expected: Assignment) {
        let ingress: Vec<Value> = own.iter().map(|ip| json!({"ip": ip})).collect();
        let object = json!({
            "metadata": {"name": "web"}, "spec": spec, "status": {"loadBalancer": {"ingress": ingress}},
        });
        let service: Service = serde_json::from_value(object.clone()).expect("a service");
        let taken = taken
            .iter()
            .map(|ip| ip.parse().expect("an address"))
            .collect();
        let range = "127.67.0.0/30".parse().expect("a range");
        assert_eq!(
            assign(&service, range, &taken),
            expected,
            "{object} {taken:?}"
        );
    }

    #[test]
    fn load_balancers_get_one_address_and_keep_it() {
        use Assignment::{Give, Keep, TakeBack, Unavailable};
        let (one, two) = (Ipv4Addr::new(127, 67, 0, 1), Ipv4Addr::new(127, 67, 0, 2));
        let balanced = || json!({"type": "LoadBalancer"});
        let asking = |ip: &str| json!({"type": "LoadBalancer", "loadBalancerIP": ip});
        check(balanced(), None, &[], Give(one));
        check(balanced(), None, &["127.67.0.1"], Give(two));
        check(balanced(), None, &["127.67.0.1", "127.67.0.2"], Unavailable);
        check(balanced(), Some("127.67.0.2"), &[], Keep);
        check(balanced(), Some("127.67.0.1"), &["127.67.0.1"], Give(two));
        check(asking("127.67.0.2"), Some("127.67.0.1"), &[], Give(two));
        check(asking("127.67.0.2"), Some("127.67.0.2"), &[], Keep);
        check(asking("127.67.0.2"), None, &["127.67.0.2"], Unavailable);
        check(asking("192.0.2.1"), None, &[], Unavailable);
        check(
            json!({"type": "NodePort"}),
            Some("127.67.0.1"),
            &[],
            TakeBack,
        );
        check(json!({"type": "NodePort"}), Some("192.0.2.1"), &[], Keep);
        check(
            json!({"type": "LoadBalancer", "loadBalancerClass": "x/y"}),
            None,
            &[],
            Keep,
        );
    }
}
