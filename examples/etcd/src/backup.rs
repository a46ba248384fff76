//! What is done for a cluster that is as it should be: snapshots and defragmentation, when they are due.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kubewright::prelude::*;

use crate::api::{Backup, BackupStatus, EtcdCluster, Snapshot};
use crate::names::Names;
use crate::objects;
use crate::reconcile::Shell;

/// The annotation of a Job with the number of its snapshot.
const NUMBER: &str = "etcd.kubewright.dev/snapshot-number";
/// The annotation of a Job with the file that it writes.
const FILE: &str = "etcd.kubewright.dev/snapshot-file";
/// The annotation of a Job with the revision at which it was begun.
const REVISION: &str = "etcd.kubewright.dev/revision";
/// When nothing is ever due.
const NEVER: Duration = Duration::from_secs(24 * 3600);

/// Takes snapshots and defragments, and says when the next of these is due.
pub(crate) async fn maintain(shell: &Shell<'_>) -> Result<Duration> {
    let snapshot = match &shell.cluster.spec.backup {
        Some(backup) => keep_snapshots(shell, backup).await?,
        None => NEVER,
    };
    let defragmentation = match shell.cluster.spec.defragment_interval_seconds {
        Some(interval) => defragment_when_due(shell, interval).await?,
        None => NEVER,
    };
    Ok(snapshot.min(defragmentation))
}

/// How long until something is due that happened last at a time; zero if it is.
fn until_due(last: Option<&Time>, interval: i64, now: Timestamp) -> Duration {
    let Some(last) = last else {
        return Duration::ZERO;
    };
    let due = last.0.as_second().saturating_add(interval);
    let left = due.saturating_sub(now.as_second());
    Duration::from_secs(left.max(0).unsigned_abs())
}

async fn keep_snapshots(shell: &Shell<'_>, backup: &Backup) -> Result<Duration> {
    let Shell { cluster, cx, .. } = *shell;
    let names = Names::of(cluster);
    let jobs = cx.client().list::<Job>(names.query("backup")).await?;
    let mut jobs = jobs
        .into_iter()
        .filter(|job| is_controlled_by(cluster, &**job));
    if let Some(job) = jobs.next() {
        if job.metadata.deletion_timestamp.is_none() {
            finish(shell, backup, &job).await?;
        }
        return Ok(Duration::from_secs(2));
    }
    let status = cluster
        .status
        .as_ref()
        .and_then(|status| status.backup.as_ref());
    let last = status.and_then(|status| status.last_start.as_ref());
    let left = until_due(last, backup.interval_seconds, cx.now());
    if !left.is_zero() {
        return Ok(left);
    }
    begin(shell, backup, status.map_or(0, |status| status.count)).await?;
    Ok(Duration::from_secs(2))
}

/// Begins a snapshot. Its Job has its number in the name, so that one that was begun before a crash is not begun twice.
async fn begin(shell: &Shell<'_>, backup: &Backup, number: i64) -> Result {
    let Shell { cluster, cx, .. } = *shell;
    let names = Names::of(cluster);
    let key = cx.key().sibling(&names.backup_claim());
    let client = cx.client();
    type Claim = k8s_openapi::api::core::v1::PersistentVolumeClaim;
    if client.get::<Claim>(&key).await?.is_none() {
        let storage = backup.storage.as_ref().unwrap_or(&cluster.spec.storage);
        client
            .create(&objects::backup_claim(&names, storage)?)
            .await?;
    }
    let Some(member) = source(shell) else {
        return Ok(());
    };
    let file = format!(
        "slot-{}.db",
        number.rem_euclid(i64::from(backup.keep.max(1)))
    );
    let name = format!("{}-backup-{number}", names.cluster);
    let version = shell.wanted.version;
    let mut job = objects::backup_job(cluster, version, &member, &name, &file)?;
    job.metadata.namespace = cluster.namespace();
    let revision = cluster.status.as_ref().and_then(|status| status.revision);
    let annotations = job.annotations_mut();
    annotations.insert(NUMBER.to_owned(), number.to_string());
    annotations.insert(FILE.to_owned(), file);
    annotations.insert(REVISION.to_owned(), revision.unwrap_or(0).to_string());
    set_controller_reference(cluster, &mut job)?;
    client.create(&job).await?;
    Ok(())
}

