//! Where the manager runs: its namespace, its Deployment, and the Service of its metrics.

use serde_json::{Value, json};

use super::{LayoutError, Operator, Tree};

/// Where metrics are served.
pub(super) const METRICS_PORT: u16 = 8443;
/// Where webhooks are served.
pub(super) const WEBHOOK_PORT: u16 = 9443;
const PROBE_PORT: u16 = 8081;
/// Longer than the manager waits for its reconciles when it is asked to stop.
const GRACE_SECONDS: u32 = 40;
/// The Service of metrics.
pub(super) const METRICS_SERVICE: &str = "controller-manager-metrics-service";

pub(super) fn add(operator: &Operator<'_>, tree: &mut Tree) -> Result<(), LayoutError> {
    let mut labels = operator.labels();
    // The cluster refuses pods that ask for more than they need, ours and any other in this namespace.
    labels.insert(
        "pod-security.kubernetes.io/enforce".to_owned(),
        json!("restricted"),
    );
    let namespace = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": { "labels": labels, "name": operator.project.namespace() },
    });
    tree.add("manager/namespace.yaml", namespace)?;
    tree.add("manager/manager.yaml", deployment(operator))?;
    tree.add("default/metrics_service.yaml", metrics_service(operator))
}

fn deployment(operator: &Operator<'_>) -> Value {
    let mut metadata = operator.namespaced("controller-manager");
    metadata["labels"]["control-plane"] = json!("controller-manager");
    let mut pod = json!({
        "containers": [container(operator)],
        "securityContext": {
            "runAsNonRoot": true,
            "seccompProfile": { "type": "RuntimeDefault" },
        },
        "serviceAccountName": operator.name("controller-manager"),
        "terminationGracePeriodSeconds": GRACE_SECONDS,
    });
    let volumes: Vec<Value> = operator
        .mounted()
        .iter()
        .map(|it| json!({ "name": it.volume, "secret": { "secretName": it.secret } }))
        .collect();
    if !volumes.is_empty() {
        pod["volumes"] = json!(volumes);
    }
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "replicas": operator.replicas,
            "selector": { "matchLabels": operator.pod_labels() },
            "template": {
                "metadata": {
                    "annotations": { "kubectl.kubernetes.io/default-container": "manager" },
                    "labels": operator.pod_labels(),
                },
                "spec": pod,
            },
        },
    })
}

fn container(operator: &Operator<'_>) -> Value {
    let mut container = json!({
        "name": "manager",
        "image": operator.image,
        "args": arguments(operator),
        "ports": ports(operator),
        "livenessProbe": probe("/healthz", 15, 20),
        "readinessProbe": probe("/readyz", 5, 10),
        "resources": {
            "limits": { "cpu": "500m", "memory": "128Mi" },
            "requests": { "cpu": "10m", "memory": "64Mi" },
        },
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": { "drop": ["ALL"] },
            "readOnlyRootFilesystem": true,
        },
    });
    let mounts: Vec<Value> = operator
        .mounted()
        .iter()
        .map(|it| json!({ "mountPath": it.path, "name": it.volume, "readOnly": true }))
        .collect();
    if !mounts.is_empty() {
        container["volumeMounts"] = json!(mounts);
    }
    if operator.project.namespaced {
        container["env"] = json!([environment(operator)]);
    }
    container
}

/// Tells the manager where to work.
fn environment(operator: &Operator<'_>) -> Value {
    let namespaces = operator.watched().join(",");
    json!({ "name": "WATCH_NAMESPACE", "value": namespaces })
}

fn arguments(operator: &Operator<'_>) -> Vec<String> {
    let mut arguments = vec![
        format!("--metrics-bind-address=:{METRICS_PORT}"),
        "--leader-elect".to_owned(),
        format!("--health-probe-bind-address=:{PROBE_PORT}"),
    ];
    let mounted = operator.mounted();
    arguments.extend(mounted.iter().map(|it| format!("{}={}", it.flag, it.path)));
    arguments.extend(operator.certificate_arguments());
    arguments
}

fn ports(operator: &Operator<'_>) -> Value {
    let port = |name: &str, number: u16| json!({ "containerPort": number, "name": name, "protocol": "TCP" });
    let mut ports = vec![port("metrics", METRICS_PORT), port("probes", PROBE_PORT)];
    if operator.has_webhooks() {
        ports.push(port("webhook-server", WEBHOOK_PORT));
    }
    json!(ports)
}

fn probe(path: &str, delay: u32, period: u32) -> Value {
    json!({
        "httpGet": { "path": path, "port": PROBE_PORT },
        "initialDelaySeconds": delay,
        "periodSeconds": period,
    })
}

fn metrics_service(operator: &Operator<'_>) -> Value {
    let mut metadata = operator.namespaced(METRICS_SERVICE);
    metadata["labels"]["control-plane"] = json!("controller-manager");
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {
            "ports": [{
                "name": "https",
                "port": METRICS_PORT,
                "protocol": "TCP",
                "targetPort": METRICS_PORT,
            }],
            "selector": operator.pod_labels(),
        },
    })
}
