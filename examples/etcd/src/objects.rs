//! The objects of a cluster, as they should be.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::ResourceExt;
use kubewright::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::api::{EtcdCluster, Restore, Storage, Tls};
use crate::names::{CLUSTER, COMPONENT, MEMBER, Names, PEERS, TEMPLATE, VERSION};
use crate::version::Version;

/// Where the volume of a member is.
const DATA: &str = "/var/lib/etcd";
/// Where certificates are.
const CERTIFICATES: &str = "/etc/etcd/tls";
/// Where snapshots are.
const SNAPSHOTS: &str = "/backup";
/// Goes up when pods are made in another way, so that those that are there are made again.
const LAYOUT: u32 = 1;

/// A member that is to have a pod.
#[derive(Debug, Clone)]
pub(crate) struct MemberPod<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// Its id; none for the first member, which starts a new cluster.
    pub(crate) id: Option<u64>,
    /// The version of its image.
    pub(crate) version: Version,
    /// The members of the cluster by name, itself included.
    pub(crate) peers: Vec<String>,
}

/// What a pod is made with besides its version. A change makes all pods anew, one at a time.
pub(crate) fn template(cluster: &EtcdCluster) -> String {
    let (image, tls) = (&cluster.spec.image, cluster.spec.tls);
    format!("layout {LAYOUT}, image {image}, TLS {tls:?}")
}

/// The image of a version.
pub(crate) fn image(cluster: &EtcdCluster, version: Version) -> String {
    format!("{}:v{version}", cluster.spec.image)
}

/// The pod of a member.
///
/// # Errors
/// When the object cannot be made, which is a mistake in this file.
pub(crate) fn pod(cluster: &EtcdCluster, member: &MemberPod<'_>) -> Result<Pod> {
    let names = Names::of(cluster);
    let metadata = json!({
        "name": member.name,
        "labels": labels(&names, "member"),
        "annotations": {
            MEMBER: member.id.map(|id| format!("{id:x}")),
            VERSION: member.version.to_string(),
            TEMPLATE: template(cluster),
            PEERS: member.peers.join(","),
        },
    });
    let mut mounts = vec![json!({"name": "data", "mountPath": DATA})];
    let claim = names.claim(member.name);
    let mut volumes = vec![json!({"name": "data", "persistentVolumeClaim": {"claimName": claim}})];
    if cluster.spec.tls == Tls::Enabled {
        mounts.push(json!({"name": "tls", "mountPath": CERTIFICATES, "readOnly": true}));
        let secret = names.certificate(member.name);
        volumes.push(json!({"name": "tls", "secret": {"secretName": secret}}));
    }
    let health = json!({"path": "/health", "port": 2381});
    let container = json!({
        "name": "etcd",
        "image": image(cluster, member.version),
        "command": ["etcd"],
        "args": args(cluster, &names, member),
        "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "ports": [
            {"name": "client", "containerPort": 2379},
            {"name": "peer", "containerPort": 2380},
            {"name": "metrics", "containerPort": 2381},
        ],
        // Ready is who can commit; alive is who listens: a member without a quorum must not be killed for that.
        "readinessProbe": {"httpGet": health, "periodSeconds": 5, "failureThreshold": 2, "timeoutSeconds": 3},
        "livenessProbe": {"tcpSocket": {"port": 2379}, "initialDelaySeconds": 10, "periodSeconds": 10, "failureThreshold": 6},
        "volumeMounts": mounts,
    });
    made(json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
        "spec": {
            "hostname": member.name,
            "subdomain": names.cluster,
            "terminationGracePeriodSeconds": 30,
            "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{
                "weight": 100,
                "podAffinityTerm": {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": {"matchLabels": labels(&names, "member")},
                },
            }]}},
            "containers": [container],
            "volumes": volumes,
        },
    }))
}

