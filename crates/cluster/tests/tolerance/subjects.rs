//! The kinds that controllers, scheduler and nodes read, each with an object of it.

use k8s_openapi::ByteString;
use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use serde_json::{Value, json};

/// An object that is to be mistreated.
pub(crate) struct Subject {
    api_version: &'static str,
    kind: &'static str,
    is_namespaced: bool,
    /// All but its type and its metadata.
    body: Value,
    /// The status that it is given to begin with, where no controller writes one that has much in it.
    pub(crate) status: Option<Value>,
}

impl Subject {
    fn new(api_version: &'static str, kind: &'static str, body: Value) -> Self {
        Self {
            api_version,
            kind,
            is_namespaced: true,
            body,
            status: None,
        }
    }

    fn of_cluster(mut self) -> Self {
        self.is_namespaced = false;
        self
    }

    fn status(mut self, status: Value) -> Self {
        self.status = Some(status);
        self
    }

    pub(crate) fn kind(&self) -> &'static str {
        self.kind
    }

    /// The objects of its kind where it lives.
    pub(crate) fn api(&self, client: &Client) -> Api<DynamicObject> {
        api(client, self.api_version, self.kind, self.is_namespaced)
    }

    /// The object as a client creates it.
    pub(crate) fn object(&self) -> DynamicObject {
        let mut object = self.body.clone();
        object["apiVersion"] = self.api_version.into();
        object["kind"] = self.kind.into();
        object["metadata"] = json!({"name": "odd"});
        serde_json::from_value(object).expect("an object")
    }
}

/// The objects of a kind: those of the whole cluster, or of the default namespace.
pub(crate) fn api(
    client: &Client,
    api_version: &str,
    kind: &str,
    is_namespaced: bool,
) -> Api<DynamicObject> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    if is_namespaced {
        Api::default_namespaced_with(client.clone(), &resource)
    } else {
        Api::all_with(client.clone(), &resource)
    }
}

/// Subjects of all kinds.
pub(crate) fn all() -> Vec<Subject> {
    [workloads(), policies(), storage(), network(), machines()]
        .into_iter()
        .flatten()
        .collect()
}

fn workloads() -> Vec<Subject> {
    let pod = json!({"containers": [{"name": "c", "image": "sim"}]});
    let template = json!({"metadata": {"labels": {"app": "a"}}, "spec": pod});
    let selector = json!({"matchLabels": {"app": "a"}});
    let set = json!({"spec": {"replicas": 1, "selector": selector, "template": template}});
    let job =
        json!({"template": {"spec": {"restartPolicy": "Never", "containers": pod["containers"]}}});
    let stateful =
        json!({"spec": {"serviceName": "odd", "selector": selector, "template": template}});
    let daemon = json!({"spec": {"selector": selector, "template": template}});
    let controller =
        json!({"spec": {"replicas": 1, "selector": {"app": "a"}, "template": template}});
    let cron = json!({"spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": job}}});
    vec![
        Subject::new("v1", "Pod", json!({"spec": pod})),
        Subject::new("v1", "ReplicationController", controller),
        Subject::new("apps/v1", "Deployment", set.clone()),
        Subject::new("apps/v1", "ReplicaSet", set),
        Subject::new("apps/v1", "StatefulSet", stateful),
        Subject::new("apps/v1", "DaemonSet", daemon),
        Subject::new("batch/v1", "Job", json!({"spec": job})),
        Subject::new("batch/v1", "CronJob", cron),
    ]
}

fn policies() -> Vec<Subject> {
    let selector = json!({"matchLabels": {"app": "a"}});
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "odd"});
    let budget = json!({"spec": {"minAvailable": 0, "selector": selector}});
    let autoscaler = json!({"spec": {"maxReplicas": 2, "scaleTargetRef": target}});
    let quota = json!({"spec": {"hard": {"pods": "99"}}});
    let pem = include_bytes!("../../src/controllers/certificates/request.pem");
    let request = json!({"spec": {"request": ByteString(pem.to_vec()), "usages": ["client auth"],
        "signerName": "kubernetes.io/kube-apiserver-client"}});
    let failed = json!({"type": "Failed", "status": "True", "reason": "R", "message": "m",
        "lastUpdateTime": "2030-01-01T00:00:00Z", "lastTransitionTime": "2030-01-01T00:00:00Z"});
    vec![
        Subject::new("v1", "ResourceQuota", quota),
        Subject::new("policy/v1", "PodDisruptionBudget", budget),
        Subject::new("autoscaling/v2", "HorizontalPodAutoscaler", autoscaler),
        Subject::new(
            "certificates.k8s.io/v1",
            "CertificateSigningRequest",
            request,
        )
        .of_cluster()
        .status(json!({"conditions": [failed]})),
    ]
}

