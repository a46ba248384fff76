//! Jobs and CronJobs.

mod cronjob;
mod job;
mod policies;
mod schedule;

pub(super) use cronjob::CRON_JOB;
pub(super) use job::JOB;

#[cfg(test)]
mod tests;
