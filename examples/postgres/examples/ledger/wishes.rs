//! What people ask for while transfers go on: other settings, and another primary.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kubewright::prelude::*;
use kubewright::runtime::ClientError;
use kubewright_example_postgres::PostgresCluster;
use kubewright_lane::{Deployed, assert_refused};
use tokio::time::{Instant, sleep};

use crate::checker::{CLUSTER, Ledger};
use crate::{PATIENCE, status, until_ready};

/// Since when each member runs.
type Started = BTreeMap<String, String>;

/// Asks for a setting that is reloaded, for one that needs a restart, and for another primary.
pub(crate) async fn fulfil(deployed: &Deployed, ledger: &Ledger) -> Result<()> {
    let before = started(ledger, "work_mem", None).await?;
    let reloaded = set(deployed, ledger, "work_mem", "8MB").await?;
    ensure!(reloaded == before, "members were restarted: {reloaded:?}");
    let restarted = set(deployed, ledger, "max_connections", "250").await?;
    let same = restarted
        .iter()
        .filter(|(name, at)| before.get(*name) == Some(*at));
    ensure!(same.count() == 0, "not all were restarted: {restarted:?}");
    switch_over(deployed, ledger).await
}

/// Asks for what the operator's webhook refuses: a setting that is the agent's, and a primary that is not a member.
pub(crate) async fn refused(deployed: &Deployed) -> Result<()> {
    let reserved = attempt(deployed, |cluster| {
        let parameters = &mut cluster.spec.parameters;
        parameters.insert("synchronous_commit".to_owned(), "off".to_owned());
    });
    assert_refused(reserved.await?, "is not a setting that can be chosen")?;
    let stranger = attempt(deployed, |cluster| {
        cluster.spec.primary = Some("somebody-0".to_owned());
    });
    assert_refused(stranger.await?, "is not a member")
}

/// Wants no backups any more, and waits until their pod is gone.
pub(crate) async fn stop_backups(deployed: &Deployed) -> Result<()> {
    change(deployed, |cluster| cluster.spec.backup = None).await?;
    let key = Key::new("default", &format!("{CLUSTER}-backup-0"));
    let end = Instant::now() + PATIENCE;
    while let Some(pod) = deployed.client.live().get::<Pod>(&key).await? {
        ensure!(Instant::now() < end, "the pod of backups stays: {pod:#?}");
        sleep(Duration::from_millis(200)).await;
    }
    Ok(())
}

async fn change(deployed: &Deployed, change: impl FnOnce(&mut PostgresCluster)) -> Result<()> {
    Ok(attempt(deployed, change).await??)
}

/// Asks for a change, and gives the server's answer.
async fn attempt(
    deployed: &Deployed,
    change: impl FnOnce(&mut PostgresCluster),
) -> Result<Result<(), ClientError>> {
    let key = Key::new("default", CLUSTER);
    let cluster = deployed.client.live().get::<PostgresCluster>(&key).await?;
    let cluster = cluster.context("the cluster is gone")?;
    let changed = deployed.client.modify(&cluster, change).await;
    Ok(changed.map(drop))
}

/// Changes a setting, and waits until all members have it.
async fn set(deployed: &Deployed, ledger: &Ledger, name: &str, value: &str) -> Result<Started> {
    let began = Instant::now();
    change(deployed, |cluster| {
        let parameters = &mut cluster.spec.parameters;
        parameters.insert(name.to_owned(), value.to_owned());
    })
    .await?;
    let started = started(ledger, name, Some(value)).await?;
    until_ready(deployed, CLUSTER, 1).await?;
    let took = began.elapsed().as_secs_f64();
    println!("{name} is {value} on all members after {took:.1} s");
    Ok(started)
}

/// Since when the members run, once all three answer and have this value.
async fn started(ledger: &Ledger, name: &str, value: Option<&str>) -> Result<Started> {
    let end = Instant::now() + PATIENCE;
    loop {
        let seen = ledger.setting(name).await;
        let has = |(it, _): &(String, String)| value.is_none_or(|value| it == value);
        if seen.len() == 3 && seen.values().all(has) {
            return Ok(seen.into_iter().map(|(name, (_, at))| (name, at)).collect());
        }
        ensure!(Instant::now() < end, "{name} is not {value:?}: {seen:?}");
        sleep(Duration::from_millis(200)).await;
    }
}

/// Prefers a replica, and waits until it is primary.
async fn switch_over(deployed: &Deployed, ledger: &Ledger) -> Result<()> {
    let status = status(deployed, CLUSTER).await?;
    let (term, old) = (status.term, status.primary.unwrap_or_default());
    let next = status
        .synchronous
        .first()
        .context("a replica has everything")?;
    let before = ledger.acknowledged();
    let began = Instant::now();
    change(deployed, |cluster| {
        cluster.spec.primary = Some(next.clone())
    })
    .await?;
    let primary = until_ready(deployed, CLUSTER, term + 1).await?;
    ensure!(primary == *next, "{primary} is primary and not {next}");
    let recovered = tokio::time::timeout(PATIENCE, ledger.more_than(before)).await;
    recovered.context("no transfer is acknowledged after a switch-over")?;
    let took = began.elapsed().as_secs_f64();
    println!("switch-over from {old} to {next} after {took:.1} s");
    Ok(())
}
