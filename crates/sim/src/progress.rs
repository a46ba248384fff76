//! How far a campaign is, on standard error, for people who wait for it.

use std::io::{IsTerminal as _, Write as _};

use parking_lot::Mutex;
use tokio::time::{Duration, Instant};

/// The variable that asks for progress.
const PROGRESS: &str = "KUBEWRIGHT_SIM_PROGRESS";
/// How often it is shown in a terminal, and in a file.
const SHOWN_EVERY: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(10)];

/// Counts plans as they end.
pub(crate) struct Progress<'a> {
    name: &'a str,
    all: usize,
    counts: Mutex<Counts>,
    is_wanted: bool,
}

struct Counts {
    done: usize,
    failed: usize,
    shown: Instant,
}

impl<'a> Progress<'a> {
    pub(crate) fn new(name: &'a str, all: usize) -> Self {
        Self {
            name,
            all,
            counts: Mutex::new(Counts {
                done: 0,
                failed: 0,
                shown: Instant::now(),
            }),
            is_wanted: all > 1 && std::env::var_os(PROGRESS).is_some(),
        }
    }

    /// Counts a plan that has ended.
    pub(crate) fn step(&self, has_failed: bool) {
        let mut counts = self.counts.lock();
        counts.done += 1;
        counts.failed += usize::from(has_failed);
        let mut out = std::io::stderr().lock();
        let in_terminal = out.is_terminal();
        let every = SHOWN_EVERY[usize::from(!in_terminal)];
        let is_last = counts.done == self.all;
        if !self.is_wanted || (counts.shown.elapsed() < every && !is_last) {
            return;
        }
        counts.shown = Instant::now();
        let (before, after) = match (in_terminal, is_last) {
            (true, false) => ("\r\x1b[2K", ""),
            (true, true) => ("\r\x1b[2K", "\n"),
            (false, _) => ("", "\n"),
        };
        let Counts { done, failed, .. } = *counts;
        // Progress that cannot be shown is not worth a failure.
        let _ = write!(
            out,
            "{before}{}: {done} of {} plans, {failed} failed{after}",
            self.name, self.all
        );
        let _ = out.flush();
    }
}
