//! What others do to claims and volumes besides the binder: the scheduler, and provisioners outside of the cluster.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kubewright_runtime::Key;
use serde_json::json;

use super::super::binding::{bind_volume, reference};
use super::super::objects::{
    PROVISIONED_BY, SELECTED_NODE, STORAGE_PROVISIONER, annotate, annotation, claim_of,
    volume_class, volume_of, volume_phase, waits_for_consumer,
};
use super::model::{Budget, Failed, Model};
use super::notation::volume;
use crate::scheduler::board::Board;
use crate::scheduler::demand::{Claim, Origin};
use crate::scheduler::volumes::{Storage, assess};

impl Storage for Model {
    fn claim(&self, key: &Key) -> Option<Arc<PersistentVolumeClaim>> {
        let (_, claim) = self.claims.get(key.name())?;
        Some(Arc::new(claim.clone()))
    }

    fn volume(&self, name: &str) -> Option<Arc<PersistentVolume>> {
        let (_, volume) = self.volumes.get(name)?;
        Some(Arc::new(volume.clone()))
    }

    fn class(&self, name: &str) -> Option<Arc<StorageClass>> {
        self.classes.get(name).cloned().map(Arc::new)
    }

    fn volumes_for(&self, class: &str, claim: &Key) -> Vec<Arc<PersistentVolume>> {
        let volumes = self.volumes.values().map(|(_, volume)| volume);
        let meant = volumes.filter(|volume| match claim_of(volume) {
            Some(key) => key == *claim,
            None => volume_class(volume) == class,
        });
        meant.cloned().map(Arc::new).collect()
    }
}

impl Model {
    /// Puts a pod with these claims on a node as `view` has them, and writes what that means as the scheduler does:
    /// volumes in the state in which they were seen, claims in whatever state they are.
    pub(super) fn schedule(
        &mut self,
        claims: &[String],
        node: &str,
        view: &Model,
        budget: &mut Budget,
    ) -> Result<(), Failed> {
        let claim = |name: &String| Claim {
            key: Key::new("d", name),
            origin: Origin::Named,
        };
        let claims: Vec<_> = claims.iter().map(claim).collect();
        let object: Node =
            serde_json::from_value(json!({"metadata": {"name": node}})).expect("a node");
        let mut board = Board::default();
        board.put_node(&object);
        let place = board.node(node).expect("it was put there");
        let Some(choices) = assess(&claims, view)
            .ok()
            .and_then(|volumes| volumes.choose(place))
        else {
            return Ok(());
        };
        for choice in choices {
            let claim = view.claim(&choice.claim).expect("it was seen");
            match choice.volume {
                Some(volume) => {
                    let name = volume.metadata.name.as_deref().unwrap_or_default();
                    let seen = view.volumes.get(name).map_or(0, |(version, _)| *version);
                    let mut promised = (*volume).clone();
                    bind_volume(&mut promised, &claim);
                    self.write_volume(seen, promised, budget)?;
                }
                None => self.select_node(choice.claim.name(), node, budget)?,
            }
        }
        Ok(())
    }

    fn select_node(&mut self, claim: &str, node: &str, budget: &mut Budget) -> Result<(), Failed> {
        let (version, claim) = self.claims.get(claim).ok_or(Failed)?;
        let (version, mut selected) = (*version, claim.clone());
        annotate(&mut selected.metadata, SELECTED_NODE, node);
        self.write_claim(version, selected, budget).map(drop)
    }

    /// A provisioner looks at a claim as `view` has it: it makes the volume that the claim asks it for, and deletes its
    /// volumes that were released.
    pub(super) fn provision_outside(&mut self, name: &str, view: &Model, driver: &str) {
        self.volumes.retain(|_, (_, volume)| {
            let own = annotation(&volume.metadata, PROVISIONED_BY) == Some(driver);
            !(own && volume_phase(volume) == "Released")
        });
        let Some((_, claim)) = view.claims.get(name) else {
            return;
        };
        let asked = annotation(&claim.metadata, STORAGE_PROVISIONER[0]) == Some(driver);
        if asked && volume_of(claim).is_none() {
            self.make_outside(claim, driver);
        }
    }

    fn make_outside(&mut self, claim: &PersistentVolumeClaim, driver: &str) {
        let class = claim.spec.clone().and_then(|spec| spec.storage_class_name);
        let class = class.unwrap_or_default();
        let waits = self.classes.get(&class).is_some_and(waits_for_consumer);
        if waits && annotation(&claim.metadata, SELECTED_NODE).is_none() {
            return;
        }
        let name = format!("pvc-{}", claim.metadata.uid.as_deref().unwrap_or_default());
        if self.volumes.contains_key(&name) {
            return;
        }
        let text = format!(
            "{name} 5Gi - Pending class={class} policy=Delete driver={driver} provisioned={driver}"
        );
        let mut made = volume(&text);
        made.spec.get_or_insert_default().claim_ref = Some(reference(claim));
        self.put_volume(made);
    }
}
