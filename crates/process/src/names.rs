//! The files of a pod that say who it is and how names resolve: `/etc/hosts`, `/etc/resolv.conf`, `/etc/hostname`.

use std::fmt::{self, Write as _};
use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use k8s_openapi::api::core::v1::{HostAlias, Pod};
use kubewright_proxy::{HostsLine, LoopbackNetwork};

/// What a hosts file begins with that nobody else provides.
const LOCALHOST: &str =
    "# Written by Kubewright.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n";
/// The domain of the cluster.
const DOMAIN: &str = "cluster.local";

/// Provides the hosts files of pods, and says how they ask for other names.
///
/// Without one, a pod finds itself and its aliases in its hosts file, and the names of the machine.
pub trait PodHosts: Send + Sync + fmt::Debug + 'static {
    /// Writes the hosts file of a pod and keeps it up to date; `own` are lines that no other pod has.
    ///
    /// # Errors
    /// When the file cannot be written.
    fn add(&self, uid: &str, namespace: &str, own: &[HostAlias]) -> io::Result<PathBuf>;

    /// Removes the hosts file of a pod that has one.
    fn remove(&self, uid: &str);

    /// The `/etc/resolv.conf` of the pods of a namespace; nothing where no DNS server listens.
    fn resolv_conf(&self, namespace: &str) -> Option<String>;
}

impl PodHosts for LoopbackNetwork {
    fn add(&self, uid: &str, namespace: &str, own: &[HostAlias]) -> io::Result<PathBuf> {
        let line = |alias: &HostAlias| {
            let address = alias.ip.parse().map_err(io::Error::other)?;
            let names = alias.hostnames.clone().unwrap_or_default();
            Ok(HostsLine { address, names })
        };
        let lines: Vec<HostsLine> = own.iter().map(line).collect::<io::Result<_>>()?;
        self.hosts().add(uid, namespace, &lines)
    }

    fn remove(&self, uid: &str) {
        self.hosts().remove(uid);
    }

    fn resolv_conf(&self, namespace: &str) -> Option<String> {
        LoopbackNetwork::resolv_conf(self, namespace)
    }
}

/// The host name of a pod, as the kubelet makes it.
pub(crate) fn host_name(pod: &Pod) -> String {
    let spec = pod.spec.as_ref();
    let given = spec.and_then(|spec| spec.hostname.clone());
    let name = given.filter(|name| !name.is_empty());
    let name = name
        .or_else(|| pod.metadata.name.clone())
        .unwrap_or_default();
    // A host name has at most 63 characters, and does not end with a separator.
    let cut: String = name.chars().take(63).collect();
    cut.trim_end_matches(['-', '.']).to_owned()
}

/// The host name that the kernel gets: the full name where the pod wants that.
pub(crate) fn kernel_name(pod: &Pod) -> String {
    let as_full = pod.spec.as_ref().and_then(|spec| spec.set_hostname_as_fqdn);
    match full_name(pod) {
        Some(full) if as_full == Some(true) && full.len() <= 64 => full,
        _ => host_name(pod),
    }
}

/// The full name of a pod that has a subdomain.
fn full_name(pod: &Pod) -> Option<String> {
    let subdomain = pod.spec.as_ref()?.subdomain.clone();
    let subdomain = subdomain.filter(|subdomain| !subdomain.is_empty())?;
    let namespace = pod.metadata.namespace.as_deref().unwrap_or("default");
    let name = host_name(pod);
    Some(format!("{name}.{subdomain}.{namespace}.svc.{DOMAIN}"))
}

/// The lines of a hosts file that are the pod's own: itself and its aliases.
pub(crate) fn own_lines(pod: &Pod, address: Option<Ipv4Addr>) -> Vec<HostAlias> {
    let mut lines = Vec::new();
    if let Some(address) = address {
        let names = full_name(pod).into_iter().chain([host_name(pod)]);
        lines.push(HostAlias {
            ip: address.to_string(),
            hostnames: Some(names.collect()),
        });
    }
    let aliases = pod
        .spec
        .iter()
        .flat_map(|spec| spec.host_aliases.iter().flatten());
    lines.extend(aliases.cloned());
    lines
}

