//! Rate limiters: how long a key that failed waits before it is tried again.
//!
//! The queue counts the rate-limited adds of each key; a limiter turns that count and the time into a delay. So the
//! usual limiters remember nothing about keys, and there is nothing to leak.

pub(crate) mod guarded;

use std::fmt;
use std::time::Duration;

/// One request for another try.
#[derive(Debug)]
#[non_exhaustive]
pub struct Retry<'a, K> {
    /// The key that is to be tried again.
    pub key: &'a K,
    /// How many tries were asked for before this one, since the key was last forgotten.
    pub earlier: u32,
    /// The time on the queue's clock.
    pub now: Duration,
}

/// Decides how long a retry waits. Called once for each rate-limited add, under the queue's lock: be quick.
///
/// Should it panic, the retry waits as long as [`controller_default`] says, and [`Stats`](crate::Stats) count it.
pub trait RateLimiter<K>: Send + 'static {
    /// How long this retry waits.
    fn delay(&mut self, retry: &Retry<'_, K>) -> Duration;

    /// The key succeeded or was given up. Only for limiters that remember keys of their own accord.
    fn forget(&mut self, key: &K) {
        let _ = key;
    }
}

impl<K: 'static> RateLimiter<K> for Box<dyn RateLimiter<K>> {
    fn delay(&mut self, retry: &Retry<'_, K>) -> Duration {
        (**self).delay(retry)
    }

    fn forget(&mut self, key: &K) {
        (**self).forget(key);
    }
}

/// Waits longer with each failure of the same key: `base`, `2 * base`, `4 * base`, …, never more than `max`.
#[derive(Debug, Clone, Copy)]
pub struct ExponentialBackoff {
    base: Duration,
    max: Duration,
}

impl ExponentialBackoff {
    /// Doubles from `base` up to `max`.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use kubewright_workqueue::limiter::ExponentialBackoff;
    /// use kubewright_workqueue::{Options, Queue};
    ///
    /// let limiter = ExponentialBackoff::new(Duration::from_millis(5), Duration::from_secs(60));
    /// let queue = Queue::<&str>::new(Options::new().limiter(limiter));
    /// # drop(queue);
    /// ```
    pub fn new(base: Duration, max: Duration) -> Self {
        Self { base, max }
    }
}

impl<K> RateLimiter<K> for ExponentialBackoff {
    fn delay(&mut self, retry: &Retry<'_, K>) -> Duration {
        let mut delay = self.base;
        for _ in 0..retry.earlier {
            // However many failures there were, this ends after at most a hundred doublings.
            if delay >= self.max || delay.is_zero() {
                break;
            }
            delay = delay.saturating_mul(2);
        }
        delay.min(self.max)
    }
}

/// A few quick tries, then slow ones.
#[derive(Debug, Clone, Copy)]
pub struct FastSlow {
    fast: Duration,
    slow: Duration,
    fast_tries: u32,
}

impl FastSlow {
    /// The first `fast_tries` retries of a key wait `fast`, later ones `slow`.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use kubewright_workqueue::Options;
    /// use kubewright_workqueue::limiter::FastSlow;
    ///
    /// // Three quick tries, then one a minute.
    /// let limiter = FastSlow::new(Duration::from_millis(10), Duration::from_secs(60), 3);
    /// let options = Options::<String>::new().limiter(limiter);
    /// # drop(options);
    /// ```
    pub fn new(fast: Duration, slow: Duration, fast_tries: u32) -> Self {
        Self {
            fast,
            slow,
            fast_tries,
        }
    }
}

impl<K> RateLimiter<K> for FastSlow {
    fn delay(&mut self, retry: &Retry<'_, K>) -> Duration {
        if retry.earlier < self.fast_tries {
            self.fast
        } else {
            self.slow
        }
    }
}

/// A token bucket over all keys: a burst at once, then one retry for each interval.
///
/// Retries beyond the rate are not refused, they queue up behind each other.
#[derive(Debug, Clone, Copy)]
pub struct Bucket {
    interval: Duration,
    /// The time it takes to fill the empty bucket.
    refill: Duration,
    /// When the bucket will be full, if nothing is taken from now on.
    full_at: Duration,
}

