//! Health, version and metrics: what can be asked about the server itself.

use std::sync::Arc;

use http::StatusCode;
use serde_json::json;

use crate::core::Core;
use crate::http::accept::Format;
use crate::http::query::Query;
use crate::http::respond::{self, Answer};

/// The version of Kubernetes whose API this is.
pub const KUBERNETES_MINOR: u32 = 37;

/// One thing that is looked at, and what is wrong with it.
struct HealthCheck {
    name: &'static str,
    failure: Option<Arc<str>>,
}

/// The checks behind the health paths. The server accepts requests when it has started and not before; from then on the
/// disk can fail, and it can be on its way out, which only whoever sends new requests has to know.
fn checks(core: &Core, endpoint: &str) -> [HealthCheck; 4] {
    let stopping = endpoint == "readyz" && core.stopping.is_cancelled();
    let good = |name| HealthCheck {
        name,
        failure: None,
    };
    [
        good("ping"),
        HealthCheck {
            name: "storage",
            failure: core.store.failure(),
        },
        good("definitions"),
        HealthCheck {
            name: "shutdown",
            failure: stopping.then(|| Arc::from("the server is stopping")),
        },
    ]
}

/// `/healthz`, `/livez`, `/readyz` and their single checks.
pub(crate) fn health(core: &Core, path: &str, query: &Query) -> Answer {
    let (endpoint, wanted) = path.split_once('/').unwrap_or((path, ""));
    let mut checks: Vec<HealthCheck> = checks(core, endpoint).into();
    if !wanted.is_empty() {
        checks.retain(|check| check.name == wanted);
        if checks.is_empty() {
            return respond::page_not_found();
        }
    }
    let failed = checks.iter().any(|check| check.failure.is_some());
    let verbose = query.flag("verbose") || query.all("verbose").next().is_some();
    if !verbose && !failed {
        return respond::text(StatusCode::OK, "ok");
    }
    let (code, verdict) = if failed {
        (StatusCode::INTERNAL_SERVER_ERROR, "failed")
    } else {
        (StatusCode::OK, "passed")
    };
    let mut report: String = checks.iter().map(HealthCheck::line).collect();
    report.push_str(&format!("{endpoint} check {verdict}\n"));
    respond::text(code, report)
}

impl HealthCheck {
    fn line(&self) -> String {
        match &self.failure {
            None => format!("[+]{} ok\n", self.name),
            Some(why) => format!("[-]{} failed: {why}\n", self.name),
        }
    }
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
        core.registry.now().len() as u64,
    );
    text.push_str(&core.flow.metrics());
    respond::text(StatusCode::OK, text)
}
