//! A store of claims and volumes without a server: steps are carried out on it as the shell does, write by write, and a
//! write of an object that has changed since it was looked at fails.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use serde_json::{Value, json};

use super::super::binding;
use super::super::objects::{
    BIND_COMPLETED, BOUND_BY_CONTROLLER, PROVISIONED_BY, SELECTED_NODE, claim_of, claim_phase,
    claim_uid, class_of, volume_of, volume_phase,
};
use super::super::plan::{
    ClaimStep, Class, Reclaim, Surroundings, VolumeStep, claim_step, is_news_of_release,
    volume_step,
};

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
            ClaimStep::Refuse(_) => {
                self.errors += 1;
                Ok(())
            }
            ClaimStep::SetClass(class) => {
                let mut classed = claim.clone();
                classed.spec.get_or_insert_default().storage_class_name = Some(class);
                self.write_claim(seen, classed, budget).map(drop)
            }
            ClaimStep::Provision(_) => {
                self.events.push("Provision");
                Ok(())
            }
            ClaimStep::Bind(volume) => {
                let version = view
                    .volumes
                    .get(volume.metadata.name.as_deref().unwrap_or_default());
                let version = version.map_or(0, |(version, _)| *version);
                self.bind((seen, claim), (version, (*volume).clone()), budget)
            }
        }
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
        match volume_step(&volume, claim_in(view).as_ref()) {
            VolumeStep::Leave => return Ok(()),
            VolumeStep::MarkAvailable => binding::set_volume_phase(&mut changed, "Available"),
            VolumeStep::MarkBound => binding::set_volume_phase(&mut changed, "Bound"),
            VolumeStep::Unbind => {
                binding::unbind_volume(&mut changed);
                let seen = self.write_volume(seen, changed.clone(), budget)?;
                binding::set_volume_phase(&mut changed, "Available");
                return self.write_volume(seen, changed, budget).map(drop);
            }
            VolumeStep::Release(how) => {
                let live = claim_in(self);
                if !matches!(volume_step(&volume, live.as_ref()), VolumeStep::Release(_)) {
                    return Ok(());
                }
                if is_news_of_release(&volume) {
                    binding::set_volume_phase(&mut changed, "Released");
                }
                let seen = self.write_volume(seen, changed.clone(), budget)?;
                match how {
                    Reclaim::Retain => {}
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
        let class = match claim
            .spec
            .as_ref()
            .and_then(|spec| spec.storage_class_name.as_deref())
        {
            None | Some("") => Class::None,
            Some(name) => match self.classes.get(name) {
                Some(class) => Class::Found(Arc::new(class.clone())),
                None => Class::Missing(name.to_owned()),
            },
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

    fn write_claim(
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

    fn write_volume(
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

/// Words that stand for annotations.
const WORDS: [(&str, &str); 4] = [
    ("by-controller", BOUND_BY_CONTROLLER),
    ("completed", BIND_COMPLETED),
    ("provisioned", PROVISIONED_BY),
    ("selected", SELECTED_NODE),
];

/// Reads `NAME SIZE [CLAIM[:UID]] PHASE WORDS..` as a volume; `-` stands for no claim.
pub(super) fn volume(text: &str) -> PersistentVolume {
    let mut words = text.split_whitespace();
    let mut next = || words.next().expect("a word");
    let (name, size, claim, phase) = (next(), next(), next(), next());
    let (claim, uid) = claim.split_once(':').unwrap_or((claim, ""));
    let claim = match claim {
        "-" => Value::Null,
        name => {
            json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "d", "name": name,
            "uid": Some(uid).filter(|uid| !uid.is_empty())})
        }
    };
    let mut volume = json!({"metadata": {"name": name}, "status": {"phase": phase},
        "spec": {"capacity": {"storage": size}, "claimRef": claim, "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain"}});
    for word in words {
        apply(&mut volume, word);
    }
    serde_json::from_value(volume).expect("a volume")
}

/// Reads `NAME SIZE VOLUME PHASE WORDS..` as a claim with the uid `u-NAME`; `-` stands for no volume.
pub(super) fn claim(text: &str) -> PersistentVolumeClaim {
    let mut words = text.split_whitespace();
    let mut next = || words.next().expect("a word");
    let (name, size, volume, phase) = (next(), next(), next(), next());
    let mut claim = json!({"metadata": {"namespace": "d", "name": name, "uid": format!("u-{name}")},
        "spec": {"volumeName": Some(volume).filter(|volume| *volume != "-"), "accessModes": ["ReadWriteOnce"],
            "storageClassName": "", "resources": {"requests": {"storage": size}}},
        "status": {"phase": phase}});
    for word in words {
        apply(&mut claim, word);
    }
    serde_json::from_value(claim).expect("a claim")
}

fn apply(object: &mut Value, word: &str) {
    if let Some((_, annotation)) = WORDS.iter().find(|(name, _)| *name == word) {
        object["metadata"]["annotations"][*annotation] = json!("yes");
        return;
    }
    let (key, value) = word.split_once('=').expect("KEY=VALUE");
    let spec = &mut object["spec"];
    match key {
        "class" => spec["storageClassName"] = json!(value),
        "mode" => spec["volumeMode"] = json!(value),
        "policy" => spec["persistentVolumeReclaimPolicy"] = json!(value),
        "modes" => spec["accessModes"] = json!(value.split('+').collect::<Vec<_>>()),
        "selector" => spec["selector"] = json!({"matchLabels": {value: "true"}}),
        "label" => object["metadata"]["labels"] = json!({value: "true"}),
        "uid" => object["metadata"]["uid"] = json!(value),
        "deleted" => object["metadata"]["deletionTimestamp"] = json!(value),
        _ => panic!("{word} means nothing"),
    }
}

/// What is compared: names, pointers, phases and who chose.
pub(super) fn shown_volume(volume: &PersistentVolume) -> String {
    let claim = claim_of(volume).map_or("-".to_owned(), |key| key.name().to_owned());
    let uid = claim_uid(volume).map_or(String::new(), |uid| format!(":{uid}"));
    let name = volume.metadata.name.as_deref().unwrap_or_default();
    let annotations = shown_annotations(volume.metadata.annotations.as_ref());
    format!("{name} {claim}{uid} {}{annotations}", volume_phase(volume))
}

/// The same of a claim.
pub(super) fn shown_claim(claim: &PersistentVolumeClaim) -> String {
    let name = claim.metadata.name.as_deref().unwrap_or_default();
    let annotations = shown_annotations(claim.metadata.annotations.as_ref());
    let (volume, phase) = (volume_of(claim).unwrap_or("-"), claim_phase(claim));
    let class = class_of(claim);
    format!("{name} {volume} {phase} {class:?}{annotations}")
}

fn shown_annotations(annotations: Option<&BTreeMap<String, String>>) -> String {
    let has = |key: &str| annotations.is_some_and(|all| all.contains_key(key));
    let words = WORDS.iter().filter(|(_, annotation)| has(annotation));
    words.map(|(word, _)| format!(" {word}")).collect()
}

/// A class with a provisioner and a binding mode.
pub(super) fn class(name: &str, provisioner: &str, mode: &str) -> StorageClass {
    let class =
        json!({"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode});
    serde_json::from_value(class).expect("a class")
}

/// The claim's uid, to make a volume that is promised to it.
pub(super) fn uid(claim: &str) -> String {
    format!("u-{claim}")
}
