//! Autoscalers that ask the metrics APIs of others: an adapter behind an APIService, as KEDA and prometheus-adapter are.

mod world;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Response, StatusCode};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::Api;
use kube::api::DeleteParams;
use kubewright_cluster::{Clock, Cluster, Measured};
use kubewright_runtime::serving::{Handler, Listener, Tls};
use kubewright_server::Authorization;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{advance, pause, resume, sleep, timeout};
use tokio_util::sync::CancellationToken;

use world::{all, condition, create, here};

/// Longest real time for anything that must happen.
const LIMIT: Duration = Duration::from_secs(60);
const ACCOUNT: &str = "system:serviceaccount:kube-system:horizontal-pod-autoscaler";

/// A server of metrics: what it answers by path, and what it was asked by whom.
#[derive(Clone, Default)]
struct Adapter {
    answers: Arc<Mutex<BTreeMap<String, (u16, String)>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Handler for Adapter {
    async fn handle(&self, request: &Parts) -> Response<Bytes> {
        let path = request.uri.path();
        let user = request.headers.get("x-remote-user");
        let user = user.and_then(|user| user.to_str().ok()).unwrap_or_default();
        let line = format!("{} {} by {user}", request.method, request.uri);
        self.asked.lock().expect("not poisoned").push(line);
        let known = self
            .answers
            .lock()
            .expect("not poisoned")
            .get(path)
            .cloned();
        // A group and version alone is a question of discovery.
        let (code, body) = match known {
            Some(answer) => answer,
            None if path.split('/').count() == 4 => {
                let list = json!({"kind": "APIResourceList", "apiVersion": "v1", "resources": []});
                (200, list.to_string())
            }
            None => (404, "404 page not found\n".to_owned()),
        };
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = StatusCode::from_u16(code).expect("a code");
        response
    }
}

impl Adapter {
    fn answer(&self, path: &str, code: u16, body: impl ToString) {
        let mut answers = self.answers.lock().expect("not poisoned");
        answers.insert(path.to_owned(), (code, body.to_string()));
    }

