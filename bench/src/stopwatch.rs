//! Wall time, and the summary of many measurements of it.

use std::time::{Duration, Instant};

/// Runs from when it was made.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// From now on.
    #[allow(
        clippy::disallowed_methods,
        reason = "a benchmark measures wall time, which nothing may inject"
    )]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// How long it has been running.
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// Many measurements of the same thing.
#[derive(Debug, Default)]
pub struct Samples(Vec<Duration>);

impl Samples {
    /// Takes up one more.
    pub fn push(&mut self, sample: Duration) {
        self.0.push(sample);
    }

    /// Takes up those of another.
    pub fn extend(&mut self, other: Samples) {
        self.0.extend(other.0);
    }

    /// The sample that this share (0 to 1) of all samples does not exceed; zero without samples.
    pub fn quantile(&self, share: f64) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let at = (sorted.len().saturating_sub(1) as f64 * share).round() as usize;
        sorted.get(at).copied().unwrap_or_default()
    }

    /// The one in the middle.
    pub fn median(&self) -> Duration {
        self.quantile(0.5)
    }

    /// The best of them.
    pub fn least(&self) -> Duration {
        self.quantile(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_samples_in_order() {
        let mut samples = Samples::default();
        assert_eq!(samples.median(), Duration::ZERO);
        for n in [5, 1, 4, 2, 3] {
            samples.push(Duration::from_secs(n));
        }
        let seconds = |share| samples.quantile(share).as_secs();
        assert_eq!([seconds(0.0), seconds(0.5), seconds(1.0)], [1, 3, 5]);
    }
}
