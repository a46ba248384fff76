//! What an operator takes from the world outside: wall-clock time and randomness, each in one place so that a run can
//! be replayed.
//!
//! Timers are tokio's and need no injection: tests pause them. [`VirtualClock`] ties wall-clock time to them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use rand::{Rng, RngCore, SeedableRng, rngs::StdRng};
use tokio::time::Instant;

use crate::panics;

/// Characters of generated name suffixes: no vowels, so no words.
const SUFFIX: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A source of wall-clock time.
pub trait Clock: Send + Sync + 'static {
    /// Returns the present moment by this clock.
    fn now(&self) -> Timestamp;
}

/// The clock of the machine, in real time.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock that starts at a given moment and goes as tokio's does: with a paused runtime, wall-clock time moves when
/// timers do.
#[derive(Debug, Clone, Copy)]
pub struct VirtualClock {
    start: Timestamp,
    origin: Instant,
}

impl VirtualClock {
    /// A clock that shows `start` now.
    ///
    /// ```
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    /// # runtime.block_on(async {
    /// use std::time::Duration;
    /// use kubewright_runtime::environment::{Clock, VirtualClock};
    ///
    /// let clock = VirtualClock::starting_at("2030-01-01T00:00:00Z".parse().unwrap());
    /// tokio::time::sleep(Duration::from_secs(3600)).await;
    /// assert!(clock.now() >= "2030-01-01T01:00:00Z".parse().unwrap());
    /// # });
    /// ```
    pub fn starting_at(start: Timestamp) -> Self {
        let origin = Instant::now();
        Self { start, origin }
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.origin.elapsed());
        self.start
            .saturating_add(elapsed.unwrap_or(SignedDuration::MAX))
            .unwrap_or(Timestamp::MAX)
    }
}

/// Time and randomness of one manager. Clones share the same sources.
#[derive(Clone)]
pub struct Environment {
    clock: Arc<dyn Clock>,
    random: Arc<Mutex<StdRng>>,
}

impl Environment {
    /// The machine's clock and randomness from the operating system.
    pub fn system() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            random: Arc::new(Mutex::new(StdRng::from_os_rng())),
        }
    }

    /// A clock of the caller's and randomness from a seed: the same calls give the same answers.
    ///
    /// ```
    /// # use kubewright_runtime::Environment;
    /// # use kubewright_runtime::environment::SystemClock;
    /// let environment = || Environment::seeded(SystemClock, 7);
    /// assert_eq!(environment().uid(), environment().uid(), "the same seed, the same answers");
    /// ```
    pub fn seeded(clock: impl Clock, seed: u64) -> Self {
        Self {
            clock: Arc::new(clock),
            random: Arc::new(Mutex::new(StdRng::seed_from_u64(seed))),
        }
    }

    /// Returns the present moment by this clock.
    pub fn now(&self) -> Timestamp {
        panics::attributed("the clock of the environment", || self.clock.now())
    }

    /// A random (version 4) UUID.
    pub fn uid(&self) -> String {
        let mut bytes = [0u8; 16];
        self.random.lock().fill_bytes(&mut bytes);
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        let hex = format!("{:032x}", u128::from_be_bytes(bytes));
        let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20]];
        format!("{}-{}", parts.join("-"), &hex[20..])
    }

    /// Five characters to append to a `generateName`.
    ///
    /// ```
    /// # use kubewright_runtime::Environment;
    /// # use kubewright_runtime::environment::SystemClock;
    /// let environment = || Environment::seeded(SystemClock, 7);
    /// assert_eq!(environment().name_suffix().len(), 5);
    /// ```
    pub fn name_suffix(&self) -> String {
        let mut random = self.random.lock();
        (0..5)
            .map(|_| SUFFIX[random.random_range(0..SUFFIX.len())] as char)
            .collect()
    }

    /// Returns a random number below `bound`, or zero if `bound` is zero.
    ///
    /// ```
    /// # use kubewright_runtime::Environment;
    /// # use kubewright_runtime::environment::SystemClock;
    /// let environment = || Environment::seeded(SystemClock, 7);
    /// assert!(environment().below(10) < 10);
    /// ```
    pub fn below(&self, bound: u64) -> u64 {
        match bound {
            0 => 0,
            bound => self.random.lock().random_range(0..bound),
        }
    }

    /// `base` and up to `factor` times `base` more, evenly spread. A factor that is not positive adds nothing.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use kubewright_runtime::Environment;
    /// # use kubewright_runtime::environment::SystemClock;
    /// let environment = || Environment::seeded(SystemClock, 7);
    /// let second = Duration::from_secs(1);
    /// let waited = environment().jitter(second, 0.5);
    /// assert!(waited >= second && waited < second * 2);
    /// ```
    pub fn jitter(&self, base: Duration, factor: f64) -> Duration {
        if !(factor > 0.0 && factor.is_finite()) {
            return base;
        }
        let more = self.random.lock().random_range(0.0..1.0) * factor * base.as_secs_f64();
        base.saturating_add(Duration::try_from_secs_f64(more).unwrap_or_default())
    }
}

impl Default for Environment {
    fn default() -> Self {
        Self::system()
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Environment")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seeded(seed: u64) -> Environment {
        Environment::seeded(SystemClock, seed)
    }

    #[test]
    fn one_seed_gives_one_sequence() {
        let draw = |e: Environment| (e.uid(), e.name_suffix(), e.below(1000));
        assert_eq!(draw(seeded(7)), draw(seeded(7)));
        assert_ne!(draw(seeded(7)), draw(seeded(8)));
    }

    #[test]
    fn uids_are_version_four() {
        let uid = seeded(1).uid();
        let shape: Vec<usize> = uid.split('-').map(str::len).collect();
        assert_eq!(shape, [8, 4, 4, 4, 12]);
        assert_eq!(uid.as_bytes()[14], b'4');
        assert!(b"89ab".contains(&uid.as_bytes()[19]));
    }

    #[test]
    fn jitter_stays_between_base_and_base_plus_factor() {
        let environment = seeded(2);
        let base = Duration::from_secs(2);
        for _ in 0..1000 {
            let drawn = environment.jitter(base, 1.2);
            assert!(drawn >= base && drawn < Duration::from_millis(4400));
        }
        assert_eq!(environment.jitter(base, 0.0), base);
        assert_eq!(environment.jitter(base, f64::NAN), base);
    }

    #[limited::test(start_paused = true)]
    async fn virtual_time_moves_with_timers_alone() {
        let clock = VirtualClock::starting_at(Timestamp::UNIX_EPOCH);
        tokio::time::sleep(Duration::from_secs(90)).await;
        assert_eq!(clock.now().as_second(), 90);
    }
}
