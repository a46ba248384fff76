//! Volumes: binds claims to volumes that fit, makes simulated ones for those that ask for them, and takes them back.
//!
//! The storage class `standard` is made at start where there is none, so that claims work in a new cluster as they do on a
//! real one. Its volumes are simulated: nothing is written anywhere.

pub(crate) mod protection;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::HostPathVolumeSource;
use k8s_openapi::api::core::v1::{
    ObjectReference, PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec,
};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::ResourceExt;
use kubewright_runtime::{
    Client, ClientError, Context, Controller, Delete, Error, EventKind, IgnoreNotFound, Index, Key,
    Outcome, Query, Reconciler, Watch,
};
use kubewright_schema::quantity::Quantity as Amount;

/// Who makes simulated volumes.
const PROVISIONER: &str = "sim.kubewright.dev/disk";
/// The class that is there from the start.
const STANDARD: &str = "standard";
/// Marks the class that claims without one get.
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";
/// Where the scheduler says which node the first pod of a claim runs on.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// The index of volumes by who may have them.
const BY_PLACE: &str = "place";

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
        ..StorageClass::default()
    };
    class.metadata.name = Some(STANDARD.to_owned());
    class.metadata.annotations = Some(BTreeMap::from([(
        DEFAULT_CLASS.to_owned(),
        "true".to_owned(),
    )]));
    match client.create(&class).await {
        Err(error) if !error.is_already_exists() => Err(error.into()),
        _ => Ok(()),
    }
}

/// Binds claims.
pub(crate) fn binder() -> Controller {
    let volumes = Watch::of::<PersistentVolume>().map(|volume, client| match claim_of(volume) {
        Some(key) => vec![key],
        // A volume that is free may be what somebody waits for.
        None => waiting(client),
    });
    let classes = Watch::of::<StorageClass>().map(|_, client| waiting(client));
    Controller::of::<PersistentVolumeClaim>("persistentvolume-binder")
        .watches(volumes)
        .watches(classes)
        .reconciler(Binder)
}

/// Takes volumes back whose claim is gone.
pub(crate) fn reclaimer() -> Controller {
    let claims = Watch::of::<PersistentVolumeClaim>().map(|claim, _| {
        let volume = claim
            .spec
            .as_ref()
            .and_then(|spec| spec.volume_name.as_deref());
        volume.map(Key::cluster).into_iter().collect()
    });
    Controller::of::<PersistentVolume>("persistentvolume-reclaimer")
        .watches(claims)
        .reconciler(Reclaimer)
}

fn claim_of(volume: &PersistentVolume) -> Option<Key> {
    let claim = volume.spec.as_ref()?.claim_ref.as_ref()?;
    Some(Key::new(
        claim.namespace.as_deref()?,
        claim.name.as_deref()?,
    ))
}

/// The claims that are not bound.
fn waiting(client: &Client) -> Vec<Key> {
    let claims = client.reader::<PersistentVolumeClaim>().list();
    let unbound = claims.iter().filter(|claim| !is_bound(claim));
    unbound
        .map(|claim| Key::new(&claim.namespace().unwrap_or_default(), &claim.name_any()))
        .collect()
}

fn is_bound(claim: &PersistentVolumeClaim) -> bool {
    let phase = claim
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    phase == Some("Bound")
}

struct Binder;

impl Reconciler<PersistentVolumeClaim> for Binder {
    async fn reconcile(
        &self,
        claim: Arc<PersistentVolumeClaim>,
        cx: &Context,
    ) -> Result<Outcome, Error> {
        if is_bound(&claim) || claim.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::done());
        }
        let named = claim
            .spec
            .as_ref()
            .and_then(|spec| spec.volume_name.as_deref());
        let volume = match named {
            Some(name) => {
                cx.client()
                    .get::<PersistentVolume>(&Key::cluster(name))
                    .await?
            }
            None => find(&claim, cx).await?,
        };
        match volume {
            Some(volume) => bind(&claim, &volume, cx).await?,
            // Rare, and large: it is not to make every other run large.
            None if named.is_none() => Box::pin(provision(&claim, cx)).await?,
            None => {}
        }
        Ok(Outcome::done())
    }
}

