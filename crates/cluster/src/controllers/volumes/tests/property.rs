//! Random users, crashes in the middle of a binding, a scheduler that chooses volumes, provisioners that make some, and
//! controllers that look at an older state.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::objects::{BIND_COMPLETED, claim_phase, claim_uid, has, volume_of};
use super::model::{Budget, Model};
use super::notation::{claim, class, uid, volume};

#[derive(Debug, Clone)]
enum Step {
    CreateClaim {
        name: u8,
        size: u8,
        named: Option<u8>,
        class: u8,
    },
    DeleteClaim(u8),
    CreateVolume {
        name: u8,
        size: u8,
        promised: Option<u8>,
        class: u8,
        policy: u8,
    },
    DeleteVolume(u8),
    /// A user frees a volume.
    Free(u8),
    /// The scheduler puts a pod that uses two claims on a node, and says so on volumes or claims.
    Schedule {
        claims: [u8; 2],
        node: u8,
        stale: bool,
        writes: u8,
    },
    /// Somebody else's provisioner makes a volume for a claim that asks for one, or deletes one that was released.
    Provision {
        name: u8,
        stale: bool,
    },
    /// The state that later looks may take for the present.
    Remember,
    SyncClaim {
        name: u8,
        stale: bool,
        writes: u8,
    },
    SyncVolume {
        name: u8,
        stale: bool,
        writes: u8,
    },
}

const NAMES: u8 = 4;
/// The names of volumes: those of users, and then those that were provisioned.
const VOLUMES: u8 = NAMES + 3;

fn step() -> impl Strategy<Value = Step> {
    let name = || 0..NAMES;
    let any_volume = || 0..VOLUMES;
    let (size, class) = (1_u8..4, 0_u8..5);
    // Most looks are complete; some end after a write.
    let writes = prop_oneof![3 => Just(u8::MAX), 2 => 0_u8..4];
    let look = || (name(), any::<bool>(), writes.clone());
    prop_oneof![
        3 => (name(), size.clone(), proptest::option::weighted(0.3, name()), class.clone())
            .prop_map(|(name, size, named, class)| Step::CreateClaim { name, size, named, class }),
        1 => name().prop_map(Step::DeleteClaim),
        3 => (name(), size, proptest::option::weighted(0.3, name()), class, 0_u8..3)
            .prop_map(|(name, size, promised, class, policy)| Step::CreateVolume { name, size, promised, class, policy }),
        1 => any_volume().prop_map(Step::DeleteVolume),
        1 => any_volume().prop_map(Step::Free),
        4 => (name(), name(), 0_u8..2, any::<bool>(), writes.clone())
            .prop_map(|(one, other, node, stale, writes)| Step::Schedule { claims: [one, other], node, stale, writes }),
        3 => (name(), any::<bool>()).prop_map(|(name, stale)| Step::Provision { name, stale }),
        2 => Just(Step::Remember),
        8 => look().prop_map(|(name, stale, writes)| Step::SyncClaim { name, stale, writes }),
        8 => (any_volume(), any::<bool>(), writes.clone())
            .prop_map(|(name, stale, writes)| Step::SyncVolume { name, stale, writes }),
    ]
}

const CLASSES: [&str; 5] = ["", "gold", "wait", "disk", "csi"];
/// Whose volumes `Step::Provision` makes.
const DRIVER: &str = "csi.example.com";
const POLICIES: [&str; 3] = ["Retain", "Delete", "Recycle"];

struct World {
    model: Model,
    /// An older state.
    past: Model,
    /// How many claims there have been: each has a uid of its own.
    born: usize,
    /// The volumes of claims that were bound once, by uid.
    settled: BTreeMap<String, String>,
}

