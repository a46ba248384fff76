//! A store of claims and volumes without a server: steps are carried out on it as the shell does, write by write, and a
//! write of an object that has changed since it was looked at fails.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;

use super::super::binding;
use super::super::default_class;
use super::super::objects::{claim_of, class_named, volume_of};
use super::super::plan::{
    ClaimStep, Class, Reclaim, Surroundings, VolumeStep, claim_step, is_news_of_release,
    volume_step,
};
use super::super::provision::{Maker, asked, simulated};

/// Claims, volumes and classes by name, each with the number of its last write.
#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    pub(super) claims: BTreeMap<String, (u64, PersistentVolumeClaim)>,
    pub(super) volumes: BTreeMap<String, (u64, PersistentVolume)>,
    pub(super) classes: BTreeMap<String, StorageClass>,
    pub(super) events: Vec<&'static str>,
    pub(super) errors: usize,
    writes: u64,
}

/// A write did not happen: the object has changed, or the process has ended.
#[derive(Debug)]
pub(super) struct Failed;

/// How many writes there are until the process ends.
pub(super) type Budget = usize;

impl Model {
    pub(super) fn put_claim(&mut self, claim: PersistentVolumeClaim) {
        self.writes += 1;
        let name = claim.metadata.name.clone().unwrap_or_default();
        self.claims.insert(name, (self.writes, claim));
    }

    pub(super) fn put_volume(&mut self, volume: PersistentVolume) {
        self.writes += 1;
        let name = volume.metadata.name.clone().unwrap_or_default();
        self.volumes.insert(name, (self.writes, volume));
    }

    /// Puts a volume where it is there at all; it counts as a write in any case.
    pub(super) fn put_volume_if(&mut self, there: bool, volume: &PersistentVolume) {
        if there {
            self.put_volume(volume.clone());
        } else {
            self.writes += 1;
        }
    }

    /// The same for a claim.
    pub(super) fn put_claim_if(&mut self, there: bool, claim: &PersistentVolumeClaim) {
        if there {
            self.put_claim(claim.clone());
        } else {
            self.writes += 1;
        }
    }

    /// Looks at a claim as `view` has it, and writes here.
    pub(super) fn sync_claim(
        &mut self,
        name: &str,
        view: &Model,
        budget: &mut Budget,
    ) -> Result<(), Failed> {
        let Some((seen, claim)) = view.claims.get(name).cloned() else {
            return Ok(());
        };
        match claim_step(&claim, &view.surroundings(&claim)) {
            ClaimStep::Wait(note) => {
                self.events.extend(note.map(|note| note.reason));
                let mut waiting = claim.clone();
                binding::set_unbound(&mut waiting, "Pending");
                self.write_claim(seen, waiting, budget).map(drop)
            }
            ClaimStep::Lose(note) => {
                self.events.push(note.reason);
                let mut lost = claim.clone();
                binding::set_unbound(&mut lost, "Lost");
                self.write_claim(seen, lost, budget).map(drop)
            }
            ClaimStep::Refuse(note) => {
                self.events.push(note.reason);
                self.errors += 1;
                Ok(())
            }
            ClaimStep::SetClass(class) => {
                let mut classed = claim.clone();
                classed.spec.get_or_insert_default().storage_class_name = Some(class);
                self.write_claim(seen, classed, budget).map(drop)
            }
            ClaimStep::Provision(class) => self.provision((seen, claim), &class, budget),
            ClaimStep::Bind(volume) => {
                let version = view
                    .volumes
                    .get(volume.metadata.name.as_deref().unwrap_or_default());
                let version = version.map_or(0, |(version, _)| *version);
                self.bind((seen, claim), (version, (*volume).clone()), budget)
            }
        }
    }

    /// Asks for a volume; one that is made here is bound at once, as the shell does.
    fn provision(
        &mut self,
        (seen, claim): (u64, PersistentVolumeClaim),
        class: &StorageClass,
        budget: &mut Budget,
    ) -> Result<(), Failed> {
        let maker = Maker::of(class);
        if maker == Maker::Nobody {
            self.events.push("ProvisioningFailed");
            let mut waiting = claim;
            binding::set_unbound(&mut waiting, "Pending");
            return self.write_claim(seen, waiting, budget).map(drop);
        }
        let mut asked = asked(&claim, maker);
        let seen = self.write_claim(seen, asked.clone(), budget)?;
        if maker != Maker::Simulation {
            self.events.push("ExternalProvisioning");
            binding::set_unbound(&mut asked, "Pending");
            return self.write_claim(seen, asked, budget).map(drop);
        }
        let made = simulated(&asked, class);
        let name = made.metadata.name.clone().unwrap_or_default();
        if self.volumes.contains_key(&name) {
            return Ok(());
        }
        if *budget == 0 {
            return Err(Failed);
        }
        *budget -= 1;
        self.put_volume(made.clone());
        self.events.push("ProvisioningSucceeded");
        self.bind((seen, asked), (self.writes, made), budget)
    }