/// A whole hosts file of these lines.
pub(crate) fn hosts_file(lines: &[HostAlias]) -> String {
    let mut text = LOCALHOST.to_owned();
    for line in lines {
        let names = line.hostnames.clone().unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}\t{}", line.ip, names.join("\t"));
    }
    text
}

/// The `/etc/resolv.conf` of a pod: the cluster's or the machine's as its policy says, and what it adds itself.
///
/// Mirrors `pkg/kubelet/network/dns: GetPodDNS`.
pub(crate) fn resolv_conf(pod: &Pod, cluster: Option<String>, machine: &str) -> String {
    let spec = pod.spec.clone().unwrap_or_default();
    let policy = spec.dns_policy.as_deref().unwrap_or("ClusterFirst");
    let on_host = spec.host_network == Some(true);
    let base = match (policy, on_host) {
        ("None", _) => String::new(),
        ("Default", _) | ("ClusterFirst", true) => machine.to_owned(),
        _ => cluster.unwrap_or_else(|| machine.to_owned()),
    };
    let mut lines: Vec<String> = base.lines().map(ToOwned::to_owned).collect();
    let own = spec.dns_config.unwrap_or_default();
    for server in own.nameservers.iter().flatten() {
        lines.push(format!("nameserver {server}"));
    }
    append(&mut lines, "search", own.searches.unwrap_or_default());
    let options = own.options.unwrap_or_default().into_iter();
    let options = options.filter_map(|option| match (option.name, option.value) {
        (Some(name), Some(value)) => Some(format!("{name}:{value}")),
        (name, _) => name,
    });
    append(&mut lines, "options", options.collect());
    lines.join("\n") + "\n"
}

/// Adds words to the line that begins with a keyword, or makes one.
fn append(lines: &mut Vec<String>, keyword: &str, words: Vec<String>) {
    if words.is_empty() {
        return;
    }
    let words = words.join(" ");
    let mut own = lines.iter_mut().rev();
    match own.find(|line| line.split_whitespace().next() == Some(keyword)) {
        Some(line) => *line = format!("{} {words}", line.trim_end()),
        None => lines.push(format!("{keyword} {words}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(spec: serde_json::Value) -> Pod {
        let pod = json!({"metadata": {"name": "web-0", "namespace": "shop"}, "spec": spec});
        serde_json::from_value(pod).expect("a pod")
    }

    #[test]
    fn a_pod_finds_itself_by_its_names() {
        let aliases = json!([{"ip": "10.1.2.3", "hostnames": ["db", "db.example.com"]}]);
        let pod = pod(json!({"containers": [], "subdomain": "web", "hostAliases": aliases}));
        let text = hosts_file(&own_lines(&pod, Some(Ipv4Addr::new(127, 1, 0, 4))));
        assert!(text.contains("127.0.0.1\tlocalhost\n"), "{text}");
        let own =
            "127.1.0.4\tweb-0.web.shop.svc.cluster.local\tweb-0\n10.1.2.3\tdb\tdb.example.com\n";
        assert!(text.ends_with(own), "{text}");
        assert_eq!(kernel_name(&pod), "web-0");
    }

    #[test]
    fn names_are_asked_for_as_the_policy_says() {
        let check = |spec: serde_json::Value, expected: &str| {
            let cluster = Some("nameserver 127.0.0.10\nsearch shop.svc.cluster.local\n".to_owned());
            assert_eq!(
                resolv_conf(&pod(spec), cluster, "nameserver 1.1.1.1\n"),
                expected
            );
        };
        let cluster = "nameserver 127.0.0.10\nsearch shop.svc.cluster.local";
        check(json!({"containers": []}), &format!("{cluster}\n"));
        check(
            json!({"containers": [], "dnsPolicy": "Default"}),
            "nameserver 1.1.1.1\n",
        );
        check(
            json!({"containers": [], "hostNetwork": true}),
            "nameserver 1.1.1.1\n",
        );
        let own = json!({"nameservers": ["9.9.9.9"], "searches": ["a.b"],
                         "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}]});
        check(
            json!({"containers": [], "dnsPolicy": "None", "dnsConfig": own}),
            "nameserver 9.9.9.9\nsearch a.b\noptions ndots:2 edns0\n",
        );
        check(
            json!({"containers": [], "dnsConfig": {"searches": ["a.b"]}}),
            &format!("{cluster} a.b\n"),
        );
    }
}
