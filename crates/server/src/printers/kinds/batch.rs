//! Jobs and cron jobs.

use jiff::Timestamp;
use kubewright_schema::duration::human;
use serde_json::Value;

use super::{Entry, containers, entry};
use crate::printers::column::{AGE, Column, NAME, boolean, integer, text as column, wide};
use crate::printers::selector;
use crate::printers::view::{View, is_true, or};

const JOB: &[Column] = &[
    NAME,
    column("Status"),
    column("Completions"),
    column("Duration"),
    AGE,
    wide("Containers"),
    wide("Images"),
    wide("Selector"),
];

const CRON_JOB: &[Column] = &[
    NAME,
    column("Schedule"),
    column("Timezone"),
    boolean("Suspend"),
    integer("Active"),
    column("Last Schedule"),
    AGE,
    wide("Containers"),
    wide("Images"),
    wide("Selector"),
];

pub(super) const KINDS: &[Entry] = &[
    entry("batch", "Job", JOB, job),
    entry("batch", "CronJob", CRON_JOB, cron_job),
];

fn job(view: &View<'_>) -> Vec<Value> {
    let (names, images) = containers(view, "spec.template.spec.containers");
    cells![
        view.name(),
        status(view),
        completions(view),
        duration(view),
        view.age(),
        names,
        images,
        selector::selector(view.object, "spec.selector"),
    ]
}

fn status(view: &View<'_>) -> &'static str {
    let has = |type_| is_true(view.list("status.conditions"), type_);
    if has("Complete") {
        "Complete"
    } else if has("Failed") {
        "Failed"
    } else if view.is_being_deleted() {
        "Terminating"
    } else if has("Suspended") {
        "Suspended"
    } else if has("FailureTarget") {
        "FailureTarget"
    } else if has("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    }
}

/// `1/3`; a work queue without a number of completions is done with the first success.
fn completions(view: &View<'_>) -> String {
    let succeeded = view.int("status.succeeded");
    match (view.at("spec.completions"), view.int("spec.parallelism")) {
        (Some(completions), _) => format!("{succeeded}/{completions}"),
        (None, parallelism) if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

fn duration(view: &View<'_>) -> String {
    let Ok(start) = view.text("status.startTime").parse::<Timestamp>() else {
        return String::new();
    };
    let end = view.text("status.completionTime").parse();
    human(end.unwrap_or(view.now).duration_since(start).as_secs())
}

fn cron_job(view: &View<'_>) -> Vec<Value> {
    let (names, images) = containers(view, "spec.jobTemplate.spec.template.spec.containers");
    let last = match view.at("status.lastScheduleTime") {
        Some(_) => view.since("status.lastScheduleTime"),
        None => "<none>".to_owned(),
    };
    let suspend = match view.at("spec.suspend").and_then(Value::as_bool) {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    };
    cells![
        view.name(),
        view.text("spec.schedule"),
        or(view.text("spec.timeZone"), "<none>"),
        suspend,
        view.list("status.active").len(),
        last,
        view.age(),
        names,
        images,
        selector::selector(view.object, "spec.jobTemplate.spec.selector"),
    ]
}
