//! What names lead to, after the DNS specification of Kubernetes (version 1.1.0) and what CoreDNS adds to it.

use std::net::Ipv4Addr;

use super::message::{A, ANY, Answer, CNAME, Code, Data, PTR, Query, SRV};
use crate::names::{DOMAIN, NamedEndpoint, NamedPort, Names, ServiceNames, Target};

/// Answers a query by what is known of Services.
pub(super) fn answer(query: &Query, names: &Names) -> Answer {
    if let Some(fault) = query.fault {
        return Answer::failed(fault);
    }
    let labels: Vec<&str> = query.labels.iter().map(String::as_str).collect();
    let found = match labels.as_slice() {
        [rest @ .., "in-addr", "arpa"] => match reverse(rest) {
            Some(address) => pointers(address, names),
            None => return Answer::failed(Code::Refused),
        },
        [rest @ .., "cluster", "local"] => forward(rest, names),
        _ => return Answer::failed(Code::Refused),
    };
    let Some(mut answer) = found else {
        return Answer::failed(Code::NameError);
    };
    answer.records.retain(|data| matches(query.kind, data));
    if !answer
        .records
        .iter()
        .any(|data| matches!(data, Data::Srv { .. }))
    {
        answer.additional.clear();
    }
    answer
}

/// A name outside of the cluster is the answer to every question about its alias.
fn matches(kind: u16, data: &Data) -> bool {
    let own = match data {
        Data::A(_) => A,
        Data::Cname(_) => return true,
        Data::Ptr(_) => PTR,
        Data::Srv { .. } => SRV,
    };
    kind == own || kind == ANY || (kind == CNAME && own == CNAME)
}

/// What a name below the cluster's domain leads to. Nothing when there is no such name.
fn forward(labels: &[&str], names: &Names) -> Option<Answer> {
    match labels {
        [] | ["svc"] | ["pod"] => Some(Answer::of(Vec::new())),
        [namespace, "svc"] => names
            .has_namespace(namespace)
            .then(|| Answer::of(Vec::new())),
        [address, _, "pod"] => {
            let address = address.replace('-', ".").parse().ok()?;
            Some(Answer::of(vec![Data::A(address)]))
        }
        [name, namespace, "svc"] => Some(of_service(names.service(namespace, name)?)),
        [port, protocol, name, namespace, "svc"]
            if port.starts_with('_') && protocol.starts_with('_') =>
        {
            let service = names.service(namespace, name)?;
            services_of_port(
                service,
                &format!("{name}.{namespace}.svc.{DOMAIN}"),
                &port[1..],
                &protocol[1..],
            )
        }
        [endpoint, name, namespace, "svc"] => {
            let service = names.service(namespace, name)?;
            let found = service
                .endpoints
                .iter()
                .filter(|known| known.label() == *endpoint);
            let found: Vec<Data> = found.map(|known| Data::A(known.address)).collect();
            (!found.is_empty()).then(|| Answer::of(found))
        }
        _ => None,
    }
}

fn of_service(service: &ServiceNames) -> Answer {
    Answer::of(match &service.target {
        Target::ClusterIp(address) => vec![Data::A(*address)],
        Target::Headless => service
            .endpoints
            .iter()
            .map(|it| Data::A(it.address))
            .collect(),
        Target::External(name) => vec![Data::Cname(name.clone())],
    })
}

/// The SRV records of a named port: one for a cluster IP, one for each endpoint of a headless Service.
fn services_of_port(
    service: &ServiceNames,
    full: &str,
    port: &str,
    protocol: &str,
) -> Option<Answer> {
    let is = |known: &&NamedPort| known.name == port && known.protocol == protocol;
    let mut answer = Answer::of(Vec::new());
    let mut add = |number: u16, target: String, address: Ipv4Addr| {
        answer.records.push(Data::Srv {
            port: number,
            target: target.clone(),
        });
        answer.additional.push((target, address));
    };
    match &service.target {
        Target::ClusterIp(address) => {
            let found = service.ports.iter().find(is)?;
            add(found.number, full.to_owned(), *address);
        }
        Target::Headless => {
            for endpoint in &service.endpoints {
                if let Some(found) = endpoint.ports.iter().find(is) {
                    add(
                        found.number,
                        format!("{}.{full}", endpoint.label()),
                        endpoint.address,
                    );
                }
            }
        }
        Target::External(_) => return None,
    }
    (!answer.records.is_empty()).then_some(answer)
}

