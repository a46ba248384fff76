//! Liveness and readiness: `/healthz` and `/readyz`, each the sum of named checks, as controller-runtime answers them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{Response, StatusCode};
use parking_lot::Mutex;

use super::{Handler, not_found, text};

type Check = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;
type Checks = Arc<Mutex<BTreeMap<String, Check>>>;

/// The probes of one process. Clones share the checks, which can be added at any time.
///
/// `/healthz` and `/readyz` say `ok`, or which check failed; `?verbose` lists all, `?exclude=name` leaves one out, and
/// `/readyz/name` asks one alone. Without checks the answer is `ok`.
///
/// ```
/// let probes = kubewright_runtime::serving::Probes::new();
/// probes.readiness("database", || Err("not connected".into()));
/// assert_eq!(probes.answer("/healthz", "").status(), 200);
/// assert_eq!(probes.answer("/readyz", "").status(), 500);
/// ```
#[derive(Clone, Default)]
pub struct Probes {
    live: Checks,
    ready: Checks,
}

impl Probes {
    /// Creates probes without any checks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a check of whether the process works at all: it is restarted otherwise. Checks are quick and do not block.
    pub fn liveness(
        &self,
        name: &str,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) {
        self.live.lock().insert(name.into(), Arc::new(check));
    }

    /// Adds a check of whether the process can serve now.
    pub fn readiness(
        &self,
        name: &str,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) {
        self.ready.lock().insert(name.into(), Arc::new(check));
    }

    /// The answer at a path with a query.
    ///
    /// ```
    /// use kubewright_runtime::Probes;
    ///
    /// let probes = Probes::new();
    /// assert_eq!(probes.answer("/healthz", "").status(), 200);
    /// assert_eq!(probes.answer("/nowhere", "").status(), 404);
    /// ```
    pub fn answer(&self, path: &str, query: &str) -> Response<Bytes> {
        for (root, checks) in [("/healthz", &self.live), ("/readyz", &self.ready)] {
            let Some(rest) = path.strip_prefix(root) else {
                continue;
            };
            // Called outside of the lock: a check may take a moment.
            let checks = checks.lock().clone();
            match rest.strip_prefix('/') {
                None if rest.is_empty() => return all(&checks, query),
                Some("") => return all(&checks, query),
                Some(name) => return one(&checks, name),
                None => {}
            }
        }
        not_found()
    }
}

impl Handler for Probes {
    async fn handle(&self, request: &Parts) -> Response<Bytes> {
        self.answer(request.uri.path(), request.uri.query().unwrap_or_default())
    }
}

impl fmt::Debug for Probes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Probes")
    }
}

fn one(checks: &BTreeMap<String, Check>, name: &str) -> Response<Bytes> {
    match checks.get(name).map(|check| check()) {
        None if checks.is_empty() && name == "ping" => text(StatusCode::OK, "ok"),
        None => not_found(),
        Some(Ok(())) => text(StatusCode::OK, "ok"),
        Some(Err(reason)) => text(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("internal server error: {reason}\n"),
        ),
    }
}

fn all(checks: &BTreeMap<String, Check>, query: &str) -> Response<Bytes> {
    let query = Query::parse(query);
    let mut report = String::new();
    let mut healthy = true;
    for (name, check) in checks {
        let line = if query.excludes(name) {
            format!("[+]{name} excluded: ok\n")
        } else {
            match check() {
                Ok(()) => format!("[+]{name} ok\n"),
                Err(reason) => {
                    tracing::debug!(name, reason, "a health check failed");
                    healthy = false;
                    format!("[-]{name} failed: reason withheld\n")
                }
            }
        };
        report.push_str(&line);
    }
    if checks.is_empty() {
        report.push_str("[+]ping ok\n");
    }
    report.push_str(&query.unmatched(checks));
    match (healthy, query.verbose) {
        (true, false) => text(StatusCode::OK, "ok"),
        (true, true) => text(StatusCode::OK, report + "healthz check passed\n"),
        (false, _) => text(
            StatusCode::INTERNAL_SERVER_ERROR,
            report + "healthz check failed\n",
        ),
    }
}

#[derive(Default)]
struct Query {
    verbose: bool,
    excluded: Vec<String>,
}

impl Query {
    /// Names of checks need no escapes, so none are read.
    fn parse(query: &str) -> Self {
        let mut parsed = Self::default();
        for pair in query.split('&') {
            match pair.split_once('=').unwrap_or((pair, "")) {
                ("verbose", _) => parsed.verbose = true,
                ("exclude", name) => parsed.excluded.push(name.into()),
                _ => {}
            }
        }
        parsed
    }

    fn excludes(&self, name: &str) -> bool {
        self.excluded.iter().any(|excluded| excluded == name)
    }

    fn unmatched(&self, checks: &BTreeMap<String, Check>) -> String {
        let unknown = self
            .excluded
            .iter()
            .filter(|name| !checks.contains_key(*name));
        let quoted: Vec<String> = unknown.map(|name| format!("{name:?}")).collect();
        if quoted.is_empty() {
            String::new()
        } else {
            format!(
                "warn: some health checks cannot be excluded: no matches for {}\n",
                quoted.join(",")
            )
        }
    }
}