impl Bucket {
    /// One token for each `interval`, at most `burst` of them saved up; full at the start.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use kubewright_workqueue::Options;
    /// use kubewright_workqueue::limiter::Bucket;
    ///
    /// // Ten retries a second over all keys, after a burst of a hundred.
    /// let options = Options::<String>::new().limiter(Bucket::new(Duration::from_millis(100), 100));
    /// # drop(options);
    /// ```
    pub fn new(interval: Duration, burst: u32) -> Self {
        Self {
            interval,
            refill: interval.saturating_mul(burst),
            full_at: Duration::ZERO,
        }
    }
}

impl<K> RateLimiter<K> for Bucket {
    fn delay(&mut self, retry: &Retry<'_, K>) -> Duration {
        let filled = self.full_at.max(retry.now).saturating_add(self.interval);
        self.full_at = filled;
        filled.saturating_sub(self.refill).saturating_sub(retry.now)
    }
}

/// The longest of several delays. Every limiter is asked each time.
pub struct MaxOf<K> {
    limiters: Vec<Box<dyn RateLimiter<K>>>,
}

impl<K> MaxOf<K> {
    /// Makes a limiter that does not delay anything yet.
    pub fn new() -> Self {
        Self {
            limiters: Vec::new(),
        }
    }

    /// Adds a limiter; the longest delay of all of them holds.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use kubewright_workqueue::limiter::{Bucket, MaxOf, controller_default};
    ///
    /// let limiter = MaxOf::<String>::new()
    ///     .and(controller_default())
    ///     .and(Bucket::new(Duration::from_millis(100), 100));
    /// # drop(limiter);
    /// ```
    #[must_use]
    pub fn and(mut self, limiter: impl RateLimiter<K>) -> Self {
        self.limiters.push(Box::new(limiter));
        self
    }
}

impl<K> Default for MaxOf<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> fmt::Debug for MaxOf<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MaxOf")
            .field("limiters", &self.limiters.len())
            .finish()
    }
}

impl<K: 'static> RateLimiter<K> for MaxOf<K> {
    fn delay(&mut self, retry: &Retry<'_, K>) -> Duration {
        let delays = self.limiters.iter_mut().map(|limiter| limiter.delay(retry));
        delays.max().unwrap_or_default()
    }

    fn forget(&mut self, key: &K) {
        for limiter in &mut self.limiters {
            limiter.forget(key);
        }
    }
}

/// Another limiter with a ceiling.
#[derive(Debug, Clone, Copy)]
pub struct MaxWait<L> {
    limiter: L,
    max: Duration,
}

impl<L> MaxWait<L> {
    /// Whatever `limiter` says, but never more than `max`.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use kubewright_workqueue::Options;
    /// use kubewright_workqueue::limiter::{MaxWait, client_go_default};
    ///
    /// let limiter = MaxWait::new(client_go_default(), Duration::from_secs(30));
    /// let options = Options::<String>::new().limiter(limiter);
    /// # drop(options);
    /// ```
    pub fn new(limiter: L, max: Duration) -> Self {
        Self { limiter, max }
    }
}

impl<K, L: RateLimiter<K>> RateLimiter<K> for MaxWait<L> {
    fn delay(&mut self, retry: &Retry<'_, K>) -> Duration {
        self.limiter.delay(retry).min(self.max)
    }

    fn forget(&mut self, key: &K) {
        self.limiter.forget(key);
    }
}

/// What a controller uses by default: 5 ms doubling to 1000 s, each key for itself.
///
/// This is the default of controller-runtime with its priority queue. There is no overall limit, so the failure of
/// many keys does not delay one more; [`client_go_default`] has one.
pub fn controller_default() -> ExponentialBackoff {
    ExponentialBackoff::new(Duration::from_millis(5), Duration::from_secs(1000))
}

/// The default of client-go: [`controller_default`], and ten retries a second over all keys after a burst of a hundred.
pub fn client_go_default<K: 'static>() -> MaxOf<K> {
    MaxOf::new()
        .and(controller_default())
        .and(Bucket::new(Duration::from_millis(100), 100))
}

#[cfg(test)]
mod tests;
