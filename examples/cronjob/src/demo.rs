//! Where the program runs: for a cluster of yours, or for a moment for one of its own.

use kubewright::prelude::*;
use kubewright::testing::{World, install_here};
use serde_json::json;

use crate::{v1, v2};

/// Serves a cluster that can reach this machine's loopback, as `KUBECONFIG` says: `kubewright up` is one. Without
/// `KUBECONFIG` it starts a cluster in this process, and shows what becomes of CronJobs there.
///
/// # Errors
/// When there is no cluster after all, or the manager fails.
pub async fn run() -> Result {
    if std::env::var_os("KUBECONFIG").is_some() {
        let manager = Manager::from_env().await?.name("cronjob");
        return Ok(install_here(manager).await?.run().await?);
    }
    let world = World::start().await;
    Box::pin(play(&world.client)).await
}

async fn play(client: &Client) -> Result {
    let job = job("nightly", "0 3 * * *")?;
    let rest = client.create(&job).await?.spec.rest;
    println!(
        "completed: {:?}, suspended: {}, keeps {} that succeeded",
        rest.concurrency_policy
            .unwrap_or(v1::ConcurrencyPolicy::Forbid),
        rest.suspend.unwrap_or(true),
        rest.successful_jobs_history_limit.unwrap_or(0),
    );
    let other = client
        .live()
        .get::<v2::CronJob>(&Key::new("default", "nightly"))
        .await?;
    let schedule = other.map(|other| other.spec.schedule).unwrap_or_default();
    println!("as version 2: {}", serde_json::to_string(&schedule)?);
    if let Err(refused) = client.create(&self::job("never", "0 25 * * *")?).await {
        println!("{}", Error::from(refused).report());
    }
    Ok(())
}

fn job(name: &str, schedule: &str) -> Result<v1::CronJob> {
    let container = json!({"name": "hello", "image": "busybox", "args": ["date"]});
    let pod = json!({"spec": {"containers": [container], "restartPolicy": "OnFailure"}});
    let spec = json!({"schedule": schedule, "jobTemplate": {"spec": {"template": pod}}});
    let mut job = v1::CronJob::new(name, serde_json::from_value(spec)?);
    job.metadata.namespace = Some("default".to_owned());
    Ok(job)
}
