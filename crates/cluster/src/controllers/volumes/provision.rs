//! Volumes on demand: simulated ones for classes of this cluster's own provisioner, and the protocol by which anybody
//! else's provisioner learns of a claim (`pv_controller.go: provisionClaimOperationExternal`).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    HostPathVolumeSource, NodeSelector, PersistentVolume, PersistentVolumeClaim,
    PersistentVolumeSpec, VolumeNodeAffinity,
};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::ResourceExt;
use kubewright_runtime::{Client, ClientError, Context, Error, EventKind, Query};

use super::binding::{reference, set_unbound};
use super::objects::{
    MIGRATED_TO, PROVISIONED_BY, STORAGE_PROVISIONER, allowed_nodes, annotate, annotation,
    claim_phase,
};
use crate::writes::{replace, report};

/// Who makes simulated volumes.
pub(crate) const PROVISIONER: &str = "sim.kubewright.dev/disk";
/// The class that is there from the start.
const STANDARD: &str = "standard";
/// Marks the class that claims without one get.
pub(super) const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";

/// Makes the standard class, unless there are classes.
pub(crate) async fn standard_class(client: Client) -> Result<(), Error> {
    if !client
        .live()
        .list::<StorageClass>(Query::all())
        .await?
        .is_empty()
    {
        return Ok(());
    }
    let mut class = StorageClass {
        provisioner: PROVISIONER.to_owned(),
        reclaim_policy: Some("Delete".to_owned()),
        volume_binding_mode: Some("Immediate".to_owned()),
        allow_volume_expansion: Some(true),
        ..StorageClass::default()
    };
    class.metadata.name = Some(STANDARD.to_owned());
    annotate(&mut class.metadata, DEFAULT_CLASS, "true");
    match client.create(&class).await {
        Err(error) if !error.is_already_exists() => Err(error.into()),
        _ => Ok(()),
    }
}

/// Who makes the volumes of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Maker<'a> {
    /// This cluster, and they are simulated.
    Simulation,
    /// The provisioner of this name.
    Others(&'a str),
    /// The CSI driver of this name, which took over from a provisioner inside Kubernetes.
    Migrated(&'static str),
    Nobody,
}

/// The provisioners inside Kubernetes that are CSI drivers now (`csi-translation-lib/translate.go`).
const MIGRATED: [(&str, &str); 7] = [
    ("kubernetes.io/aws-ebs", "ebs.csi.aws.com"),
    ("kubernetes.io/azure-disk", "disk.csi.azure.com"),
    ("kubernetes.io/azure-file", "file.csi.azure.com"),
    ("kubernetes.io/cinder", "cinder.csi.openstack.org"),
    ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io"),
    ("kubernetes.io/portworx-volume", "pxd.portworx.com"),
    ("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com"),
];

impl<'a> Maker<'a> {
    pub(super) fn of(class: &'a StorageClass) -> Self {
        let name = class.provisioner.as_str();
        let migrated = MIGRATED.iter().find(|(before, _)| *before == name);
        match migrated {
            _ if name == PROVISIONER => Self::Simulation,
            Some((_, driver)) => Self::Migrated(driver),
            None if name.starts_with("kubernetes.io/") => Self::Nobody,
            None => Self::Others(name),
        }
    }

    /// Its name, as claims say it; empty for nobody.
    fn name(self) -> &'a str {
        match self {
            Self::Simulation => PROVISIONER,
            Self::Others(name) | Self::Migrated(name) => name,
            Self::Nobody => "",
        }
    }
}

/// A claim that names who is to make its volume (`pv_controller.go: setClaimProvisioner`).
pub(super) fn asked(claim: &PersistentVolumeClaim, of: Maker<'_>) -> PersistentVolumeClaim {
    let mut asked = claim.clone();
    let name = of.name();
    if annotation(&claim.metadata, STORAGE_PROVISIONER[0]) != Some(name) {
        for annotation in STORAGE_PROVISIONER {
            annotate(&mut asked.metadata, annotation, name);
        }
    }
    if matches!(of, Maker::Migrated(_)) {
        annotate(&mut asked.metadata, MIGRATED_TO, name);
    }
    asked
}

