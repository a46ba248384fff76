//! Work done many times and timed: creates, gets, lists, and the way from a create to a watch.

use std::ops::Range;

use anyhow::{Context as _, Result};
use kubewright_bench::{Connection, Protocol};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::objects;
use crate::stopwatch::{Samples, Stopwatch};
use crate::target::Running;

/// What a connection does a number of times.
#[derive(Debug, Clone)]
pub(crate) struct Creates {
    pub(crate) path: String,
    pub(crate) connections: usize,
    pub(crate) protocol: Protocol,
}

impl Creates {
    /// Creates these objects, spread over the connections; tells how long each took, and how long all did.
    pub(crate) async fn run(
        &self,
        server: &Running,
        numbers: Range<usize>,
    ) -> Result<(Samples, std::time::Duration)> {
        let mut connections = Vec::new();
        for _ in 0..self.connections {
            connections.push(server.connect(self.protocol).await?);
        }
        let stopwatch = Stopwatch::start();
        let mut workers = JoinSet::new();
        for (first, connection) in connections.into_iter().enumerate() {
            let share = numbers.clone().skip(first).step_by(self.connections);
            workers.spawn(create_all(connection, self.path.clone(), share));
        }
        let mut samples = Samples::default();
        while let Some(done) = workers.join_next().await {
            samples.extend(done.context("a worker panicked")??);
        }
        Ok((samples, stopwatch.elapsed()))
    }
}

async fn create_all(
    mut connection: Connection,
    path: String,
    numbers: impl Iterator<Item = usize>,
) -> Result<Samples> {
    let mut samples = Samples::default();
    for number in numbers {
        let stopwatch = Stopwatch::start();
        objects::create(&mut connection, &path, number).await?;
        samples.push(stopwatch.elapsed());
    }
    Ok(samples)
}

/// Gets objects `0..many` one after the other, in an order that jumps about.
pub(crate) async fn gets(
    server: &Running,
    path: &str,
    many: usize,
    times: usize,
) -> Result<Samples> {
    /// No divisor of the counts in use, so that every object is met.
    const STRIDE: usize = 7_919;
    let mut connection = server.connect(Protocol::Http1).await?;
    let mut samples = Samples::default();
    for turn in 0..times {
        let one = format!("{path}/{}", objects::name(turn * STRIDE % many));
        let stopwatch = Stopwatch::start();
        let reply = connection.get(&one).await?;
        samples.push(stopwatch.elapsed());
        objects::expect_success(reply)?;
    }
    Ok(samples)
}

/// Lists a path this often; tells how long each took and the size of an answer.
pub(crate) async fn lists(server: &Running, path: &str, times: usize) -> Result<Samples> {
    let mut connection = server.connect(Protocol::Http1).await?;
    let mut samples = Samples::default();
    for _ in 0..times {
        let stopwatch = Stopwatch::start();
        let reply = connection.get(path).await?;
        samples.push(stopwatch.elapsed());
        objects::expect_success(reply)?;
    }
    Ok(samples)
}

/// Creates objects one after the other and times each from before it is sent until a watch has it.
pub(crate) async fn create_to_watch(
    server: &Running,
    path: &str,
    numbers: Range<usize>,
) -> Result<Samples> {
    let mut creator = server.connect(Protocol::Http1).await?;
    let mut watcher = server.connect(Protocol::Http1).await?;
    // The newest version, so that the watch does not begin with what is there.
    let list = creator.get(&format!("{path}?limit=1")).await?;
    let list: serde_json::Value = serde_json::from_slice(&list.body)?;
    let version = list["metadata"]["resourceVersion"].as_str().unwrap_or("0");
    let mut lines = watcher
        .lines(&format!("{path}?watch=true&resourceVersion={version}"))
        .await?;
    let (arrived, mut arrivals) = mpsc::channel(16);
    let watch = tokio::spawn(async move {
        while let Ok(Some(_)) = lines.next().await {
            if arrived.send(()).await.is_err() {
                return;
            }
        }
    });
    let mut samples = Samples::default();
    for number in numbers {
        let stopwatch = Stopwatch::start();
        let (created, seen) = tokio::join!(objects::create(&mut creator, path, number), async {
            let seen = arrivals.recv().await;
            (seen, stopwatch.elapsed())
        });
        created?;
        seen.0.context("the watch ended")?;
        samples.push(seen.1);
    }
    watch.abort();
    Ok(samples)
}
