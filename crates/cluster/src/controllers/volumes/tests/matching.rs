//! The tables of the real controller's index of volumes as data (`matching.txt`).

use std::sync::Arc;

use k8s_openapi::api::core::v1::PersistentVolume;

use super::super::matching::{Seeker, candidates, mismatch};
use super::notation::{claim, volume};

const CASES: &str = include_str!("matching.txt");

/// The lines of a section.
fn section(title: &str) -> impl Iterator<Item = &'static str> {
    let mut lines = CASES.lines().skip_while(move |line| *line != title);
    lines.next();
    lines.take_while(|line| !line.starts_with('#'))
}

/// Checks what `choose` says of the cases of a section.
fn check(
    title: &str,
    count: usize,
    choose: impl Fn(&str, &[Arc<PersistentVolume>]) -> Option<String>,
) {
    let lines: Vec<_> = section(title).collect();
    for line in &lines {
        let columns: Vec<_> = line.split('|').map(str::trim).collect();
        let [name, volumes, expected, claim] = columns[..] else {
            panic!("{line} has not four columns");
        };
        let all: Vec<_> = match volumes {
            "*" => section("# all volumes of createTestVolumes").collect(),
            some => some.split(',').collect(),
        };
        let all: Vec<_> = all.into_iter().map(|text| Arc::new(volume(text))).collect();
        let chosen = choose(claim, &all);
        assert_eq!(chosen.as_deref().unwrap_or("-"), expected, "{name}");
    }
    assert_eq!(lines.len(), count, "cases of {title}");
}

fn best(text: &str, volumes: &[Arc<PersistentVolume>], seeker: Seeker) -> Option<String> {
    let found = candidates(&claim(text), volumes, seeker);
    found.first()?.metadata.name.clone()
}

/// `persistentvolume/index.go: findByClaim` and `pv_helpers.go: FindMatchingVolume`.
#[test]
fn a_claim_gets_the_volume_that_the_real_controller_chooses() {
    check("# match", 37, |claim, volumes| {
        best(claim, volumes, Seeker::Controller)
    });
    check("# delayed", 1, |claim, volumes| {
        best(claim, volumes, Seeker::ControllerOfWaiting)
    });
}

/// `pv_controller.go: checkVolumeSatisfyClaim`, `pv_helpers.go: CheckVolumeModeMismatches, CheckAccessModes`.
#[test]
fn a_volume_that_a_claim_names_has_to_do() {
    check("# satisfy", 15, |text, volumes| {
        let first = volumes.first()?;
        let fits = mismatch(&claim(text), first).is_none();
        fits.then(|| first.metadata.name.clone())?
    });
}

/// `pv_helpers.go: FindMatchingVolume`: the scheduler does not look for the fewest access modes, as `index.go` does.
#[test]
fn the_scheduler_takes_the_smallest_whatever_modes_it_has() {
    let volumes = [
        "large 10Gi - Available",
        "small 1Gi - Available modes=ReadWriteOnce+ReadWriteMany",
    ];
    let volumes = volumes.map(|text| Arc::new(volume(text)));
    let best = |seeker| best("c 1Gi - Pending", &volumes, seeker);
    assert_eq!(best(Seeker::Scheduler).as_deref(), Some("small"));
    assert_eq!(best(Seeker::Controller).as_deref(), Some("large"));
}
