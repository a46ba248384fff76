//! What the API server asks: to complete a CronJob, to judge it, and to show it in the other version.

use kube::ResourceExt;
use kubewright::webhook::Spoke;

use crate::schedule;
use crate::v1::{ConcurrencyPolicy, CronJob, CronJobSpec};
use crate::v2::{self, CronSchedule};

/// Jobs get a name with eleven more characters, and names have 63 at most.
const LONGEST_NAME: usize = 52;

/// Fills in what users may leave out.
#[kubewright::webhook(
    mutating,
    name = "mcronjob-v1.kb.io",
    path = "/mutate-batch-tutorial-kubebuilder-io-v1-cronjob",
    groups = "batch.tutorial.kubebuilder.io",
    versions = "v1",
    resources = "cronjobs",
    verbs = "create;update",
    failure_policy = "Fail",
    side_effects = "None",
    admission_review_versions = "v1"
)]
pub fn default(job: &mut CronJob) {
    let rest = &mut job.spec.rest;
    rest.concurrency_policy
        .get_or_insert(ConcurrencyPolicy::Allow);
    rest.suspend.get_or_insert(false);
    rest.successful_jobs_history_limit.get_or_insert(3);
    rest.failed_jobs_history_limit.get_or_insert(1);
}

/// Says what is wrong with a CronJob that its schema cannot say.
///
/// # Errors
/// When something is; all of it is said at once.
#[kubewright::webhook(
    validating,
    name = "vcronjob-v1.kb.io",
    path = "/validate-batch-tutorial-kubebuilder-io-v1-cronjob",
    groups = "batch.tutorial.kubebuilder.io",
    versions = "v1",
    resources = "cronjobs",
    verbs = "create;update",
    failure_policy = "Fail",
    side_effects = "None",
    admission_review_versions = "v1"
)]
pub fn validate(job: &CronJob, _old: Option<&CronJob>) -> Result<(), String> {
    let mut wrong = Vec::new();
    if job.name_any().len() > LONGEST_NAME {
        wrong.push(format!(
            "metadata.name: must be no more than {LONGEST_NAME} characters"
        ));
    }
    if let Err(problem) = schedule::check(&job.spec.schedule) {
        wrong.push(format!("spec.schedule: {problem}"));
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(wrong.join("; ")),
    }
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