/// The smallest volume that is meant for the claim or fits it.
async fn find(
    claim: &PersistentVolumeClaim,
    cx: &Context,
) -> Result<Option<Arc<PersistentVolume>>, ClientError> {
    // The first of many callers adds it; for the others it is there already.
    let index = Index::of(|volume| vec![place(volume)]);
    let _ = cx.client().add_index::<PersistentVolume>(BY_PLACE, index);
    let mut volumes = Vec::new();
    for place in [free_of(class_of(claim)), promised_to(cx.key())] {
        let there = Query::all().index(BY_PLACE, place);
        volumes.extend(cx.client().list::<PersistentVolume>(there).await?);
    }
    let mut fitting: Vec<_> = volumes.into_iter().filter(|v| fits(claim, v)).collect();
    fitting.sort_by_key(|volume| (!is_for(claim, volume), capacity(volume), volume.name_any()));
    Ok(fitting.into_iter().next())
}

/// Where a volume is in the index: with the free ones of its class, or with the claim that it is promised to.
fn place(volume: &PersistentVolume) -> String {
    let spec = volume.spec.as_ref();
    let class = spec.and_then(|spec| spec.storage_class_name.as_deref());
    claim_of(volume).map_or_else(
        || free_of(class.unwrap_or_default()),
        |key| promised_to(&key),
    )
}

fn free_of(class: &str) -> String {
    format!("free {class}")
}

fn promised_to(claim: &Key) -> String {
    format!("for {claim}")
}

fn class_of(claim: &PersistentVolumeClaim) -> &str {
    let class = claim
        .spec
        .as_ref()
        .and_then(|spec| spec.storage_class_name.as_deref());
    class.unwrap_or_default()
}

/// Whether a volume is free, or promised to this claim, and gives what is asked for.
fn fits(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> bool {
    let (Some(wanted), Some(given)) = (&claim.spec, &volume.spec) else {
        return false;
    };
    let free = given.claim_ref.is_none() || is_for(claim, volume);
    let phase = volume
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    let modes = wanted.access_modes.iter().flatten();
    let given_modes = given.access_modes.as_deref().unwrap_or_default();
    free && phase != Some("Released")
        && phase != Some("Failed")
        && wanted.storage_class_name.as_deref().unwrap_or_default()
            == given.storage_class_name.as_deref().unwrap_or_default()
        && modes.into_iter().all(|mode| given_modes.contains(mode))
        && request(claim) <= capacity(volume)
}

fn is_for(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> bool {
    let of = volume
        .spec
        .as_ref()
        .and_then(|spec| spec.claim_ref.as_ref());
    of.is_some_and(|of| {
        of.name == claim.metadata.name
            && of.namespace == claim.metadata.namespace
            && (of.uid.is_none() || of.uid == claim.metadata.uid)
    })
}

fn request(claim: &PersistentVolumeClaim) -> Option<Amount> {
    let resources = claim.spec.as_ref()?.resources.as_ref()?;
    Amount::parse(&resources.requests.as_ref()?.get("storage")?.0).ok()
}

fn capacity(volume: &PersistentVolume) -> Option<Amount> {
    let capacity = volume.spec.as_ref()?.capacity.as_ref()?;
    Amount::parse(&capacity.get("storage")?.0).ok()
}

/// Ties claim and volume to each other: first the volume, so that nobody else takes it.
async fn bind(
    claim: &PersistentVolumeClaim,
    volume: &PersistentVolume,
    cx: &Context,
) -> Result<(), ClientError> {
    let client = cx.client();
    let volume = client
        .modify(volume, |v| {
            let spec = v.spec.get_or_insert_default();
            spec.claim_ref = Some(reference(claim));
        })
        .await?;
    client
        .modify_status(&volume, |v| {
            v.status.get_or_insert_default().phase = Some("Bound".to_owned());
        })
        .await?;
    let claim = client
        .modify(claim, |c| {
            c.spec.get_or_insert_default().volume_name = volume.metadata.name.clone();
            let notes = c.metadata.annotations.get_or_insert_default();
            notes.insert(
                "pv.kubernetes.io/bind-completed".to_owned(),
                "yes".to_owned(),
            );
            notes.insert(
                "pv.kubernetes.io/bound-by-controller".to_owned(),
                "yes".to_owned(),
            );
        })
        .await?;
    let given = volume.into_object().spec.unwrap_or_default();
    let bound = client.modify_status(&claim, |c| {
        let status = c.status.get_or_insert_default();
        status.phase = Some("Bound".to_owned());
        status.capacity = given.capacity;
        status.access_modes = given.access_modes;
    });
    bound.await.map(drop)
}

fn reference(claim: &PersistentVolumeClaim) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("PersistentVolumeClaim".to_owned()),
        name: claim.metadata.name.clone(),
        namespace: claim.metadata.namespace.clone(),
        uid: claim.metadata.uid.clone(),
        ..ObjectReference::default()
    }
}

