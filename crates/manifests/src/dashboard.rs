//! A Grafana dashboard of a project: panels about the metrics that its manager has, and about no others.
//!
//! Whoever serves webhooks gets panels about them. [`metrics`] gives the names that the queries use.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::Inventory;
use crate::mark::MARK;
use crate::project::Project;

/// Where the dashboard is, from the root of a project.
pub const FILE: &str = "dist/grafana/dashboard.json";
/// Columns of a dashboard, and how many of them a panel has.
const COLUMNS: usize = 24;
const WIDTH: usize = 8;
const HEIGHT: usize = 7;
/// What queries choose the manager by.
const WHERE: &str = "namespace=\"$namespace\", job=\"$job\"";
/// Words of the query language that are followed by a parenthesis or by labels, and are not metrics.
const FUNCTIONS: [&str; 5] = ["sum", "rate", "histogram_quantile", "max", "by"];

/// A panel: what it is called, what its number counts, and the series in it.
struct Panel {
    title: &'static str,
    unit: &'static str,
    /// The query of each series, with `WHERE` in the place of what chooses the manager, and its legend.
    series: &'static [(&'static str, &'static str)],
}

/// Panels that every operator with a controller has.
const CONTROLLERS: [Panel; 12] = [
    Panel {
        title: "Reconciles by result",
        unit: "ops",
        series: &[(
            "sum by (controller, result) (rate(controller_runtime_reconcile_total{WHERE}[5m]))",
            "{{controller}} {{result}}",
        )],
    },
    Panel {
        title: "Errors, panics and timeouts",
        unit: "ops",
        series: &[
            (
                "sum by (controller) (rate(controller_runtime_reconcile_errors_total{WHERE}[5m]))",
                "{{controller}} errors",
            ),
            (
                "sum by (controller) (rate(controller_runtime_terminal_reconcile_errors_total{WHERE}[5m]))",
                "{{controller}} terminal errors",
            ),
            (
                "sum by (controller) (rate(controller_runtime_reconcile_panics_total{WHERE}[5m]))",
                "{{controller}} panics",
            ),
            (
                "sum by (controller) (rate(controller_runtime_reconcile_timeouts_total{WHERE}[5m]))",
                "{{controller}} timeouts",
            ),
        ],
    },
    Panel {
        title: "Time of a reconcile",
        unit: "s",
        series: &[
            (
                "histogram_quantile(0.5, sum by (controller, le) (rate(controller_runtime_reconcile_time_seconds_bucket{WHERE}[5m])))",
                "{{controller}} p50",
            ),
            (
                "histogram_quantile(0.99, sum by (controller, le) (rate(controller_runtime_reconcile_time_seconds_bucket{WHERE}[5m])))",
                "{{controller}} p99",
            ),
        ],
    },
    Panel {
        title: "Workers",
        unit: "short",
        series: &[
            (
                "sum by (controller) (controller_runtime_active_workers{WHERE})",
                "{{controller}} at work",
            ),
            (
                "sum by (controller) (controller_runtime_max_concurrent_reconciles{WHERE})",
                "{{controller}} at most",
            ),
        ],
    },
    Panel {
        title: "Depth of queues",
        unit: "short",
        series: &[("sum by (name) (workqueue_depth{WHERE})", "{{name}}")],
    },
    Panel {
        title: "Adds and retries",
        unit: "ops",
        series: &[
            (
                "sum by (name) (rate(workqueue_adds_total{WHERE}[5m]))",
                "{{name}} adds",
            ),
            (
                "sum by (name) (rate(workqueue_retries_total{WHERE}[5m]))",
                "{{name}} retries",
            ),
        ],
    },
    Panel {
        title: "Time in queues, p99",
        unit: "s",
        series: &[(
            "histogram_quantile(0.99, sum by (name, le) (rate(workqueue_queue_duration_seconds_bucket{WHERE}[5m])))",
            "{{name}}",
        )],
    },
    Panel {
        title: "Longest run under way",
        unit: "s",
        series: &[(
            "max by (name) (workqueue_longest_running_processor_seconds{WHERE})",
            "{{name}}",
        )],
    },
    Panel {
        title: "Leaders",
        unit: "short",
        series: &[(
            "sum by (name) (leader_election_master_status{WHERE})",
            "{{name}}",
        )],
    },
    Panel {
        title: "Objects in caches",
        unit: "short",
        series: &[("max by (name) (informer_objects{WHERE})", "{{name}}")],
    },
    Panel {
        title: "Failures of lists and watches",
        unit: "ops",
        series: &[(
            "sum by (name) (rate(reflector_failures_total{WHERE}[5m]))",
            "{{name}}",
        )],
    },
    Panel {
        title: "Requests to the API server",
        unit: "reqps",
        series: &[(
            "sum by (method, code) (rate(rest_client_requests_total{WHERE}[5m]))",
            "{{method}} {{code}}",
        )],
    },
];

/// Panels of operators that serve webhooks.
const WEBHOOKS: [Panel; 2] = [
    Panel {
        title: "Calls of webhooks by code",
        unit: "reqps",
        series: &[(
            "sum by (webhook, code) (rate(controller_runtime_webhook_requests_total{WHERE}[5m]))",
            "{{webhook}} {{code}}",
        )],
    },
    Panel {
        title: "Time of webhooks, p99",
        unit: "s",
        series: &[(
            "histogram_quantile(0.99, sum by (webhook, le) (rate(controller_runtime_webhook_latency_seconds_bucket{WHERE}[5m])))",
            "{{webhook}}",
        )],
    },
];

