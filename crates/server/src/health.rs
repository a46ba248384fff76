//! Health, version and metrics: what can be asked about the server itself.

use http::StatusCode;
use serde_json::json;

use crate::core::Core;
use crate::http::accept::Format;
use crate::http::query::Query;
use crate::http::respond::{self, Answer};

/// The version of Kubernetes whose API this is.
pub const KUBERNETES_MINOR: u32 = 37;

/// The checks behind the health paths. The server accepts requests when it is ready and not before, so what is left
/// to check is that it is not on its way out.
const CHECKS: [&str; 3] = ["ping", "storage", "definitions"];

/// `/healthz`, `/livez`, `/readyz` and their single checks.
pub(crate) fn health(core: &Core, path: &str, query: &Query) -> Answer {
    let (endpoint, check) = path.split_once('/').unwrap_or((path, ""));
    let stopping = endpoint == "readyz" && core.stopping.is_cancelled();
    if !check.is_empty() && check != "shutdown" && !CHECKS.contains(&check) {
        return respond::page_not_found();
    }
    let code = if stopping {
        StatusCode::INTERNAL_SERVER_ERROR
    } else {
        StatusCode::OK
    };
    if !query.flag("verbose") && query.all("verbose").next().is_none() && !stopping {
        return respond::text(code, "ok");
    }
    let mut report: String = CHECKS
        .iter()
        .map(|check| format!("[+]{check} ok\n"))
        .collect();
    report.push_str(if stopping {
        "[-]shutdown failed: the server is stopping\n"
    } else {
        "[+]shutdown ok\n"
    });
    report.push_str(&format!(
        "{endpoint} check {}\n",
        if stopping { "failed" } else { "passed" }
    ));
    respond::text(code, report)
}

/// `/version`
pub(crate) fn version() -> Answer {
    let minor = KUBERNETES_MINOR.to_string();
    let version = json!({
        "major": "1",
        "minor": minor,
        "emulationMajor": "1",
        "emulationMinor": minor,
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": (KUBERNETES_MINOR - 1).to_string(),
        "gitVersion": format!("v1.{minor}.0+kubewright-{}", env!("CARGO_PKG_VERSION")),
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, platform()),
    });
    respond::value(StatusCode::OK, Format::PrettyJson, &version)
}

fn platform() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// `/metrics`, in the text format of Prometheus.
pub(crate) fn metrics(core: &Core) -> Answer {
    let mut text = String::new();
    let mut gauge = |name: &str, help: &str, value: u64| {
        text.push_str(&format!(
            "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}\n"
        ));
    };
    gauge(
        "kubewright_server_revision",
        "Revision of the newest write.",
        core.store.revision(),
    );
    gauge(
        "apiserver_longrunning_requests",
        "Open watches.",
        core.watches.len() as u64,
    );
    gauge(
        "kubewright_server_resources",
        "Resources that are served.",
        core.registry.now().all.len() as u64,
    );
    text.push_str(&core.flow.metrics());
    respond::text(StatusCode::OK, text)
}
