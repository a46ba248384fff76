//! What the API server asks: to default a CronJob, to validate it, and to convert it to the other version.

use kube::ResourceExt;
use kubewright::webhook::{FieldError, FieldErrors, Spoke};

use crate::schedule;
use crate::v1::{ConcurrencyPolicy, CronJob, CronJobSpec};
use crate::v2::{self, CronSchedule};

/// Jobs get a name with eleven more characters, and names have 63 at most.
const LONGEST_NAME: usize = 52;

/// Fills in what users may leave out.
#[kubewright::webhook(mutating)]
pub fn default(job: &mut CronJob) {
    let rest = &mut job.spec.rest;
    rest.concurrency_policy
        .get_or_insert(ConcurrencyPolicy::Allow);
    rest.suspend.get_or_insert(false);
    rest.successful_jobs_history_limit.get_or_insert(3);
    rest.failed_jobs_history_limit.get_or_insert(1);
}

/// Reports what is wrong with a CronJob and its schema cannot know.
///
/// # Errors
/// When something is wrong; all of it is reported at once.
#[kubewright::webhook(validating)]
pub fn validate(job: &CronJob, _old: Option<&CronJob>) -> Result<(), FieldErrors> {
    let (name, schedule) = (job.name_any(), &job.spec.schedule);
    let mut errors = FieldErrors::new();
    if name.len() > LONGEST_NAME {
        let problem = format!("must be no more than {LONGEST_NAME} characters");
        errors.push(FieldError::invalid("metadata.name", name, &problem));
    }
    if let Some(problem) = schedule::problem(schedule) {
        errors.push(FieldError::invalid("spec.schedule", schedule, &problem));
    }
    errors.into_result()
}

#[kubewright::conversion]
impl Spoke<CronJob> for v2::CronJob {
    fn to_hub(self) -> Result<CronJob, String> {
        let CronSchedule {
            minute,
            hour,
            day_of_month,
            month,
            day_of_week,
        } = self.spec.schedule;
        let parts = [minute, hour, day_of_month, month, day_of_week];
        let parts = parts.map(|part| part.unwrap_or_else(|| "*".to_owned()));
        let spec = CronJobSpec {
            schedule: parts.join(" "),
            rest: self.spec.rest,
        };
        Ok(CronJob::new("", spec))
    }

    fn from_hub(hub: CronJob) -> Result<Self, String> {
        let CronJobSpec { schedule, rest } = hub.spec;
        let parts: Vec<&str> = schedule.split_whitespace().collect();
        let [minute, hour, day_of_month, month, day_of_week] = parts[..] else {
            return Err(format!("{schedule:?} has {} parts, not five", parts.len()));
        };
        let part = |text: &str| (text != "*").then(|| text.to_owned());
        let schedule = CronSchedule {
            minute: part(minute),
            hour: part(hour),
            day_of_month: part(day_of_month),
            month: part(month),
            day_of_week: part(day_of_week),
        };
        Ok(Self::new("", v2::CronJobSpec { schedule, rest }))
    }
}
