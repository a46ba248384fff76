//! A client that is measured, in a process of its own: it syncs, reads, hears events, lists again, and prints what that took.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};
use kube::Client;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};

use super::outcome::Outcome;
use super::{kube_rs, ours};
use crate::machine;
use crate::source::now;
use crate::stopwatch::{Samples, Stopwatch};

/// The annotation with the time at which an event was sent.
pub(crate) const STAMP: &str = "bench.kubewright.dev/stamp";
/// How many events a second are timed one by one.
const PACE: usize = 200;
/// How long a process is left alone before its memory is read.
const SETTLE: Duration = Duration::from_secs(2);
/// How long events may take to come.
const PATIENCE: Duration = Duration::from_secs(600);

/// Be measured against a source.
#[derive(clap::Args, Clone)]
pub(crate) struct Arguments {
    /// Whose client
    #[arg(long)]
    peer: Peer,
    /// Where the source is
    #[arg(long)]
    kubeconfig: PathBuf,
    /// What is made of the objects
    #[arg(long)]
    pub(crate) form: Form,
    /// How many pods the source has
    #[arg(long)]
    pub(crate) pods: usize,
    /// How many events are taken as fast as they come; without any, none are timed either
    #[arg(long)]
    pub(crate) events: usize,
    /// How many events are timed one by one
    #[arg(long)]
    paced: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Peer {
    Kubewright,
    KubeRs,
}

/// What a client makes of the objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Form {
    /// A type that is known when the program is compiled.
    Typed,
    /// The same, decoded on arrival.
    Decoded,
    /// Any object.
    Dynamic,
    /// Only the metadata of any object.
    Metadata,
}

/// Runs the steps and prints the outcome.
pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    let kubeconfig = Kubeconfig::read_from(&arguments.kubeconfig)?;
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    let outcome = match arguments.peer {
        Peer::Kubewright => ours::measure(Client::try_from(config)?, &arguments).await?,
        Peer::KubeRs => kube_rs::measure(Client::try_from(config)?, &arguments).await?,
    };
    println!("{}", serde_json::to_string(&outcome)?);
    Ok(())
}

/// Counts the updates that a handler hears, and times those that say when they were sent.
#[derive(Debug, Default)]
pub(crate) struct Listener {
    updates: AtomicUsize,
    latencies: Mutex<Samples>,
}

impl Listener {
    /// An update has been heard. `stamp` is the time at which it was sent, if it says so.
    pub(crate) fn heard(&self, stamp: Option<&str>) {
        let sent: u64 = stamp.and_then(|stamp| stamp.parse().ok()).unwrap_or(0);
        if sent > 0
            && let Ok(mut latencies) = self.latencies.lock()
        {
            latencies.push(Duration::from_micros(now().saturating_sub(sent)));
        }
        self.updates.fetch_add(1, Ordering::Release);
    }

    /// Returns when so many more updates have been heard than there were.
    async fn wait(&self, before: usize, updates: usize) -> Result<()> {
        let stopwatch = Stopwatch::start();
        loop {
            let heard = self.updates.load(Ordering::Acquire) - before;
            if heard >= updates {
                return Ok(());
            }
            if stopwatch.elapsed() > PATIENCE {
                bail!("{heard} of {updates} updates came");
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    fn take_latencies(&self) -> Samples {
        self.latencies
            .lock()
            .map_or_else(|_| Samples::default(), |mut l| std::mem::take(&mut *l))
    }
}

/// Orders to the source, and what comes of them.
pub(crate) struct Control<'a> {
    pub(crate) client: Client,
    pub(crate) listener: &'a Listener,
    pub(crate) arguments: &'a Arguments,
}

impl Control<'_> {
    /// Reads the memory after a sync.
    pub(crate) async fn settle(&self, outcome: &mut Outcome) {
        tokio::time::sleep(SETTLE).await;
        outcome.steady = machine::own("VmRSS:");
        outcome.peak = machine::own("VmHWM:");
    }

    /// Events a second, and the median and 99th percentile from sending to hearing.
    pub(crate) async fn events(&self) -> Result<(f64, Duration, Duration)> {
        let (events, paced) = (self.arguments.events, self.arguments.paced);
        let stopwatch = Stopwatch::start();
        self.order_and_hear(events, &format!("/bench/events?count={events}"))
            .await?;
        let rate = events as f64 / stopwatch.elapsed().as_secs_f64();
        tokio::time::sleep(SETTLE).await;
        self.listener.take_latencies();
        let path = format!("/bench/events?count={paced}&pace={PACE}");
        self.order_and_hear(paced, &path).await?;
        let latencies = self.listener.take_latencies();
        Ok((rate, latencies.median(), latencies.quantile(0.99)))
    }

    async fn order_and_hear(&self, updates: usize, path: &str) -> Result<()> {
        let before = self.listener.updates.load(Ordering::Acquire);
        self.order(path).await?;
        self.listener.wait(before, updates).await
    }

    /// Has the watch expire, and reads the memory before and during the relist.
    pub(crate) async fn relist(&self, outcome: &mut Outcome) -> Result<()> {
        machine::forget_peak()?;
        outcome.relist_steady = machine::own("VmRSS:");
        self.order("/bench/relist").await?;
        tokio::time::sleep(SETTLE).await;
        outcome.relist_peak = machine::own("VmHWM:");
        Ok(())
    }

    async fn order(&self, path: &str) -> Result<()> {
        let request = http::Request::get(path).body(Vec::new())?;
        self.client.request_text(request).await?;
        Ok(())
    }
}
