//! Probes of a container that nothing is started for: what follows from its specification alone.
//!
//! Nobody knows what listens in such a container: `ports` is information, servers listen on ports that no manifest names, and many
//! manifests name none. So a probe fails only where it would in any container: its command fails whatever the image has,
//! or it names a port that the container does not have.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::prober::{KINDS, limit, spec};
use crate::node::runtime::{ProbeKind, outcome};

/// Why a probe does not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// It fails, with this output.
    Fails(String),
    /// It cannot be carried out at all: the result so far stands.
    Errs(String),
}

/// The probes of a container that cannot succeed.
pub(crate) fn hopeless(container: &Container) -> Vec<(ProbeKind, Trouble)> {
    let of = |kind| {
        let probe = spec(container, kind)?;
        let trouble = trouble(container, probe, limit(container, kind))?;
        Some((kind, trouble))
    };
    KINDS.into_iter().filter_map(of).collect()
}

/// Mirrors `prober.go: runProbe`, `probe/util.go: ResolveContainerPort` and `probe/exec/exec.go: Probe`.
fn trouble(container: &Container, probe: &Probe, limit: Duration) -> Option<Trouble> {
    if let Some(exec) = &probe.exec {
        return fails(exec.command.as_deref()?, limit).map(Trouble::Fails);
    }
    let http = probe.http_get.as_ref().map(|http| &http.port);
    let tcp = || probe.tcp_socket.as_ref().map(|tcp| &tcp.port);
    let IntOrString::String(name) = http.or_else(tcp)? else {
        return None;
    };
    let missing = is_missing(name, container);
    missing.then(|| Trouble::Errs(format!("port {name:?} not found")))
}

/// Whether a container has no port of a name.
pub(super) fn is_missing(name: &str, container: &Container) -> bool {
    let mut ports = container.ports.iter().flatten();
    !ports.any(|port| port.name.as_deref() == Some(name))
}

fn fails(command: &[String], limit: Duration) -> Option<String> {
    let outcome = outcome(command)?;
    let late = outcome.end.is_none_or(|(after, _)| after > limit);
    if outcome.certain && late {
        let seconds = limit.as_secs();
        let command = command.join(" ");
        return Some(format!(
            "command timed out: {command:?} timed out after {seconds}s"
        ));
    }
    outcome.surely_fails().then_some(outcome.output)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn troubles(probe: Value) -> Vec<(ProbeKind, Trouble)> {
        let container = json!({"name": "c", "ports": [{"name": "http", "containerPort": 8080}],
            "readinessProbe": probe});
        hopeless(&serde_json::from_value(container).expect("a container"))
    }

    fn exec(command: &[&str]) -> Value {
        json!({"exec": {"command": command}})
    }

    /// `prober.go: runProbe`, `probe/util.go: findPortByName`.
    #[test]
    fn only_what_fails_in_any_container_fails() {
        let fails = |text: &str| Some(Trouble::Fails(text.to_owned()));
        let missing = Some(Trouble::Errs("port \"web\" not found".to_owned()));
        for (probe, expected) in [
            (json!({"httpGet": {"port": "http"}}), None),
            (json!({"httpGet": {"port": 8080}}), None),
            // Nothing says that it listens there, and nothing that it does not.
            (json!({"httpGet": {"port": 9090}}), None),
            (json!({"tcpSocket": {"port": 9090}}), None),
            (json!({"grpc": {"port": 9090}}), None),
            (json!({"httpGet": {"port": "web"}}), missing.clone()),
            (json!({"tcpSocket": {"port": "web"}}), missing),
            (exec(&["true"]), None),
            (exec(&["pg_isready"]), None),
            (exec(&["cat", "/tmp/healthy"]), None),
            (exec(&["false"]), fails("")),
            (exec(&["sh", "-c", "echo no; exit 2"]), fails("no\n")),
            (
                exec(&["sleep", "5"]),
                fails("command timed out: \"sleep 5\" timed out after 1s"),
            ),
        ] {
            let found = troubles(probe.clone());
            let expected: Vec<_> = expected
                .map(|trouble| (ProbeKind::Readiness, trouble))
                .into_iter()
                .collect();
            assert_eq!(found, expected, "{probe}");
        }
    }
}
