//! The one clock of a cluster: server, controllers and nodes read the same.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use kubewright_runtime::environment::{self as runtime, SystemClock, VirtualClock};
use kubewright_server::environment as server;

/// Where a cluster takes its time from.
///
/// Timers are tokio's: in a paused runtime a cluster with a virtual clock lives through an hour in milliseconds.
#[derive(Clone)]
pub struct Clock(Arc<dyn runtime::Clock>);

impl Clock {
    /// Returns a clock that shows the machine's time.
    pub fn system() -> Self {
        Self::of(SystemClock)
    }

    /// A clock that shows this moment now and goes as tokio's does, paused or not.
    pub fn starting_at(start: Timestamp) -> Self {
        Self::of(VirtualClock::starting_at(start))
    }

    /// A clock of one's own.
    pub fn of(clock: impl runtime::Clock) -> Self {
        Self(Arc::new(clock))
    }

    /// Returns the present moment of the clock.
    pub fn now(&self) -> Timestamp {
        self.0.now()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}

impl runtime::Clock for Clock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
}

impl server::Clock for Clock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({})", self.now())
    }
}
