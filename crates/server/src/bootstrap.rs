//! What every cluster has from the start: its namespaces, the Service of the server itself, the priority classes of the
//! system, and the default roles where roles decide.

mod api_services;
mod flow_control;
mod flow_task;
mod policy;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use serde_json::{Value, json};

use crate::access::Authorization;
use crate::aggregation::REQUEST_HEADERS;
use crate::core::Core;
use crate::network::ServiceNetwork;
use crate::object;
use crate::request::Part;
use crate::status::ApiError;
use crate::write::WriteRequest;

pub(crate) use flow_task::follow_flow_control;

const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];
/// Parts of a control plane that `kubectl get componentstatuses` asks after. They are this process, and well while it is.
const COMPONENTS: [&str; 3] = ["controller-manager", "etcd-0", "scheduler"];

/// A built-in resource: group, version, plural.
type Builtin = (&'static str, &'static str, &'static str);

const COMPONENT_STATUSES: Builtin = ("", "v1", "componentstatuses");
const CONFIG_MAPS: Builtin = ("", "v1", "configmaps");
const ENDPOINTS: Builtin = ("", "v1", "endpoints");
const ENDPOINT_SLICES: Builtin = ("discovery.k8s.io", "v1", "endpointslices");
const NAMESPACE: Builtin = ("", "v1", "namespaces");
const PRIORITY_CLASSES: Builtin = ("scheduling.k8s.io", "v1", "priorityclasses");
const SERVICES: Builtin = ("", "v1", "services");

impl Core {
    /// Makes sure that what every cluster has is there, and finishes what an earlier run left unfinished.
    pub(crate) async fn bootstrap(&self) -> Result<(), ApiError> {
        for name in NAMESPACES {
            let namespace =
                json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
            self.ensure(NAMESPACE, namespace).await?;
        }
        if self.access.mode() == Authorization::Rbac {
            self.ensure_policy().await?;
            self.ensure_api_services().await?;
        }
        self.ensure(SERVICES, kubernetes_service(self.network()))
            .await?;
        for class in priority_classes() {
            self.ensure(PRIORITY_CLASSES, class).await?;
        }
        for name in COMPONENTS {
            self.ensure(COMPONENT_STATUSES, component_status(name))
                .await?;
        }
        self.ensure_service_cidr();
        self.ensure_flow_control().await?;
        self.reconcile_all().await;
        Ok(())
    }

    /// Tells the cluster where the server listens and which authority knows its clients: the endpoints of its Service,
    /// and what servers that are added to the API authenticate clients by (controlplane/controller/kubernetesservice,
    /// controlplane/controller/clusterauthenticationtrust).
    pub(crate) async fn publish(
        &self,
        address: SocketAddr,
        client_authority: &str,
    ) -> Result<(), ApiError> {
        let front_proxy = self.derived.aggregation.front_proxy();
        let front_proxy = front_proxy.map_err(ApiError::internal)?;
        let authorities = [
            ("client-ca-file", client_authority),
            ("requestheader-client-ca-file", &front_proxy.authority),
        ];
        let data = authorities.into_iter().chain(REQUEST_HEADERS);
        let trust = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "extension-apiserver-authentication", "namespace": "kube-system" },
            "data": data.collect::<BTreeMap<&str, &str>>(),
        });
        self.put(CONFIG_MAPS, trust).await?;
        let Some(address) = published(address, self.network()) else {
            return Ok(());
        };
        self.put(ENDPOINTS, kubernetes_endpoints(address)).await?;
        self.put(ENDPOINT_SLICES, kubernetes_slice(address)).await
    }

    /// Creates an object that is missing.
    async fn ensure(&self, kind: Builtin, value: Value) -> Result<(), ApiError> {
        let served = self.registry.now().builtin(kind.0, kind.1, kind.2);
        let namespace = value["metadata"]["namespace"].as_str().map(str::to_owned);
        let key = served.key(namespace.as_deref(), object::name(&value));
        if served.collection.get(&key).is_none() {
            let request = WriteRequest::by_server(&served, &key, Part::Whole);
            Box::pin(self.create(&request, value)).await?;
        }
        Ok(())
    }

    /// Creates an object, or gives the one that is there this content.
    async fn put(&self, kind: Builtin, value: Value) -> Result<(), ApiError> {
        let served = self.registry.now().builtin(kind.0, kind.1, kind.2);
        let namespace = value["metadata"]["namespace"].as_str().map(str::to_owned);
        let key = served.key(namespace.as_deref(), object::name(&value));
        if served.collection.get(&key).is_none() {
            return self.ensure(kind, value).await;
        }
        let change = |old: &Value| {
            let mut new = value.clone();
            new["metadata"] = old["metadata"].clone();
            Ok(new)
        };
        let request = WriteRequest::by_server(&served, &key, Part::Whole);
        Box::pin(self.update(&request, change)).await?;
        Ok(())
    }
}

/// The endpoint of the server's Service. A server that listens everywhere has none, unless everything is on this machine.
fn published(mut address: SocketAddr, network: ServiceNetwork) -> Option<SocketAddr> {
    if !address.ip().is_unspecified() {
        return Some(address);
    }
    address.set_ip(Ipv4Addr::LOCALHOST.into());
    network.is_loopback().then_some(address)
}

fn kubernetes_service(network: ServiceNetwork) -> Value {
    let service = network.api_service();
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": "kubernetes", "namespace": "default",
            "labels": { "component": "apiserver", "provider": "kubernetes" },
        },
        "spec": {
            "clusterIP": service.ip().to_string(), "ipFamilyPolicy": "SingleStack",
            "ports": [{ "name": "https", "port": service.port(), "protocol": "TCP", "targetPort": 6443 }],
        },
    })
}

fn kubernetes_endpoints(address: SocketAddr) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Endpoints",
        "metadata": {
            "name": "kubernetes", "namespace": "default",
            "labels": { "endpointslice.kubernetes.io/skip-mirror": "true" },
        },
        "subsets": [{
            "addresses": [{ "ip": address.ip().to_string() }],
            "ports": [{ "name": "https", "port": address.port(), "protocol": "TCP" }],
        }],
    })
}

fn kubernetes_slice(address: SocketAddr) -> Value {
    let family = if address.is_ipv4() { "IPv4" } else { "IPv6" };
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": family,
        "metadata": {
            "name": "kubernetes", "namespace": "default",
            "labels": { "kubernetes.io/service-name": "kubernetes" },
        },
        "endpoints": [{ "addresses": [address.ip().to_string()], "conditions": { "ready": true } }],
        "ports": [{ "name": "https", "port": address.port(), "protocol": "TCP" }],
    })
}

/// The classes that pods of the system have (pkg/apis/scheduling/v1/helpers.go).
fn priority_classes() -> [Value; 2] {
    let class = |name: &str, value: i64, description: &str| {
        json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": { "name": name }, "value": value, "description": description,
        })
    };
    [
        class(
            "system-node-critical",
            2_000_001_000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
        class(
            "system-cluster-critical",
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
        ),
    ]
}

fn component_status(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ComponentStatus", "metadata": { "name": name },
        "conditions": [{ "type": "Healthy", "status": "True", "message": "ok" }],
    })
}
