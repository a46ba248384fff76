//! What the objects of a CloudManager should be.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{
    Container, EnvVar, EnvVarSource, PersistentVolumeClaim, PersistentVolumeClaimSpec,
    PodTemplateSpec, Secret, SecretKeySelector, VolumeMount, VolumeResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::api::{Database, Workload};

/// The name of the volume of the database.
const VOLUME: &str = "datadir";

/// Fills in what a part needs of its Deployment. Fields of others, such as an autoscaler's replicas where none are asked for,
/// stay theirs.
pub(crate) fn deployment(part: &str, owner: &str, wanted: &Workload, object: &mut Deployment) {
    let spec = &mut object.spec;
    spec.replicas = wanted.replicas;
    set_selector(&mut spec.selector, part, owner);
    template(&mut spec.template, part, owner, &wanted.image);
}

/// The Secret of the database.
pub(crate) fn secret(db: &Database, object: &mut Secret) {
    let text = |text: &str| ByteString(text.as_bytes().to_vec());
    let data = [
        ("username", text("root")),
        ("password", text(&db.root_pass)),
    ];
    object.data = Some(data.map(|(name, value)| (name.to_owned(), value)).into());
}

/// The name of the Secret of the database.
pub(crate) fn secret_name(db: &Database) -> String {
    format!("{}auth", db.stateful_set.workload.name)
}

/// Makes a StatefulSet what the database needs.
pub(crate) fn stateful_set(owner: &str, db: &Database, object: &mut StatefulSet) {
    let wanted = &db.stateful_set.workload;
    let spec = &mut object.spec;
    spec.replicas = Some(wanted.replicas.unwrap_or(1));
    set_selector(&mut spec.selector, "db", owner);
    template(&mut spec.template, "db", owner, &wanted.image);
    if let Some(container) = container(&mut spec.template) {
        container.env = Some(vec![password(&secret_name(db))]);
        container.volume_mounts = Some(vec![VolumeMount {
            name: VOLUME.to_owned(),
            mount_path: "/var/lib/mysql".to_owned(),
            ..VolumeMount::default()
        }]);
    }
    // Volume claims of a StatefulSet cannot be changed once it is there.
    spec.volume_claim_templates
        .get_or_insert_with(|| vec![claim(db)]);
}

fn set_selector(selector: &mut LabelSelector, part: &str, owner: &str) {
    // A selector cannot be changed once it is there.
    selector
        .match_labels
        .get_or_insert_with(|| labels(part, owner));
}

fn labels(part: &str, owner: &str) -> BTreeMap<String, String> {
    [("controller", owner), ("app", part)]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
}

/// Sets labels and image, and leaves what the server filled in as it is.
fn template(template: &mut PodTemplateSpec, part: &str, owner: &str, image: &str) {
    template.metadata.get_or_insert_default().labels = Some(labels(part, owner));
    let pod = template.spec.get_or_insert_default();
    if pod.containers.is_empty() {
        pod.containers.push(Container {
            name: format!("{part}-container"),
            ..Container::default()
        });
    }
    if let Some(container) = container(template) {
        container.image = Some(image.to_owned());
        // The server's default depends on the first image that the container had, and stays when the image changes.
        container.image_pull_policy = Some("IfNotPresent".to_owned());
    }
}

fn container(template: &mut PodTemplateSpec) -> Option<&mut Container> {
    template.spec.as_mut()?.containers.first_mut()
}

fn password(secret: &str) -> EnvVar {
    EnvVar {
        name: "MARIADB_ROOT_PASSWORD".to_owned(),
        value_from: Some(EnvVarSource {
            secret_key_ref: Some(SecretKeySelector {
                name: secret.to_owned(),
                key: "password".to_owned(),
                optional: None,
            }),
            ..EnvVarSource::default()
        }),
        ..EnvVar::default()
    }
}

fn claim(db: &Database) -> PersistentVolumeClaim {
    let storage = &db.stateful_set.storage;
    let requests = BTreeMap::from([("storage".to_owned(), Quantity(storage.size.clone()))]);
    let mut claim = PersistentVolumeClaim::default();
    claim.metadata.name = Some(VOLUME.to_owned());
    claim.spec = Some(PersistentVolumeClaimSpec {
        storage_class_name: Some(storage.class.clone()),
        access_modes: Some(vec![storage.access_modes.clone()]),
        resources: Some(VolumeResourceRequirements {
            requests: Some(requests),
            limits: None,
        }),
        ..PersistentVolumeClaimSpec::default()
    });
    claim
}
