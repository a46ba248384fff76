//! `cargo xtask postgres`: a PostgresCluster with real PostgreSQL, a ledger of transfers, and primaries that are killed and stopped.
//!
//! The control plane and the operator are in this process, under the operator's role; the pods are real processes of the agent and of
//! PostgreSQL. Run it in a network namespace of its own in which the addresses of pods are local.

mod checker;
mod pods;
mod wishes;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kubewright::prelude::*;
use kubewright::testing::World;
use kubewright_example_postgres::{Backup, PostgresCluster, PostgresClusterStatus, Restore};
use tokio::time::{Instant, sleep, timeout};

use checker::{CLUSTER, Ledger};
use pods::{Pods, Violence};

const SAMPLE: &str = include_str!("../../config/samples/postgres_v1alpha1_postgrescluster.yaml");
/// The cluster that is restored.
const AGAIN: &str = "again";
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// What is done to the primaries, in turn.
const TURNS: [Violence; 5] = [
    Violence::KillAll,
    Violence::StopAll,
    Violence::KillDatabase,
    Violence::StopAgent,
    Violence::KillAgent,
];

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let agent = PathBuf::from(
        arguments
            .next()
            .context("the agent is the first argument")?,
    );
    let failovers: usize = arguments.next().map_or(Ok(10), |count| count.parse())?;
    let directory = tempfile::tempdir()?;
    // PostgreSQL runs as another user.
    std::fs::set_permissions(
        directory.path(),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )?;
    let pods = Pods::new(agent, directory.path());
    let world = World::builder()
        .role(include_str!("../../rbac.yaml"))
        .without_webhooks()
        .time_limit(PATIENCE)
        .nodes(3)
        .start()
        .await;
    world
        .cluster
        .nodes()
        .run_image("postgres-agent:*", pods.clone());
    let mut sample: PostgresCluster = serde_saphyr::from_str(SAMPLE)?;
    sample.spec.backup = Some(Backup {
        interval_seconds: Some(30),
        keep: Some(3),
        storage: None,
    });
    world.client.create(&sample).await?;
    let done = Box::pin(live(&world, &pods, failovers)).await;
    pods.end().await;
    if done.is_err() {
        println!("logs and volumes are in {}", directory.keep().display());
    }
    done
}

async fn live(world: &World, pods: &Pods, failovers: usize) -> Result<()> {
    let began = Instant::now();
    let first = until_ready(world, CLUSTER, 1).await?;
    println!(
        "{:>7.1} s  {first} is the first primary",
        began.elapsed().as_secs_f64()
    );
    let ledger = Arc::new(Ledger::open(pods.clone()).await?);
    let working = ledger.clone().work();
    let mut longest = Duration::ZERO;
    for turn in 0..failovers {
        sleep(Duration::from_secs(3)).await;
        let status = status(world, CLUSTER).await?;
        let (term, primary) = (status.term, status.primary.unwrap_or_default());
        let violence = TURNS[turn % TURNS.len()];
        let before = ledger.acknowledged();
        let hurt = Instant::now();
        pods.hurt(&primary, violence).await?;
        let next = until_ready(world, CLUSTER, term + 1).await?;
        let recovered = timeout(PATIENCE, ledger.more_than(before)).await;
        recovered.context("no transfer is acknowledged after a fail-over")?;
        longest = longest.max(hurt.elapsed());
        println!(
            "{:>7.1} s  fail-over {}: {violence:?} of {primary}, {next} after {:.1} s; {} transfers",
            began.elapsed().as_secs_f64(),
            turn + 1,
            hurt.elapsed().as_secs_f64(),
            ledger.acknowledged(),
        );
        pods.resume(&primary, violence).await;
    }
    sleep(Duration::from_secs(3)).await;
    Box::pin(wishes::fulfil(world, &ledger)).await?;
    working.abort();
    let sums = ledger.check(CLUSTER).await?;
    println!("{sums}");
    println!(
        "longest time from the blow to the next acknowledged transfer: {:.1} s",
        longest.as_secs_f64()
    );
    ensure!(sums.is_sound(), "the ledger is not sound");
    Box::pin(restore(world, &ledger)).await
}

/// Loses everything, and restores it in another cluster as it was before.
async fn restore(world: &World, ledger: &Ledger) -> Result<()> {
    sleep(Duration::from_secs(2)).await;
    let time = MicroTime(jiff::Timestamp::now());
    sleep(Duration::from_secs(2)).await;
    ledger.wipe().await?;
    sleep(Duration::from_secs(3)).await;
    let backup = status(world, CLUSTER).await?.backup.unwrap_or_default();
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
    let mut again: PostgresCluster = serde_saphyr::from_str(SAMPLE)?;
    again.metadata.name = Some(AGAIN.to_owned());
    again.spec.restore = Some(Restore {
        claim_name: format!("{CLUSTER}-backup"),
        time: Some(time),
    });
    world.client.create(&again).await?;
    until_ready(world, AGAIN, 1).await?;
    let sums = ledger.check(AGAIN).await?;
    println!(
        "restored to the moment before everything was deleted, after {:.1} s:\n{sums}",
        began.elapsed().as_secs_f64()
    );
    ensure!(sums.is_sound(), "the restored ledger is not sound");
    Ok(())
}

async fn status(world: &World, name: &str) -> Result<PostgresClusterStatus> {
    let key = Key::new("default", name);
    let cluster = world.client.live().get::<PostgresCluster>(&key).await?;
    let cluster = cluster.context("the cluster is gone")?;
    Ok(cluster.status.unwrap_or_default())
}

/// Waits for a primary of this term or a later one that has a replica with every commit, and gives its name.
async fn until_ready(world: &World, name: &str, term: i64) -> Result<String> {
    let waited = async {
        loop {
            let status = status(world, name).await?;
            let is_ready = conditions::is_true(&status.conditions, "Ready");
            if status.term >= term && is_ready && !status.synchronous.is_empty() {
                return Ok(status.primary.unwrap_or_default());
            }
            sleep(Duration::from_millis(100)).await;
        }
    };
    match timeout(PATIENCE, waited).await {
        Ok(found) => found,
        Err(_) => anyhow::bail!(
            "no primary of term {term}; last seen: {:#?}",
            status(world, name).await?
        ),
    }
}
