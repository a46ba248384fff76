//! The steps that every controller goes through, whoever made it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use kube::Client;
use tokio::sync::mpsc;

use super::desk::Desk;
use super::outcome::Outcome;
use super::{Arguments, Measure};
use crate::machine;
use crate::stopwatch::{Samples, Stopwatch};

/// How many events a second are timed.
const PACE: usize = 100;
/// How many keys are timed one after the other.
pub(super) const PROBES: usize = 200;
/// How long the controller is left alone between two of them.
const PAUSE: Duration = Duration::from_millis(2);
/// How long a process is left alone.
const SETTLE: Duration = Duration::from_secs(2);
/// How long one key may wait.
const PATIENCE: Duration = Duration::from_secs(60);

/// A controller that runs, and the keys that can be added to its queue.
pub(super) struct Running<T> {
    pub(super) client: Client,
    pub(super) desk: Arc<Desk>,
    pub(super) probes: mpsc::Receiver<Duration>,
    pub(super) keys: Vec<T>,
    pub(super) add: Box<dyn Fn(T) + Send + Sync>,
}

impl<T: Clone> Running<T> {
    /// Waits until each object has been reconciled once, then measures.
    pub(super) async fn measure(mut self, arguments: &Arguments) -> Result<Outcome> {
        self.desk.reach(arguments.objects).await?;
        tokio::time::sleep(SETTLE).await;
        match arguments.measure {
            Measure::Rate => self.rate(arguments).await,
            Measure::Latency => self.latency(arguments).await,
            Measure::Flight => self.flight(arguments).await,
        }
    }

    /// Adds every key and waits until each has run.
    async fn rate(&self, arguments: &Arguments) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        for _ in 0..arguments.rounds {
            let target = self.desk.count() + self.keys.len();
            let stopwatch = Stopwatch::start();
            for key in &self.keys {
                (self.add)(key.clone());
            }
            self.desk.reach(target).await?;
            let rate = self.keys.len() as f64 / stopwatch.elapsed().as_secs_f64();
            outcome.reconciles_per_second = outcome.reconciles_per_second.max(rate);
        }
        Ok(outcome)
    }

    /// Has the source change objects.
    async fn latency(&self, arguments: &Arguments) -> Result<Outcome> {
        self.desk.time();
        let target = self.desk.count() + arguments.events;
        let path = format!("/bench/events?count={}&pace={PACE}", arguments.events);
        let request = http::Request::get(path).body(Vec::new())?;
        self.client.request_text(request).await?;
        self.desk.reach(target).await?;
        let latencies = self.desk.take_latencies();
        Ok(Outcome {
            latency_p50_seconds: latencies.median().as_secs_f64(),
            latency_p99_seconds: latencies.quantile(0.99).as_secs_f64(),
            ..Outcome::default()
        })
    }

    /// Times new keys while no reconcile runs, and while many do.
    async fn flight(&mut self, arguments: &Arguments) -> Result<Outcome> {
        let flights = arguments.flights;
        if self.keys.len() < flights + PROBES {
            bail!("too few objects");
        }
        self.desk.fly(flights);
        let alone = self.probe(flights).await?;
        let target = self.desk.count() + flights;
        for key in &self.keys[..flights] {
            (self.add)(key.clone());
        }
        self.desk.reach(target).await?;
        tokio::time::sleep(SETTLE).await;
        let flight_bytes = machine::own("VmRSS:");
        let crowded = self.probe(flights).await?;
        Ok(Outcome {
            alone_p50_seconds: alone.median().as_secs_f64(),
            crowded_p50_seconds: crowded.median().as_secs_f64(),
            crowded_p99_seconds: crowded.quantile(0.99).as_secs_f64(),
            flight_bytes,
            ..Outcome::default()
        })
    }

    /// Adds keys one after the other, and takes the time until each runs.
    async fn probe(&mut self, flights: usize) -> Result<Samples> {
        let mut samples = Samples::default();
        for key in &self.keys[flights..flights + PROBES] {
            tokio::time::sleep(PAUSE).await;
            self.desk.start_probe();
            (self.add)(key.clone());
            let waited = tokio::time::timeout(PATIENCE, self.probes.recv()).await;
            let waited = waited.context("a key did not run")?;
            samples.push(waited.context("nobody reports any more")?);
        }
        Ok(samples)
    }
}
