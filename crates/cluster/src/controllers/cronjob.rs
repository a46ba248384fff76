//! Cron jobs: a job at every time of a schedule.

mod plan;
mod schedule;
mod zone;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{CronJob, CronJobStatus, Job};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kubewright_runtime::events::{EventKind, reference_of};
use kubewright_runtime::{
    ClientError, Context, Controller, Delete, Error, IgnoreNotFound, Outcome, Reconciler,
};

use self::plan::{Missed, ended};
use self::schedule::Schedule;
use super::WORKERS;
use crate::pods::adopt::controlled_by;
use crate::pods::claim::controller_reference;
use crate::writes::{report, said};

/// Carries the time that a job was meant for.
const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// The controller of cron jobs.
pub(crate) fn controller() -> Controller {
    Controller::of::<CronJob>("cronjob-controller")
        .owns::<Job>()
        .workers(WORKERS)
        .reconciler(CronJobs)
}

struct CronJobs;

impl Reconciler<CronJob> for CronJobs {
    async fn reconcile(&self, cron: Arc<CronJob>, cx: &Context) -> Result<Outcome, Error> {
        let uid = cron.metadata.uid.as_deref().unwrap_or_default();
        let jobs = controlled_by::<Job>(cx.client(), uid).await?;
        let mut status = settle(cx, &cron, &jobs);
        let next = run_due(cx, &cron, &jobs, &mut status).await;
        report(cx.client(), &*cron, |cron| cron.status = Some(status)).await?;
        forget(cx, &cron, &jobs).await?;
        let wait = next?.map(|next| next.duration_since(cx.now()));
        let wait = wait.map(|wait| Duration::try_from(wait).unwrap_or_default());
        Ok(wait.map_or_else(Outcome::done, Outcome::requeue_after))
    }
}

/// The status with what has become of the jobs (`cronjob_controllerv2.go: syncCronJob`).
fn settle(cx: &Context, cron: &CronJob, jobs: &[Arc<Job>]) -> CronJobStatus {
    let mut status = cron.status.clone().unwrap_or_default();
    let before = status.active.take().unwrap_or_default();
    for missing in plan::missing(&before, jobs) {
        let name = missing.name.as_deref().unwrap_or_default();
        let message = format!("Active job went missing: {name}");
        cx.event(cron, EventKind::Normal, "MissingJob", message);
    }
    for job in jobs {
        let Some(how) = ended(job) else {
            if plan::is_unexpected(&before, job) {
                let message = format!(
                    "Saw a job that the controller did not create or forgot: {}",
                    name(job)
                );
                cx.event(cron, EventKind::Warning, "UnexpectedJob", message);
                continue;
            }
            status
                .active
                .get_or_insert_default()
                .push(reference_of(&**job));
            continue;
        };
        if before.iter().any(|known| known.uid == job.metadata.uid) {
            let message = format!("Saw completed job: {}, condition: {how}", name(job));
            cx.event(cron, EventKind::Normal, "SawCompletedJob", message);
        }
        let completed = job.status.as_ref().and_then(|s| s.completion_time.clone());
        let latest = status.last_successful_time.as_ref().map(|time| time.0);
        if how == "Complete" && completed.as_ref().map(|time| time.0) > latest {
            status.last_successful_time = completed;
        }
    }
    status
}

/// Starts what is due. The moment of the next run, if there is one.
async fn run_due(
    cx: &Context,
    cron: &CronJob,
    jobs: &[Arc<Job>],
    status: &mut CronJobStatus,
) -> Result<Option<Timestamp>, Error> {
    if cron.metadata.deletion_timestamp.is_some() || cron.spec.suspend == Some(true) {
        return Ok(None);
    }
    let Some(schedule) = readable(cx, cron) else {
        return Ok(None);
    };
    let due = plan::due(cron, &schedule, cx.now());
    if due.missed == Missed::Many {
        let text = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
        cx.event(cron, EventKind::Warning, "TooManyMissedTimes", text);
    }
    let Some(run) = due.run else {
        if due.next.is_none() {
            // `cronjob_controllerv2.go: syncCronJob` has no moment to wait for either.
            let text = format!("invalid schedule: {:?} never comes", cron.spec.schedule);
            cx.event(cron, EventKind::Warning, "InvalidSchedule", text);
        }
        return Ok(due.next);
    };
    if plan::is_too_late(cron, run, cx.now()) {
        let text = format!("Missed scheduled time to start a job: {run}");
        cx.event(cron, EventKind::Warning, "MissSchedule", text);
        return Ok(due.next);
    }
    // The answer to a creation may have been lost: that run has begun, and is not one to wait for or to replace.
    let own = job_name(cron, run);
    if !jobs.iter().any(|job| name(job) == own)
        && !begin_by_policy(cx, cron, jobs, status, run).await?
    {
        return Ok(due.next);
    }
    status.last_schedule_time = Some(Time(run));
    Ok(due.next)
}

