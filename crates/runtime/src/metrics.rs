//! Counts what an operator does, and writes it in Prometheus' text format (0.0.4), under controller-runtime's names.
//!
//! One [`Metrics`] a manager, shared by clones; there is no global registry, so that several managers in a process do not
//! mix. Operators add families of their own with [`Metrics::counter`], [`Metrics::gauge`] and [`Metrics::histogram`].
//! Memory is bounded: a family that has reached its number of series counts the rest under
//! `exceeded_cardinality_limit`.

mod controller;
mod family;
mod layer;
mod requests;
mod text;
mod webhooks;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

pub use controller::{ControllerMetrics, Verdict};
pub use family::{Counter, Gauge, Histogram, Instrument, Labelled};
pub use layer::{CountRequests, Counted};
pub use requests::RequestMetrics;
pub use webhooks::{InFlight, WebhookMetrics};

use family::{AnyFamily, Family};

/// Series of one family, unless it says otherwise.
const SERIES: usize = 2_000;

/// Why a family is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// Not a name that Prometheus takes.
    #[error("{0:?} is not a valid metric name")]
    Name(String),
    /// Not a label that Prometheus takes, or one that is there twice.
    #[error("{0:?} is not a valid label name here")]
    Label(String),
    /// The name is in use by a family of another type, other labels or other buckets.
    #[error("{0} is registered already, and differently")]
    Different(String),
    /// Bounds of buckets are finite and grow.
    #[error("the buckets of {0} do not grow")]
    Buckets(String),
}

type Collector = Arc<dyn Fn(&mut String) + Send + Sync>;

/// The metrics of one manager. Clones share them.
#[derive(Clone, Default)]
pub struct Metrics {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    families: Mutex<BTreeMap<String, AnyFamily>>,
    collectors: Mutex<BTreeMap<String, Collector>>,
}

impl Metrics {
    /// Creates an empty set of metrics.
    pub fn new() -> Self {
        Self::default()
    }

    /// A family of counters, made now or, when it is there with the same labels, shared.
    ///
    /// ```
    /// let metrics = kubewright_runtime::metrics::Metrics::new();
    /// let sent = metrics.counter("mails_total", "Mails by outcome.", &["outcome"])?;
    /// sent.with(["ok"]).increment();
    /// assert!(metrics.render().contains("mails_total{outcome=\"ok\"} 1\n"));
    /// # Ok::<(), kubewright_runtime::metrics::RegisterError>(())
    /// ```
    ///
    /// # Errors
    /// When a name is not valid, or taken by a different family.
    pub fn counter<const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: &[&str; N],
    ) -> Result<Labelled<Counter, N>, RegisterError> {
        self.family(name, help, labels, (), SERIES)
    }

    /// A family of gauges, made now or shared.
    ///
    /// ```
    /// use kubewright_runtime::Metrics;
    ///
    /// let metrics = Metrics::new();
    /// let open = metrics.gauge("mails_open", "Mails by priority.", &["priority"]).unwrap();
    /// open.with(["high"]).set(3.0);
    /// assert!(metrics.render().contains("mails_open{priority=\"high\"} 3"));
    /// ```
    ///
    /// # Errors
    /// As for [`Metrics::counter`].
    pub fn gauge<const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: &[&str; N],
    ) -> Result<Labelled<Gauge, N>, RegisterError> {
        self.family(name, help, labels, (), SERIES)
    }

    /// A family of histograms with these upper bounds of buckets, made now or shared.
    ///
    /// # Errors
    /// As for [`Metrics::counter`], and when bounds do not grow.
    pub fn histogram<const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: &[&str; N],
        bounds: &[f64],
    ) -> Result<Labelled<Histogram, N>, RegisterError> {
        let finite = bounds.iter().all(|bound| bound.is_finite());
        if !finite || !bounds.is_sorted_by(|a, b| a < b) {
            return Err(RegisterError::Buckets(name.into()));
        }
        self.family(name, help, labels, bounds.into(), SERIES)
    }

    /// Adds text of somebody else's making: whole families with their headers, none of which is written elsewhere. A
    /// second collector of the same name takes the place of the first.
    pub fn collect(&self, name: &str, write: impl Fn(&mut String) + Send + Sync + 'static) {
        let mut collectors = self.shared.collectors.lock();
        collectors.insert(name.into(), Arc::new(write));
    }

    /// The gauge that says whether this process leads the election `name`.
    pub fn leader(&self, name: &str) -> Gauge {
        let help = "Gauge of if the reporting system is master of the relevant lease, 0 indicates \
                    backup, 1 indicates master. 'name' is the string used to identify the lease. \
                    Please make sure to group by name.";
        self.built_in::<Gauge, 1>("leader_election_master_status", help, &["name"], ())
            .with([name])
    }

    /// Writes all metrics in Prometheus' text format.
    ///
    /// ```
    /// use kubewright_runtime::Metrics;
    ///
    /// let metrics = Metrics::new();
    /// metrics.controller("foo");
    /// assert!(metrics.render().contains("controller_runtime_reconcile_errors_total{controller=\"foo\"} 0"));
    /// ```
    pub fn render(&self) -> String {
        // First, because a collector may set gauges; and outside the lock, because it may register something.
        let collectors = self.shared.collectors.lock().clone();
        let mut collected = String::new();
        for collector in collectors.values() {
            collector(&mut collected);
        }
        let mut out = String::new();
        let families = self.shared.families.lock().clone();
        for (name, family) in &families {
            family.write(name, &mut out);
        }
        out + &collected
    }

    /// A family of ours. Should an operator have taken the name for something else, ours counts unseen: no reason to
    /// stop the operator.
    fn built_in<T: Instrument, const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: &[&str; N],
        settings: T::Settings,
    ) -> Labelled<T, N> {
        self.limited(name, help, labels, settings, SERIES)
    }

    fn limited<T: Instrument, const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: &[&str; N],
        settings: T::Settings,
        limit: usize,
    ) -> Labelled<T, N> {
        self.family(name, help, labels, settings.clone(), limit)
            .unwrap_or_else(|error| {
                tracing::warn!(%error, "a built-in metric is hidden by another of its name");
                Labelled::new(Arc::new(Family::new(help, labels, settings, limit)))
            })
    }

    fn family<T: Instrument, const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: &[&str; N],
        settings: T::Settings,
        limit: usize,
    ) -> Result<Labelled<T, N>, RegisterError> {
        text::check_name(name)?;
        text::check_labels(labels)?;
        let mut families = self.shared.families.lock();
        let Some(present) = families.get(name) else {
            let family = Arc::new(Family::new(help, labels, settings, limit));
            families.insert(name.into(), T::erase(family.clone()));
            return Ok(Labelled::new(family));
        };
        T::recover(present)
            .filter(|family| family.is_like(labels, &settings))
            .map(|family| Labelled::new(family.clone()))
            .ok_or_else(|| RegisterError::Different(name.into()))
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

#[cfg(test)]
mod tests;
