//! What one measured process found out, as the line of JSON that it prints.

use serde::{Deserialize, Serialize};

/// What a client found out. Zero is what it did not measure.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Outcome {
    /// Memory in bytes before there are any pods.
    pub(crate) base: u64,
    /// From the start until a handler has heard of every pod.
    pub(crate) sync_seconds: f64,
    /// Memory after the sync, and the most there was until then.
    pub(crate) steady: u64,
    pub(crate) peak: u64,
    pub(crate) gets_per_second: f64,
    /// Gets that end with a value of the caller's own or, with us, one that is decoded.
    pub(crate) copies_per_second: f64,
    /// Lookups in an index that find 20 objects, and that find a hundredth of all.
    pub(crate) few_per_second: f64,
    pub(crate) many_per_second: f64,
    /// Lookups that find 20 objects which nobody has looked up since they changed.
    pub(crate) new_few_per_second: f64,
    pub(crate) events_per_second: f64,
    pub(crate) latency_p50_seconds: f64,
    pub(crate) latency_p99_seconds: f64,
    /// The same when the handler decodes the object; with the peers it always is.
    pub(crate) decoded_events_per_second: f64,
    pub(crate) decoded_latency_p50_seconds: f64,
    /// Memory before a relist, and the most there was during it.
    pub(crate) relist_steady: u64,
    pub(crate) relist_peak: u64,
}

/// Keys a second through a queue.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct QueueOutcome {
    pub(crate) one_worker: f64,
    pub(crate) eight_workers: f64,
}

impl Outcome {
    /// The better of each figure: others use the machine too, and what they take is not ours.
    pub(crate) fn best(self, other: Self) -> Self {
        let more = f64::max;
        Self {
            base: self.base.min(other.base),
            sync_seconds: self.sync_seconds.min(other.sync_seconds),
            steady: self.steady.min(other.steady),
            peak: self.peak.min(other.peak),
            gets_per_second: more(self.gets_per_second, other.gets_per_second),
            copies_per_second: more(self.copies_per_second, other.copies_per_second),
            few_per_second: more(self.few_per_second, other.few_per_second),
            many_per_second: more(self.many_per_second, other.many_per_second),
            new_few_per_second: more(self.new_few_per_second, other.new_few_per_second),
            events_per_second: more(self.events_per_second, other.events_per_second),
            latency_p50_seconds: self.latency_p50_seconds.min(other.latency_p50_seconds),
            latency_p99_seconds: self.latency_p99_seconds.min(other.latency_p99_seconds),
            decoded_events_per_second: more(
                self.decoded_events_per_second,
                other.decoded_events_per_second,
            ),
            decoded_latency_p50_seconds: self
                .decoded_latency_p50_seconds
                .min(other.decoded_latency_p50_seconds),
            relist_steady: self.relist_steady.min(other.relist_steady),
            relist_peak: self.relist_peak.min(other.relist_peak),
        }
    }

    /// Memory that one pod takes.
    pub(crate) fn a_pod(&self, pods: usize) -> f64 {
        self.steady.saturating_sub(self.base) as f64 / pods.max(1) as f64
    }
}

impl QueueOutcome {
    /// The better of each figure.
    pub(crate) fn best(self, other: Self) -> Self {
        Self {
            one_worker: self.one_worker.max(other.one_worker),
            eight_workers: self.eight_workers.max(other.eight_workers),
        }
    }
}
