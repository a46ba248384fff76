//! Decides what each part should run. Pure: what was seen goes in, what should be comes out.
//!
//! Parts that are missing are made at once, but for the entry, which waits until all others are ready. An upgrade walks through
//! the parts in order and goes on when the one before is ready. When one is not ready by its deadline, all go back together to the
//! images with which everything was ready last; that decision is in the status before the first part is changed, so that it
//! survives a crash of the operator.

use std::collections::BTreeMap;

use crate::api::{PodtatoHeadAppSpec, PodtatoHeadAppStatus, Release, Rollback};
use crate::part::Part;

/// A part as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The version of its Deployment, under which alone it may be changed.
    pub version: Option<String>,
    /// The image in the template of its Deployment.
    pub image: String,
    /// How far its pods are with that.
    pub progress: Progress,
}

/// How far the pods of a part are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// All of them are ready at the image of the template.
    Ready,
    /// They are not, and there is time left.
    Waiting,
    /// They were not ready by the deadline, and this is what the Deployment says of it.
    Failed(String),
}

/// What should be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The image that the Deployment of a part should have. Parts that are not in here are not made yet.
    pub images: Release,
    /// Whether the entry gets its Service, if it has none.
    pub expose: bool,
    /// The images that a failed upgrade goes back to.
    pub stable: Release,
    /// The failed upgrade that is remembered.
    pub rollback: Option<Rollback>,
    /// What is going on, for people.
    pub stage: Stage,
}

/// What is going on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// Parts are made or lost, and this one is waited for.
    Starting(Part),
    /// An upgrade is at this part.
    Upgrading(Part),
    /// A part failed, and everything goes back.
    RollingBack(Part),
    /// A part failed, and everything is back where it was.
    RolledBack(Part),
    /// A part failed, and there is nothing to go back to.
    Stalled(Part),
    /// Everything is as the spec says.
    Complete,
}

/// The parts that were seen.
pub type Figure = BTreeMap<Part, Seen>;

/// Decides what each part should run.
pub fn plan(spec: &PodtatoHeadAppSpec, status: &PodtatoHeadAppStatus, figure: &Figure) -> Plan {
    let wanted = spec.release();
    let failed = status.rollback.as_ref().filter(|it| it.release == wanted);
    let failed = failed
        .cloned()
        .or_else(|| new_failure(&wanted, &status.stable, figure));
    let all_ready = Part::ALL.iter().all(|part| is_ready(figure, *part));
    let plan = Plan {
        images: Release::new(),
        expose: all_ready,
        stable: status.stable.clone(),
        rollback: failed.clone(),
        stage: Stage::Complete,
    };
    match failed {
        Some(rollback) => go_back(plan, &rollback, figure),
        None => go_on(plan, &wanted, figure),
    }
}

/// The part that failed at what is wanted, if there is something to go back to.
fn new_failure(wanted: &Release, stable: &Release, figure: &Figure) -> Option<Rollback> {
    if stable.is_empty() || stable == wanted {
        return None;
    }
    let (part, message) = wanted.iter().find_map(|(part, image)| {
        let seen = figure.get(part).filter(|seen| seen.image == *image)?;
        match &seen.progress {
            // What is the same in both releases would not get better by going back.
            Progress::Failed(message) if stable.get(part) != Some(image) => {
                Some((*part, message.clone()))
            }
            _ => None,
        }
    })?;
    let release = wanted.clone();
    Some(Rollback {
        part,
        message,
        release,
    })
}

/// All parts at once get what they had when all was well.
fn go_back(mut plan: Plan, rollback: &Rollback, figure: &Figure) -> Plan {
    let all_back = plan.stable.iter().all(|(part, image)| {
        let seen = figure.get(part);
        seen.is_some_and(|seen| seen.image == *image && seen.progress == Progress::Ready)
    });
    plan.images = without_entry_too_early(&plan.stable, figure);
    plan.stage = if all_back {
        Stage::RolledBack(rollback.part)
    } else {
        Stage::RollingBack(rollback.part)
    };
    plan
}

/// Parts that are missing are made; of those that differ the first gets what is wanted, when all before it are ready.
fn go_on(mut plan: Plan, wanted: &Release, figure: &Figure) -> Plan {
    let mut waits_for = None;
    for (part, image) in wanted {
        let image = match figure.get(part) {
            Some(seen) if waits_for.is_some() => &seen.image,
            _ => image,
        };
        plan.images.insert(*part, image.clone());
        if waits_for.is_none() {
            waits_for = obstacle(*part, image, figure).map(|obstacle| match obstacle {
                // It had this image before: nothing is upgraded, a part is lost, scaled, or started for the first time.
                Stage::Upgrading(part) if is_known(&plan.stable, part, image) => {
                    Stage::Starting(part)
                }
                obstacle => obstacle,
            });
        }
    }
    plan.images = without_entry_too_early(&plan.images, figure);
    plan.stage = waits_for.unwrap_or(Stage::Complete);
    if plan.stage == Stage::Complete {
        plan.stable = wanted.clone();
    }
    plan
}

/// Whether a part had this image when all was well, or nothing was ever well.
fn is_known(stable: &Release, part: Part, image: &str) -> bool {
    stable.get(&part).is_none_or(|stable| stable == image)
}

/// Why the parts after this one have to wait.
fn obstacle(part: Part, image: &str, figure: &Figure) -> Option<Stage> {
    let Some(seen) = figure.get(&part) else {
        return Some(Stage::Starting(part));
    };
    if seen.image != image {
        return Some(Stage::Upgrading(part));
    }
    match seen.progress {
        Progress::Ready => None,
        Progress::Waiting => Some(Stage::Upgrading(part)),
        Progress::Failed(_) => Some(Stage::Stalled(part)),
    }
}

/// Leaves a missing entry out until all the others are ready.
fn without_entry_too_early(images: &Release, figure: &Figure) -> Release {
    let mut others = Part::ALL.into_iter().filter(|part| *part != Part::Entry);
    let may_be_made =
        figure.contains_key(&Part::Entry) || others.all(|part| is_ready(figure, part));
    let kept = images
        .iter()
        .filter(|(part, _)| may_be_made || **part != Part::Entry);
    kept.map(|(part, image)| (*part, image.clone())).collect()
}

fn is_ready(figure: &Figure, part: Part) -> bool {
    let seen = figure.get(&part);
    seen.is_some_and(|seen| seen.progress == Progress::Ready)
}
