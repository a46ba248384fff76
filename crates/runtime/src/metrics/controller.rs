//! What one controller does, in controller-runtime's series.

use std::time::Duration;

use kubewright_cache::Key;

use super::{Counter, Gauge, Histogram, Labelled, Metrics};

/// Keys named in `kubewright_hot_loops_total`; more share one series.
const HOT_KEYS: usize = 100;

/// Upper bounds of the buckets of `controller_runtime_reconcile_time_seconds`.
const SECONDS: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9,
    1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0,
    25.0, 30.0, 40.0, 50.0, 60.0,
];

/// How a reconcile ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// Nothing is left to do.
    Success,
    /// It wants to run again, rate limited.
    Requeue,
    /// It wants to run again at a time.
    RequeueAfter,
    /// It failed and runs again.
    Error,
    /// It failed and does not run again.
    Terminal,
}

impl Verdict {
    /// The verdict in a word, as spans and series have it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Requeue => "requeue",
            Self::RequeueAfter => "requeue_after",
            Self::Error => "error",
            Self::Terminal => "terminal",
        }
    }
}

/// The metrics of one controller. Clones share them.
#[derive(Debug, Clone)]
pub struct ControllerMetrics {
    name: String,
    success: Counter,
    requeue: Counter,
    requeue_after: Counter,
    error: Counter,
    errors: Counter,
    terminal_errors: Counter,
    panics: Counter,
    handler_panics: Counter,
    timeouts: Counter,
    hot_loops: Labelled<Counter, 2>,
    time: Histogram,
    active: Gauge,
    most: Gauge,
}

impl Metrics {
    /// The metrics of the controller `name`, all of them at zero until something happens.
    pub fn controller(&self, name: &str) -> ControllerMetrics {
        let results = self.built_in::<Counter, 2>(
            "controller_runtime_reconcile_total",
            "Total number of reconciliations per controller",
            &["controller", "result"],
            (),
        );
        ControllerMetrics {
            name: name.into(),
            success: results.with([name, "success"]),
            requeue: results.with([name, "requeue"]),
            requeue_after: results.with([name, "requeue_after"]),
            error: results.with([name, "error"]),
            errors: self.count(name, "reconcile_errors_total", "reconciliation errors"),
            terminal_errors: self.count(
                name,
                "terminal_reconcile_errors_total",
                "terminal reconciliation errors",
            ),
            panics: self.count(name, "reconcile_panics_total", "reconciliation panics"),
            handler_panics: self.handler_panics(name),
            timeouts: self.count(name, "reconcile_timeouts_total", "reconciliation timeouts"),
            hot_loops: self.hot_loops(),
            time: self.time(name),
            active: self.gauge_of(
                name,
                "active_workers",
                "Number of currently used workers per controller",
            ),
            most: self.gauge_of(
                name,
                "max_concurrent_reconciles",
                "Maximum number of concurrent reconciles per controller",
            ),
        }
    }

    fn count(&self, controller: &str, what: &str, of: &str) -> Counter {
        let name = format!("controller_runtime_{what}");
        let help = format!("Total number of {of} per controller");
        self.built_in::<Counter, 1>(&name, &help, &["controller"], ())
            .with([controller])
    }

    fn gauge_of(&self, controller: &str, what: &str, help: &str) -> Gauge {
        let name = format!("controller_runtime_{what}");
        self.built_in::<Gauge, 1>(&name, help, &["controller"], ())
            .with([controller])
    }

    fn time(&self, controller: &str) -> Histogram {
        let name = "controller_runtime_reconcile_time_seconds";
        let help = "Length of time per reconciliation per controller";
        self.built_in::<Histogram, 1>(name, help, &["controller"], SECONDS.into())
            .with([controller])
    }

    fn handler_panics(&self, controller: &str) -> Counter {
        let name = "kubewright_handler_panics_total";
        let help = "Times that a mapper, predicate or handler of a watch panicked, which ends the controller";
        self.built_in::<Counter, 1>(name, help, &["controller"], ())
            .with([controller])
    }

    fn hot_loops(&self) -> Labelled<Counter, 2> {
        let name = "kubewright_hot_loops_total";
        let help = "Times that a key was found in a hot loop";
        self.limited(name, help, &["controller", "key"], (), HOT_KEYS)
    }
}

impl ControllerMetrics {
    /// How many reconciles may run at once.
    pub fn workers(&self, most: usize) {
        self.most.set(most as f64);
    }

    /// How many reconciles run now.
    pub fn active(&self, count: usize) {
        self.active.set(count as f64);
    }

    /// A reconcile has ended, after this long.
    pub fn finished(&self, verdict: Verdict, took: Duration) {
        self.time.observe_duration(took);
        match verdict {
            Verdict::Success => self.success.increment(),
            Verdict::Requeue => self.requeue.increment(),
            Verdict::RequeueAfter => self.requeue_after.increment(),
            Verdict::Error | Verdict::Terminal => self.failed(verdict),
        }
    }

    fn failed(&self, verdict: Verdict) {
        self.error.increment();
        self.errors.increment();
        if verdict == Verdict::Terminal {
            self.terminal_errors.increment();
        }
    }

    /// A reconcile panicked. It ends as an error, too.
    pub fn panicked(&self) {
        self.panics.increment();
    }

    /// Counts the panics of mappers, predicates and handlers.
    pub(crate) fn handler_panics(&self) -> Counter {
        self.handler_panics.clone()
    }

    /// A reconcile took longer than it may. It ends as an error, too.
    pub fn timed_out(&self) {
        self.timeouts.increment();
    }

    /// A key was found in a hot loop.
    pub fn hot_loop(&self, key: &Key) {
        self.hot_loops.with([&self.name, key.as_str()]).increment();
    }
}
