//! Families of series, and the three instruments that series are.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::text;
use crate::stripes::Striped;

/// The value of every label of the series that takes what no other series may.
const OVERFLOW: &str = "exceeded_cardinality_limit";

/// A number that only grows.
#[derive(Debug, Clone, Default)]
pub struct Counter(Arc<Striped<AtomicU64>>);

impl Counter {
    /// Adds one to the counter.
    pub fn increment(&self) {
        self.add(1.0);
    }

    /// So many more; less than nothing is ignored, since counters do not go back.
    pub fn add(&self, amount: f64) {
        if amount > 0.0 {
            add(self.0.mine(), amount);
        }
    }

    /// Returns the value at this moment.
    pub fn get(&self) -> f64 {
        sum(&self.0)
    }
}

/// A number that goes up and down.
#[derive(Debug, Clone, Default)]
pub struct Gauge(Arc<Striped<AtomicU64>>);

impl Gauge {
    /// Takes this value. What is added at the same moment may be lost.
    pub fn set(&self, value: f64) {
        let rest = std::iter::repeat(0.0);
        for (part, value) in self.0.all().zip(std::iter::once(value).chain(rest)) {
            part.store(value.to_bits(), Ordering::Relaxed);
        }
    }

    /// So much more, or less.
    pub fn add(&self, amount: f64) {
        add(self.0.mine(), amount);
    }

    /// Returns the value at this moment.
    pub fn get(&self) -> f64 {
        sum(&self.0)
    }
}

fn add(bits: &AtomicU64, amount: f64) {
    let next = |bits| Some((f64::from_bits(bits) + amount).to_bits());
    // The closure always gives a value, so the update cannot fail.
    let _ = bits.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
}

fn sum(parts: &Striped<AtomicU64>) -> f64 {
    let values = parts.all().map(|bits| bits.load(Ordering::Relaxed));
    // Not from negative zero, where the sum of floats begins.
    values
        .map(f64::from_bits)
        .fold(0.0, |sum, value| sum + value)
}

/// Observations, counted in buckets.
#[derive(Debug, Clone)]
pub struct Histogram {
    bounds: Arc<[f64]>,
    observed: Arc<Striped<Mutex<Observed>>>,
}

#[derive(Debug)]
struct Observed {
    /// One for each bound; what is above the last is in `count` alone.
    buckets: Box<[u64]>,
    count: u64,
    sum: f64,
}

impl Observed {
    fn none(bounds: usize) -> Self {
        Self {
            buckets: vec![0; bounds].into(),
            count: 0,
            sum: 0.0,
        }
    }

    fn add(&mut self, other: &Self) {
        for (bucket, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *bucket += more;
        }
        self.count += other.count;
        self.sum += other.sum;
    }
}

impl Histogram {
    /// Counts one value. One that is not a number is not counted.
    pub fn observe(&self, value: f64) {
        if value.is_nan() {
            return;
        }
        // Most are in the first.
        let bucket = match self.bounds.first() {
            Some(first) if value <= *first => 0,
            _ => self.bounds.partition_point(|bound| *bound < value),
        };
        let mut observed = self.observed.mine().lock();
        observed.count += 1;
        observed.sum += value;
        if let Some(bucket) = observed.buckets.get_mut(bucket) {
            *bucket += 1;
        }
    }

    /// Counts a duration, in seconds.
    pub fn observe_duration(&self, duration: Duration) {
        self.observe(duration.as_secs_f64());
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.observed.all().map(|part| part.lock().count).sum()
    }
}

/// What a family is made of: [`Counter`], [`Gauge`] or [`Histogram`].
pub trait Instrument: sealed::Sealed {}
impl<T: sealed::Sealed> Instrument for T {}

mod sealed {
    use super::*;

