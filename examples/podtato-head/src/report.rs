//! What users see of a rollout: status, conditions, events.

use jiff::Timestamp;
use kubewright::prelude::*;
use kubewright::runtime::conditions::{Condition, Status};

use crate::api::{PartStatus, PodtatoHeadApp, PodtatoHeadAppStatus, version_of};
use crate::part::Part;
use crate::plan::{Figure, Plan, Progress, Stage};

/// Writes the status if it differs, and an event when a stage begins that people want to know of.
pub(crate) async fn write(
    app: &PodtatoHeadApp,
    plan: &Plan,
    figure: &Figure,
    cx: &Context,
) -> Result {
    let before = app.status.clone().unwrap_or_default();
    let status = status(app, plan, figure, cx.now());
    let (old, new) = (reason(&before), reason(&status));
    let set = |app: &mut PodtatoHeadApp| app.status = Some(status);
    cx.client().modify_status(app, set).await?;
    if old != new {
        announce(app, plan, cx);
    }
    Ok(())
}

fn reason(status: &PodtatoHeadAppStatus) -> Option<String> {
    let condition = conditions::find(&status.conditions, "Progressing");
    condition.map(|condition| condition.reason.clone())
}

fn announce(app: &PodtatoHeadApp, plan: &Plan, cx: &Context) {
    let (reason, message) = words(plan);
    let kind = match plan.stage {
        Stage::RollingBack(_) | Stage::RolledBack(_) | Stage::Stalled(_) => EventKind::Warning,
        _ => EventKind::Normal,
    };
    cx.event(app, kind, reason, message);
}

/// The status that follows from what was seen and what is planned.
fn status(
    app: &PodtatoHeadApp,
    plan: &Plan,
    figure: &Figure,
    now: Timestamp,
) -> PodtatoHeadAppStatus {
    let mut status = app.status.clone().unwrap_or_default();
    let generation = app.metadata.generation;
    let parts = figure.iter().map(|(part, seen)| PartStatus {
        name: *part,
        version: version_of(&seen.image).to_owned(),
        ready: seen.progress == Progress::Ready,
    });
    status.parts = parts.collect();
    status.observed_generation = generation;
    status.stable = plan.stable.clone();
    status.rollback = plan.rollback.clone();
    for condition in [ready(plan, figure), progressing(plan)] {
        conditions::set(
            &mut status.conditions,
            now,
            condition.generation(generation),
        );
    }
    status
}

/// Whether users see a whole figure, at whatever versions its parts are.
fn ready(plan: &Plan, figure: &Figure) -> Condition {
    let missing = Part::ALL.into_iter().filter(|part| {
        let seen = figure.get(part);
        seen.is_none_or(|seen| seen.progress != Progress::Ready)
    });
    let missing: Vec<&str> = missing.map(Part::name).collect();
    if missing.is_empty() && plan.expose {
        return Condition::new("Ready", Status::True, "AllPartsReady")
            .message("all parts are ready");
    }
    let message = format!("waiting for {}", missing.join(", "));
    Condition::new("Ready", Status::False, "PartsNotReady").message(message)
}

fn progressing(plan: &Plan) -> Condition {
    let (reason, message) = words(plan);
    let status = match plan.stage {
        Stage::Starting(_) | Stage::Upgrading(_) | Stage::RollingBack(_) => Status::True,
        Stage::RolledBack(_) | Stage::Stalled(_) | Stage::Complete => Status::False,
    };
    Condition::new("Progressing", status, reason).message(message)
}

/// The reason and the message of a stage.
fn words(plan: &Plan) -> (&'static str, String) {
    let why = plan
        .rollback
        .as_ref()
        .map_or("", |rollback| rollback.message.as_str());
    match plan.stage {
        Stage::Starting(part) => ("Starting", format!("waiting for {part}")),
        Stage::Upgrading(part) => {
            let image = plan.images.get(&part).map_or("", String::as_str);
            ("Upgrading", format!("{part} becomes {}", version_of(image)))
        }
        Stage::RollingBack(part) => (
            "RollingBack",
            format!("{part} did not become ready, all parts go back: {why}"),
        ),
        Stage::RolledBack(part) => (
            "RolledBack",
            format!("{part} did not become ready, all parts are back: {why}"),
        ),
        Stage::Stalled(part) => (
            "Stalled",
            format!("{part} did not become ready, and nothing is there to go back to"),
        ),
        Stage::Complete => ("Complete", "all parts are as the spec says".to_owned()),
    }
}
