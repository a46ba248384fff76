//! Generic ephemeral volumes: each gets a claim that the pod owns, made from the template in the pod.
//!
//! Mirrors `volume/ephemeral/controller.go: handleVolume`. A claim of that name that belongs to somebody else is never
//! used; the pod gets an event and waits.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    EphemeralVolumeSource, PersistentVolumeClaim, PersistentVolumeClaimTemplate, Pod, Volume,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubewright_runtime::owners::is_controlled_by;
use kubewright_runtime::{
    Context, Controller, Error, EventKind, Key, Outcome, Predicate, Reconciler,
};

use super::WORKERS;
use crate::pods::claim::controller_reference;
use crate::pods::is_terminating;
use crate::writes::said;

/// Makes the claims of generic ephemeral volumes.
pub(crate) fn controller() -> Controller {
    let with_volumes = |pod: &Pod| ephemeral(pod).next().is_some();
    Controller::of::<Pod>("ephemeral-volume-controller")
        .when(Predicate::value(with_volumes))
        .owns::<PersistentVolumeClaim>()
        .workers(WORKERS)
        .reconciler(EphemeralVolumes)
}

/// The generic ephemeral volumes of a pod.
fn ephemeral(pod: &Pod) -> impl Iterator<Item = (&Volume, &EphemeralVolumeSource)> {
    let volumes = pod
        .spec
        .iter()
        .flat_map(|spec| spec.volumes.iter().flatten());
    volumes.filter_map(|volume| Some((volume, volume.ephemeral.as_ref()?)))
}

/// The name of the claim that is made for a volume of a pod (`component-helpers/storage/ephemeral`).
pub(crate) fn claim_name(pod: &Pod, volume: &str) -> String {
    let pod = pod.metadata.name.as_deref().unwrap_or_default();
    format!("{pod}-{volume}")
}

/// The claim that is made for a volume of a pod.
fn claim(
    pod: &Pod,
    volume: &Volume,
    template: &PersistentVolumeClaimTemplate,
) -> PersistentVolumeClaim {
    let given = template.metadata.clone().unwrap_or_default();
    PersistentVolumeClaim {
        metadata: ObjectMeta {
            name: Some(claim_name(pod, &volume.name)),
            namespace: pod.metadata.namespace.clone(),
            labels: given.labels,
            annotations: given.annotations,
            owner_references: Some(vec![controller_reference(pod)]),
            ..ObjectMeta::default()
        },
        spec: Some(template.spec.clone()),
        status: None,
    }
}

struct EphemeralVolumes;

impl Reconciler<Pod> for EphemeralVolumes {
    async fn reconcile(&self, pod: Arc<Pod>, cx: &Context) -> Result<Outcome, Error> {
        if is_terminating(&pod) {
            return Ok(Outcome::done());
        }
        for (volume, source) in ephemeral(&pod) {
            let Some(template) = &source.volume_claim_template else {
                continue;
            };
            if let Err(error) = ensure(cx, &pod, claim(&pod, volume, template)).await {
                let message = format!("ephemeral volume {}: {error}", volume.name);
                cx.event(&*pod, EventKind::Warning, "FailedBinding", message);
                return Err(error);
            }
        }
        Ok(Outcome::done())
    }
}

/// Sees to it that a claim exists and is the pod's.
async fn ensure(cx: &Context, pod: &Pod, claim: PersistentVolumeClaim) -> Result<(), Error> {
    let name = claim.metadata.name.clone().unwrap_or_default();
    let key = Key::new(cx.key().namespace().unwrap_or_default(), &name);
    if let Some(there) = cx.client().get::<PersistentVolumeClaim>(&key).await? {
        if is_controlled_by(pod, &*there) {
            return Ok(());
        }
        let (namespace, pod) = (cx.key().namespace().unwrap_or_default(), cx.key().name());
        return Err(Error::msg(format!(
            "PVC {namespace}/{name} was not created for pod {namespace}/{pod} (pod is not owner)"
        )));
    }
    match cx.client().create(&claim).await {
        // Another look made it, or nothing is made there any more; the watch brings what there is.
        Err(error) if error.is_namespace_terminating() => Ok(()),
        Err(error) => Err(Error::msg(format!("create PVC {name}: {}", said(&error)))),
        Ok(_) => Ok(()),
    }
}
