//! Version 2: the schedule has a field for each of its parts.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::v1::Rest;

/// Which Job is to run, and when.
#[kubewright::api(conversion = "webhook")]
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[kube(
    group = "batch.tutorial.kubebuilder.io",
    version = "v2",
    storage = false,
    kind = "CronJob",
    doc = "CronJob runs a Job at the times of a schedule.",
    namespaced,
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct CronJobSpec {
    /// When.
    pub schedule: CronSchedule,
    /// What is the same in all versions.
    #[serde(flatten)]
    pub rest: Rest,
}

/// A time that comes again. A part that is left out is any.
#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct CronSchedule {
    /// Minutes of the hour.
    pub minute: Option<String>,
    /// Hours of the day.
    pub hour: Option<String>,
    /// Days of the month.
    pub day_of_month: Option<String>,
    /// Months of the year.
    pub month: Option<String>,
    /// Days of the week, Sunday is 0.
    pub day_of_week: Option<String>,
}
