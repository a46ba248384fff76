//! What a worker has in hand besides the key it works on.
//!
//! A worker whose runs are over as soon as they begin would spend most of its time at the queue's lock, and others with
//! it. So while runs are that short, and keys are plenty, it takes some along and reports them together. None of this lasts:
//! whatever is in hand goes back when a run has to wait, or when it has been there for [`QUICK`].

use std::time::Duration;

use crate::item::End;
use crate::machine::{Machine, Run};
use crate::moment::Moment;
use crate::note::Note;

/// For so long keys may be in hand.
const QUICK: Duration = Duration::from_micros(50);
/// So many keys are taken along.
const MOST: usize = 31;

/// A worker's hand.
pub(crate) struct Hand<K, N> {
    /// Keys that were taken along, the next one last.
    ahead: Vec<Run<K, N>>,
    /// Runs that have ended, and of which the queue does not know yet.
    over: Vec<(Run<K, N>, End<N>)>,
    /// How many keys the queue counts as taken along: those ahead, those over, and the one that is worked on unless it was
    /// taken alone.
    along: usize,
    /// How many to take along the next time.
    reach: usize,
    /// When the keys were taken.
    since: Moment,
}

impl<K: Eq + Clone + 'static, N: Note> Hand<K, N> {
    /// An empty hand, of a worker that took its key at this moment.
    pub(crate) fn empty(since: Moment) -> Self {
        Self {
            ahead: Vec::new(),
            over: Vec::new(),
            along: 0,
            reach: 0,
            since,
        }
    }

    /// Whether there is nothing that the queue waits for.
    pub(crate) fn is_empty(&self) -> bool {
        self.ahead.is_empty() && self.over.is_empty()
    }

    /// Whether a key was taken along.
    pub(crate) fn has_ahead(&self) -> bool {
        !self.ahead.is_empty()
    }

    /// The run is over. The queue will be told of it later.
    pub(crate) fn lay_down(&mut self, run: Run<K, N>, end: End<N>) {
        self.over.push((run, end));
    }

    /// A key that was taken along, if they have not been in hand for too long.
    pub(crate) fn draw(&mut self) -> Option<Run<K, N>> {
        // Without a look at the clock nobody knows how long it was.
        let quick = |end: &Moment| end.since(self.since) <= QUICK;
        let Some(end) = self.last_end().filter(quick) else {
            self.reach = 0;
            return None;
        };
        let Some(mut next) = self.ahead.pop() else {
            self.reach = (2 * self.reach + 1).min(MOST);
            return None;
        };
        next.started = end;
        Some(next)
    }

    /// When the last run ended, if somebody has looked.
    pub(crate) fn last_end(&self) -> Option<Moment> {
        self.over.last().and_then(|(_, end)| end.at)
    }

    /// From now on keys are taken one by one, until runs are short again.
    pub(crate) fn slow_down(&mut self) {
        self.reach = 0;
    }

    /// Tells the queue what is over, and puts back what it did not come to. Returns keys that the queue forgets.
    pub(crate) fn settle(
        &mut self,
        machine: &mut Machine<K, N>,
        now: impl Fn() -> Moment,
    ) -> Vec<K> {
        machine.settled(std::mem::take(&mut self.along));
        let mut forgotten = Vec::new();
        for (run, end) in &mut self.over {
            let at = end.at;
            let left = std::mem::take(&mut end.left);
            let now = || at.unwrap_or_else(&now);
            forgotten.extend(machine.done(run, end.finish, left, now));
        }
        self.ahead.drain(..).for_each(|run| machine.put_back(run));
        forgotten
    }

    /// Takes along as many keys as seem good.
    pub(crate) fn take_along(&mut self, machine: &mut Machine<K, N>) {
        machine.take_along(self.reach, &mut self.ahead);
        self.ahead.reverse();
        self.along = self.ahead.len();
        self.since = machine.now();
    }

    /// Forgets what was settled.
    pub(crate) fn clear(&mut self) {
        self.over.clear();
    }
}