    /// Whether it was asked this by the autoscalers' service account.
    fn was_asked(&self, what: &str) -> bool {
        let line = format!("GET {what} by {ACCOUNT}");
        let asked = self.asked.lock().expect("not poisoned");
        asked.contains(&line)
    }
}

/// A cluster with an adapter for its Service `monitoring/adapter`.
struct Scene {
    cluster: Cluster,
    adapter: Adapter,
    /// Ends with the scene.
    serving: JoinHandle<()>,
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Scene {
    async fn start() -> Self {
        let clock = Clock::starting_at("2030-01-01T00:00:00Z".parse().expect("a moment"));
        let builder = Cluster::builder().nodes(2).clock(clock).seed(7);
        let builder = builder.authorization(Authorization::Rbac);
        let cluster = builder.start().await.expect("a cluster starts");
        let tls = Tls::self_signed(&["adapter.monitoring.svc"]).expect("a certificate");
        let listener = Listener::bind("127.0.0.1:0").await.expect("a port");
        let listener = listener.expect("an address was given").tls(tls);
        let address = listener.address().expect("an address");
        let services = cluster.server().services();
        services.insert("monitoring", "adapter", 443, address);
        let adapter = Adapter::default();
        let serving = listener.serve(adapter.clone(), CancellationToken::new());
        Self {
            cluster,
            adapter,
            serving: tokio::spawn(serving),
        }
    }

    /// Has the adapter answer for a group and version.
    async fn register(&self, version: &str, group: &str) {
        let services: Api<APIService> = Api::all(self.cluster.client());
        let name = format!("{version}.{group}");
        let service = json!({"namespace": "monitoring", "name": "adapter", "port": 443});
        let spec = json!({"group": group, "version": version, "groupPriorityMinimum": 100, "versionPriority": 100,
            "insecureSkipTLSVerify": true, "service": service});
        create(&services, json!({"metadata": {"name": name}, "spec": spec})).await;
        eventually(&services, &name, |s| {
            condition(s, "Available")["status"] == "True"
        })
        .await;
    }

    async fn deploy(&self, metrics: Value) {
        let container =
            json!({"name": "c", "image": "web:1", "resources": {"requests": {"cpu": "100m"}}});
        let template = json!({"metadata": {"labels": {"app": "web", "a": "b"}}, "spec": {"containers": [container]}});
        let selector = json!({"matchLabels": {"app": "web", "a": "b"}});
        let deployment = json!({"metadata": {"name": "web"}, "spec": {"replicas": 2, "selector": selector, "template": template}});
        create(&here::<Deployment>(&self.cluster), deployment).await;
        let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
        let spec = json!({"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 9, "metrics": metrics});
        let scaler = json!({"metadata": {"name": "web"}, "spec": spec});
        create(&here::<HorizontalPodAutoscaler>(&self.cluster), scaler).await;
    }

    async fn scaled_to(&self, replicas: i64) -> Value {
        let scalers = here::<HorizontalPodAutoscaler>(&self.cluster);
        eventually(&scalers, "web", |s| {
            s["status"]["desiredReplicas"] == replicas
        })
        .await
    }

    /// Waits until the autoscaler reports that a metric cannot be had, for this reason.
    async fn blind(&self, message: &str) {
        let scalers = here::<HorizontalPodAutoscaler>(&self.cluster);
        let text = format!("the HPA was unable to compute the replica count: {message}");
        eventually(&scalers, "web", |s| {
            condition(s, "ScalingActive")["message"] == text
        })
        .await;
    }
}

/// The object once it is as it should be. Minutes of the cluster pass in moments, and what goes over sockets has the time
/// that it needs: while it is awaited the clock is not paused, so that nothing times out.
async fn eventually<K>(api: &Api<K>, name: &str, holds: impl Fn(&Value) -> bool) -> Value
where
    K: serde::Serialize + serde::de::DeserializeOwned + Clone + std::fmt::Debug,
{
    let mut last = Value::Null;
    let waiting = async {
        loop {
            let object = api.get_opt(name).await.expect("an answer");
            last = serde_json::to_value(object).expect("json");
            if holds(&last) {
                return last.clone();
            }
            pause();
            advance(Duration::from_secs(2)).await;
            resume();
            sleep(Duration::from_millis(20)).await;
        }
    };
    // Virtual minutes count as well.
    let found = timeout(LIMIT * 60, waiting).await.ok();
    found.unwrap_or_else(|| panic!("timed out waiting for {name}; last seen: {last:#}"))
}

fn not_found(message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
        "reason": "NotFound", "code": 404})
}

#[tokio::test]
async fn external_metrics_are_those_of_the_adapter_as_long_as_it_is_registered() {
    let scene = Scene::start().await;
    let group = "external.metrics.k8s.io";
    let path = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/s0-queue";
    let metrics = scene.cluster.metrics();
    let declared = Measured::external("default").label("scaledobject.keda.sh/name", "web");
    metrics.set(declared, "s0-queue", "90").expect("a quantity");
    let list = |value: &str| {
        let value = json!({"metricName": "s0-queue", "metricLabels": {}, "timestamp": null, "value": value});
        json!({"kind": "ExternalMetricValueList", "apiVersion": "external.metrics.k8s.io/v1beta1", "metadata": {},
            "items": [value, value]})
    };
    scene.adapter.answer(path, 200, list("20"));
    scene.register("v1beta1", group).await;
    let selector = json!({"matchLabels": {"scaledobject.keda.sh/name": "web"}});
    let metric = json!({"name": "s0-queue", "selector": selector});
    let target = json!({"type": "AverageValue", "averageValue": "10"});
    scene
        .deploy(json!([{"type": "External", "external": {"metric": metric, "target": target}}]))
        .await;
    let scaled = scene.scaled_to(4).await;
    let current = &scaled["status"]["currentMetrics"][0]["external"]["current"];
    assert_eq!(*current, json!({"averageValue": "20"}));
    let query = "labelSelector=scaledobject.keda.sh%2Fname%3Dweb";
    assert!(scene.adapter.was_asked(&format!("{path}?{query}")));

    let unable = "unable to get external metric default/s0-queue/&LabelSelector{MatchLabels:map[string]string{\
                  scaledobject.keda.sh/name: web,},MatchExpressions:[]LabelSelectorRequirement{},}: ";
    let failed = |why: &str| format!("failed to get s0-queue external metric: {unable}{why}");
    let fetch = "unable to fetch metrics from external metrics API: ";
    scene.adapter.answer(path, 404, not_found("no such scaler"));
    scene
        .blind(&failed(&format!("{fetch}no such scaler")))
        .await;
    scene.adapter.answer(path, 503, "overloaded");
    let busy = "the server is currently unable to handle the request (get s0-queue.external.metrics.k8s.io)";
    scene.blind(&failed(&format!("{fetch}{busy}"))).await;
    scene.adapter.answer(path, 200, json!({"items": []}));
    let none = "no metrics returned from external metrics API";
    scene.blind(&failed(none)).await;

    let services: Api<APIService> = Api::all(scene.cluster.client());
    let (name, params) = (format!("v1beta1.{group}"), DeleteParams::default());
    services.delete(&name, &params).await.expect("deleted");
    scene.scaled_to(9).await;
}

#[tokio::test]
async fn custom_metrics_are_asked_for_at_the_newest_version_for_pods_and_objects() {
    let scene = Scene::start().await;
    let custom = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default";
    let metric = |name: &str, target: Value| json!({"metric": {"name": name}, "target": target});
    let mut hits = metric(
        "hits",
        json!({"type": "AverageValue", "averageValue": "10"}),
    );
    hits["metric"]["selector"] = json!({"matchLabels": {"verb": "GET"}});
    let mut rate = metric("rate", json!({"type": "Value", "value": "50"}));
    rate["describedObject"] =
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "web"});
    let value = |kind: &str, name: &str, value: &str| json!({"describedObject": {"kind": kind, "name": name}, "value": value});
    let rates = |value: Value| json!({"kind": "MetricValueList", "items": [value]});
    let path = format!("{custom}/ingresses.networking.k8s.io/web/rate");
    let of_ingress = rates(value("Ingress", "web", "100"));
    scene.adapter.answer(&path, 200, of_ingress);
    scene.register("v1beta1", "custom.metrics.k8s.io").await;
    scene.register("v1beta2", "custom.metrics.k8s.io").await;
    let metrics = json!([{"type": "Pods", "pods": hits}, {"type": "Object", "object": rate}]);
    scene.deploy(metrics).await;
    // Twice the rate on two pods; a metric that cannot be had does not keep it from going up.
    scene.scaled_to(4).await;
    assert!(scene.adapter.was_asked(&path));
    let query = "labelSelector=a%3Db%2Capp%3Dweb&metricLabelSelector=verb%3DGET";
    assert!(
        scene
            .adapter
            .was_asked(&format!("{custom}/pods/*/hits?{query}"))
    );