    pub trait Sealed: Clone + Sized + Send + Sync + 'static {
        type Settings: Clone + PartialEq;
        const TYPE: &'static str;
        fn fresh(settings: &Self::Settings) -> Self;
        fn write(&self, name: &str, labels: &text::Labels, out: &mut String);
        fn erase(family: Arc<Family<Self>>) -> AnyFamily;
        fn recover(family: &AnyFamily) -> Option<&Arc<Family<Self>>>;
    }

    impl Sealed for Counter {
        type Settings = ();
        const TYPE: &'static str = "counter";

        fn fresh((): &()) -> Self {
            Self::default()
        }

        fn write(&self, name: &str, labels: &text::Labels, out: &mut String) {
            text::line(out, name, labels, self.get());
        }

        fn erase(family: Arc<Family<Self>>) -> AnyFamily {
            AnyFamily::Counter(family)
        }

        fn recover(family: &AnyFamily) -> Option<&Arc<Family<Self>>> {
            match family {
                AnyFamily::Counter(family) => Some(family),
                _ => None,
            }
        }
    }

    impl Sealed for Gauge {
        type Settings = ();
        const TYPE: &'static str = "gauge";

        fn fresh((): &()) -> Self {
            Self::default()
        }

        fn write(&self, name: &str, labels: &text::Labels, out: &mut String) {
            text::line(out, name, labels, self.get());
        }

        fn erase(family: Arc<Family<Self>>) -> AnyFamily {
            AnyFamily::Gauge(family)
        }

        fn recover(family: &AnyFamily) -> Option<&Arc<Family<Self>>> {
            match family {
                AnyFamily::Gauge(family) => Some(family),
                _ => None,
            }
        }
    }

    impl Sealed for Histogram {
        type Settings = Arc<[f64]>;
        const TYPE: &'static str = "histogram";

        fn fresh(bounds: &Arc<[f64]>) -> Self {
            let observed = || Mutex::new(Observed::none(bounds.len()));
            Self {
                bounds: bounds.clone(),
                observed: Arc::new(Striped::new(observed)),
            }
        }

        fn write(&self, name: &str, labels: &text::Labels, out: &mut String) {
            let mut observed = Observed::none(self.bounds.len());
            self.observed
                .all()
                .for_each(|part| observed.add(&part.lock()));
            let bucket = format!("{name}_bucket");
            let mut below = 0;
            for (bound, count) in self.bounds.iter().zip(&observed.buckets) {
                below += count;
                text::line(out, &bucket, &labels.and("le", *bound), below as f64);
            }
            let count = observed.count as f64;
            text::line(out, &bucket, &labels.and("le", f64::INFINITY), count);
            text::line(out, &format!("{name}_sum"), labels, observed.sum);
            text::line(out, &format!("{name}_count"), labels, count);
        }

        fn erase(family: Arc<Family<Self>>) -> AnyFamily {
            AnyFamily::Histogram(family)
        }

        fn recover(family: &AnyFamily) -> Option<&Arc<Family<Self>>> {
            match family {
                AnyFamily::Histogram(family) => Some(family),
                _ => None,
            }
        }
    }
}

/// The series of one name: one for each combination of label values.
pub struct Family<T: Instrument> {
    help: String,
    labels: Vec<String>,
    settings: T::Settings,
    limit: usize,
    /// Never more than `limit`, and the one that takes the overflow.
    series: Mutex<BTreeMap<Vec<String>, T>>,
}

impl<T: Instrument> Family<T> {
    pub(super) fn new(help: &str, labels: &[&str], settings: T::Settings, limit: usize) -> Self {
        Self {
            help: help.into(),
            labels: labels.iter().map(ToString::to_string).collect(),
            settings,
            limit,
            series: Mutex::default(),
        }
    }

    pub(super) fn is_like(&self, labels: &[&str], settings: &T::Settings) -> bool {
        self.labels == labels && self.settings == *settings
    }

    fn series(&self, values: &[&str]) -> T {
        let mut key: Vec<String> = values.iter().map(ToString::to_string).collect();
        let mut series = self.series.lock();
        if let Some(present) = series.get(&key) {
            return present.clone();
        }
        if series.len() >= self.limit {
            key.fill(OVERFLOW.into());
        }
        let fresh = || T::fresh(&self.settings);
        series.entry(key).or_insert_with(fresh).clone()
    }

    fn write(&self, name: &str, out: &mut String) {
        let series = self.series.lock().clone();
        if series.is_empty() {
            return;
        }
        text::header(out, name, T::TYPE, &self.help);
        for (values, instrument) in &series {
            let labels = text::Labels::of(&self.labels, values);
            instrument.write(name, &labels, out);
        }
    }
}

/// A family of any type.
#[derive(Clone)]
pub enum AnyFamily {
    Counter(Arc<Family<Counter>>),
    Gauge(Arc<Family<Gauge>>),
    Histogram(Arc<Family<Histogram>>),
}

impl AnyFamily {
    pub(super) fn write(&self, name: &str, out: &mut String) {
        match self {
            Self::Counter(family) => family.write(name, out),
            Self::Gauge(family) => family.write(name, out),
            Self::Histogram(family) => family.write(name, out),
        }
    }
}

/// A family of `N` labels; [`Labelled::with`] gives one of its series.
pub struct Labelled<T: Instrument, const N: usize> {
    family: Arc<Family<T>>,
}

impl<T: Instrument, const N: usize> Labelled<T, N> {
    pub(super) fn new(family: Arc<Family<T>>) -> Self {
        Self { family }
    }

    /// The series with these label values, in the order of the labels. Keep it where it is used often.
    pub fn with(&self, values: [&str; N]) -> T {
        self.family.series(&values)
    }

    /// Forgets a series: what it was about is no more.
    pub fn remove(&self, values: [&str; N]) {
        let key: Vec<String> = values.iter().map(ToString::to_string).collect();
        self.family.series.lock().remove(&key);
    }
}

impl<T: Instrument, const N: usize> Clone for Labelled<T, N> {
    fn clone(&self) -> Self {
        Self::new(self.family.clone())
    }
}

impl<T: Instrument, const N: usize> fmt::Debug for Labelled<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Labelled({})", self.family.labels.join(","))
    }
}
