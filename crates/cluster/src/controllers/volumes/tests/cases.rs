//! The tables of the real controller's unit tests as data (`cases.txt`).

use super::model::{Budget, Model, claim, class, shown_claim, shown_volume, volume};

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
}

/// The columns of a case.
type Case = [&'static str; 6];

/// The cases of a section.
fn cases(section: Look) -> Vec<Case> {
    let mut current = None;
    let mut found = Vec::new();
    for line in CASES.lines() {
        match line {
            "# claim" => current = Some(Look::Claim),
            "# volume" => current = Some(Look::Volume),
            "# all" => current = Some(Look::All),
            _ if line.starts_with('#') || current != Some(section) => {}
            _ => {
                let mut columns = line.split('|').map(str::trim);
                found.push(std::array::from_fn(|_| columns.next().unwrap_or_default()));
            }
        }
    }
    found
}

fn check(look: Look, [name, volumes, volumes_after, claims, claims_after, events]: &Case) {
    let mut unlimited = Budget::MAX;
    let list = |text: &'static str| text.split(',').map(str::trim).filter(|one| !one.is_empty());
    let mut model = Model::default();
    for (name, provisioner, mode) in [
        ("gold", "sim.kubewright.dev/disk", "Immediate"),
        ("silver", "csi.example.com", "Immediate"),
        ("wait", "sim.kubewright.dev/disk", "WaitForFirstConsumer"),
    ] {
        model
            .classes
            .insert(name.to_owned(), class(name, provisioner, mode));
    }
    list(volumes).for_each(|text| model.put_volume(volume(text)));
    list(claims).for_each(|text| model.put_claim(claim(text)));
    let view = model.clone();
    let first = |names: Vec<&String>| names.first().map(|name| (*name).clone()).expect("one");
    match look {
        Look::Claim => {
            let name = first(view.claims.keys().collect());
            model
                .sync_claim(&name, &view, &mut unlimited)
                .expect("nothing is in its way");
        }
        Look::Volume => {
            let name = first(view.volumes.keys().collect());
            model
                .sync_volume(&name, &view, &mut unlimited)
                .expect("nothing is in its way");
        }
        Look::All => model.settle(),
    }
    let expected: Vec<_> = list(volumes_after)
        .map(|text| shown_volume(&volume(text)))
        .collect();
    let got: Vec<_> = model
        .volumes
        .values()
        .map(|(_, volume)| shown_volume(volume))
        .collect();
    assert_eq!(got, expected, "{name}: volumes");
    let expected: Vec<_> = list(claims_after)
        .map(|text| shown_claim(&claim(text)))
        .collect();
    let got: Vec<_> = model
        .claims
        .values()
        .map(|(_, claim)| shown_claim(claim))
        .collect();
    assert_eq!(got, expected, "{name}: claims");
    let mut got: Vec<&str> = model.events.clone();
    got.extend(vec!["error"; model.errors]);
    got.dedup();
    assert_eq!(got.join(","), *events, "{name}: events");
}

/// `persistentvolume/binder_test.go: TestSync` over `pv_controller.go: syncClaim` and `pv_helpers.go: FindMatchingVolume`.
#[test]
fn claims_are_bound_lost_or_wait_as_the_real_controller_decides() {
    let cases = cases(Look::Claim);
    cases.iter().for_each(|case| check(Look::Claim, case));
    assert_eq!(cases.len(), 50, "cases of syncClaim");
}

/// `persistentvolume/binder_test.go: TestSync`, `recycle_test.go` and `delete_test.go` over `pv_controller.go: syncVolume`.
#[test]
fn volumes_are_available_bound_released_or_freed_as_the_real_controller_decides() {
    let cases = cases(Look::Volume);
    cases.iter().for_each(|case| check(Look::Volume, case));
    assert_eq!(cases.len(), 18, "cases of syncVolume");
}

/// `persistentvolume/binder_test.go: TestMultiSync`.
#[test]
fn races_come_to_rest_with_one_volume_a_claim() {
    let cases = cases(Look::All);
    cases.iter().for_each(|case| check(Look::All, case));
    assert_eq!(cases.len(), 3, "cases of TestMultiSync");
}
