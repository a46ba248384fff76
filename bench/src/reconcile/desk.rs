//! Where reconciles report that they began: counted, timed, or kept in flight.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::sync::{Notify, mpsc};

use super::foo;
use crate::source::now;
use crate::stopwatch::{Samples, Stopwatch};

/// How long something may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// What a reconcile does.
const COUNTS: u8 = 0;
const TIMES: u8 = 1;
const FLIES: u8 = 2;

/// Shared by all reconciles of a process.
pub(super) struct Desk {
    attitude: AtomicU8,
    count: AtomicUsize,
    /// At this count somebody is woken.
    target: AtomicUsize,
    reached: Notify,
    latencies: Mutex<Samples>,
    /// Foos with smaller numbers stay in flight; those from here on are timed.
    flights: AtomicUsize,
    probe: Mutex<Option<Stopwatch>>,
    probed: mpsc::Sender<Duration>,
}

impl Desk {
    pub(super) fn new() -> (Self, mpsc::Receiver<Duration>) {
        let (probed, probes) = mpsc::channel(1);
        let desk = Self {
            attitude: AtomicU8::new(COUNTS),
            count: AtomicUsize::default(),
            target: AtomicUsize::new(usize::MAX),
            reached: Notify::new(),
            latencies: Mutex::default(),
            flights: AtomicUsize::default(),
            probe: Mutex::default(),
            probed,
        };
        (desk, probes)
    }

    /// From now on reconciles tell how long ago their object was sent.
    pub(super) fn time(&self) {
        self.attitude.store(TIMES, Ordering::Release);
    }

    /// From now on reconciles of the first so many Foos do not end, and the others are probes.
    pub(super) fn fly(&self, flights: usize) {
        self.flights.store(flights, Ordering::Release);
        self.attitude.store(FLIES, Ordering::Release);
    }

    /// A probe is about to be added.
    pub(super) fn start_probe(&self) {
        if let Ok(mut probe) = self.probe.lock() {
            *probe = Some(Stopwatch::start());
        }
    }

    /// How many reconciles there were.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Returns when there were so many.
    pub(super) async fn reach(&self, count: usize) -> Result<()> {
        let reached = self.reached.notified();
        // In one order for all: either this sees the count, or whoever counts sees the target.
        self.target.store(count, Ordering::SeqCst);
        if self.count() >= count {
            return Ok(());
        }
        let waited = tokio::time::timeout(PATIENCE, reached).await;
        waited.with_context(|| format!("{} of {count} reconciles ran", self.count()))
    }

    pub(super) fn take_latencies(&self) -> Samples {
        let taken = self.latencies.lock().map(|mut l| std::mem::take(&mut *l));
        taken.unwrap_or_default()
    }

    /// A reconcile of the object of this name begins. `stamp` is the time at which the object was sent, if it says so.
    pub(super) async fn reconcile(&self, name: &str, stamp: impl FnOnce() -> Option<String>) {
        match self.attitude.load(Ordering::Acquire) {
            COUNTS => self.counted(),
            TIMES => {
                let began = now();
                let sent = stamp().and_then(|stamp| stamp.parse().ok()).unwrap_or(0);
                if sent > 0
                    && let Ok(mut latencies) = self.latencies.lock()
                {
                    latencies.push(Duration::from_micros(began.saturating_sub(sent)));
                }
                self.counted();
            }
            _ => self.flight(name).await,
        }
    }

    /// A reconcile of a key without an object begins.
    pub(super) fn counted(&self) {
        let count = self.count.fetch_add(1, Ordering::SeqCst) + 1;
        if count == self.target.load(Ordering::SeqCst) {
            self.reached.notify_waiters();
        }
    }

    async fn flight(&self, name: &str) {
        if foo::number(name) < Some(self.flights.load(Ordering::Acquire)) {
            self.counted();
            return std::future::pending().await;
        }
        let began = self.probe.lock().ok().and_then(|mut probe| probe.take());
        if let Some(began) = began {
            // It is full only if nobody waits for it any more.
            let _ = self.probed.try_send(began.elapsed());
        }
    }
}
