//! Whether very many lists on one connection keep the server from answering others.

use std::time::Duration;

use anyhow::{Context as _, Result};
use kubewright_bench::{Connection, Protocol};
use tokio_util::sync::CancellationToken;

use crate::Amount;
use crate::figure::{Figure, Value, thousands};
use crate::load::Creates;
use crate::objects;
use crate::stopwatch::{Samples, Stopwatch};
use crate::target::Target;

/// Objects of each list.
const OBJECTS: usize = 500;
/// Time between two questions of the other client.
const PAUSE: Duration = Duration::from_millis(1);

pub(crate) async fn measure(target: &Target, amount: Amount) -> Result<Vec<Figure>> {
    let server = target.start().await?;
    let mut other = server.connect(Protocol::Http1).await?;
    objects::create_namespace(&mut other, "lists").await?;
    let path = objects::path("lists");
    let fill = Creates {
        path: path.clone(),
        connections: 16,
        protocol: Protocol::Http1,
    };
    let objects = amount.of(OBJECTS);
    fill.run(&server, 0..objects).await?;
    let many = amount.of(1_000);
    let greedy = server.connect(Protocol::Http2).await?;
    let mut lists = greedy.get_at_once(&path, many)?;
    let done = CancellationToken::new();
    let asking = tokio::spawn(ask(other, done.clone()));
    while let Some(list) = lists.join_next().await {
        objects::expect_success(list.context("a list panicked")??)?;
    }
    done.cancel();
    let samples = asking.await.context("the other client panicked")??;
    let what = format!(
        "/readyz during {} lists of {} objects on one connection, slowest",
        thousands(many as u64),
        thousands(objects as u64)
    );
    let slowest = samples.quantile(1.0);
    Ok(vec![
        Figure::time(what, slowest).aim(Value::Time(Duration::from_millis(50))),
    ])
}

/// Polls whether the server is ready, and returns how long each answer took.
async fn ask(mut connection: Connection, done: CancellationToken) -> Result<Samples> {
    let mut samples = Samples::default();
    loop {
        let stopwatch = Stopwatch::start();
        let reply = connection.get("/readyz").await?;
        samples.push(stopwatch.elapsed());
        objects::expect_success(reply)?;
        if done.is_cancelled() {
            return Ok(samples);
        }
        tokio::time::sleep(PAUSE).await;
    }
}
