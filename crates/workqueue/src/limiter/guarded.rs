//! The limiter as the queue calls it: whatever it does, the queue's own state stays in order.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::{RateLimiter, Retry, controller_default};

/// A limiter whose panics end here. The panic hook has reported them by then; a key is worth more than its delay.
pub(crate) struct Guarded<K> {
    limiter: Box<dyn RateLimiter<K>>,
    panics: u64,
}

impl<K: 'static> Guarded<K> {
    pub(crate) fn new(limiter: Box<dyn RateLimiter<K>>) -> Self {
        Self { limiter, panics: 0 }
    }

    /// How long a retry waits: as the limiter says, or as [`controller_default`] does if that panics.
    pub(crate) fn delay(&mut self, key: &K, earlier: u32, now: Duration) -> Duration {
        let retry = Retry { key, earlier, now };
        let limiter = &mut self.limiter;
        let delay = catch_unwind(AssertUnwindSafe(|| limiter.delay(&retry)));
        delay.unwrap_or_else(|_| {
            self.panics += 1;
            controller_default().delay(&retry)
        })
    }

    pub(crate) fn forget(&mut self, key: &K) {
        let limiter = &mut self.limiter;
        let forgotten = catch_unwind(AssertUnwindSafe(|| limiter.forget(key)));
        self.panics += u64::from(forgotten.is_err());
    }

    /// How often the limiter panicked.
    pub(crate) fn panics(&self) -> u64 {
        self.panics
    }
}