/// Makes a volume for a claim whose class is simulated, once it is known where it is needed.
async fn provision(claim: &PersistentVolumeClaim, cx: &Context) -> Result<(), ClientError> {
    let name = claim
        .spec
        .as_ref()
        .and_then(|spec| spec.storage_class_name.as_deref());
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Ok(());
    };
    let Some(class) = cx.client().get::<StorageClass>(&Key::cluster(name)).await? else {
        let message = format!("storageclass.storage.k8s.io {name:?} not found");
        cx.event(claim, EventKind::Warning, "ProvisioningFailed", message);
        return Ok(());
    };
    if class.provisioner != PROVISIONER {
        return Ok(());
    }
    let waits = class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer");
    if waits && !claim.annotations().contains_key(SELECTED_NODE) {
        let message = "waiting for first consumer to be created before binding";
        cx.event(claim, EventKind::Normal, "WaitForFirstConsumer", message);
        return Ok(());
    }
    let volume = volume_for(claim, &class);
    match cx.client().create(&volume).await {
        Ok(made) => {
            let message = format!("Successfully provisioned volume {}", made.name_any());
            cx.event(claim, EventKind::Normal, "ProvisioningSucceeded", message);
            bind(claim, &made, cx).await
        }
        // An earlier run made it; the watch brings it.
        Err(error) if error.is_already_exists() => Ok(()),
        Err(error) => Err(error),
    }
}

fn volume_for(claim: &PersistentVolumeClaim, class: &StorageClass) -> PersistentVolume {
    let wanted = claim.spec.clone().unwrap_or_default();
    let requests = wanted.resources.and_then(|resources| resources.requests);
    let size = requests.and_then(|mut requests| requests.remove("storage"));
    let name = format!("pvc-{}", claim.metadata.uid.as_deref().unwrap_or_default());
    let mut volume = PersistentVolume::default();
    let note = (
        "pv.kubernetes.io/provisioned-by".to_owned(),
        PROVISIONER.to_owned(),
    );
    volume.metadata.annotations = Some(BTreeMap::from([note]));
    volume.spec = Some(PersistentVolumeSpec {
        access_modes: wanted.access_modes,
        capacity: Some(BTreeMap::from([(
            "storage".to_owned(),
            size.unwrap_or_else(|| Quantity("1Gi".to_owned())),
        )])),
        claim_ref: Some(reference(claim)),
        host_path: Some(HostPathVolumeSource {
            path: format!("/simulated/{name}"),
            type_: None,
        }),
        persistent_volume_reclaim_policy: class.reclaim_policy.clone(),
        storage_class_name: class.metadata.name.clone(),
        volume_mode: wanted.volume_mode,
        ..PersistentVolumeSpec::default()
    });
    volume.metadata.name = Some(name);
    volume
}