    fn bind(
        &mut self,
        (seen, claim): (u64, PersistentVolumeClaim),
        (version, volume): (u64, PersistentVolume),
        budget: &mut Budget,
    ) -> Result<(), Failed> {
        let mut bound = volume.clone();
        binding::bind_volume(&mut bound, &claim);
        let version = self.write_volume(version, bound.clone(), budget)?;
        binding::set_volume_phase(&mut bound, "Bound");
        self.write_volume(version, bound.clone(), budget)?;
        let mut tied = claim;
        binding::bind_claim(&mut tied, &bound);
        let seen = self.write_claim(seen, tied.clone(), budget)?;
        binding::set_bound(&mut tied, &bound);
        self.write_claim(seen, tied, budget).map(drop)
    }

    /// Looks at a volume as `view` has it; what is to be released is looked at here again, as the shell asks the server.
    pub(super) fn sync_volume(
        &mut self,
        name: &str,
        view: &Model,
        budget: &mut Budget,
    ) -> Result<(), Failed> {
        let Some((seen, volume)) = view.volumes.get(name).cloned() else {
            return Ok(());
        };
        let claim_in = |model: &Model| {
            let key = claim_of(&volume)?;
            model.claims.get(key.name()).map(|(_, claim)| claim.clone())
        };
        let mut changed = volume.clone();
        let mut step = volume_step(&volume, claim_in(view).as_ref());
        if matches!(step, VolumeStep::Release(_)) {
            step = volume_step(&volume, claim_in(self).as_ref());
        }
        match step {
            VolumeStep::Leave => return Ok(()),
            VolumeStep::RefuseMode => {
                self.events.push("VolumeMismatch");
                return Ok(());
            }
            VolumeStep::MarkAvailable => binding::set_volume_phase(&mut changed, "Available"),
            VolumeStep::MarkBound => binding::set_volume_phase(&mut changed, "Bound"),
            VolumeStep::Unbind => {
                binding::unbind_volume(&mut changed);
                let seen = self.write_volume(seen, changed.clone(), budget)?;
                binding::set_volume_phase(&mut changed, "Available");
                return self.write_volume(seen, changed, budget).map(drop);
            }
            VolumeStep::Release(how) => {
                if is_news_of_release(&volume) {
                    binding::set_volume_phase(&mut changed, "Released");
                }
                let seen = self.write_volume(seen, changed.clone(), budget)?;
                match how {
                    Reclaim::Retain | Reclaim::DeleteByOthers => {}
                    Reclaim::Delete => drop(self.volumes.remove(name)),
                    Reclaim::Recycle => {
                        binding::unbind_volume(&mut changed);
                        binding::set_volume_phase(&mut changed, "Available");
                        self.write_volume(seen, changed, budget)?;
                    }
                }
                return Ok(());
            }
        }
        self.write_volume(seen, changed, budget).map(drop)
    }

    /// Lets everything come to rest.
    pub(super) fn settle(&mut self) {
        let mut unlimited = Budget::MAX;
        for _ in 0..50 {
            let before = self.clone();
            for name in before.claims.keys() {
                let view = self.clone();
                self.sync_claim(name, &view, &mut unlimited)
                    .expect("nothing is in its way");
            }
            for name in before.volumes.keys() {
                let view = self.clone();
                self.sync_volume(name, &view, &mut unlimited)
                    .expect("nothing is in its way");
            }
            if before.writes == self.writes && before.volumes.len() == self.volumes.len() {
                return;
            }
        }
        panic!("it does not come to rest: {self:#?}");
    }

    fn surroundings(&self, claim: &PersistentVolumeClaim) -> Surroundings {
        let named = volume_of(claim).and_then(|name| self.volumes.get(name));
        let classes: Vec<_> = self.classes.values().cloned().map(Arc::new).collect();
        let class = match class_named(claim) {
            Some("") => Class::None,
            Some(name) => match self.classes.get(name) {
                Some(class) => Class::Found(Arc::new(class.clone())),
                None => Class::Missing(name.to_owned()),
            },
            None => default_class(&classes).map_or(Class::None, Class::Default),
        };
        let volumes = self
            .volumes
            .values()
            .map(|(_, volume)| Arc::new(volume.clone()));
        Surroundings {
            named: named.map(|(_, volume)| Arc::new(volume.clone())),
            volumes: volumes.collect(),
            class,
        }
    }

    pub(super) fn write_claim(
        &mut self,
        seen: u64,
        claim: PersistentVolumeClaim,
        budget: &mut Budget,
    ) -> Result<u64, Failed> {
        let name = claim.metadata.name.clone().unwrap_or_default();
        let (version, known) = self.claims.get(&name).ok_or(Failed)?;
        if *known == claim {
            return Ok(*version);
        }
        if *version != seen || *budget == 0 {
            return Err(Failed);
        }
        *budget -= 1;
        self.put_claim(claim);
        Ok(self.writes)
    }

    pub(super) fn write_volume(
        &mut self,
        seen: u64,
        volume: PersistentVolume,
        budget: &mut Budget,
    ) -> Result<u64, Failed> {
        let name = volume.metadata.name.clone().unwrap_or_default();
        let (version, known) = self.volumes.get(&name).ok_or(Failed)?;
        if *known == volume {
            return Ok(*version);
        }
        if *version != seen || *budget == 0 {
            return Err(Failed);
        }
        *budget -= 1;
        self.put_volume(volume);
        Ok(self.writes)
    }
}
