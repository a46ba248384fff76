//! Many watchers of the same objects: how soon the last one has an event, and how many events go out in a second.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result};
use kubewright_bench::{Connection, Lines, Protocol};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::Amount;
use crate::figure::{Figure, thousands};
use crate::load::Creates;
use crate::objects;
use crate::stopwatch::{Samples, Stopwatch};
use crate::target::{Running, Target};

/// Watches on one connection: the most that kube-apiserver allows.
const STREAMS: usize = 100;

/// Watchers, and what they have seen.
struct Crowd {
    tally: Arc<Tally>,
    size: usize,
    /// Kept because watches end with their connections.
    _connections: Vec<Connection>,
    _watchers: JoinSet<()>,
}

#[derive(Default)]
struct Tally {
    seen: AtomicUsize,
    wanted: AtomicUsize,
    reached: Notify,
}

pub(crate) async fn measure(target: &Target, amount: Amount) -> Result<Vec<Figure>> {
    let server = target.start().await?;
    let mut connection = server.connect(Protocol::Http1).await?;
    objects::create_namespace(&mut connection, "crowd").await?;
    let path = objects::path("crowd");
    let crowd = Crowd::gather(&server, &path, amount.of(1_000)).await?;

    let mut one = Samples::default();
    let single = 20;
    for number in 0..single {
        crowd.await_each(1);
        let stopwatch = Stopwatch::start();
        objects::create(&mut connection, &path, number).await?;
        crowd.satisfied().await;
        one.push(stopwatch.elapsed());
    }

    let events = amount.of(1_000);
    crowd.await_each(events);
    let stopwatch = Stopwatch::start();
    let creates = Creates {
        path,
        connections: 1,
        protocol: Protocol::Http1,
    };
    creates.run(&server, single..single + events).await?;
    crowd.satisfied().await;
    let time = stopwatch.elapsed();
    let watchers = thousands(crowd.size as u64);
    Ok(vec![
        Figure::time(
            format!("one event to {watchers} watchers, until the last has it, median"),
            one.median(),
        ),
        Figure::time(
            format!("{} events to {watchers} watchers", thousands(events as u64)),
            time,
        ),
        Figure::rate("events delivered meanwhile", events * crowd.size, time),
    ])
}

impl Crowd {
    async fn gather(server: &Running, path: &str, size: usize) -> Result<Self> {
        let tally = Arc::new(Tally::default());
        let mut connections = Vec::new();
        let mut watchers = JoinSet::new();
        for number in 0..size {
            if number % STREAMS == 0 {
                connections.push(server.connect(Protocol::Http2).await?);
            }
            let connection = connections
                .last_mut()
                .context("a connection was just made")?;
            let lines = connection
                .lines(&format!("{path}?watch=true&resourceVersion=0"))
                .await?;
            watchers.spawn(watch(lines, tally.clone()));
        }
        Ok(Self {
            tally,
            size,
            _connections: connections,
            _watchers: watchers,
        })
    }

    /// From now on, so many more events for each watcher are wanted.
    fn await_each(&self, events: usize) {
        let wanted = self.size * events;
        self.tally.wanted.fetch_add(wanted, Ordering::SeqCst);
    }

    /// Waits until every watcher has what is wanted.
    async fn satisfied(&self) {
        while self.tally.seen.load(Ordering::SeqCst) < self.tally.wanted.load(Ordering::SeqCst) {
            self.tally.reached.notified().await;
        }
    }
}

async fn watch(mut lines: Lines, tally: Arc<Tally>) {
    while let Ok(Some(_)) = lines.next().await {
        let seen = tally.seen.fetch_add(1, Ordering::SeqCst) + 1;
        if seen >= tally.wanted.load(Ordering::SeqCst) {
            tally.reached.notify_one();
        }
    }
}