struct Reclaimer;

impl Reconciler<PersistentVolume> for Reclaimer {
    async fn reconcile(
        &self,
        volume: Arc<PersistentVolume>,
        cx: &Context,
    ) -> Result<Outcome, Error> {
        let phase = volume
            .status
            .as_ref()
            .and_then(|status| status.phase.as_deref());
        let Some(key) = claim_of(&volume) else {
            if matches!(phase, None | Some("Pending")) {
                set_phase(&volume, "Available", cx).await?;
            }
            return Ok(Outcome::done());
        };
        let claim = cx.client().get::<PersistentVolumeClaim>(&key).await?;
        let leaves = volume.metadata.deletion_timestamp.is_some();
        if claim.is_some_and(|claim| is_for(&claim, &volume))
            || !matches!(phase, Some("Bound" | "Released"))
        {
            return Ok(Outcome::done());
        }
        // The cache may be behind: only what the server says is gone is gone.
        let live: Option<PersistentVolumeClaim> = cx.client().live().get(&key).await?;
        if live.is_some_and(|claim| is_for(&claim, &volume)) {
            return Ok(Outcome::done());
        }
        // First this, or its protection would keep what is about to go.
        if phase == Some("Bound") {
            set_phase(&volume, "Released", cx).await?;
        }
        let policy = volume
            .spec
            .as_ref()
            .and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
        if policy == Some("Delete") && !leaves {
            let deleted = cx.client().delete(&*volume, Delete::background()).await;
            deleted.ignore_not_found()?;
        }
        Ok(Outcome::done())
    }
}

async fn set_phase(
    volume: &PersistentVolume,
    phase: &str,
    cx: &Context,
) -> Result<(), ClientError> {
    let set = cx.client().modify_status(volume, |v| {
        v.status.get_or_insert_default().phase = Some(phase.to_owned());
    });
    set.await.ignore_not_found().map(drop)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claim(class: &str, size: &str) -> PersistentVolumeClaim {
        serde_json::from_value(json!({
            "metadata": {"name": "c", "namespace": "n", "uid": "u"},
            "spec": {"storageClassName": class, "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": size}}},
        }))
        .expect("it is a claim")
    }

    #[test]
    fn claim_takes_what_is_free_and_large_enough() {
        let volume = |spec: serde_json::Value, phase: &str| -> PersistentVolume {
            let made = json!({"metadata": {"name": "v"}, "spec": spec, "status": {"phase": phase}});
            serde_json::from_value(made).expect("it is a volume")
        };
        let of = |class: &str, size: &str| json!({"storageClassName": class, "capacity": {"storage": size}, "accessModes": ["ReadWriteOnce", "ReadOnlyMany"]});
        let taken = |uid: &str| {
            let mut spec = of("a", "10Gi");
            spec["claimRef"] = json!({"name": "c", "namespace": "n", "uid": uid});
            spec
        };
        for (spec, phase, fit) in [
            (of("a", "10Gi"), "Available", true),
            (of("a", "5Gi"), "Available", true),
            (of("a", "4Gi"), "Available", false),
            (of("b", "10Gi"), "Available", false),
            (of("a", "10Gi"), "Released", false),
            (taken("u"), "Available", true),
            (taken("other"), "Bound", false),
        ] {
            let shown = format!("{spec} {phase}");
            assert_eq!(
                fits(&claim("a", "5Gi"), &volume(spec, phase)),
                fit,
                "{shown}"
            );
        }
    }

    #[test]
    fn simulated_volume_is_made_to_measure() {
        let mut class = StorageClass::default();
        class.metadata.name = Some("a".to_owned());
        class.reclaim_policy = Some("Delete".to_owned());
        let claim = claim("a", "5Gi");
        let volume = volume_for(&claim, &class);
        assert!(fits(&claim, &volume) && is_for(&claim, &volume));
        assert_eq!(volume.metadata.name.as_deref(), Some("pvc-u"));
    }
}
