//! What the objects of a PostgresCluster should be.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{
    Container, ContainerPort, EnvVar, EnvVarSource, HTTPGetAction, ObjectFieldSelector,
    PersistentVolumeClaim, PersistentVolumeClaimSpec, PersistentVolumeClaimVolumeSource, Pod,
    PodSpec, PodTemplateSpec, Probe, SecretKeySelector, Service, ServicePort, Volume, VolumeMount,
    VolumeResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::api::{PostgresClusterSpec, Restore, Storage};
use crate::protocol::{AGENT_PORT, DATABASE_PORT};

/// The label that says what a pod is, for the Services.
pub const ROLE: &str = "postgres.kubewright.dev/role";
/// The label that says which cluster a pod belongs to.
pub const CLUSTER: &str = "postgres.kubewright.dev/cluster";
/// Where the volume of a member is.
const DATA: &str = "/var/lib/postgresql";
/// Where backups are.
const BACKUP: &str = "/backup";

/// The Service whose pods are those of all members.
pub(crate) fn members_service(cluster: &str, object: &mut Service) {
    let spec = object.spec.get_or_insert_default();
    spec.cluster_ip = Some("None".to_owned());
    spec.publish_not_ready_addresses = Some(true);
    spec.selector = Some(labels(cluster));
    spec.ports = Some(vec![
        port("postgres", DATABASE_PORT),
        port("agent", AGENT_PORT),
    ]);
}

/// The Service that leads to the primary, or to the replicas.
pub(crate) fn role_service(cluster: &str, role: &str, object: &mut Service) {
    let mut selector = labels(cluster);
    selector.insert(ROLE.to_owned(), role.to_owned());
    let spec = object.spec.get_or_insert_default();
    spec.selector = Some(selector);
    spec.ports = Some(vec![port("postgres", DATABASE_PORT)]);
}

fn port(name: &str, port: u16) -> ServicePort {
    ServicePort {
        name: Some(name.to_owned()),
        port: i32::from(port),
        target_port: Some(IntOrString::String(name.to_owned())),
        ..ServicePort::default()
    }
}

/// The labels of all pods of a cluster.
pub(crate) fn labels(cluster: &str) -> BTreeMap<String, String> {
    [("app.kubernetes.io/name", "postgres"), (CLUSTER, cluster)]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
}

/// The pods and volumes of the members. They all start at once: the operator says who does what.
pub(crate) fn stateful_set(cluster: &str, spec: &PostgresClusterSpec, object: &mut StatefulSet) {
    let set = &mut object.spec;
    set.replicas = Some(spec.members);
    set.service_name = Some(cluster.to_owned());
    set.pod_management_policy = Some("Parallel".to_owned());
    set.selector.match_labels = Some(labels(cluster));
    set.template = template(cluster, spec);
    set.volume_claim_templates = Some(vec![claim(spec)]);
}

fn template(cluster: &str, spec: &PostgresClusterSpec) -> PodTemplateSpec {
    let mut template = PodTemplateSpec::default();
    template.metadata.get_or_insert_default().labels = Some(labels(cluster));
    let pod = template.spec.get_or_insert_default();
    pod.termination_grace_period_seconds = Some(30);
    pod.containers = vec![Container {
        name: "postgres".to_owned(),
        image: Some(spec.image.clone()),
        // The server would choose it by the tag that the image has at first, and keep it when the image changes.
        image_pull_policy: Some("IfNotPresent".to_owned()),
        env: Some(vec![
            from_field("POD_IP", "status.podIP"),
            from_field("POD_NAME", "metadata.name"),
            password(cluster),
        ]),
        args: Some(vec![
            "member".to_owned(),
            "--member=$(POD_NAME)".to_owned(),
            "--address=$(POD_IP)".to_owned(),
            format!("--directory={DATA}"),
        ]),
        ports: Some(vec![
            container_port("postgres", DATABASE_PORT),
            container_port("agent", AGENT_PORT),
        ]),
        // A member that follows nobody yet is not ready, and the agent is alive while it answers.
        readiness_probe: Some(probe("/readyz", 1)),
        liveness_probe: Some(probe("/healthz", 10)),
        volume_mounts: Some(vec![mount("data", DATA)]),
        ..Container::default()
    }];
    template
}

fn container_port(name: &str, port: u16) -> ContainerPort {
    ContainerPort {
        name: Some(name.to_owned()),
        container_port: i32::from(port),
        ..ContainerPort::default()
    }
}

fn probe(path: &str, period: i32) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::String("agent".to_owned()),
            ..HTTPGetAction::default()
        }),
        period_seconds: Some(period),
        ..Probe::default()
    }
}

fn from_field(name: &str, path: &str) -> EnvVar {
    let field = ObjectFieldSelector {
        field_path: path.to_owned(),
        ..ObjectFieldSelector::default()
    };
    EnvVar {
        name: name.to_owned(),
        value_from: Some(EnvVarSource {
            field_ref: Some(field),
            ..EnvVarSource::default()
        }),
        ..EnvVar::default()
    }
}

