//! Where a queue takes its time from: tokio's clock, or one of the caller's.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::time::Instant;

/// The longest single sleep. Whoever sleeps looks again afterwards, so this bounds nothing but one timer entry;
/// it keeps absurd delays away from the timer's own limits.
const LONGEST_SLEEP: Duration = Duration::from_secs(30 * 24 * 3600);

/// A source of time that only goes forward.
pub trait Clock: Send + Sync + 'static {
    /// The time since some fixed point, the same one for the whole life of the clock.
    fn now(&self) -> Duration;

    /// Completes once [`now`](Clock::now) has reached `deadline`, or earlier: the caller looks again.
    fn sleep_until(&self, deadline: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// The clock of the tokio runtime, which tests can pause.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    start: Instant,
}

impl TokioClock {
    /// A clock that starts at zero now.
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
        }
    }
}

impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn sleep_until(&self, deadline: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let sleep = deadline.saturating_sub(self.now()).min(LONGEST_SLEEP);
        Box::pin(tokio::time::sleep(sleep))
    }
}