/// Asks for a volume, and makes it if that is up to this cluster.
pub(super) async fn provision(
    claim: &PersistentVolumeClaim,
    class: &StorageClass,
    cx: &Context,
) -> Result<Option<PersistentVolume>, ClientError> {
    let client = cx.client();
    let maker = Maker::of(class);
    match maker {
        Maker::Simulation => {
            let claim = replace(client, claim, asked(claim, maker)).await?;
            simulate(&claim, class, cx).await
        }
        Maker::Others(name) | Maker::Migrated(name) => {
            let claim = replace(client, claim, asked(claim, maker)).await?;
            let text = format!(
                "Waiting for a volume to be created either by the external provisioner '{name}' or manually by the system \
                 administrator. If volume creation is delayed, please verify that the provisioner is running and correctly \
                 registered.",
            );
            cx.event(&claim, EventKind::Normal, "ExternalProvisioning", text);
            set_pending(&claim, cx).await?;
            Ok(None)
        }
        Maker::Nobody => {
            let text = format!("no volume plugin matched name: {}", class.provisioner);
            cx.event(claim, EventKind::Warning, "ProvisioningFailed", text);
            set_pending(claim, cx).await?;
            Ok(None)
        }
    }
}

/// Says that a claim waits, unless it says so.
pub(super) async fn set_pending(
    claim: &PersistentVolumeClaim,
    cx: &Context,
) -> Result<(), ClientError> {
    if claim_phase(claim) == "Pending" {
        return Ok(());
    }
    report(cx.client(), claim, |claim| set_unbound(claim, "Pending")).await
}

async fn simulate(
    claim: &PersistentVolumeClaim,
    class: &StorageClass,
    cx: &Context,
) -> Result<Option<PersistentVolume>, ClientError> {
    match cx.client().create(&simulated(claim, class)).await {
        Ok(made) => {
            let message = format!("Successfully provisioned volume {}", made.name_any());
            cx.event(claim, EventKind::Normal, "ProvisioningSucceeded", message);
            Ok(Some(made))
        }
        // An earlier run made it; the watch brings it.
        Err(error) if error.is_already_exists() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The volume that is made for a claim.
pub(super) fn simulated(claim: &PersistentVolumeClaim, class: &StorageClass) -> PersistentVolume {
    let wanted = claim.spec.clone().unwrap_or_default();
    let requests = wanted.resources.and_then(|resources| resources.requests);
    let size = requests.and_then(|mut requests| requests.remove("storage"));
    let size = size.unwrap_or_else(|| Quantity("1Gi".to_owned()));
    let name = format!("pvc-{}", claim.metadata.uid.as_deref().unwrap_or_default());
    let mut volume = PersistentVolume::default();
    annotate(&mut volume.metadata, PROVISIONED_BY, PROVISIONER);
    let node_affinity = allowed_nodes(class).map(|terms| VolumeNodeAffinity {
        required: Some(NodeSelector {
            node_selector_terms: terms,
        }),
    });
    volume.spec = Some(PersistentVolumeSpec {
        access_modes: wanted.access_modes,
        capacity: Some(BTreeMap::from([("storage".to_owned(), size)])),
        claim_ref: Some(reference(claim)),
        host_path: Some(HostPathVolumeSource {
            path: format!("/simulated/{name}"),
            type_: None,
        }),
        mount_options: class.mount_options.clone(),
        node_affinity,
        persistent_volume_reclaim_policy: class.reclaim_policy.clone(),
        storage_class_name: class.metadata.name.clone(),
        volume_attributes_class_name: wanted.volume_attributes_class_name,
        volume_mode: wanted.volume_mode,
        ..PersistentVolumeSpec::default()
    });
    volume.metadata.name = Some(name);
    volume
}
