//! What one measured controller found out, as the line of JSON that it prints.

use serde::{Deserialize, Serialize};

/// What a controller found out. Zero is what it did not measure.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Outcome {
    pub(crate) reconciles_per_second: f64,
    /// From the sending of an event to the start of its reconcile.
    pub(crate) latency_p50_seconds: f64,
    pub(crate) latency_p99_seconds: f64,
    /// From the adding of a key to the start of its reconcile, when nothing else runs.
    pub(crate) alone_p50_seconds: f64,
    /// The same while many reconciles are in flight.
    pub(crate) crowded_p50_seconds: f64,
    pub(crate) crowded_p99_seconds: f64,
    /// Memory while many reconciles are in flight.
    pub(crate) flight_bytes: u64,
}

impl Outcome {
    /// The better of each figure: others use the machine too, and what they take is not ours.
    pub(crate) fn best(self, other: Self) -> Self {
        Self {
            reconciles_per_second: self.reconciles_per_second.max(other.reconciles_per_second),
            latency_p50_seconds: less(self.latency_p50_seconds, other.latency_p50_seconds),
            latency_p99_seconds: less(self.latency_p99_seconds, other.latency_p99_seconds),
            alone_p50_seconds: less(self.alone_p50_seconds, other.alone_p50_seconds),
            crowded_p50_seconds: less(self.crowded_p50_seconds, other.crowded_p50_seconds),
            crowded_p99_seconds: less(self.crowded_p99_seconds, other.crowded_p99_seconds),
            flight_bytes: self.flight_bytes.max(other.flight_bytes),
        }
    }

    /// How many times longer a new key waits when many reconciles are in flight.
    pub(crate) fn slowed(&self) -> f64 {
        if self.alone_p50_seconds > 0.0 {
            self.crowded_p50_seconds / self.alone_p50_seconds
        } else {
            0.0
        }
    }
}

/// The smaller one of those that were measured.
fn less(one: f64, other: f64) -> f64 {
    match (one > 0.0, other > 0.0) {
        (true, true) => one.min(other),
        _ => one.max(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_does_not_count_as_best() {
        let measured = Outcome {
            latency_p50_seconds: 2.0,
            ..Outcome::default()
        };
        let best = Outcome::default().best(measured);
        assert_eq!(best.latency_p50_seconds, 2.0);
        assert_eq!(best.slowed(), 0.0);
    }
}