/// The name of the Secret with the password of the administrator.
pub fn secret_name(cluster: &str) -> String {
    format!("{cluster}-auth")
}

fn password(cluster: &str) -> EnvVar {
    EnvVar {
        name: "POSTGRES_PASSWORD".to_owned(),
        value_from: Some(EnvVarSource {
            secret_key_ref: Some(SecretKeySelector {
                name: secret_name(cluster),
                key: "password".to_owned(),
                optional: None,
            }),
            ..EnvVarSource::default()
        }),
        ..EnvVar::default()
    }
}

fn claim(spec: &PostgresClusterSpec) -> PersistentVolumeClaim {
    let mut claim = PersistentVolumeClaim::default();
    claim.metadata.name = Some("data".to_owned());
    claim.spec = Some(claim_spec(&spec.storage));
    claim
}

/// A volume as it is claimed.
pub(crate) fn claim_spec(storage: &Storage) -> PersistentVolumeClaimSpec {
    let size = Quantity(storage.size.clone());
    PersistentVolumeClaimSpec {
        storage_class_name: storage.class.clone(),
        access_modes: Some(vec!["ReadWriteOnce".to_owned()]),
        resources: Some(VolumeResourceRequirements {
            requests: Some(BTreeMap::from([("storage".to_owned(), size)])),
            limits: None,
        }),
        ..PersistentVolumeClaimSpec::default()
    }
}

/// The claim with the backups of a cluster.
pub(crate) fn backup_name(cluster: &str) -> String {
    format!("{cluster}-backup")
}

/// The pod that keeps the backups, of which there is one.
pub(crate) fn backup_set(cluster: &str, spec: &PostgresClusterSpec, object: &mut StatefulSet) {
    let labels: BTreeMap<String, String> = [
        ("app.kubernetes.io/name", "postgres-backup"),
        (CLUSTER, cluster),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    let set = &mut object.spec;
    set.replicas = Some(1);
    set.service_name = Some(cluster.to_owned());
    set.selector.match_labels = Some(labels.clone());
    set.template.metadata.get_or_insert_default().labels = Some(labels);
    let pod = set.template.spec.get_or_insert_default();
    pod.volumes = Some(vec![claimed(
        "backup",
        &backup_name(cluster),
        Access::Write,
    )]);
    pod.containers = vec![Container {
        name: "backup".to_owned(),
        image: Some(spec.image.clone()),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        env: Some(vec![
            from_field("POD_IP", "status.podIP"),
            password(cluster),
        ]),
        args: Some(vec![
            "backup".to_owned(),
            "--address=$(POD_IP)".to_owned(),
            format!("--directory={BACKUP}"),
        ]),
        ports: Some(vec![container_port("agent", AGENT_PORT)]),
        liveness_probe: Some(probe("/healthz", 10)),
        volume_mounts: Some(vec![mount("backup", BACKUP)]),
        ..Container::default()
    }];
}

/// The pod that makes the database of a backup on the volume of the first member.
pub(crate) fn restore_pod(cluster: &str, spec: &PostgresClusterSpec, restore: &Restore) -> Pod {
    let mut args = vec![
        "restore".to_owned(),
        format!("--from={BACKUP}"),
        format!("--directory={DATA}"),
    ];
    args.extend(
        restore
            .time
            .as_ref()
            .map(|time| format!("--time={}", time.0)),
    );
    let mut pod = Pod::default();
    let spec = PodSpec {
        restart_policy: Some("Never".to_owned()),
        volumes: Some(vec![
            claimed("data", &first_claim(cluster), Access::Write),
            claimed("backup", &restore.claim_name, Access::Read),
        ]),
        containers: vec![Container {
            name: "restore".to_owned(),
            image: Some(spec.image.clone()),
            env: Some(vec![password(cluster)]),
            args: Some(args),
            volume_mounts: Some(vec![mount("data", DATA), mount("backup", BACKUP)]),
            ..Container::default()
        }],
        ..PodSpec::default()
    };
    pod.spec = Some(spec);
    pod
}

/// The claim of the first member, as its StatefulSet calls it.
pub(crate) fn first_claim(cluster: &str) -> String {
    format!("data-{cluster}-0")
}

/// What is done with a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

fn claimed(name: &str, claim: &str, access: Access) -> Volume {
    Volume {
        name: name.to_owned(),
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
            claim_name: claim.to_owned(),
            read_only: (access == Access::Read).then_some(true),
        }),
        ..Volume::default()
    }
}

fn mount(name: &str, path: &str) -> VolumeMount {
    VolumeMount {
        name: name.to_owned(),
        mount_path: path.to_owned(),
        ..VolumeMount::default()
    }
}
