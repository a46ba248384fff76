//! Keeps the pod of the backups: it gets to know who is primary, and reports what it has.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::ResourceExt;
use kubewright::prelude::*;

use crate::api::{Backup, BackupStatus, PostgresCluster};
use crate::desired;
use crate::members;
use crate::protocol::{BackupOrder, BackupReport};

/// Keeps what backups need, or removes it, and gives what there is. Backups that were taken stay in their claim.
pub(crate) async fn keep(
    cluster: &PostgresCluster,
    primary: Option<&String>,
    cx: &Context,
) -> Result<Option<BackupStatus>> {
    let name = desired::backup_name(&cluster.name_any());
    let key = cx.key().sibling(&name);
    let Some(backup) = &cluster.spec.backup else {
        let set = cx.client().get::<StatefulSet>(&key).await?;
        if let Some(set) = set.filter(|set| is_controlled_by(cluster, &**set)) {
            let deleted = cx.client().delete(&*set, Delete::background()).await;
            deleted.ignore_not_found()?;
        }
        return Ok(None);
    };
    keep_objects(cluster, backup, &key, cx).await?;
    let order = primary.map(|primary| BackupOrder {
        primary: primary.clone(),
        interval_seconds: backup.interval(),
        keep: backup.kept(),
    });
    let pod = cx.key().sibling(&format!("{name}-0"));
    let report = members::back_up(&pod, order.as_ref(), cx).await;
    let before = cluster.status.as_ref().and_then(|it| it.backup.clone());
    Ok(Some(match report {
        Some(report) => status(report),
        None => BackupStatus {
            receives: false,
            ..before.unwrap_or_default()
        },
    }))
}

async fn keep_objects(
    cluster: &PostgresCluster,
    backup: &Backup,
    key: &Key,
    cx: &Context,
) -> Result {
    if cx
        .client()
        .get::<PersistentVolumeClaim>(key)
        .await?
        .is_none()
    {
        // It has no owner: it outlives what it is the backup of.
        let mut claim = PersistentVolumeClaim::default();
        claim.metadata.name = Some(key.name().to_owned());
        claim.metadata.namespace = cluster.namespace();
        let storage = backup.storage.as_ref().unwrap_or(&cluster.spec.storage);
        claim.spec = Some(desired::claim_spec(storage));
        cx.client().create(&claim).await?;
    }
    let name = cluster.name_any();
    let fill = |it: &mut StatefulSet| desired::backup_set(&name, &cluster.spec, it);
    cx.client().apply_owned(cluster, key, fill).await?;
    Ok(())
}

fn status(report: BackupReport) -> BackupStatus {
    let times = report.bases.into_iter();
    let times = times.filter_map(|time| jiff::Timestamp::from_microsecond(time).ok());
    BackupStatus {
        bases: times.map(MicroTime).collect(),
        receives: report.receives,
        problem: report.problem,
    }
}
