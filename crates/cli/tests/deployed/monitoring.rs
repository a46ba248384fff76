//! Metrics of the deployed operator, read as the deployed ServiceMonitor says: where, with whose token, trusting whom.

use std::collections::BTreeSet;

use base64::Engine as _;
use kube::config::AuthInfo;
use kubewright_manifests::{Inventory, dashboard};
use serde_json::{Value, json};

use super::{NAMESPACE, Place, Replica};

/// The kind that the Prometheus operator has, as far as anybody here looks at it.
pub(crate) async fn define_monitors(place: &Place) {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "servicemonitors.monitoring.coreos.com"},
        "spec": {
            "group": "monitoring.coreos.com", "scope": "Namespaced",
            "names": {"kind": "ServiceMonitor", "plural": "servicemonitors", "singular": "servicemonitor"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    place.create(path, &definition).await;
    let served = "/apis/monitoring.coreos.com/v1/servicemonitors";
    let until = async || place.try_get(served).await.is_ok();
    place.until("ServiceMonitors are served", until).await;
}

/// Scrapes each replica as the ServiceMonitor says. Every metric that the dashboard has a query for has to be there.
pub(crate) async fn metrics_are_read_as_the_monitor_says(place: &Place, replicas: &[Replica]) {
    let monitors = format!("/apis/monitoring.coreos.com/v1/namespaces/{NAMESPACE}/servicemonitors");
    let monitor = place.get(&monitors).await["items"][0].clone();
    let endpoint = &monitor["spec"]["endpoints"][0];
    leads_to_one_service(place, &monitor).await;
    let mut names = BTreeSet::new();
    for replica in replicas {
        let refused = scrape(place, replica, endpoint, "default").await;
        assert!(refused.is_err(), "only readers of metrics may read them");
    }
    allow_reading(place).await;
    for replica in replicas {
        let text = scrape(place, replica, endpoint, "scraper").await;
        names.extend(metrics_in(&text.expect("metrics are read")));
    }
    let text = std::fs::read_to_string(place.folder.path().join("inventory"));
    let inventory: Inventory =
        serde_json::from_str(&text.expect("it is there")).expect("an inventory");
    let queried = dashboard::metrics(&inventory);
    let missing: Vec<&String> = queried.difference(&names).collect();
    assert!(missing.is_empty(), "the operator lacks {missing:?}");
    println!(
        "{} metrics were read, and all {} of the dashboard are there",
        names.len(),
        queried.len()
    );
}

/// The monitor's labels choose one Service, which has the port that is named.
async fn leads_to_one_service(place: &Place, monitor: &Value) {
    let labels = monitor["spec"]["selector"]["matchLabels"].as_object();
    let labels = labels.expect("labels").iter();
    let labels: Vec<String> = labels
        .map(|(name, value)| format!("{name}={}", value.as_str().expect("a text")))
        .collect();
    let path = format!(
        "/api/v1/namespaces/{NAMESPACE}/services?labelSelector={}",
        labels.join(",")
    );
    let services = place.get(&path).await;
    let services = services["items"].as_array().expect("a list");
    assert_eq!(services.len(), 1, "{services:?}");
    let port = &monitor["spec"]["endpoints"][0]["port"];
    assert_eq!(services[0]["spec"]["ports"][0]["name"], *port);
}

/// Makes an account that may read metrics, with the role that is deployed for that.
async fn allow_reading(place: &Place) {
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "scraper"},
    });
    place
        .create("/api/v1/namespaces/default/serviceaccounts", &account)
        .await;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "scraper"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "library-metrics-reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "scraper", "namespace": "default"}],
    });
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    place.create(path, &binding).await;
}

/// Reads metrics of a replica with the token of an account, and trusts what an endpoint of the monitor says.
async fn scrape(
    place: &Place,
    replica: &Replica,
    endpoint: &Value,
    account: &str,
) -> Result<String, kube::Error> {
    let scheme = endpoint["scheme"].as_str().expect("a scheme");
    let address = format!("{scheme}://{}", replica.metrics);
    let mut config = kube::Config::new(address.parse().expect("an address"));
    let tls = &endpoint["tlsConfig"];
    let trusted = &tls["ca"]["secret"];
    let name = trusted["name"].as_str().expect("a name");
    let path = format!("/api/v1/namespaces/{NAMESPACE}/secrets/{name}");
    let secret = place.get(&path).await;
    let bundle = &secret["data"][trusted["key"].as_str().expect("a key")];
    config.root_cert = Some(certificates(bundle));
    config.tls_server_name = Some(tls["serverName"].as_str().expect("a name").to_owned());
    read(place, config, account, endpoint["path"].as_str()).await
}

/// Reads metrics with the token of an account in the namespace `default`.
pub(crate) async fn read(
    place: &Place,
    mut config: kube::Config,
    account: &str,
    path: Option<&str>,
) -> Result<String, kube::Error> {
    config.auth_info = AuthInfo {
        token: Some(place.token("default", account).await.into()),
        ..AuthInfo::default()
    };
    let client = kube::Client::try_from(config).expect("a client");
    let request = http::Request::get(path.unwrap_or("/metrics")).body(Vec::new());
    client.request_text(request.expect("a request")).await
}

/// The certificates of a bundle in the data of a Secret.
fn certificates(value: &Value) -> Vec<Vec<u8>> {
    let decode = |text: &str| base64::engine::general_purpose::STANDARD.decode(text);
    let bundle = decode(value.as_str().expect("a bundle")).expect("base64");
    let bundle = String::from_utf8(bundle).expect("PEM");
    let blocks = bundle.split("-----BEGIN CERTIFICATE-----").skip(1);
    let inside = |block: &str| -> String {
        let end = block.find("-----").expect("an end");
        block[..end].split_whitespace().collect()
    };
    blocks
        .map(|block| decode(&inside(block)).expect("base64"))
        .collect()
}

/// The names that a text in the format of Prometheus declares.
fn metrics_in(text: &str) -> BTreeSet<String> {
    let declared = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    declared
        .filter_map(|rest| rest.split(' ').next().map(str::to_owned))
        .collect()
}
