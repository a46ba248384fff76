//! What people ask for while transfers go on: other settings, and another primary.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use kubewright::prelude::*;
use kubewright::testing::World;
use kubewright_example_postgres::PostgresCluster;
use tokio::time::{Instant, sleep};

use crate::checker::{CLUSTER, Ledger};
use crate::{PATIENCE, status, until_ready};

/// Since when each member runs.
type Started = BTreeMap<String, String>;

/// Asks for a setting that is reloaded, for one that needs a restart, and for another primary.
pub(crate) async fn fulfil(world: &World, ledger: &Ledger) -> Result<()> {
    let before = started(ledger, "work_mem", None).await?;
    let reloaded = set(world, ledger, "work_mem", "8MB").await?;
    ensure!(reloaded == before, "members were restarted: {reloaded:?}");
    let restarted = set(world, ledger, "max_connections", "250").await?;
    let same = restarted
        .iter()
        .filter(|(name, at)| before.get(*name) == Some(*at));
    ensure!(same.count() == 0, "not all were restarted: {restarted:?}");
    switch_over(world, ledger).await
}

async fn change(world: &World, change: impl FnOnce(&mut PostgresCluster)) -> Result<()> {
    let key = Key::new("default", CLUSTER);
    let cluster = world.client.live().get::<PostgresCluster>(&key).await?;
    let cluster = cluster.context("the cluster is gone")?;
    world.client.modify(&cluster, change).await?;
    Ok(())
}

/// Changes a setting, and waits until all members have it.
async fn set(world: &World, ledger: &Ledger, name: &str, value: &str) -> Result<Started> {
    let began = Instant::now();
    change(world, |cluster| {
        let parameters = &mut cluster.spec.parameters;
        parameters.insert(name.to_owned(), value.to_owned());
    })
    .await?;
    let started = started(ledger, name, Some(value)).await?;
    until_ready(world, CLUSTER, 1).await?;
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
        sleep(std::time::Duration::from_millis(200)).await;
    }
}

/// Prefers a replica, and waits until it is primary.
async fn switch_over(world: &World, ledger: &Ledger) -> Result<()> {
    let status = status(world, CLUSTER).await?;
    let (term, old) = (status.term, status.primary.unwrap_or_default());
    let next = status
        .synchronous
        .first()
        .context("a replica has everything")?;
    let before = ledger.acknowledged();
    let began = Instant::now();
    change(world, |cluster| cluster.spec.primary = Some(next.clone())).await?;
    let primary = until_ready(world, CLUSTER, term + 1).await?;
    ensure!(primary == *next, "{primary} is primary and not {next}");
    let recovered = tokio::time::timeout(PATIENCE, ledger.more_than(before)).await;
    recovered.context("no transfer is acknowledged after a switch-over")?;
    let took = began.elapsed().as_secs_f64();
    println!("switch-over from {old} to {next} after {took:.1} s");
    Ok(())
}
