//! What a server takes from the world outside: time and randomness, each in one place so that a run can be
//! replayed.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use rand::{Rng, RngCore, SeedableRng, rngs::StdRng};

/// Characters of generated name suffixes: no vowels, so no words.
const SUFFIX: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

const HEX: &[u8; 16] = b"0123456789abcdef";

/// A source of wall-clock time.
pub trait Clock: Send + Sync + 'static {
    /// The present moment.
    fn now(&self) -> Timestamp;
}

/// A clock that shows the time of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// Time and randomness of one server. Clones share the same sources.
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
    pub fn seeded(clock: impl Clock, seed: u64) -> Self {
        Self {
            clock: Arc::new(clock),
            random: Arc::new(Mutex::new(StdRng::seed_from_u64(seed))),
        }
    }

    /// Returns the present moment of the clock.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The present moment as objects carry it, in whole seconds.
    pub fn now_rfc3339(&self) -> String {
        rfc3339(self.now())
    }

    /// A random (version 4) UUID.
    pub fn uid(&self) -> String {
        let mut b = [0u8; 16];
        self.random.lock().fill_bytes(&mut b);
        b[6] = (b[6] & 0x0f) | 0x40;
        b[8] = (b[8] & 0x3f) | 0x80;
        // Every request gets one, so it is written without formatting.
        let mut text = String::with_capacity(36);
        for (at, byte) in b.into_iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                text.push('-');
            }
            for digit in [byte >> 4, byte & 0x0f] {
                text.push(char::from(HEX[usize::from(digit)]));
            }
        }
        text
    }

    /// Five characters to append to a `generateName`.
    pub fn name_suffix(&self) -> String {
        let mut random = self.random.lock();
        (0..5)
            .map(|_| SUFFIX[random.random_range(0..SUFFIX.len())] as char)
            .collect()
    }

    /// A number below `bound`, which must not be zero.
    pub fn below(&self, bound: u64) -> u64 {
        self.random.lock().random_range(0..bound)
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

/// A moment as objects carry it: RFC 3339 in UTC, whole seconds.
pub fn rfc3339(at: Timestamp) -> String {
    let seconds = Timestamp::from_second(at.as_second()).unwrap_or(Timestamp::UNIX_EPOCH);
    seconds.to_string()
}
