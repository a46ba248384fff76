//! How the cost of everything grows with the number of objects that are there.

use std::time::Duration;

use anyhow::Result;
use kubewright_bench::Protocol;

use crate::Amount;
use crate::figure::{Figure, Value, thousands};
use crate::load::{self, Creates};
use crate::objects;
use crate::target::{Running, Target};

const SIZES: [usize; 3] = [1_000, 10_000, 100_000];
/// Creates that are timed at each size.
const TIMED: usize = 1_000;

pub(crate) async fn measure(target: &Target, amount: Amount) -> Result<Vec<Figure>> {
    let server = target.start().await?;
    let mut connection = server.connect(Protocol::Http1).await?;
    objects::create_namespace(&mut connection, "growth").await?;
    let mut figures = Vec::new();
    let mut there = 0;
    for size in SIZES {
        let size = amount.of(size);
        let fill = Creates {
            path: objects::path("growth"),
            connections: 16,
            protocol: Protocol::Http1,
        };
        fill.run(&server, there..size).await?;
        figures.push(Figure::new(
            format!("memory with {} objects", thousands(size as u64)),
            Value::Bytes(server.memory()),
        ));
        there = at_size(&server, size, amount, &mut figures).await?;
    }
    Ok(figures)
}

/// Measures with this many objects; tells how many there are afterwards.
async fn at_size(
    server: &Running,
    size: usize,
    amount: Amount,
    figures: &mut Vec<Figure>,
) -> Result<usize> {
    let path = objects::path("growth");
    let timed = amount.of(TIMED);
    let with = |what: &str| format!("{what}, with {} objects", thousands(size as u64));
    let creates = Creates {
        path: path.clone(),
        connections: 1,
        protocol: Protocol::Http1,
    };
    let gets = load::gets(server, &path, size, timed).await?;
    let lists = load::lists(server, &path, 5).await?;
    let pages = load::lists(server, &format!("{path}?limit=500"), 20).await?;
    let (created, _) = creates.run(server, size..size + timed).await?;
    let next = size + timed..size + 2 * timed;
    let watched = load::create_to_watch(server, &path, next).await?;
    figures.extend([
        Figure::time(with("create, p50"), created.median()),
        Figure::time(with("get, p50"), gets.median()),
        Figure::time(with("list of all, median"), lists.median()),
        Figure::time(with("list of the first 500, median"), pages.median())
            .aim(Value::Time(Duration::from_millis(1))),
        Figure::time(with("create to watch, p50"), watched.median()),
    ]);
    Ok(size + 2 * timed)
}
