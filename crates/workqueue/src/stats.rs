//! What a queue has done so far: counted as it goes, read as one consistent snapshot.
//!
//! Counting costs a few additions per key, so it is always on. Durations need the clock, and are measured if the queue has
//! a name. [`crate::prometheus`] turns snapshots into the series that client-go exports.

use std::time::Duration;

use crate::priority::Priority;

/// How many bounded buckets a histogram has.
const BUCKETS: usize = 12;

/// A queue at one moment.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// The name given to the queue, or nothing.
    pub name: String,
    /// Keys that have yet to run. Unlike [`len`](crate::Queue::len) this counts a key that was added again while it runs.
    pub depth: usize,
    /// The same by priority, most urgent first; nothing if the queue ignores priorities.
    pub depth_by_priority: Vec<(Priority, usize)>,
    /// Keys that run now.
    pub running: usize,
    /// Keys that wait for a delay to pass.
    pub waiting: usize,
    /// Keys the queue knows for whatever reason, remembered failures included.
    pub known: usize,
    /// Adds that asked for a run; those of a key that was already waiting for its run do not count.
    pub adds: u64,
    /// Delayed and rate-limited adds.
    pub retries: u64,
    /// How often the rate limiter panicked; the keys then waited as by default.
    pub limiter_panics: u64,
    /// From the add to the start of the run.
    pub queue_duration: Histogram,
    /// From the start of a run to its end.
    pub work_duration: Histogram,
    /// The time spent so far in runs that have not ended, summed. It grows as long as something is stuck.
    pub unfinished_work: Duration,
    /// The time spent so far in the longest of them.
    pub longest_running: Duration,
}

/// Durations in buckets that grow tenfold: 10 ns, 100 ns, … 1000 s, and beyond. These are client-go's boundaries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    /// The last one is for what is beyond all bounds.
    counts: [u64; BUCKETS + 1],
    nanoseconds: u64,
}

impl Histogram {
    /// The upper bounds of the buckets, in seconds.
    pub const BOUNDS: [f64; BUCKETS] = [
        1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3,
    ];

    /// How many durations were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// All of them together.
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds)
    }

    /// Each bound with the number of durations up to it.
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut total = 0;
        Self::BOUNDS
            .into_iter()
            .zip(self.counts)
            .map(move |(bound, count)| {
                total += count;
                (bound, total)
            })
    }

    pub(crate) fn observe(&mut self, nanoseconds: u64) {
        self.counts[bucket(nanoseconds)] += 1;
        self.nanoseconds = self.nanoseconds.saturating_add(nanoseconds);
    }
}

/// The first bucket whose bound, `10^(index + 1)` nanoseconds, is not below the duration.
fn bucket(nanoseconds: u64) -> usize {
    let below = nanoseconds.saturating_sub(1);
    let digits = below.checked_ilog10().unwrap_or(0) as usize;
    digits.min(BUCKETS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_fall_into_the_bucket_that_bounds_them() {
        let cases = [
            (0, 0),
            (1, 0),
            (10, 0),
            (11, 1),
            (100, 1),
            (101, 2),
            (1_000_000, 5),
            (1_000_001, 6),
            (1_000_000_000_000, 11),
            (1_000_000_000_001, 12),
            (u64::MAX, 12),
        ];
        for (nanoseconds, expected) in cases {
            assert_eq!(bucket(nanoseconds), expected, "{nanoseconds} ns");
            if let Some(bound) = Histogram::BOUNDS.get(expected) {
                assert!(Duration::from_nanos(nanoseconds).as_secs_f64() <= *bound);
            }
        }
    }

    #[test]
    fn histogram_accumulates() {
        let mut histogram = Histogram::default();
        for nanoseconds in [5, 50, 60, 5_000_000_000_000] {
            histogram.observe(nanoseconds);
        }
        let counts: Vec<u64> = histogram.cumulative().map(|(_, count)| count).collect();
        assert_eq!(counts[..3], [1, 3, 3]);
        assert_eq!(counts[11], 3);
        assert_eq!(histogram.count(), 4);
        assert_eq!(histogram.sum(), Duration::from_nanos(5_000_000_000_115));
    }
}
