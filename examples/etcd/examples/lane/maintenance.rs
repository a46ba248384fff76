//! What is done on a schedule: snapshots, and defragmentation.

use anyhow::{Context as _, Result, ensure};
use jiff::Timestamp;
use kubewright::prelude::Key;
use kubewright_example_etcd::EtcdCluster;
use kubewright_example_etcd::api::{Backup, BackupStatus};
use tokio::time::Instant;

use crate::{Lane, PATIENCE};

/// How many snapshots are taken, and how many of them are kept.
const SNAPSHOTS: i64 = 3;
const KEPT: i32 = 2;

impl Lane {
    /// Takes snapshots on a schedule until an old one is replaced, and gives what was acknowledged before with the file of the last.
    pub(crate) async fn back_up(&self) -> Result<(Vec<u64>, String)> {
        let before = self.written.lock().acknowledged.clone();
        let began = Instant::now();
        self.schedule_snapshots(10).await?;
        let key = Key::new("default", "e");
        let has_all = |cluster: &EtcdCluster| backup(cluster).count >= SNAPSHOTS;
        let cluster = self.deployed.until(&key, PATIENCE, has_all).await?;
        // The next one would replace the file that is restored.
        self.schedule_snapshots(3600).await?;
        let BackupStatus {
            snapshots, count, ..
        } = backup(&cluster);
        ensure!(
            snapshots.len() == usize::try_from(KEPT)?,
            "{KEPT} snapshots are to be kept: {snapshots:?}"
        );
        let last = snapshots.into_iter().next().context("a snapshot")?;
        println!(
            "{count} snapshots after {:.1?}, {KEPT} kept, the last is {} at revision {}",
            began.elapsed(),
            last.name,
            last.revision
        );
        Ok((before, last.name))
    }

    async fn schedule_snapshots(&self, interval_seconds: i64) -> Result<()> {
        let backup = Backup {
            interval_seconds,
            keep: KEPT,
            storage: None,
        };
        self.change(|cluster| cluster.spec.backup = Some(backup))
            .await
    }

    /// Has members be defragmented every minute from now on, and gives when they were for the first time.
    pub(crate) async fn defragment(&self) -> Result<Timestamp> {
        let began = Instant::now();
        self.change(|cluster| cluster.spec.defragment_interval_seconds = Some(60))
            .await?;
        let at = self.until_defragmented_after(Timestamp::MIN).await?;
        let (took, stall) = (began.elapsed(), self.stall());
        println!("defragmented after {took:.1?}, longest time without a write {stall:.1?}");
        Ok(at)
    }

    /// Waits until members were defragmented again.
    pub(crate) async fn defragmented_again(&self, first: Timestamp) -> Result<()> {
        let again = self.until_defragmented_after(first).await?;
        let later = again.duration_since(first).as_secs();
        println!("defragmented again, last {later} s after the first time");
        Ok(())
    }

    async fn until_defragmented_after(&self, earlier: Timestamp) -> Result<Timestamp> {
        let last = |cluster: &EtcdCluster| {
            let status = cluster.status.as_ref()?;
            Some(status.last_defragmentation.as_ref()?.0)
        };
        let is_later = |cluster: &EtcdCluster| last(cluster).is_some_and(|at| at > earlier);
        let key = Key::new("default", "e");
        let cluster = self.deployed.until(&key, PATIENCE, is_later).await?;
        last(&cluster).context("they were defragmented")
    }
}

fn backup(cluster: &EtcdCluster) -> BackupStatus {
    let status = cluster.status.as_ref();
    status
        .and_then(|status| status.backup.clone())
        .unwrap_or_default()
}