fn args(cluster: &EtcdCluster, names: &Names, member: &MemberPod<'_>) -> Vec<String> {
    let (name, scheme) = (member.name, names.scheme());
    let peers = member.peers.iter();
    let peers: Vec<String> = peers
        .map(|peer| format!("{peer}={}", names.peer_url(peer)))
        .collect();
    let state = if member.id.is_none() {
        "new"
    } else {
        "existing"
    };
    let mut args = vec![
        format!("--name={name}"),
        format!("--data-dir={DATA}/data"),
        format!("--listen-peer-urls={scheme}://$(POD_IP):2380"),
        format!("--listen-client-urls={scheme}://$(POD_IP):2379"),
        "--listen-metrics-urls=http://$(POD_IP):2381".to_owned(),
        format!("--initial-advertise-peer-urls={}", names.peer_url(name)),
        format!("--advertise-client-urls={}", names.client_url(name)),
        format!("--initial-cluster={}", peers.join(",")),
        format!("--initial-cluster-state={state}"),
        format!("--initial-cluster-token={}", token(cluster)),
    ];
    if cluster.spec.tls == Tls::Enabled {
        for prefix in ["", "peer-"] {
            args.extend([
                format!("--{prefix}cert-file={CERTIFICATES}/tls.crt"),
                format!("--{prefix}key-file={CERTIFICATES}/tls.key"),
                format!("--{prefix}trusted-ca-file={CERTIFICATES}/ca.crt"),
                format!("--{prefix}client-cert-auth=true"),
            ]);
        }
    }
    args
}

/// What tells the members of this cluster from those of another one of the same name.
fn token(cluster: &EtcdCluster) -> String {
    cluster.uid().unwrap_or_default()
}

/// The claim with the data of a member.
///
/// # Errors
/// When the object cannot be made, which is a mistake in this file.
pub(crate) fn claim(
    cluster: &EtcdCluster,
    member: &str,
    id: Option<u64>,
) -> Result<PersistentVolumeClaim> {
    let names = Names::of(cluster);
    made(json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": names.claim(member),
            "labels": labels(&names, "member"),
            "annotations": {MEMBER: id.map(|id| format!("{id:x}"))},
        },
        "spec": claim_spec(&cluster.spec.storage),
    }))
}

/// The claim with the snapshots of a cluster. It has no owner, so that it outlives what it is the backup of.
///
/// # Errors
/// When the object cannot be made, which is a mistake in this file.
pub(crate) fn backup_claim(names: &Names, storage: &Storage) -> Result<PersistentVolumeClaim> {
    made(json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": names.backup_claim(), "namespace": names.namespace,
            "labels": labels(names, "backup"),
        },
        "spec": claim_spec(storage),
    }))
}

fn claim_spec(storage: &Storage) -> Value {
    let mut spec = json!({
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": storage.size}},
    });
    if let Some(class) = &storage.class_name {
        spec["storageClassName"] = json!(class);
    }
    spec
}

/// The Service that gives members their names, also before they are ready.
pub(crate) fn peer_service(names: &Names, service: &mut Service) {
    let spec = json!({
        "clusterIP": "None", "publishNotReadyAddresses": true,
        "selector": labels(names, "member"),
        "ports": [{"name": "client", "port": 2379}, {"name": "peer", "port": 2380}],
    });
    service.metadata.labels = serde_json::from_value(labels(names, "member")).ok();
    service.spec = serde_json::from_value(spec).ok();
}

/// The Service for clients.
pub(crate) fn client_service(names: &Names, service: &mut Service) {
    let spec = json!({
        "selector": labels(names, "member"),
        "ports": [{"name": "client", "port": 2379}],
    });
    service.metadata.labels = serde_json::from_value(labels(names, "member")).ok();
    service.spec = serde_json::from_value(spec).ok();
}

/// Keeps people who drain nodes from taking the quorum away.
pub(crate) fn disruption_budget(names: &Names, budget: &mut PodDisruptionBudget) {
    let spec = json!({"maxUnavailable": 1, "selector": {"matchLabels": labels(names, "member")}});
    budget.spec = serde_json::from_value(spec).ok();
}