/// The member that a snapshot is taken from: one that does not lead, if there is one.
fn source(shell: &Shell<'_>) -> Option<String> {
    let quorum = shell.seen.observed.quorum.as_ref()?;
    let voters = quorum.voters();
    let member = voters.min_by_key(|member| member.id == quorum.leader)?;
    Some(member.name.clone())
}

/// Notes what became of a snapshot, then deletes its Job. A crash between the two notes the same once more.
async fn finish(shell: &Shell<'_>, backup: &Backup, job: &Job) -> Result {
    let Shell { cluster, cx, .. } = *shell;
    let status = job.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let has = |kind: &str| {
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|it| it.type_ == kind && it.status == "True")
    };
    let (complete, failed) = (has("Complete"), has("Failed"));
    if !complete && !failed {
        return Ok(());
    }
    let note = |object: &mut EtcdCluster| {
        let status = object.status.get_or_insert_default();
        let status = status.backup.get_or_insert_default();
        record(status, job, backup, complete);
    };
    let written = cx.client().modify_status(cluster, note).await?;
    if written.is_changed() {
        let file = annotation(job, FILE);
        if complete {
            let message = format!("took the snapshot {file}");
            cx.event(cluster, EventKind::Normal, "BackupCompleted", message);
        } else {
            let message = format!("cannot take the snapshot {file}");
            cx.event(cluster, EventKind::Warning, "BackupFailed", message);
        }
    }
    let deleted = cx.client().delete(job, Delete::background()).await;
    deleted.ignore_not_found()?;
    Ok(())
}

fn annotation<'a>(job: &'a Job, name: &str) -> &'a str {
    job.annotations().get(name).map_or("", String::as_str)
}

/// Puts what became of a Job into the status.
fn record(status: &mut BackupStatus, job: &Job, backup: &Backup, complete: bool) {
    let number: i64 = annotation(job, NUMBER).parse().unwrap_or(0);
    if number < status.count {
        return;
    }
    status.count = number + 1;
    status.last_start = job.metadata.creation_timestamp.clone();
    if !complete {
        status.failures = status.failures.saturating_add(1);
        return;
    }
    status.failures = 0;
    let name = annotation(job, FILE).to_owned();
    status.snapshots.retain(|snapshot| snapshot.name != name);
    let snapshot = Snapshot {
        name,
        time: job.metadata.creation_timestamp.clone(),
        revision: annotation(job, REVISION).parse().unwrap_or(0),
    };
    status.snapshots.insert(0, snapshot);
    let keep = usize::try_from(backup.keep).unwrap_or(1).max(1);
    status.snapshots.truncate(keep);
}

/// Defragments all members, one after the other, the leader last.
async fn defragment_when_due(shell: &Shell<'_>, interval: i64) -> Result<Duration> {
    let Shell { cluster, cx, .. } = *shell;
    let status = cluster.status.as_ref();
    let last = status.and_then(|status| status.last_defragmentation.as_ref());
    let left = until_due(last, interval, cx.now());
    if !left.is_zero() {
        return Ok(left);
    }
    let Some(quorum) = &shell.seen.observed.quorum else {
        return Ok(NEVER);
    };
    let mut members: Vec<u64> = quorum.members.iter().map(|member| member.id).collect();
    members.sort_by_key(|id| *id == quorum.leader);
    for id in members {
        if let Some(endpoint) = shell.seen.endpoint(id) {
            shell.etcd.defragment(endpoint).await?;
        }
    }
    let second = Timestamp::from_second(cx.now().as_second()).unwrap_or(cx.now());
    let note = |object: &mut EtcdCluster| {
        let status = object.status.get_or_insert_default();
        status.last_defragmentation = Some(Time(second));
    };
    cx.client().modify_status(cluster, note).await?;
    cx.event(
        cluster,
        EventKind::Normal,
        "Defragmented",
        "defragmented all members",
    );
    Ok(Duration::from_secs(interval.unsigned_abs()))
}