/// The address that `4.3.2.1.in-addr.arpa` asks about.
fn reverse(labels: &[&str]) -> Option<Ipv4Addr> {
    let octets: Vec<u8> = labels
        .iter()
        .rev()
        .filter_map(|label| label.parse().ok())
        .collect();
    let octets: [u8; 4] = octets.try_into().ok().filter(|_| labels.len() == 4)?;
    Some(Ipv4Addr::from(octets))
}

/// The names of an address: that of the Service with this cluster IP, or those of endpoints with a hostname.
fn pointers(address: Ipv4Addr, names: &Names) -> Option<Answer> {
    let mut found = Vec::new();
    for (key, service) in names.services() {
        let full = format!(
            "{}.{}.svc.{DOMAIN}",
            key.name(),
            key.namespace().unwrap_or_default()
        );
        if service.target == Target::ClusterIp(address) {
            return Some(Answer::of(vec![Data::Ptr(full)]));
        }
        let here =
            |endpoint: &&NamedEndpoint| endpoint.address == address && endpoint.hostname.is_some();
        let here = service.endpoints.iter().filter(here);
        found.extend(here.map(|endpoint| Data::Ptr(format!("{}.{full}", endpoint.label()))));
    }
    (!found.is_empty()).then(|| Answer::of(found))
}

#[cfg(test)]
mod tests {
    use super::super::message::tests::query;
    use super::*;
    use crate::names::tests::names;

    const AAAA: u16 = 28;

    /// The answer as a text: the code unless all went well, the records, and the additional addresses.
    fn ask(name: &str, kind: u16) -> String {
        let query = Query::parse(&query(name, kind)).expect("a query");
        let answer = answer(&query, &names());
        let mut parts = Vec::new();
        if answer.code != Code::NoError {
            parts.push(format!("{:?}", answer.code));
        }
        parts.extend(answer.records.iter().map(|data| match data {
            Data::A(address) => address.to_string(),
            Data::Cname(name) | Data::Ptr(name) => name.clone(),
            Data::Srv { port, target } => format!("{port} {target}"),
        }));
        parts.extend(
            answer
                .additional
                .iter()
                .map(|(name, address)| format!("+{name}={address}")),
        );
        parts.join(", ")
    }

    #[test]
    fn names_lead_where_the_specification_says() {
        let etcd = "etcd.data.svc.cluster.local";
        let cases: &[(&str, u16, &str)] = &[
            ("web.default.svc.cluster.local", A, "127.64.1.1"),
            ("web.default.svc.cluster.local", AAAA, ""),
            ("web.default.svc.cluster.local", SRV, ""),
            ("web.other.svc.cluster.local", A, "NameError"),
            ("none.default.svc.cluster.local", AAAA, "NameError"),
            (
                "_http._tcp.web.default.svc.cluster.local",
                SRV,
                "80 web.default.svc.cluster.local, +web.default.svc.cluster.local=127.64.1.1",
            ),
            ("_http._udp.web.default.svc.cluster.local", SRV, "NameError"),
            (etcd, A, "127.65.0.2, 127.65.0.3, 127.65.0.5"),
            ("etcd-0.etcd.data.svc.cluster.local", A, "127.65.0.2"),
            ("etcd-2.etcd.data.svc.cluster.local", A, "NameError"),
            ("127-65-0-5.etcd.data.svc.cluster.local", A, "127.65.0.5"),
            ("far.data.svc.cluster.local", A, "db.example.com"),
            ("127-65-0-9.data.pod.cluster.local", A, "127.65.0.9"),
            ("x.data.pod.cluster.local", A, "NameError"),
            ("data.svc.cluster.local", A, ""),
            ("nothing.svc.cluster.local", A, "NameError"),
            ("svc.cluster.local", A, ""),
            ("web.default", A, "Refused"),
            ("example.com", A, "Refused"),
            (
                "1.1.64.127.in-addr.arpa",
                PTR,
                "web.default.svc.cluster.local",
            ),
            (
                "2.0.65.127.in-addr.arpa",
                PTR,
                "etcd-0.etcd.data.svc.cluster.local",
            ),
            ("5.0.65.127.in-addr.arpa", PTR, "NameError"),
            ("x.0.65.127.in-addr.arpa", PTR, "Refused"),
        ];
        for (name, kind, expected) in cases {
            assert_eq!(ask(name, *kind), *expected, "{name} {kind}");
        }
        let peers = ask(&format!("_peer._tcp.{etcd}"), SRV);
        let expected = format!(
            "12380 etcd-0.{etcd}, 12380 etcd-1.{etcd}, 12380 127-65-0-5.{etcd}, \
             +etcd-0.{etcd}=127.65.0.2, +etcd-1.{etcd}=127.65.0.3, +127-65-0-5.{etcd}=127.65.0.5"
        );
        assert_eq!(peers, expected);
    }
}
