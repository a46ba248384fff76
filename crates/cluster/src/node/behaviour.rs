//! How simulated containers behave unless annotations of their pod say otherwise.

use std::time::Duration;

/// How containers behave that no annotation speaks of.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct Behaviour {
    /// How long a container takes to start, its image included.
    pub start_delay: Duration,
    /// How long a container takes to become ready once it runs.
    pub ready_delay: Duration,
    /// How long a container runs that is meant to finish: one of a pod that is not restarted always.
    pub run_time: Duration,
    /// How long a container takes to stop when it is asked to.
    pub stop_delay: Duration,
    /// What the delays of probes mean.
    pub probes: Probes,
}

/// What the delays of probes mean for simulated containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Probes {
    /// Nothing: a container is ready when its delay is over.
    #[default]
    Ignored,
    /// The initial delays of startup and readiness probes, and the periods of further successes they need, come on top.
    Honoured,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            start_delay: Duration::ZERO,
            ready_delay: Duration::ZERO,
            run_time: Duration::from_millis(100),
            stop_delay: Duration::from_millis(100),
            probes: Probes::Ignored,
        }
    }
}

impl Behaviour {
    /// How long a container takes to start.
    pub fn start_delay(mut self, delay: Duration) -> Self {
        self.start_delay = delay;
        self
    }

    /// How long a container takes to become ready once it runs.
    pub fn ready_delay(mut self, delay: Duration) -> Self {
        self.ready_delay = delay;
        self
    }

    /// How long a container runs that is meant to finish.
    pub fn run_time(mut self, time: Duration) -> Self {
        self.run_time = time;
        self
    }

    /// How long a container takes to stop.
    pub fn stop_delay(mut self, delay: Duration) -> Self {
        self.stop_delay = delay;
        self
    }

    /// What the delays of probes mean.
    pub fn probes(mut self, probes: Probes) -> Self {
        self.probes = probes;
        self
    }
}
