//! `cargo xtask postgres`: a PostgresCluster with real PostgreSQL, a ledger of transfers, and primaries that are killed and stopped.
//!
//! Pods are containers of the process runtime; the operator is a process of its own under its role, which serves its webhooks and is
//! killed as well.

mod checker;
mod members;
mod restore;
mod wishes;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kubewright::prelude::*;
use kubewright_example_postgres::{Backup, PostgresCluster, PostgresClusterStatus};
use kubewright_lane::{Deployed, Plan, Pods};
use kubewright_process::{ImageProgram, ImageTable};
use tokio::time::{Instant, sleep, timeout};

use checker::{CLUSTER, Ledger};
use members::{Members, Violence};

const SAMPLE: &str = include_str!("../../config/samples/postgres_v1alpha1_postgrescluster.yaml");
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(180);

/// What is done to the primaries, in turn.
const TURNS: [Violence; 5] = [
    Violence::KillAll,
    Violence::StopAll,
    Violence::KillDatabase,
    Violence::StopAgent,
    Violence::KillAgent,
];

/// What `cargo xtask postgres` gives, in this order.
struct Arguments {
    /// The program of the pods.
    agent: PathBuf,
    operator: PathBuf,
    /// The helper of the process runtime.
    helper: PathBuf,
    failovers: usize,
}

impl Arguments {
    fn read() -> Result<Self> {
        let mut arguments = std::env::args().skip(1);
        let mut next = |what: &'static str| arguments.next().context(what);
        Ok(Self {
            agent: next("the agent is missing")?.into(),
            operator: next("the operator is missing")?.into(),
            helper: next("the helper is missing")?.into(),
            failovers: next("the number of fail-overs is missing")?.parse()?,
        })
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::read()?;
    let directory = tempfile::tempdir()?;
    let agent = ImageProgram::new(arguments.agent.display().to_string());
    let agent = agent.env("PATH", "/usr/bin:/bin");
    let plan = Plan {
        operator: &arguments.operator,
        role: include_str!("../../rbac.yaml"),
        helper: &arguments.helper,
        images: ImageTable::default().image("postgres-agent:*", agent),
        folder: directory.path(),
    };
    let deployed = Deployed::start(plan).await?;
    let pods = Pods::follow(deployed.cluster.client(), member);
    let members = Members::new(pods, deployed.client.clone());
    let done = Box::pin(live(&deployed, &members, arguments.failovers)).await;
    if done.is_err() {
        deployed.save_logs(directory.path()).await;
        println!("logs and volumes are in {}", directory.keep().display());
    }
    done
}

/// The name of the member whose agent a process is.
fn member(words: &[String]) -> Option<String> {
    let is_agent = words.first().map(Path::new)?.ends_with("postgres-agent");
    let name = words.iter().find_map(|word| word.strip_prefix("--member="));
    name.filter(|_| is_agent).map(str::to_owned)
}

async fn live(deployed: &Deployed, members: &Members, failovers: usize) -> Result<()> {
    let began = Instant::now();
    let mut sample: PostgresCluster = serde_saphyr::from_str(SAMPLE)?;
    sample.spec.backup = Some(Backup {
        interval_seconds: Some(30),
        keep: Some(3),
        storage: None,
    });
    deployed.client.create(&sample).await?;
    let first = until_ready(deployed, CLUSTER, 1).await?;
    println!(
        "{:>7.1} s  {first} is the first primary",
        began.elapsed().as_secs_f64()
    );
    let ledger = Arc::new(Ledger::open(members.clone()).await?);
    let working = ledger.clone().work();
    wishes::refused(deployed).await?;
    let mut longest = Duration::ZERO;
    for turn in 0..failovers {
        sleep(Duration::from_secs(3)).await;
        let violence = TURNS[turn % TURNS.len()];
        let failed_over = fail_over(deployed, members, &ledger, violence);
        let (took, text) = Box::pin(failed_over).await?;
        longest = longest.max(took);
        println!(
            "{:>7.1} s  fail-over {}: {text}",
            began.elapsed().as_secs_f64(),
            turn + 1
        );
        if turn % 2 == 1 {
            deployed.kill_operator().await?;
            println!("           the operator is killed and started again");
        }
    }
    sleep(Duration::from_secs(3)).await;
    restore::want_the_impossible(deployed).await?;
    Box::pin(wishes::fulfil(deployed, &ledger)).await?;
    working.abort();
    let sums = ledger.check(CLUSTER).await?;
    println!("{sums}");
    println!(
        "longest time from the blow to the next acknowledged transfer: {:.1} s",
        longest.as_secs_f64()
    );
    ensure!(sums.is_sound(), "the ledger is not sound");
    Box::pin(restore::restore(deployed, &ledger)).await?;
    restore::impossible_is_reported(deployed).await?;
    wishes::stop_backups(deployed).await?;
    deployed.assert_exact_role()
}

/// Hurts the primary, and waits until another one has acknowledged a transfer; gives how long that took.
async fn fail_over(
    deployed: &Deployed,
    members: &Members,
    ledger: &Ledger,
    violence: Violence,
) -> Result<(Duration, String)> {
    let status = status(deployed, CLUSTER).await?;
    let (term, primary) = (status.term, status.primary.unwrap_or_default());
    let before = ledger.acknowledged();
    let hurt = Instant::now();
    let is_noticed = |cluster: &PostgresCluster| {
        let status = cluster.status.as_ref();
        status.is_some_and(|status| status.fencing || status.term > term)
    };
    let key = Key::new("default", CLUSTER);
    tokio::select! {
        noticed = deployed.until(&key, PATIENCE, is_noticed) => drop(noticed?),
        never = members.hurt(&primary, violence) => match never {},
    }
    let next = until_ready(deployed, CLUSTER, term + 1).await?;
    let recovered = timeout(PATIENCE, ledger.more_than(before)).await;
    recovered.context("no transfer is acknowledged after a fail-over")?;
    let took = hurt.elapsed();
    members.resume(&primary, violence);
    let text = format!(
        "{violence:?} of {primary}, {next} after {:.1} s; {} transfers",
        took.as_secs_f64(),
        ledger.acknowledged(),
    );
    Ok((took, text))
}

async fn status(deployed: &Deployed, name: &str) -> Result<PostgresClusterStatus> {
    let key = Key::new("default", name);
    let cluster = deployed.client.live().get::<PostgresCluster>(&key).await?;
    let cluster = cluster.context("the cluster is gone")?;
    Ok(cluster.status.unwrap_or_default())
}

/// Waits for a primary of this term or a later one that has a replica with every commit, and gives its name.
async fn until_ready(deployed: &Deployed, name: &str, term: i64) -> Result<String> {
    let is_ready = |cluster: &PostgresCluster| {
        let status = cluster.status.as_ref();
        status.is_some_and(|status| {
            let is_ready = conditions::is_true(&status.conditions, "Ready");
            status.term >= term && is_ready && !status.synchronous.is_empty()
        })
    };
    let key = Key::new("default", name);
    let cluster = deployed.until(&key, PATIENCE, is_ready).await?;
    let status = cluster.status.unwrap_or_default();
    status.primary.context("a primary")
}
