//! What one container uses, from samples.

use std::collections::VecDeque;
use std::time::Duration;

use kubewright_server::Usage;
use parking_lot::Mutex;
use tokio::time::Instant;

/// How far apart the samples are that count.
pub(crate) const OFTEN: Duration = Duration::from_secs(1);
/// Over how many samples the use of processors is averaged.
const SAMPLES: usize = 10;

/// What one container has used.
#[derive(Debug, Default)]
pub(crate) struct Meter(Mutex<Readings>);

#[derive(Debug, Default)]
struct Readings {
    /// Processor time in nanoseconds, at these moments.
    cpu: VecDeque<(Instant, u64)>,
    memory: u64,
}

impl Meter {
    /// Takes a sample.
    pub(crate) fn add(&self, now: Instant, cpu: u64, memory: u64) {
        let mut readings = self.0.lock();
        readings.memory = memory;
        let due = readings
            .cpu
            .back()
            .is_none_or(|(at, _)| now.duration_since(*at) >= OFTEN);
        if due {
            if readings.cpu.len() == SAMPLES {
                readings.cpu.pop_front();
            }
            readings.cpu.push_back((now, cpu));
        }
    }

    /// What the container uses; nothing before two samples.
    pub(crate) fn usage(&self) -> Option<Usage> {
        let readings = self.0.lock();
        let (first, last) = (readings.cpu.front()?, readings.cpu.back()?);
        let elapsed = last.0.duration_since(first.0).as_nanos();
        if elapsed == 0 {
            return None;
        }
        let used = u128::from(last.1.saturating_sub(first.1));
        Some(Usage {
            // Part of a thousandth counts as one, as for a metrics server.
            cpu: i64::try_from((used * 1000).div_ceil(elapsed)).unwrap_or(i64::MAX),
            memory: i64::try_from(readings.memory).unwrap_or(i64::MAX),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_use_of_processors_is_that_between_samples() {
        let meter = Meter::default();
        meter.add(Instant::now(), 5_000_000_000, 10);
        assert_eq!(meter.usage(), None);
        tokio::time::advance(Duration::from_secs(2)).await;
        meter.add(Instant::now(), 6_000_000_000, 20);
        let usage = meter.usage().expect("two samples");
        assert_eq!((usage.cpu, usage.memory), (500, 20));
    }
}
