//! Claims that ask for more than they have: the volume grows, then the claim says so.
//!
//! Simulated volumes grow at once and need nothing from a node. Those of other provisioners wait for their resizer
//! (`volume/expand/expand_controller.go: expand`). Whether a claim may grow at all is the server's to say.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use kubewright_runtime::{Context, Controller, Error, EventKind, Key, Outcome, Reconciler};
use kubewright_schema::quantity::Quantity;

use super::objects::{PROVISIONED_BY, capacity, claim_uid, is_bound, request, volume_of};
use super::provision::PROVISIONER;
use crate::writes::{patch_unchanged, report};

/// Grows volumes.
pub(crate) fn controller() -> Controller {
    Controller::of::<PersistentVolumeClaim>("volume-expand").reconciler(Expander)
}

/// What is to be done about the size of a claim's volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Nothing,
    /// The volume grows, and then the claim says so.
    Grow,
    /// The volume has grown; the claim says so.
    Report,
    /// Somebody else has to.
    WaitForOthers,
}

/// What is to be done. A claim never shrinks: a request below the capacity is the resizer's past.
fn step(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Step {
    let status = claim
        .status
        .as_ref()
        .and_then(|status| status.capacity.as_ref());
    let reported = status.and_then(|capacity| Quantity::parse(&capacity.get("storage")?.0).ok());
    let bound = is_bound(claim) && claim_uid(volume) == claim.metadata.uid.as_deref();
    let (Some(reported), Some(request)) = (reported, request(claim)) else {
        return Step::Nothing;
    };
    if !bound || request <= reported {
        return Step::Nothing;
    }
    let annotations = volume.metadata.annotations.as_ref();
    let by = annotations.and_then(|annotations| annotations.get(PROVISIONED_BY));
    if by.map(String::as_str) != Some(PROVISIONER) {
        return Step::WaitForOthers;
    }
    if capacity(volume).is_some_and(|capacity| capacity >= request) {
        Step::Report
    } else {
        Step::Grow
    }
}

struct Expander;

impl Reconciler<PersistentVolumeClaim> for Expander {
    async fn reconcile(
        &self,
        claim: Arc<PersistentVolumeClaim>,
        cx: &Context,
    ) -> Result<Outcome, Error> {
        let Some(name) = volume_of(&claim).filter(|_| is_bound(&claim)) else {
            return Ok(Outcome::done());
        };
        let volume = cx
            .client()
            .get::<PersistentVolume>(&Key::cluster(name))
            .await?;
        let Some(volume) = volume else {
            return Ok(Outcome::done());
        };
        match step(&claim, &volume) {
            Step::Nothing => {}
            Step::WaitForOthers => {
                let text = "waiting for an external controller to expand this PVC";
                cx.event(&*claim, EventKind::Normal, "ExternalExpanding", text);
            }
            Step::Grow => {
                let text = format!("External resizer is resizing volume {name}");
                cx.event(&*claim, EventKind::Normal, "Resizing", text);
                let mut grown = (*volume).clone();
                grown.spec.get_or_insert_default().capacity = requested(&claim);
                patch_unchanged(cx.client(), &*volume, &grown).await?;
                grow(&claim, cx).await?;
            }
            Step::Report => grow(&claim, cx).await?,
        }
        Ok(Outcome::done())
    }
}

/// Says on a claim that its volume is as large as it asks for.
async fn grow(claim: &PersistentVolumeClaim, cx: &Context) -> Result<(), Error> {
    let capacity = requested(claim);
    report(cx.client(), claim, |claim| {
        claim.status.get_or_insert_default().capacity = capacity;
    })
    .await?;
    let text = "Resize volume succeeded";
    cx.event(claim, EventKind::Normal, "VolumeResizeSuccessful", text);
    Ok(())
}

fn requested(claim: &PersistentVolumeClaim) -> Option<BTreeMap<String, Text>> {
    let resources = claim.spec.as_ref()?.resources.as_ref()?;
    let size = resources.requests.as_ref()?.get("storage")?.clone();
    Some(BTreeMap::from([("storage".to_owned(), size)]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(request: &str, reported: &str, volume: &str, by: &str, expected: Step) {
        let claim = json!({"metadata": {"name": "c", "namespace": "d", "uid": "u"},
            "spec": {"volumeName": "v", "resources": {"requests": {"storage": request}}},
            "status": {"phase": "Bound", "capacity": {"storage": reported}}});
        let volume = json!({"metadata": {"name": "v", "annotations": {PROVISIONED_BY: by}},
            "spec": {"capacity": {"storage": volume}, "claimRef": {"namespace": "d", "name": "c", "uid": "u"}}});
        let claim = serde_json::from_value(claim).expect("a claim");
        let volume = serde_json::from_value(volume).expect("a volume");
        assert_eq!(step(&claim, &volume), expected, "{request} {reported}");
    }

    #[test]
    fn claim_grows_when_it_asks_for_more_than_it_has() {
        check("1Gi", "1Gi", "1Gi", PROVISIONER, Step::Nothing);
        check("2Gi", "1Gi", "1Gi", PROVISIONER, Step::Grow);
        check("2Gi", "1Gi", "2Gi", PROVISIONER, Step::Report);
        check("2Gi", "1Gi", "1Gi", "csi.example.com", Step::WaitForOthers);
        check("1Gi", "2Gi", "2Gi", PROVISIONER, Step::Nothing);
        check("1Gi", "10Gi", "10Gi", "", Step::Nothing);
    }
}
