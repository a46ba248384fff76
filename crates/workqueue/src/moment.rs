//! Points on the queue's own time line, as whole nanoseconds, so that they are small, ordered and never overflow.

use std::time::Duration;

/// Nanoseconds since the epoch of the queue's clock. Good for 584 years; anything later is the last moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Moment(u64);

impl Moment {
    /// The moment at this distance from the epoch.
    pub(crate) fn at(since_epoch: Duration) -> Self {
        Self(nanoseconds(since_epoch))
    }

    /// This moment as a distance from the epoch.
    pub(crate) fn since_epoch(self) -> Duration {
        Duration::from_nanos(self.0)
    }

    /// The moment this much later.
    pub(crate) fn after(self, delay: Duration) -> Self {
        Self(self.0.saturating_add(nanoseconds(delay)))
    }

    /// How long ago `earlier` was; nothing when it lies ahead.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.nanoseconds_since(earlier))
    }

    /// The same in nanoseconds.
    pub(crate) fn nanoseconds_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A duration in nanoseconds, cut off at the largest number that fits.
fn nanoseconds(duration: Duration) -> u64 {
    duration
        .as_secs()
        .saturating_mul(1_000_000_000)
        .saturating_add(u64::from(duration.subsec_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endless_delay_is_cut_off_at_the_last_moment() {
        let last = Moment(u64::MAX);
        assert_eq!(Moment::at(Duration::MAX), last);
        assert_eq!(
            Moment::at(Duration::from_secs(5)).after(Duration::MAX),
            last
        );
    }

    #[test]
    fn time_since_a_later_moment_is_nothing() {
        let early = Moment::at(Duration::from_secs(1));
        let late = early.after(Duration::from_secs(2));
        assert_eq!(early.since(late), Duration::ZERO);
        assert_eq!(late.since(early), Duration::from_secs(2));
    }
}