/// The file of the dashboard, by path from the root of the project.
pub fn files(project: &Project, inventory: &Inventory) -> BTreeMap<PathBuf, String> {
    let text = format!("{:#}\n", dashboard(project, inventory));
    // The first line says that the file is generated, as in every generated file.
    let description = format!("{MARK}; `kubewright generate` writes it again.");
    let rest = text.trim_start_matches("{\n");
    let text = format!("{{ \"description\": {},\n{rest}", json!(description));
    BTreeMap::from([(FILE.into(), text)])
}

/// The names of the metrics that queries of the dashboard use: those of histograms without their endings.
pub fn metrics(inventory: &Inventory) -> BTreeSet<String> {
    let series = panels(inventory).flat_map(|panel| panel.series);
    series.flat_map(|(query, _)| names(query)).collect()
}

/// The metrics that a query names: words before a selector.
fn names(query: &str) -> Vec<String> {
    let words = query.split("{WHERE}").filter_map(|part| {
        let word = part
            .rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .next()?;
        (!word.is_empty() && !FUNCTIONS.contains(&word)).then_some(word)
    });
    let whole = |word: &str| word.strip_suffix("_bucket").unwrap_or(word).to_owned();
    // What follows the last selector names no metric.
    let count = query.matches("{WHERE}").count();
    words.take(count).map(whole).collect()
}

fn panels(inventory: &Inventory) -> impl Iterator<Item = &'static Panel> {
    let serves = !inventory.webhooks.is_empty() || !inventory.conversions.is_empty();
    let webhooks = serves.then_some(&WEBHOOKS);
    CONTROLLERS.iter().chain(webhooks.into_iter().flatten())
}

fn dashboard(project: &Project, inventory: &Inventory) -> Value {
    let name = &project.project_name;
    let panels: Vec<Value> = panels(inventory).enumerate().map(panel).collect();
    json!({
        "editable": true,
        "panels": panels,
        "refresh": "30s",
        "schemaVersion": 39,
        "tags": ["kubewright", name],
        "templating": { "list": variables(project) },
        "time": { "from": "now-1h", "to": "now" },
        "title": format!("{name} operator"),
        "uid": format!("{name}-operator"),
    })
}

fn panel((number, panel): (usize, &Panel)) -> Value {
    let in_row = COLUMNS / WIDTH;
    let series = panel.series.iter().enumerate();
    let targets: Vec<Value> = series
        .map(|(number, (query, legend))| {
            let letter = char::from(b'A' + u8::try_from(number).unwrap_or_default());
            json!({
                "datasource": { "type": "prometheus", "uid": "${datasource}" },
                "expr": query.replace("{WHERE}", &format!("{{{WHERE}}}")),
                "legendFormat": legend,
                "refId": letter.to_string(),
            })
        })
        .collect();
    json!({
        "datasource": { "type": "prometheus", "uid": "${datasource}" },
        "fieldConfig": { "defaults": { "unit": panel.unit }, "overrides": [] },
        "gridPos": {
            "h": HEIGHT, "w": WIDTH, "x": number % in_row * WIDTH, "y": number / in_row * HEIGHT,
        },
        "id": number + 1,
        "targets": targets,
        "title": panel.title,
        "type": "timeseries",
    })
}

/// What people choose at the top of the page: where the numbers are, and whose.
fn variables(project: &Project) -> Value {
    let service = format!(
        "{}-controller-manager-metrics-service",
        project.project_name
    );
    json!([
        { "name": "datasource", "query": "prometheus", "type": "datasource" },
        {
            "current": { "text": project.namespace(), "value": project.namespace() },
            "name": "namespace", "query": project.namespace(), "type": "textbox",
        },
        {
            "current": { "text": service, "value": service },
            "name": "job", "query": service, "type": "textbox",
        },
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_of_a_query_are_found() {
        let query = "histogram_quantile(0.9, sum by (a, le) (rate(b_seconds_bucket{WHERE}[5m]))) / max(c{WHERE})";
        assert_eq!(names(query), ["b_seconds", "c"]);
    }

    #[test]
    fn webhooks_have_panels_where_they_are_served() {
        let inventory = Inventory::default();
        assert!(
            !metrics(&inventory)
                .iter()
                .any(|name| name.contains("webhook"))
        );
        let mut serving = inventory;
        serving.conversions.push(crate::Converted::default());
        assert!(
            metrics(&serving)
                .iter()
                .any(|name| name.contains("webhook"))
        );
    }

    #[test]
    fn file_is_json_that_says_that_it_is_generated() {
        let project = Project::new("library", "my.domain", "v0");
        let files = files(&project, &Inventory::default());
        let (path, text) = files.first_key_value().expect("a file");
        assert_eq!(path, std::path::Path::new(FILE));
        assert!(crate::mark::is_generated(text), "{text}");
        let value: Value = serde_json::from_str(text).expect("it is JSON");
        let panels = value["panels"].as_array().expect("panels");
        assert_eq!(panels.len(), CONTROLLERS.len());
        let query = panels[0]["targets"][0]["expr"].as_str().expect("a query");
        assert!(
            query.contains("{namespace=\"$namespace\", job=\"$job\"}"),
            "{query}"
        );
        let places: BTreeSet<String> = panels.iter().map(|it| it["gridPos"].to_string()).collect();
        assert_eq!(places.len(), panels.len(), "no two panels are in one place");
    }
}