    scene
        .adapter
        .answer(&path, 200, rates(value("Ingress", "web", "50")));
    let deployments = here::<Deployment>(&scene.cluster);
    eventually(&deployments, "web", |d| d["status"]["readyReplicas"] == 4).await;
    let pods = all(&here::<Pod>(&scene.cluster)).await;
    let names = pods
        .iter()
        .filter_map(|pod| pod["metadata"]["name"].as_str());
    let items: Vec<Value> = names.map(|name| value("Pod", name, "15")).collect();
    let list = json!({"kind": "MetricValueList", "items": items});
    scene
        .adapter
        .answer(&format!("{custom}/pods/*/hits"), 200, list);
    let scaled = scene.scaled_to(6).await;
    let current = &scaled["status"]["currentMetrics"][0]["pods"]["current"];
    assert_eq!(*current, json!({"averageValue": "15"}));
}

#[tokio::test]
async fn use_of_pods_is_what_a_metrics_server_says() {
    let scene = Scene::start().await;
    scene.register("v1beta1", "metrics.k8s.io").await;
    let target = json!({"type": "Utilization", "averageUtilization": 50});
    scene
        .deploy(json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]))
        .await;
    let lost = "the server could not find the requested resource (get pods.metrics.k8s.io)";
    let message = format!(
        "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from resource metrics API: {lost}"
    );
    scene.blind(&message).await;
    let pods = all(&here::<Pod>(&scene.cluster)).await;
    let used = |pod: &Value| {
        let usage = json!([{"name": "c", "usage": {"cpu": "100m", "memory": "1Mi"}}]);
        json!({"metadata": {"namespace": "default", "name": pod["metadata"]["name"]}, "window": "15s", "containers": usage})
    };
    let items: Vec<Value> = pods.iter().map(used).collect();
    let path = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods";
    let list = json!({"kind": "PodMetricsList", "items": items});
    scene.adapter.answer(path, 200, list);
    let scaled = scene.scaled_to(4).await;
    let current = &scaled["status"]["currentMetrics"][0]["resource"]["current"];
    assert_eq!(
        *current,
        json!({"averageUtilization": 100, "averageValue": "100m"})
    );
    let query = "labelSelector=a%3Db%2Capp%3Dweb";
    assert!(scene.adapter.was_asked(&format!("{path}?{query}")));
}
