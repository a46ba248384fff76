//! What is due for a cron job: a run, nothing until a moment, or nothing any more. Pure.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{CronJob, CronJobSpec, Job};
use k8s_openapi::api::core::v1::ObjectReference;

use super::SCHEDULED;
use super::schedule::Schedule;

/// From how many missed runs on users are warned.
const MANY: usize = 100;
/// Spans in which the last of many missed runs is looked for, in minutes: an hour, a day, a month, years.
const SPANS: [i64; 4] = [60, 24 * 60, 31 * 24 * 60, 9 * 366 * 24 * 60];

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// The last run that should have begun, if one has not been seen to.
    pub(crate) run: Option<Timestamp>,
    /// The next one after now.
    pub(crate) next: Option<Timestamp>,
    /// Whether more runs were missed than anybody would expect.
    pub(crate) missed: Missed,
}

/// How many runs were missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missed {
    Few,
    Many,
}

/// What is due for a cron job.
pub(crate) fn due(cron: &CronJob, schedule: &Schedule, now: Timestamp) -> Due {
    let status = cron.status.as_ref();
    let last = status.and_then(|status| status.last_schedule_time.as_ref());
    let from = last.or(cron.metadata.creation_timestamp.as_ref());
    let mut from = from.map_or(now, |time| time.0);
    if let Some(earliest) = deadline(&cron.spec).and_then(|d| now.checked_sub(d).ok()) {
        from = from.max(earliest);
    }
    let mut runs = runs(schedule, from, now);
    let first: Vec<Timestamp> = runs.by_ref().take(MANY + 1).collect();
    let missed = if first.len() > MANY {
        Missed::Many
    } else {
        Missed::Few
    };
    let run = match missed {
        Missed::Few => first.last().copied(),
        Missed::Many => latest(schedule, from, now),
    };
    let next = schedule.next(now);
    Due { run, next, missed }
}

fn runs(schedule: &Schedule, from: Timestamp, now: Timestamp) -> impl Iterator<Item = Timestamp> {
    let next = move |after: &Timestamp| schedule.next(*after).filter(|run| *run <= now);
    std::iter::successors(next(&from), next)
}

/// The last run until now, without going through all of them.
fn latest(schedule: &Schedule, from: Timestamp, now: Timestamp) -> Option<Timestamp> {
    SPANS.into_iter().find_map(|minutes| {
        let begin = now.checked_sub(SignedDuration::from_mins(minutes)).ok()?;
        runs(schedule, begin.max(from), now).last()
    })
}

fn deadline(spec: &CronJobSpec) -> Option<SignedDuration> {
    spec.starting_deadline_seconds
        .map(SignedDuration::from_secs)
}

/// Whether a run comes later than the cron job allows.
pub(crate) fn is_too_late(cron: &CronJob, run: Timestamp, now: Timestamp) -> bool {
    let latest = deadline(&cron.spec).and_then(|deadline| run.checked_add(deadline).ok());
    latest.is_some_and(|latest| latest < now)
}

/// The jobs that the status calls active and that are not there any more.
pub(crate) fn missing<'a>(
    active: &'a [ObjectReference],
    jobs: &'a [Arc<Job>],
) -> impl Iterator<Item = &'a ObjectReference> {
    let is_there = |known: &&ObjectReference| jobs.iter().any(|job| job.metadata.uid == known.uid);
    active.iter().filter(move |known| !is_there(known))
}

/// Whether an active job is one that the status does not know and no run has made, as `kubectl create job --from` does.
pub(crate) fn is_unexpected(active: &[ObjectReference], job: &Job) -> bool {
    let known = active.iter().any(|known| known.uid == job.metadata.uid);
    let annotations = job.metadata.annotations.as_ref();
    let run = annotations.is_some_and(|annotations| annotations.contains_key(SCHEDULED));
    !known && !run
}

/// The condition by which a job has ended.
pub(crate) fn ended(job: &Job) -> Option<&str> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let mut found = conditions.iter().filter(|c| c.status == "True");
    let ended = found.find(|c| matches!(&*c.type_, "Complete" | "Failed"));
    ended.map(|condition| condition.type_.as_str())
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use serde_json::{Value, json};

    use super::*;

    fn check(spec: Value, last: Option<&str>, now: &str, expected: (Option<&str>, Missed)) {
        let mut cron = json!({
            "metadata": {"name": "c", "creationTimestamp": "2030-01-01T00:00:00Z"},
            "spec": {"schedule": "*/5 * * * *", "jobTemplate": {}},
            "status": {"lastScheduleTime": last},
        });
        for (key, value) in spec.as_object().into_iter().flatten() {
            cron["spec"][key] = value.clone();
        }
        let cron: CronJob = serde_json::from_value(cron).expect("a cron job");
        let schedule = Schedule::parse(&cron.spec.schedule, TimeZone::UTC).expect("a schedule");
        let due = due(&cron, &schedule, now.parse().expect("a moment"));
        let run = due.run.map(|run| run.to_string());
        assert_eq!((run.as_deref(), due.missed), expected, "{spec} at {now}");
    }

    #[test]
    fn the_last_run_that_was_missed_is_due() {
        let none = (None, Missed::Few);
        check(json!({}), None, "2030-01-01T00:04:59Z", none);
        check(
            json!({}),
            None,
            "2030-01-01T00:05:00Z",
            (Some("2030-01-01T00:05:00Z"), Missed::Few),
        );
        check(
            json!({}),
            Some("2030-01-01T00:05:00Z"),
            "2030-01-01T00:05:00Z",
            none,
        );
        check(
            json!({}),
            None,
            "2030-01-01T00:17:00Z",
            (Some("2030-01-01T00:15:00Z"), Missed::Few),
        );
        check(
            json!({}),
            None,
            "2030-02-01T00:01:00Z",
            (Some("2030-02-01T00:00:00Z"), Missed::Many),
        );
        let strict = json!({"startingDeadlineSeconds": 60});
        check(strict.clone(), None, "2030-01-01T00:06:30Z", none);
        check(
            strict,
            None,
            "2030-01-01T00:05:30Z",
            (Some("2030-01-01T00:05:00Z"), Missed::Few),
        );
    }
}