/// The Job that takes a snapshot of a member into a file of the backup claim.
///
/// # Errors
/// When the object cannot be made, which is a mistake in this file.
pub(crate) fn backup_job(
    cluster: &EtcdCluster,
    version: Version,
    member: &str,
    name: &str,
    file: &str,
) -> Result<Job> {
    let names = Names::of(cluster);
    let mut command = vec![
        "etcdctl".to_owned(),
        format!("--endpoints={}", names.client_url(member)),
        "--command-timeout=60s".to_owned(),
    ];
    let mut mounts = vec![json!({"name": "backup", "mountPath": SNAPSHOTS})];
    let claim = names.backup_claim();
    let mut volumes =
        vec![json!({"name": "backup", "persistentVolumeClaim": {"claimName": claim}})];
    if cluster.spec.tls == Tls::Enabled {
        command.extend([
            format!("--cacert={CERTIFICATES}/ca.crt"),
            format!("--cert={CERTIFICATES}/tls.crt"),
            format!("--key={CERTIFICATES}/tls.key"),
        ]);
        mounts.push(json!({"name": "tls", "mountPath": CERTIFICATES, "readOnly": true}));
        let secret = names.client_certificate();
        volumes.push(json!({"name": "tls", "secret": {"secretName": secret}}));
    }
    command.extend(["snapshot", "save"].map(str::to_owned));
    command.push(format!("{SNAPSHOTS}/{file}"));
    let container = json!({
        "name": "backup", "image": image(cluster, version), "command": command,
        "env": [{"name": "ETCDCTL_API", "value": "3"}],
        "volumeMounts": mounts,
    });
    made(json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "labels": labels(&names, "backup")},
        "spec": {
            "backoffLimit": 2,
            "activeDeadlineSeconds": 600,
            "template": {
                "metadata": {"labels": labels(&names, "backup")},
                "spec": {"restartPolicy": "Never", "containers": [container], "volumes": volumes},
            },
        },
    }))
}

/// The pod that puts a snapshot into the claim of the first member, before that starts.
///
/// # Errors
/// When the object cannot be made, which is a mistake in this file.
pub(crate) fn restore_pod(
    cluster: &EtcdCluster,
    version: Version,
    member: &str,
    restore: &Restore,
) -> Result<Pod> {
    let names = Names::of(cluster);
    // `etcdctl snapshot restore` moved to a program of its own in 3.5, and is gone from 3.6 on.
    let program = if version.minor < 6 {
        "etcdctl"
    } else {
        "etcdutl"
    };
    let peer = names.peer_url(member);
    let command = [
        program.to_owned(),
        "snapshot".to_owned(),
        "restore".to_owned(),
        format!("{SNAPSHOTS}/{}", restore.snapshot),
        format!("--data-dir={DATA}/data"),
        format!("--name={member}"),
        format!("--initial-cluster={member}={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster-token={}", token(cluster)),
    ];
    let container = json!({
        "name": "restore", "image": image(cluster, version), "command": command,
        "env": [{"name": "ETCDCTL_API", "value": "3"}],
        "volumeMounts": [
            {"name": "data", "mountPath": DATA},
            {"name": "backup", "mountPath": SNAPSHOTS, "readOnly": true},
        ],
    });
    let source = json!({"claimName": restore.claim_name, "readOnly": true});
    made(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": names.restore_pod(), "labels": labels(&names, "restore")},
        "spec": {
            "restartPolicy": "Never",
            // The name of a pod that does not exist yet; etcdctl resolves it before it writes it down.
            "hostAliases": [{"ip": "127.0.0.1", "hostnames": [names.host(member)]}],
            "containers": [container],
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": names.claim(member)}},
                {"name": "backup", "persistentVolumeClaim": source},
            ],
        },
    }))
}

/// The labels of what belongs to a cluster.
pub(crate) fn labels(names: &Names, component: &str) -> Value {
    json!({
        "app.kubernetes.io/name": "etcd",
        CLUSTER: names.cluster,
        COMPONENT: component,
    })
}

fn made<T: DeserializeOwned>(mut object: Value) -> Result<T> {
    if let Some(annotations) = object.pointer_mut("/metadata/annotations") {
        let all = annotations.as_object_mut();
        all.into_iter()
            .for_each(|all| all.retain(|_, value| !value.is_null()));
    }
    serde_json::from_value(object).map_err(Error::terminal)
}