/// Begins a run as far as those that have not ended allow it. Returns whether it has begun.
async fn begin_by_policy(
    cx: &Context,
    cron: &CronJob,
    jobs: &[Arc<Job>],
    status: &mut CronJobStatus,
    run: Timestamp,
) -> Result<bool, Error> {
    let known = status.active.iter().flatten().map(|known| &known.uid);
    let known: Vec<_> = known.collect();
    let active: Vec<_> = jobs
        .iter()
        .filter(|job| known.contains(&&job.metadata.uid))
        .collect();
    match cron.spec.concurrency_policy.as_deref() {
        Some("Forbid") if !active.is_empty() => {
            let text = "Not starting job because prior execution is running and concurrency policy is Forbid";
            cx.event(cron, EventKind::Normal, "JobAlreadyActive", text);
            return Ok(false);
        }
        Some("Replace") => {
            for job in active {
                delete(cx, cron, job).await?;
            }
            status.active = None;
        }
        _ => {}
    }
    if let Some(job) = begin(cx, cron, run).await? {
        status
            .active
            .get_or_insert_default()
            .push(reference_of(&job));
    }
    Ok(true)
}

/// The schedule in its time zone, if it can be followed.
fn readable(cx: &Context, cron: &CronJob) -> Option<Schedule> {
    let name = cron.spec.time_zone.as_deref();
    let Some(zone) = zone::named(name) else {
        let name = name.unwrap_or_default();
        let message = format!("invalid timeZone: {name:?}: unknown time zone {name}");
        cx.event(cron, EventKind::Warning, "UnknownTimeZone", message);
        return None;
    };
    let text = &cron.spec.schedule;
    let schedule = Schedule::parse(text, zone);
    if schedule.is_none() {
        let message = format!("unparseable schedule: {text:?}");
        cx.event(cron, EventKind::Warning, "UnparseableSchedule", message);
    }
    schedule
}

/// Creates the job of a run; none if it is there already.
async fn begin(cx: &Context, cron: &CronJob, run: Timestamp) -> Result<Option<Job>, Error> {
    match cx.client().create(&make(cron, run)).await {
        Ok(job) => {
            let message = format!("Created job {}", name(&job));
            cx.event(cron, EventKind::Normal, "SuccessfulCreate", message);
            Ok(Some(job))
        }
        Err(error) if error.is_already_exists() || error.is_namespace_terminating() => Ok(None),
        Err(error) => {
            let message = format!("Error creating job: {}", said(&error));
            cx.event(cron, EventKind::Warning, "FailedCreate", message);
            Err(error.into())
        }
    }
}

/// The same run has the same name, so that it cannot begin twice.
fn job_name(cron: &CronJob, run: Timestamp) -> String {
    let cron = cron.metadata.name.as_deref().unwrap_or_default();
    format!("{cron}-{}", run.as_second() / 60)
}

fn make(cron: &CronJob, run: Timestamp) -> Job {
    let template = cron.spec.job_template.metadata.clone().unwrap_or_default();
    let mut annotations = template.annotations.unwrap_or_default();
    annotations.insert(
        SCHEDULED.to_owned(),
        zone::shown(run, cron.spec.time_zone.as_deref()),
    );
    Job {
        metadata: ObjectMeta {
            name: Some(job_name(cron, run)),
            namespace: cron.metadata.namespace.clone(),
            labels: template.labels,
            annotations: Some(annotations),
            owner_references: Some(vec![controller_reference(cron)]),
            ..ObjectMeta::default()
        },
        spec: cron.spec.job_template.spec.clone(),
        status: None,
    }
}

/// Deletes jobs that ended, but for the last few.
async fn forget(cx: &Context, cron: &CronJob, jobs: &[Arc<Job>]) -> Result<(), ClientError> {
    let limits = [
        ("Complete", cron.spec.successful_jobs_history_limit),
        ("Failed", cron.spec.failed_jobs_history_limit),
    ];
    for (how, limit) in limits {
        let Some(limit) = limit.and_then(|limit| usize::try_from(limit).ok()) else {
            continue;
        };
        let mut old: Vec<_> = jobs.iter().filter(|job| ended(job) == Some(how)).collect();
        let begun = |job: &Job| job.status.as_ref()?.start_time.as_ref().map(|time| time.0);
        old.sort_by_key(|job| (begun(job), name(job).to_owned()));
        let surplus = old.len().saturating_sub(limit);
        for job in old.into_iter().take(surplus) {
            delete(cx, cron, job).await?;
        }
    }
    Ok(())
}

async fn delete(cx: &Context, cron: &CronJob, job: &Job) -> Result<(), ClientError> {
    let deleted = cx.client().delete(job, Delete::background()).await;
    if deleted.ignore_not_found()?.is_some() {
        let message = format!("Deleted job {}", name(job));
        cx.event(cron, EventKind::Normal, "SuccessfulDelete", message);
    }
    Ok(())
}

fn name(job: &Job) -> &str {
    job.metadata.name.as_deref().unwrap_or_default()
}
