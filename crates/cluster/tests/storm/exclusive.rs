//! What only one may have: an address, a volume, a claim; and certificates that nobody approved. Pure.

use std::collections::BTreeMap;

use serde_json::Value;

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// Those that are had more than once, with who has them.
fn shared<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let mut owners: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (what, owner) in pairs {
        owners.entry(what).or_default().push(owner);
    }
    let several = owners.iter().filter(|(_, owners)| owners.len() > 1);
    several
        .map(|(what, owners)| format!("{what} is had by {owners:?}"))
        .collect()
}

/// Addresses of load balancers that two Services have.
pub(crate) fn addresses(services: &[Value]) -> Vec<String> {
    let address = |service: &Value| {
        let ingress = &service["status"]["loadBalancer"]["ingress"][0];
        Some(ingress["ip"].as_str()?.to_owned())
    };
    let given: Vec<_> = services
        .iter()
        .filter_map(|service| Some((address(service)?, name(service))))
        .collect();
    shared(
        given
            .iter()
            .map(|(address, name)| (address.as_str(), *name)),
    )
}

/// Volumes that two claims are bound to, and claims that two volumes are bound to.
pub(crate) fn volumes(volumes: &[Value], claims: &[Value]) -> Vec<String> {
    let is_bound = |object: &&Value| object["status"]["phase"] == "Bound";
    let of_volumes = claims.iter().filter(is_bound).filter_map(|claim| {
        let volume = claim["spec"]["volumeName"].as_str()?;
        Some((volume, name(claim)))
    });
    let of_claims = volumes.iter().filter(is_bound).filter_map(|volume| {
        let claim = volume["spec"]["claimRef"]["uid"].as_str()?;
        Some((claim, name(volume)))
    });
    let mut faults = shared(of_volumes);
    faults.extend(shared(of_claims));
    faults
}

/// Certificates of requests that were not approved.
pub(crate) fn certificates(requests: &[Value]) -> Vec<String> {
    let approved = |request: &Value| {
        let conditions = request["status"]["conditions"].as_array();
        conditions.is_some_and(|all| all.iter().any(|it| it["type"] == "Approved"))
    };
    let signed = |request: &&Value| request["status"]["certificate"].is_string();
    let wrong = requests.iter().filter(signed).filter(|it| !approved(it));
    wrong
        .map(|request| format!("{} has a certificate that nobody approved", name(request)))
        .collect()
}

#[test]
fn what_two_have_is_found() {
    use serde_json::json;
    let service = |name: &str, ip: &str| {
        json!({"metadata": {"name": name},
        "status": {"loadBalancer": {"ingress": [{"ip": ip}]}}})
    };
    let apart = [service("a", "1"), service("b", "2")];
    assert_eq!(addresses(&apart), [""; 0]);
    let same = [service("a", "1"), service("b", "1")];
    assert_eq!(addresses(&same), [r#"1 is had by ["a", "b"]"#]);
    let claim = |name: &str| json!({"metadata": {"name": name}, "spec": {"volumeName": "v"}, "status": {"phase": "Bound"}});
    assert_eq!(volumes(&[], &[claim("a"), claim("b")]).len(), 1);
    let volume = |name: &str| {
        json!({"metadata": {"name": name}, "spec": {"claimRef": {"uid": "u"}},
        "status": {"phase": "Bound"}})
    };
    assert_eq!(volumes(&[volume("v"), volume("w")], &[claim("a")]).len(), 1);
    let request = json!({"metadata": {"name": "r"}, "status": {"certificate": "x"}});
    assert_eq!(certificates(&[request]).len(), 1);
}
