//! The tables of the real controller's unit tests as data (`cases.txt`).

use k8s_openapi::api::storage::v1::StorageClass;

use super::model::{Budget, Failed, Model};
use super::notation::{by_default, claim, class, shown_claim, shown_volume, volume};

/// The cases, one a line, in sections by what is looked at.
const CASES: &str = include_str!("cases.txt");

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// One claim, as in `syncClaim`.
    Claim,
    /// One volume, as in `syncVolume`.
    Volume,
    /// Everything, until nothing changes.
    All,
    /// One claim; then somebody else makes a volume, and everything is looked at.
    Provisioned,
}

/// The columns of a case.
type Case = [&'static str; 7];

/// The cases of a section.
fn cases(section: Look) -> Vec<Case> {
    let mut current = None;
    let mut found = Vec::new();
    for line in CASES.lines() {
        match line {
            "# claim" => current = Some(Look::Claim),
            "# volume" => current = Some(Look::Volume),
            "# all" => current = Some(Look::All),
            "# provisioned" => current = Some(Look::Provisioned),
            _ if line.starts_with('#') || current != Some(section) => {}
            _ => {
                let mut columns = line.split('|').map(str::trim);
                found.push(std::array::from_fn(|_| columns.next().unwrap_or_default()));
            }
        }
    }
    found
}

fn list(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.split(',').map(str::trim).filter(|one| !one.is_empty())
}

/// The classes of the tables; some are what claims get that name none.
fn classes(defaults: &'static str) -> impl Iterator<Item = StorageClass> {
    let own = "sim.kubewright.dev/disk";
    let classes = [
        ("gold", own, "Immediate"),
        ("silver", own, "Immediate"),
        ("copper", own, "WaitForFirstConsumer"),
        (
            "wait",
            "kubernetes.io/no-provisioner",
            "WaitForFirstConsumer",
        ),
        ("external", "vendor.com/my-volume", "Immediate"),
        (
            "external-wait",
            "vendor.com/my-volume-wait",
            "WaitForFirstConsumer",
        ),
        ("unknown", "kubernetes.io/unknown", "Immediate"),
        ("migrated", "kubernetes.io/gce-pd", "Immediate"),
        ("csi", "mydriver.csi.k8s.io", "Immediate"),
    ];
    let is_default = move |name: &str| list(defaults).any(|one| one == name);
    classes.into_iter().map(move |(name, provisioner, mode)| {
        let class = class(name, provisioner, mode);
        if is_default(name) {
            by_default(class)
        } else {
            class
        }
    })
}

/// The state of the server, and what the cache knows of it.
fn before(volumes: &'static str, claims: &'static str, defaults: &'static str) -> (Model, Model) {
    let (mut server, mut cache) = (Model::default(), Model::default());
    for class in classes(defaults) {
        let name = class.metadata.name.clone().unwrap_or_default();
        server.classes.insert(name.clone(), class.clone());
        cache.classes.insert(name, class);
    }
    // The same number of writes for both, so that what both know is known in the same version.
    for text in list(volumes) {
        let (text, there, known) = placed(text);
        server.put_volume_if(there, &volume(text));
        cache.put_volume_if(known, &volume(text));
    }
    for text in list(claims) {
        let (text, there, known) = placed(text);
        server.put_claim_if(there, &claim(text));
        cache.put_claim_if(known, &claim(text));
    }
    (server, cache)
}

/// What is written down without where it is: on the server, and in the cache.
fn placed(text: &str) -> (&str, bool, bool) {
    match (text.strip_suffix(" unseen"), text.strip_suffix(" stale")) {
        (Some(text), _) => (text, true, false),
        (_, Some(text)) => (text, false, true),
        _ => (text, true, true),
    }
}

fn look_at(look: Look, model: &mut Model, cache: &Model) -> Result<(), Failed> {
    let mut unlimited = Budget::MAX;
    let first = |names: Vec<&String>| names.first().map(|name| (*name).clone()).expect("one");
    match look {
        Look::Claim => {
            let name = first(cache.claims.keys().collect());
            model.sync_claim(&name, cache, &mut unlimited)
        }
        Look::Volume => {
            let name = first(cache.volumes.keys().collect());
            model.sync_volume(&name, cache, &mut unlimited)
        }
        Look::All => {
            model.settle();
            Ok(())
        }
        Look::Provisioned => {
            let made = std::mem::take(&mut model.volumes);
            let none = model.clone();
            look_at(Look::Claim, model, &none)?;
            model.volumes = made;
            model.settle();
            Ok(())
        }
    }
}

/// What is different from what a case says.
fn check(look: Look, case: &Case) -> Vec<String> {
    let [
        name,
        volumes,
        volumes_after,
        claims,
        claims_after,
        events,
        defaults,
    ] = case;
    let (mut model, cache) = before(volumes, claims, defaults);
    let looked = look_at(look, &mut model, &cache);
    let volumes = list(volumes_after).map(|text| shown_volume(&volume(text)));
    let claims = list(claims_after).map(|text| shown_claim(&claim(text)));
    let expected: Vec<_> = volumes
        .chain(claims)
        .chain([(*events).to_owned()])
        .collect();
    let mut happened: Vec<&str> = model.events.clone();
    happened.extend(vec!["error"; model.errors]);
    happened.extend(looked.is_err().then_some("conflict"));
    happened.dedup();
    let volumes = model
        .volumes
        .values()
        .map(|(_, volume)| shown_volume(volume));
    let claims = model.claims.values().map(|(_, claim)| shown_claim(claim));
    let got: Vec<_> = volumes.chain(claims).chain([happened.join(",")]).collect();
    let differs = (got != expected).then(|| format!("{name}:\n got {got:#?}\n not {expected:#?}"));
    differs.into_iter().collect()
}

fn check_all(look: Look, count: usize) {
    let cases = cases(look);
    let wrong: Vec<_> = cases.iter().flat_map(|case| check(look, case)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(cases.len(), count, "cases of {look:?}");
}

/// `binder_test.go: TestSync, TestSyncBlockVolume`, `provision_test.go: TestProvisionSync` and
/// `pv_controller_test.go: TestRetroactiveStorageClassAssignment` over `pv_controller.go: syncClaim`.
#[test]
fn claims_are_bound_lost_or_wait_as_the_real_controller_decides() {
    check_all(Look::Claim, 83);
}

/// `binder_test.go: TestSync, TestSyncBlockVolume`, `recycle_test.go: TestRecycleSync` and `delete_test.go: TestDeleteSync`
/// over `pv_controller.go: syncVolume`.
#[test]
fn volumes_are_available_bound_released_or_freed_as_the_real_controller_decides() {
    check_all(Look::Volume, 39);
}

/// `binder_test.go: TestMultiSync`, `provision_test.go: TestProvisionMultiSync`, `pv_controller_test.go: TestControllerSync`.
#[test]
fn races_come_to_rest_with_one_volume_a_claim() {
    check_all(Look::All, 7);
    check_all(Look::Provisioned, 2);
}
