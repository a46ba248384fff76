//! One client at a time: start, memory, creates, gets, lists, and how soon a watch hears of a create.

use std::time::Duration;

use anyhow::Result;
use kubewright_bench::Protocol;

use crate::Amount;
use crate::figure::{Figure, Value, thousands};
use crate::load::{self, Creates};
use crate::objects;
use crate::stopwatch::Samples;
use crate::target::{Running, Target};

/// Time for a server to come to rest before its memory is read.
const REST: Duration = Duration::from_secs(1);
/// Time for the controllers and nodes of a cluster to have done all that a new cluster needs.
const SETTLED: Duration = Duration::from_secs(10);

pub(crate) async fn measure(target: &Target, amount: Amount) -> Result<Vec<Figure>> {
    let mut figures = starts(target, amount).await?;
    if let Some(cluster) = target.start_cluster().await? {
        tokio::time::sleep(SETTLED).await;
        let memory = Value::Bytes(cluster.memory());
        let aim = Value::Bytes(40_000_000);
        figures.push(Figure::new("memory of a whole cluster, idle", memory).aim(aim));
    }
    let server = target.start().await?;
    tokio::time::sleep(REST).await;
    let memory = Value::Bytes(server.memory());
    let aim = Value::Bytes(25_000_000);
    figures.push(Figure::new("memory of the server alone, idle", memory).aim(aim));
    figures.extend(creates(&server, amount).await?);
    figures.extend(reads(&server, amount).await?);
    Ok(figures)
}

async fn starts(target: &Target, amount: Amount) -> Result<Vec<Figure>> {
    let mut samples = Samples::default();
    let times = amount.of(10);
    for _ in 0..times {
        samples.push(target.start().await?.start);
    }
    let aim = Value::Time(Duration::from_millis(50));
    Ok(vec![
        Figure::time(format!("start to ready, best of {times}"), samples.least()),
        Figure::time(
            format!("start to ready, median of {times}"),
            samples.median(),
        )
        .aim(aim),
    ])
}

async fn creates(server: &Running, amount: Amount) -> Result<Vec<Figure>> {
    let many = amount.of(5_000);
    let mut figures = Vec::new();
    for (namespace, connections, protocol) in [
        ("one", 1, Protocol::Http1),
        ("two", 16, Protocol::Http1),
        ("three", 1, Protocol::Http2),
        ("four", 16, Protocol::Http2),
    ] {
        let mut connection = server.connect(Protocol::Http1).await?;
        objects::create_namespace(&mut connection, namespace).await?;
        let creates = Creates {
            path: objects::path(namespace),
            connections,
            protocol,
        };
        let (samples, time) = creates.run(server, 0..many).await?;
        let what = format!("creates, {connections} {}", spoken(connections, protocol));
        figures.push(Figure::rate(&what, many, time).aim(Value::PerSecond(5_000.0)));
        figures.push(Figure::time(format!("{what}, p50"), samples.median()));
        figures.push(Figure::time(format!("{what}, p99"), samples.quantile(0.99)));
        if namespace == "one" {
            tokio::time::sleep(REST).await;
            figures.push(Figure::new(
                format!("memory with {} objects", thousands(many as u64)),
                Value::Bytes(server.memory()),
            ));
        }
    }
    Ok(figures)
}

fn spoken(connections: usize, protocol: Protocol) -> &'static str {
    match (connections, protocol) {
        (1, Protocol::Http1) => "connection, HTTP/1.1",
        (1, Protocol::Http2) => "connection, HTTP/2",
        (_, Protocol::Http1) => "connections, HTTP/1.1",
        (_, Protocol::Http2) => "connections, HTTP/2",
    }
}

async fn reads(server: &Running, amount: Amount) -> Result<Vec<Figure>> {
    let many = amount.of(5_000);
    let path = objects::path("one");
    let gets = load::gets(server, &path, many, many).await?;
    let lists = load::lists(server, &path, 20).await?;
    let watched = load::create_to_watch(server, &path, many..many + amount.of(2_000)).await?;
    Ok(vec![
        Figure::time("get, p50", gets.median()),
        Figure::time("get, p99", gets.quantile(0.99)),
        Figure::time(
            format!("list of {} objects, median", thousands(many as u64)),
            lists.median(),
        )
        .aim(Value::Time(Duration::from_millis(15))),
        Figure::time("create to watch, p50", watched.median())
            .aim(Value::Time(Duration::from_micros(200))),
        Figure::time("create to watch, p99", watched.quantile(0.99)),
    ])
}
