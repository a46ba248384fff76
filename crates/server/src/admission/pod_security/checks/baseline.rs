//! Checks of the baseline: what reaches from a pod to its node.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Pod, Violation, named, plural, quoted, setters, violation};
use crate::admission::pod_security::level::Level;
use crate::kinds::value::{entries, is_true, items, strings, text};

pub(super) fn app_armor(pod: &Pod<'_>) -> Option<Violation> {
    const ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";
    let mut values = BTreeSet::new();
    let mut bad = |context: &Value| {
        let profile = &context["appArmorProfile"];
        let kind = text(&profile["type"]);
        let wrong = !profile.is_null() && !matches!(kind, "RuntimeDefault" | "Localhost");
        if wrong {
            values.insert(kind.to_owned());
        }
        wrong
    };
    let of_pod = bad(pod.context());
    let mut containers = Vec::new();
    for container in pod.containers() {
        if bad(&container["securityContext"]) {
            containers.push(text(&container["name"]));
        }
    }
    let mut annotations: Vec<String> = entries(&pod.metadata["annotations"])
        .filter(|(key, value)| {
            let profile = text(value);
            let fine = profile.is_empty()
                || profile == "runtime/default"
                || profile.starts_with("localhost/");
            key.starts_with(ANNOTATION) && !fine
        })
        .map(|(key, value)| format!("{key}={:?}", text(value)))
        .collect();
    annotations.sort();
    let mut who: Vec<String> = setters(of_pod, &containers).into_iter().collect();
    if !annotations.is_empty() {
        who.push(plural("annotation", "annotations", annotations.len()).to_owned());
    }
    if who.is_empty() {
        return None;
    }
    let values: Vec<String> = values.into_iter().chain(annotations).collect();
    let reason = match values.len() {
        1 => "forbidden AppArmor profile",
        _ => "forbidden AppArmor profiles",
    };
    let detail = format!(
        "{} must not set AppArmor profile type to {}",
        who.join(" and "),
        quoted(&values)
    );
    violation(reason, detail)
}

pub(super) fn baseline_capabilities(pod: &Pod<'_>) -> Option<Violation> {
    const ALLOWED: [&str; 13] = [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ];
    let (bad, added) = adding(pod, |capability| ALLOWED.contains(&capability));
    if bad.is_empty() {
        return None;
    }
    let detail = format!(
        "{} must not include {} in securityContext.capabilities.add",
        named(&bad),
        quoted(&added)
    );
    violation("non-default capabilities", detail)
}

/// Containers that add capabilities which are not allowed, and those capabilities.
pub(super) fn adding<'a>(
    pod: &Pod<'a>,
    allowed: impl Fn(&str) -> bool,
) -> (Vec<&'a str>, BTreeSet<&'a str>) {
    let (mut bad, mut added) = (Vec::new(), BTreeSet::new());
    for container in pod.containers() {
        let add = strings(&container["securityContext"]["capabilities"]["add"]);
        let wrong: Vec<&str> = add.filter(|capability| !allowed(capability)).collect();
        if !wrong.is_empty() {
            bad.push(text(&container["name"]));
            added.extend(wrong);
        }
    }
    (bad, added)
}

pub(super) fn host_namespaces(pod: &Pod<'_>) -> Option<Violation> {
    let fields = ["hostNetwork", "hostPID", "hostIPC"];
    let set = fields.into_iter().filter(|field| is_true(&pod.spec[field]));
    let set: Vec<String> = set.map(|field| format!("{field}=true")).collect();
    if set.is_empty() {
        return None;
    }
    violation("host namespaces", set.join(", "))
}

pub(super) fn host_path_volumes(pod: &Pod<'_>) -> Option<Violation> {
    let volumes = items(&pod.spec["volumes"]).iter();
    let bad = volumes.filter(|volume| !volume["hostPath"].is_null());
    let bad: Vec<&str> = bad.map(|volume| text(&volume["name"])).collect();
    if bad.is_empty() {
        return None;
    }
    let detail = format!(
        "{} {}",
        plural("volume", "volumes", bad.len()),
        quoted(&bad)
    );
    violation("hostPath volumes", detail)
}

