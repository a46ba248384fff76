//! How long to wait after a failure: longer each time, with jitter, and short again after a quiet while.

use std::time::Duration;

/// A delay that doubles with each use, from `first` to `cap`, and starts again after `reset` without use.
///
/// A random jitter of up to the delay's own length is added, so that many clients do not come back together.
#[derive(Debug, Clone)]
#[must_use]
pub struct Backoff {
    first: Duration,
    cap: Duration,
    reset: Duration,
    /// The next delay, before jitter is added.
    delay: Duration,
    /// When the last delay that was given ends.
    quiet_since: Option<Duration>,
}

impl Default for Backoff {
    /// 0.8 s to 30 s, starting again after two minutes.
    fn default() -> Self {
        Self::new(Duration::from_millis(800), Duration::from_secs(30))
    }
}

impl Backoff {
    /// A backoff between two delays.
    pub fn new(first: Duration, cap: Duration) -> Self {
        Self {
            first,
            cap,
            reset: Duration::from_secs(120),
            delay: first,
            quiet_since: None,
        }
    }

    /// How long a quiet while is.
    pub fn reset_after(mut self, quiet: Duration) -> Self {
        self.reset = quiet;
        self
    }

    /// Returns the next delay. `random` is from 0 to 1 and sets how much jitter is added.
    pub(crate) fn next(&mut self, now: Duration, random: f64) -> Duration {
        if self
            .quiet_since
            .is_some_and(|since| now.saturating_sub(since) >= self.reset)
        {
            self.delay = self.first;
        }
        let delay = self.delay.min(self.cap);
        self.delay = delay.saturating_mul(2).min(self.cap);
        let delay = delay.saturating_add(delay.mul_f64(random.clamp(0.0, 1.0)));
        self.quiet_since = Some(now.saturating_add(delay));
        delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays(backoff: &mut Backoff, random: f64, count: usize) -> Vec<f64> {
        let mut now = Duration::ZERO;
        let next = || {
            let delay = backoff.next(now, random);
            now += delay;
            delay.as_secs_f64()
        };
        std::iter::repeat_with(next).take(count).collect()
    }

    #[test]
    fn delay_doubles_up_to_the_cap() {
        let expected = [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0];
        assert_eq!(delays(&mut Backoff::default(), 0.0, 8), expected);
    }

    #[test]
    fn jitter_stretches_a_delay_by_at_most_its_own_length() {
        assert_eq!(delays(&mut Backoff::default(), 1.0, 2), [1.6, 3.2]);
    }

    #[test]
    fn quiet_while_starts_it_again() {
        let mut backoff = Backoff::default();
        delays(&mut backoff, 0.0, 3);
        let soon = backoff.next(Duration::from_secs(100), 0.0);
        assert_eq!(soon, Duration::from_millis(6_400));
        let late = backoff.next(Duration::from_secs(300), 0.0);
        assert_eq!(late, Duration::from_millis(800));
    }
}
