//! Version 1: the schedule is a line of cron. Objects are stored as this one.

use k8s_openapi::api::batch::v1::JobTemplateSpec;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which Job is to run, and when.
#[kubewright::api(conversion = "webhook")]
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[kube(
    group = "batch.tutorial.kubebuilder.io",
    version = "v1",
    kind = "CronJob",
    doc = "CronJob runs a Job at the times of a schedule.",
    namespaced,
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct CronJobSpec {
    /// When, as a line of cron: minute, hour, day of the month, month, day of the week.
    #[k8s(min_length = 1)]
    pub schedule: String,
    /// What is the same in all versions.
    #[serde(flatten)]
    pub rest: Rest,
}

/// What is the same in all versions.
#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Rest {
    /// How late a Job may start, in seconds, if it missed its time.
    #[k8s(min = 0)]
    pub starting_deadline_seconds: Option<i64>,
    /// What happens when a Job is due while another runs.
    pub concurrency_policy: Option<ConcurrencyPolicy>,
    /// Whether no more Jobs are started.
    pub suspend: Option<bool>,
    /// The Job.
    pub job_template: JobTemplateSpec,
    /// How many Jobs that succeeded are kept.
    #[k8s(min = 0)]
    pub successful_jobs_history_limit: Option<i32>,
    /// How many Jobs that failed are kept.
    #[k8s(min = 0)]
    pub failed_jobs_history_limit: Option<i32>,
}

/// What happens when a Job is due while another runs.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConcurrencyPolicy {
    /// Both run.
    Allow,
    /// The new one does not.
    Forbid,
    /// The old one is replaced.
    Replace,
}