pub(super) fn host_ports(pod: &Pod<'_>) -> Option<Violation> {
    let (mut bad, mut ports) = (Vec::new(), BTreeSet::new());
    for container in pod.containers() {
        let used = items(&container["ports"]).iter();
        let used = used.filter_map(|port| port["hostPort"].as_i64().filter(|port| *port != 0));
        let used: Vec<String> = used.map(|port| port.to_string()).collect();
        if !used.is_empty() {
            bad.push(text(&container["name"]));
            ports.extend(used);
        }
    }
    if bad.is_empty() {
        return None;
    }
    let list: Vec<&str> = ports.iter().map(String::as_str).collect();
    let detail = format!(
        "{} {} {} {}",
        named(&bad),
        plural("uses", "use", bad.len()),
        plural("hostPort", "hostPorts", list.len()),
        list.join(", ")
    );
    violation("hostPort", detail)
}

pub(super) fn host_probes(pod: &Pod<'_>) -> Option<Violation> {
    if !pod.standard.since(34) {
        return None;
    }
    let (mut bad, mut hosts) = (BTreeSet::new(), BTreeSet::new());
    for container in pod.containers() {
        let lifecycle = &container["lifecycle"];
        let handlers = [
            &container["livenessProbe"],
            &container["readinessProbe"],
            &container["startupProbe"],
            &lifecycle["postStart"],
            &lifecycle["preStop"],
        ];
        let all = handlers
            .iter()
            .flat_map(|h| [&h["httpGet"]["host"], &h["tcpSocket"]["host"]]);
        for host in all.map(text).filter(|host| !host.is_empty()) {
            bad.insert(text(&container["name"]));
            hosts.insert(host);
        }
    }
    if bad.is_empty() {
        return None;
    }
    let bad: Vec<&str> = bad.into_iter().collect();
    let detail = format!(
        "{} {} {} {}",
        named(&bad),
        plural("uses", "use", bad.len()),
        plural(
            "probe or lifecycle host",
            "probe or lifecycle hosts",
            hosts.len()
        ),
        quoted(&hosts)
    );
    violation("probe or lifecycle host", detail)
}

pub(super) fn privileged(pod: &Pod<'_>) -> Option<Violation> {
    let bad = pod.where_context(|context| is_true(&context["privileged"]));
    if bad.is_empty() {
        return None;
    }
    let detail = format!(
        "{} must not set securityContext.privileged=true",
        named(&bad)
    );
    violation("privileged", detail)
}

pub(super) fn proc_mount(pod: &Pod<'_>) -> Option<Violation> {
    if pod.standard.level == Level::Baseline && pod.has_own_users() {
        return None;
    }
    let mount = |context: &Value| text(&context["procMount"]).to_owned();
    let bad = pod.where_context(|c| !matches!(&*mount(c), "" | "Default"));
    let kinds: BTreeSet<String> = pod
        .containers()
        .map(|container| mount(&container["securityContext"]))
        .filter(|kind| !matches!(&**kind, "" | "Default"))
        .collect();
    if bad.is_empty() {
        return None;
    }
    let detail = format!(
        "{} must not set securityContext.procMount to {}",
        named(&bad),
        quoted(&kinds)
    );
    violation("procMount", detail)
}

