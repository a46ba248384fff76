//! Objects whose time has passed: finished jobs with a time to live, and events an hour after they were last seen.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Event;
use kubewright_runtime::{Context, Controller, Delete, Error, IgnoreNotFound, Outcome, Reconciler};

/// How long an event is kept after it was last seen, as a Kubernetes server does by default.
const EVENT_TTL: SignedDuration = SignedDuration::from_hours(1);

/// Deletes finished jobs that say how long they are to be kept.
pub(crate) fn job_controller() -> Controller {
    Controller::of::<Job>("ttl-after-finished").reconciler(FinishedJobs)
}

/// Deletes old events.
pub(crate) fn event_controller() -> Controller {
    Controller::of::<Event>("event-expiry")
        .workers(2)
        .reconciler(OldEvents)
}

struct FinishedJobs;

impl Reconciler<Job> for FinishedJobs {
    async fn reconcile(&self, job: Arc<Job>, cx: &Context) -> Result<Outcome, Error> {
        let Some(at) = job_expiry(&job) else {
            return Ok(Outcome::done());
        };
        if let Some(left) = time_left(at, cx.now()) {
            return Ok(Outcome::requeue_after(left));
        }
        // The time may have been prolonged a moment ago.
        let Some(latest) = cx.client().live().get::<Job>(cx.key()).await? else {
            return Ok(Outcome::done());
        };
        let over = job_expiry(&latest).is_some_and(|at| time_left(at, cx.now()).is_none());
        if !over || latest.metadata.uid != job.metadata.uid {
            return Ok(Outcome::requeue());
        }
        let how = Delete::foreground().unchanged();
        cx.client().delete(&latest, how).await.ignore_not_found()?;
        Ok(Outcome::done())
    }
}

struct OldEvents;

impl Reconciler<Event> for OldEvents {
    async fn reconcile(&self, event: Arc<Event>, cx: &Context) -> Result<Outcome, Error> {
        let Some(at) = event_expiry(&event) else {
            return Ok(Outcome::done());
        };
        if let Some(left) = time_left(at, cx.now()) {
            return Ok(Outcome::requeue_after(left));
        }
        let how = Delete::background().unchanged();
        match cx.client().delete(&*event, how).await.ignore_not_found() {
            // It was seen once more meanwhile; that change leads here again.
            Err(error) if error.is_conflict() => Ok(Outcome::done()),
            other => other.map(|_| Outcome::done()).map_err(Error::from),
        }
    }
}

/// When a job is to be deleted; nothing while it runs, is kept, or is on its way out.
fn job_expiry(job: &Job) -> Option<Timestamp> {
    if job.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let ttl = job.spec.as_ref()?.ttl_seconds_after_finished?;
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let finished = conditions
        .iter()
        .find(|c| matches!(&*c.type_, "Complete" | "Failed") && c.status == "True")?;
    let since = finished.last_transition_time.as_ref()?.0;
    since
        .checked_add(SignedDuration::from_secs(ttl.into()))
        .ok()
}

/// When an event is to be deleted.
fn event_expiry(event: &Event) -> Option<Timestamp> {
    let series = event.series.as_ref();
    let seen = [
        event.metadata.creation_timestamp.as_ref().map(|t| t.0),
        event.last_timestamp.as_ref().map(|t| t.0),
        event.event_time.as_ref().map(|t| t.0),
        series
            .and_then(|s| s.last_observed_time.as_ref())
            .map(|t| t.0),
    ];
    let last = seen.into_iter().flatten().max()?;
    last.checked_add(EVENT_TTL).ok()
}

/// The time until a moment; nothing when it has come.
fn time_left(at: Timestamp, now: Timestamp) -> Option<Duration> {
    let left = Duration::try_from(at.duration_since(now)).ok()?;
    (!left.is_zero()).then_some(left)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("in range")
    }

    #[test]
    fn jobs_expire_after_they_finish_and_not_before() {
        let finished = json!([{"type": "Complete", "status": "True", "lastTransitionTime": "1970-01-01T00:01:40Z"}]);
        let failed = json!([{"type": "Failed", "status": "True", "lastTransitionTime": "1970-01-01T00:00:10Z"}]);
        let running = json!([{"type": "Complete", "status": "False", "lastTransitionTime": "1970-01-01T00:01:40Z"}]);
        let check = |ttl: Value, conditions: &Value, expected: Option<i64>| {
            let job = json!({
                "metadata": {"name": "j"},
                "spec": {"ttlSecondsAfterFinished": ttl, "template": {}},
                "status": {"conditions": conditions},
            });
            let job: Job = serde_json::from_value(job).expect("a job");
            assert_eq!(job_expiry(&job), expected.map(at), "{conditions}");
        };
        check(json!(60), &finished, Some(160));
        check(json!(0), &failed, Some(10));
        check(json!(60), &running, None);
        check(json!(null), &finished, None);
        check(json!(60), &json!(null), None);
    }

    #[test]
    fn events_expire_an_hour_after_they_were_last_seen() {
        let event = json!({
            "metadata": {"name": "e", "creationTimestamp": "1970-01-01T00:00:10Z"},
            "involvedObject": {},
            "lastTimestamp": "1970-01-01T00:00:20Z",
        });
        let event: Event = serde_json::from_value(event).expect("an event");
        assert_eq!(event_expiry(&event), Some(at(3620)));
    }

    #[test]
    fn no_time_is_left_when_the_moment_has_come() {
        assert_eq!(time_left(at(5), at(3)), Some(Duration::from_secs(2)));
        assert_eq!(time_left(at(5), at(5)), None);
        assert_eq!(time_left(at(5), at(9)), None);
    }
}