impl World {
    fn new() -> Self {
        let mut model = Model::default();
        let nobody = "kubernetes.io/no-provisioner";
        for (name, provisioner, mode) in [
            ("gold", nobody, "Immediate"),
            ("wait", nobody, "WaitForFirstConsumer"),
            ("disk", "sim.kubewright.dev/disk", "Immediate"),
            ("csi", DRIVER, "WaitForFirstConsumer"),
        ] {
            model
                .classes
                .insert(name.to_owned(), class(name, provisioner, mode));
        }
        Self {
            past: model.clone(),
            model,
            born: 0,
            settled: BTreeMap::new(),
        }
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::CreateClaim {
                name,
                size,
                named,
                class,
            } => {
                let key = format!("c{name}");
                if !self.model.claims.contains_key(&key) {
                    self.born += 1;
                    let named = named.map_or("-".to_owned(), |volume| format!("v{volume}"));
                    let class = CLASSES[usize::from(*class)];
                    let born = self.born;
                    let text =
                        format!("{key} {size}Gi {named} Pending class={class} uid=u-{key}-{born}");
                    self.model.put_claim(claim(&text));
                }
            }
            Step::DeleteClaim(name) => drop(self.model.claims.remove(&format!("c{name}"))),
            Step::CreateVolume {
                name,
                size,
                promised,
                class,
                policy,
            } => {
                let key = format!("v{name}");
                if !self.model.volumes.contains_key(&key) {
                    let promised = promised.map_or("-".to_owned(), |claim| format!("c{claim}"));
                    let (class, policy) =
                        (CLASSES[usize::from(*class)], POLICIES[usize::from(*policy)]);
                    let text =
                        format!("{key} {size}Gi {promised} Pending class={class} policy={policy}");
                    self.model.put_volume(volume(&text));
                }
            }
            Step::DeleteVolume(name) => {
                let name = self.volume(*name);
                self.model.volumes.remove(&name);
            }
            Step::Free(name) => self.free(&self.volume(*name)),
            Step::Schedule {
                claims,
                node,
                stale,
                writes,
            } => {
                let (view, mut budget) = (self.view(*stale), Budget::from(*writes));
                let claims = claims.map(|claim| format!("c{claim}"));
                let node = format!("n{node}");
                let _ = self.model.schedule(&claims, &node, &view, &mut budget);
            }
            Step::Provision { name, stale } => {
                let view = self.view(*stale);
                self.model
                    .provision_outside(&format!("c{name}"), &view, DRIVER);
            }
            Step::Remember => self.past = self.model.clone(),
            Step::SyncClaim {
                name,
                stale,
                writes,
            } => {
                let (view, mut budget) = (self.view(*stale), Budget::from(*writes));
                // A look that fails is repeated later, as the queue does.
                let _ = self
                    .model
                    .sync_claim(&format!("c{name}"), &view, &mut budget);
            }
            Step::SyncVolume {
                name,
                stale,
                writes,
            } => {
                let (view, mut budget) = (self.view(*stale), Budget::from(*writes));
                let name = self.volume(*name);
                let _ = self.model.sync_volume(&name, &view, &mut budget);
            }
        }
    }

    /// The name of a volume by its number.
    fn volume(&self, number: u8) -> String {
        let Some(beyond) = number.checked_sub(NAMES) else {
            return format!("v{number}");
        };
        let made = self.model.volumes.keys();
        let mut made = made.filter(|name| name.starts_with("pvc-"));
        made.nth(beyond.into()).cloned().unwrap_or_default()
    }

    fn view(&self, stale: bool) -> Model {
        if stale {
            self.past.clone()
        } else {
            self.model.clone()
        }
    }

    fn free(&mut self, name: &str) {
        if let Some((_, volume)) = self.model.volumes.get(name) {
            let mut freed = volume.clone();
            let released = super::super::objects::volume_phase(&freed) == "Released";
            if released {
                freed.spec.get_or_insert_default().claim_ref = None;
                self.model.put_volume(freed);
            }
        }
    }

    fn check(&mut self) {
        let mut users: BTreeMap<&str, &str> = BTreeMap::new();
        for (_, claim) in self.model.claims.values() {
            let uid = claim.metadata.uid.as_deref().unwrap_or_default();
            let (Some(volume), true) = (volume_of(claim), claim_phase(claim) == "Bound") else {
                continue;
            };
            if let Some(other) = users.insert(volume, uid) {
                panic!("{volume} is bound to {other} and {uid}: {:#?}", self.model);
            }
        }
        for (_, claim) in self.model.claims.values() {
            let (Some(volume), true) = (volume_of(claim), has(&claim.metadata, BIND_COMPLETED))
            else {
                continue;
            };
            let uid = claim.metadata.uid.clone().unwrap_or_default();
            let settled = self
                .settled
                .entry(uid.clone())
                .or_insert_with(|| volume.to_owned());
            assert_eq!(settled, volume, "{uid} had another volume before");
        }
    }

    fn check_rest(&self) {
        let mut owners: BTreeMap<&str, &String> = BTreeMap::new();
        for (name, (_, volume)) in &self.model.volumes {
            let Some(uid) = claim_uid(volume) else {
                continue;
            };
            let alive = |claim: &str| {
                self.model
                    .claims
                    .values()
                    .any(|(_, c)| c.metadata.uid.as_deref() == Some(claim))
            };
            if alive(uid)
                && let Some(other) = owners.insert(uid, name)
            {
                panic!("{uid} has {other} and {name} at rest: {:#?}", self.model);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_volume_never_has_two_claims_nor_a_claim_two_volumes(steps in proptest::collection::vec(step(), 1..80)) {
        let mut world = World::new();
        for step in &steps {
            world.take(step);
            world.check();
        }
        world.model.settle();
        world.check();
        world.check_rest();
    }
}

#[test]
fn uids_of_the_tables_are_those_of_their_claims() {
    assert_eq!(claim("c 1Gi - Pending").metadata.uid, Some(uid("c")));
}