pub(super) fn se_linux(pod: &Pod<'_>) -> Option<Violation> {
    let allowed = |kind: &str| {
        matches!(
            kind,
            "" | "container_t" | "container_init_t" | "container_kvm_t"
        ) || (kind == "container_engine_t" && pod.standard.since(31))
    };
    let (mut kinds, mut user, mut role) = (BTreeSet::new(), false, false);
    let mut bad = |context: &Value| {
        let options = &context["seLinuxOptions"];
        let kind = text(&options["type"]);
        let (sets_user, sets_role) = (
            !text(&options["user"]).is_empty(),
            !text(&options["role"]).is_empty(),
        );
        if !allowed(kind) {
            kinds.insert(kind.to_owned());
        }
        user |= sets_user;
        role |= sets_role;
        !allowed(kind) || sets_user || sets_role
    };
    let of_pod = bad(pod.context());
    let mut containers = Vec::new();
    for container in pod.containers() {
        if bad(&container["securityContext"]) {
            containers.push(text(&container["name"]));
        }
    }
    let who = setters(of_pod, &containers)?;
    let mut data = Vec::new();
    if !kinds.is_empty() {
        data.push(format!(
            "{} {}",
            plural("type", "types", kinds.len()),
            quoted(&kinds)
        ));
    }
    if user {
        data.push("user may not be set".to_owned());
    }
    if role {
        data.push("role may not be set".to_owned());
    }
    let detail = format!(
        "{who} set forbidden securityContext.seLinuxOptions: {}",
        data.join("; ")
    );
    violation("seLinuxOptions", detail)
}

/// Who sets a seccomp profile that is not allowed, and which ones.
pub(super) fn bad_seccomp(pod: &Pod<'_>) -> Option<Violation> {
    let kind = |context: &Value| text(&context["seccompProfile"]["type"]).to_owned();
    let bad = |context: &Value| {
        let profile = &context["seccompProfile"];
        !profile.is_null() && !matches!(&*kind(context), "RuntimeDefault" | "Localhost")
    };
    let who = setters(bad(pod.context()), &pod.where_context(bad))?;
    let contexts = pod.containers().map(|c| &c["securityContext"]);
    let contexts = contexts.chain([pod.context()]);
    let kinds: BTreeSet<String> = contexts.filter(|c| bad(c)).map(kind).collect();
    let detail = format!(
        "{who} must not set securityContext.seccompProfile.type to {}",
        quoted(&kinds)
    );
    violation("seccompProfile", detail)
}

pub(super) fn baseline_seccomp(pod: &Pod<'_>) -> Option<Violation> {
    bad_seccomp(pod).filter(|_| pod.standard.since(19))
}

pub(super) fn sysctls(pod: &Pod<'_>) -> Option<Violation> {
    const ALLOWED: [(u32, &str); 14] = [
        (0, "kernel.shm_rmid_forced"),
        (0, "net.ipv4.ip_local_port_range"),
        (0, "net.ipv4.tcp_syncookies"),
        (0, "net.ipv4.ping_group_range"),
        (0, "net.ipv4.ip_unprivileged_port_start"),
        (27, "net.ipv4.ip_local_reserved_ports"),
        (29, "net.ipv4.tcp_keepalive_time"),
        (29, "net.ipv4.tcp_fin_timeout"),
        (29, "net.ipv4.tcp_keepalive_intvl"),
        (29, "net.ipv4.tcp_keepalive_probes"),
        (32, "net.ipv4.tcp_rmem"),
        (32, "net.ipv4.tcp_wmem"),
        (37, "net.ipv4.tcp_slow_start_after_idle"),
        (37, "net.ipv4.tcp_notsent_lowat"),
    ];
    let allowed = |name: &str| {
        let mut known = ALLOWED.iter();
        known.any(|(since, known)| *known == name && pod.standard.since(*since))
    };
    let set = items(&pod.context()["sysctls"])
        .iter()
        .map(|s| text(&s["name"]));
    let bad: Vec<&str> = set.filter(|name| !allowed(name)).collect();
    if bad.is_empty() {
        return None;
    }
    violation("forbidden sysctls", bad.join(", "))
}

pub(super) fn windows_host_process(pod: &Pod<'_>) -> Option<Violation> {
    let host = |context: &Value| is_true(&context["windowsOptions"]["hostProcess"]);
    let who = setters(host(pod.context()), &pod.where_context(host))?;
    let detail = format!("{who} must not set securityContext.windowsOptions.hostProcess=true");
    violation("hostProcess", detail)
}
