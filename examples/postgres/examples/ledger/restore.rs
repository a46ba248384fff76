//! What was backed up is restored in another cluster, to a moment that it has, and not to one that it does not have.

use std::time::Duration;

use anyhow::{Result, ensure};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kubewright::prelude::*;
use kubewright_example_postgres::{PostgresCluster, Restore};
use kubewright_lane::Deployed;
use tokio::time::{Instant, sleep};

use crate::checker::{CLUSTER, Ledger};
use crate::{PATIENCE, SAMPLE, status, until_ready};

/// The cluster that is restored.
const AGAIN: &str = "again";
/// The cluster that cannot be restored.
const NEVER: &str = "never";

/// Loses everything, and restores it in another cluster as it was before.
pub(crate) async fn restore(deployed: &Deployed, ledger: &Ledger) -> Result<()> {
    sleep(Duration::from_secs(2)).await;
    let time = MicroTime(Timestamp::now());
    sleep(Duration::from_secs(2)).await;
    ledger.wipe().await?;
    sleep(Duration::from_secs(3)).await;
    let backup = status(deployed, CLUSTER).await?.backup.unwrap_or_default();
    println!(
        "base backups: {}, log received: {}",
        backup.bases.len(),
        backup.receives
    );
    ensure!(
        backup.bases.first().is_some_and(|base| base.0 < time.0),
        "no base backup is old enough: {backup:?}"
    );
    let began = Instant::now();
    create(deployed, AGAIN, time).await?;
    until_ready(deployed, AGAIN, 1).await?;
    let sums = ledger.check(AGAIN).await?;
    println!(
        "restored to the moment before everything was deleted, after {:.1} s:\n{sums}",
        began.elapsed().as_secs_f64()
    );
    ensure!(sums.is_sound(), "the restored ledger is not sound");
    Ok(())
}

/// Asks for a cluster as it was before there was any backup.
pub(crate) async fn want_the_impossible(deployed: &Deployed) -> Result<()> {
    create(deployed, NEVER, MicroTime(Timestamp::UNIX_EPOCH)).await
}

/// Waits until the operator has said twice that it cannot be done, then wants it no more.
pub(crate) async fn impossible_is_reported(deployed: &Deployed) -> Result<()> {
    let is_reported = |event: &Event| {
        let about = event.involved_object.name.as_deref() == Some(NEVER);
        let what = event.reason.as_deref() == Some("RestoreFailed");
        about && what && event.count >= Some(2)
    };
    let end = Instant::now() + PATIENCE;
    loop {
        let here = Query::all().namespace("default");
        let events = deployed.client.live().list::<Event>(here).await?;
        if events.iter().any(is_reported) {
            break;
        }
        ensure!(Instant::now() < end, "nobody says that {NEVER} cannot be");
        sleep(Duration::from_millis(200)).await;
    }
    println!(
        "a moment before the first backup cannot be restored, which was tried and reported twice"
    );
    let key = Key::new("default", NEVER);
    if let Some(never) = deployed.client.live().get::<PostgresCluster>(&key).await? {
        deployed.client.delete(&never, Delete::background()).await?;
    }
    Ok(())
}

async fn create(deployed: &Deployed, name: &str, time: MicroTime) -> Result<()> {
    let mut cluster: PostgresCluster = serde_saphyr::from_str(SAMPLE)?;
    cluster.metadata.name = Some(name.to_owned());
    cluster.spec.restore = Some(Restore {
        claim_name: format!("{CLUSTER}-backup"),
        time: Some(time),
    });
    deployed.client.create(&cluster).await?;
    Ok(())
}