fn storage() -> Vec<Subject> {
    let claim =
        json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let volume = json!({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
        "storageClassName": "odd", "hostPath": {"path": "/odd", "type": "Directory"},
        "claimRef": {"kind": "PersistentVolumeClaim", "name": "nobody", "namespace": "default"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions":
            [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-1"]}]}]}}});
    let class = json!({"provisioner": "sim.kubewright.dev/disk", "reclaimPolicy": "Retain",
        "parameters": {"type": "slow"}, "mountOptions": ["ro"], "allowVolumeExpansion": true,
        "volumeBindingMode": "Immediate", "allowedTopologies": [{"matchLabelExpressions":
            [{"key": "topology.kubernetes.io/zone", "values": ["zone-a"]}]}]});
    vec![
        Subject::new("v1", "PersistentVolumeClaim", json!({"spec": claim})),
        Subject::new("v1", "PersistentVolume", json!({"spec": volume}))
            .of_cluster()
            .status(json!({"phase": "Available", "message": "m", "reason": "R",
                "lastPhaseTransitionTime": "2030-01-01T00:00:00Z"})),
        Subject::new("storage.k8s.io/v1", "StorageClass", class).of_cluster(),
    ]
}

fn network() -> Vec<Subject> {
    let service = json!({"spec": {"selector": {"app": "a"}, "ports": [{"port": 80}]}});
    let ingress = json!({"spec": {"ingressClassName": "odd",
        "defaultBackend": {"service": {"name": "odd", "port": {"name": "web"}}},
        "tls": [{"hosts": ["example.com"], "secretName": "odd"}],
        "rules": [{"host": "example.com", "http": {"paths": [{"path": "/", "pathType": "Prefix",
            "backend": {"service": {"name": "odd", "port": {"number": 80}}}}]}}]}});
    let slice = json!({"addressType": "IPv4", "ports": [{"name": "web", "port": 80, "protocol": "TCP",
            "appProtocol": "http"}],
        "endpoints": [{"addresses": ["10.1.2.3"], "hostname": "h", "nodeName": "node-1", "zone": "zone-a",
            "conditions": {"ready": true, "serving": true, "terminating": false},
            "hints": {"forZones": [{"name": "zone-a"}]},
            "targetRef": {"kind": "Pod", "namespace": "default", "name": "odd"}}]});
    vec![
        Subject::new("v1", "Service", service),
        Subject::new("networking.k8s.io/v1", "Ingress", ingress).status(
            json!({"loadBalancer": {"ingress": [{"ip": "10.1.2.3", "hostname": "h",
                "ports": [{"port": 80, "protocol": "TCP", "error": "example.com/E"}]}]}}),
        ),
        Subject::new("discovery.k8s.io/v1", "EndpointSlice", slice),
    ]
}

fn machines() -> Vec<Subject> {
    let node = json!({"spec": {"podCIDR": "10.99.0.0/24", "podCIDRs": ["10.99.0.0/24"],
        "providerID": "odd://1", "unschedulable": true,
        "taints": [{"key": "odd", "value": "v", "effect": "NoSchedule"}]}});
    let ready = json!({"type": "Ready", "status": "True", "reason": "R", "message": "m",
        "lastHeartbeatTime": "2030-01-01T00:00:00Z", "lastTransitionTime": "2030-01-01T00:00:00Z"});
    let room = json!({"cpu": "4", "memory": "8Gi", "pods": "110"});
    let info = json!({"architecture": "", "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "",
        "kubeProxyVersion": "", "kubeletVersion": "v1.37.0", "machineID": "", "operatingSystem": "linux",
        "osImage": "", "systemUUID": ""});
    let status = json!({"capacity": room, "allocatable": room, "conditions": [ready], "nodeInfo": info,
        "addresses": [{"type": "InternalIP", "address": "172.18.9.9"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}}, "phase": "Running",
        "images": [{"names": ["app:1"], "sizeBytes": 1}],
        "volumesInUse": ["kubernetes.io/csi/v"],
        "volumesAttached": [{"name": "kubernetes.io/csi/v", "devicePath": ""}]});
    let condition = json!({"type": "NamespaceDeletionContentFailure", "status": "False", "reason": "R",
        "message": "m", "lastTransitionTime": "2030-01-01T00:00:00Z"});
    vec![
        Subject::new("v1", "Node", node).of_cluster().status(status),
        Subject::new("v1", "Namespace", json!({}))
            .of_cluster()
            .status(json!({"phase": "Active", "conditions": [condition]})),
    ]
}
