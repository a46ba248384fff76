//! The supervisor: starts the parts of a manager, notices how each ends, and stops them by one deadline.
//!
//! Guarantees
//! - A part that ends without having been asked to is a failure with the part's name, unless the part says that it is fine.
//! - A panic is attributed to its part.
//! - [`Supervisor::stop`] returns by its deadline, whatever the parts do, and names those that are late. A part may have a
//!   deadline of its own before that.
//! - The election is stopped, and with it the lease released, only when no work of a leader is left.
//!
//! Owner: the manager's `run`. Dropping the supervisor drops all parts.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use super::ManagerError;
use super::part::{Ended, Part, Stage};
use crate::Error;
use crate::panics;

/// The most of a shutdown that is kept for what comes after the work: servers, informers, the lease, events.
const LONGEST_TAIL: Duration = Duration::from_secs(10);

/// How the task of a part ended: none where it had not by its own deadline, and was dropped.
type Finished = Option<Result<(), Error>>;

/// Everything that runs.
pub(super) struct Supervisor {
    abort: CancellationToken,
    stages: BTreeMap<Stage, Tokens>,
    tasks: JoinSet<Finished>,
    /// What has not ended, in the order of its start.
    running: Vec<(Id, Part)>,
}

/// The signals that the parts of a stage get.
#[derive(Debug, Clone)]
pub(super) struct Tokens {
    /// To finish.
    pub(super) stop: CancellationToken,
    /// To drop everything.
    pub(super) abort: CancellationToken,
}

impl Supervisor {
    /// A supervisor that drops everything when `abort` is cancelled.
    pub(super) fn new(abort: CancellationToken) -> Self {
        Self {
            abort,
            stages: BTreeMap::new(),
            tasks: JoinSet::new(),
            running: Vec::new(),
        }
    }

    /// The signals that the parts of a stage get.
    pub(super) fn tokens(&mut self, stage: Stage) -> Tokens {
        let abort = &self.abort;
        let tokens = self.stages.entry(stage).or_insert_with(|| Tokens {
            stop: CancellationToken::new(),
            abort: abort.child_token(),
        });
        tokens.clone()
    }

    /// Starts a part, which is given what tells it to stop. It is dropped when its stage is aborted.
    pub(super) fn add<F>(
        &mut self,
        part: Part,
        start: impl FnOnce(CancellationToken) -> F + Send + 'static,
    ) where
        F: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let Tokens { stop, abort } = self.tokens(part.stage);
        let (asked, within) = (stop.clone(), part.stop_within);
        let run = async move { start(stop).await };
        let run = async move { abort.run_until_cancelled_owned(run).await.unwrap_or(Ok(())) };
        self.start(part, async move {
            tokio::select! { biased; // What ends at the last moment has ended.
                ended = run => Some(ended),
                () = overdue(asked, within) => None,
            }
        });
    }

    /// Starts a part that looks at the tokens of its stage itself.
    pub(super) fn spawn(
        &mut self,
        part: Part,
        run: impl Future<Output = Result<(), Error>> + Send + 'static,
    ) {
        self.start(part, async { Some(run.await) });
    }

    fn start(&mut self, part: Part, run: impl Future<Output = Finished> + Send + 'static) {
        self.tokens(part.stage);
        let handle = self.tasks.spawn(run);
        self.running.push((handle.id(), part));
    }

    /// Completes when a part ends that should not have, or everything is aborted.
    pub(super) async fn failure(&mut self) -> ManagerError {
        loop {
            tokio::select! { biased; // An abort is worth most.
                () = self.abort.cancelled() => return ManagerError::Aborted,
                Some(joined) = self.tasks.join_next_with_id() => {
                    if let Some(failed) = self.judge(joined) {
                        return failed;
                    }
                }
                // Nothing runs: only an abort can end this wait.
                else => self.abort.cancelled().await,
            }
        }
    }

    /// Takes a part that ended out, and says whether that is a failure.
    fn judge(&mut self, joined: Result<(Id, Finished), JoinError>) -> Option<ManagerError> {
        let id = joined.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let place = self.running.iter().position(|(other, _)| *other == id)?;
        let (_, part) = self.running.remove(place);
        let stage = self.stages.get(&part.stage);
        let stopping = stage.is_some_and(|it| it.stop.is_cancelled() || it.abort.is_cancelled());
        let ended = match joined {
            Ok((_, Some(Ok(())))) if stopping => Ended::Stopped,
            Ok((_, Some(Ok(())))) => Ended::Early,
            Ok((_, Some(Err(error)))) => Ended::Failed(error),
            Ok((_, None)) => Ended::Late,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => Ended::Panicked(panics::text(&*panic)),
                Err(_) => Ended::Late,
            },
        };
        tracing::debug!(part = part.name, %ended, "a part of the manager ended");
        part.is_failure(&ended).then_some(ManagerError::Part {
            part: part.name,
            ended,
        })
    }

    /// Stops all, last stage first, within a time. Work has most of it; the rest is kept for what comes after the work.
    pub(super) async fn stop(&mut self, within: Duration) -> Result<(), ManagerError> {
        let deadline = Instant::now() + within;
        let work = deadline - (within / 4).min(LONGEST_TAIL);
        let (mut first, mut late) = (None, Vec::new());
        for (stage, tokens) in self.stages.clone().into_iter().rev() {
            if stage == Stage::Election && self.runs(Stage::Leader) {
                // Nobody else may lead while a thread here is still at work; the lease runs out by itself.
                tokens.abort.cancel();
            } else {
                tokens.stop.cancel();
            }
            let by = match stage {
                Stage::Others | Stage::Leader => work,
                Stage::Events => deadline,
                // One that hangs leaves time to those after it.
                _ => halfway(deadline),
            };
            first = first.or(self.ended(stage, by).await);
            if self.runs(stage) {
                late.extend(self.names(stage));
                tokens.abort.cancel();
                first = first.or(self.ended(stage, halfway(deadline)).await);
            }
        }
        if self.abort.is_cancelled() {
            return Err(first.unwrap_or(ManagerError::Aborted));
        }
        match (first, late.is_empty()) {
            (Some(failed), _) => Err(failed),
            (None, true) => Ok(()),
            (None, false) => Err(ManagerError::Shutdown {
                parts: late.join(", "),
                waited: within,
            }),
        }
    }

    /// Drops everything, and waits so long for it at most. Gives the names of parts that are still there: a thread that is
    /// blocked cannot be dropped.
    pub(super) async fn cut_off(&mut self, within: Duration) -> Vec<String> {
        self.abort.cancel();
        let deadline = Instant::now() + within;
        while let Ok(Some(joined)) = timeout_at(deadline, self.tasks.join_next_with_id()).await {
            self.judge(joined);
        }
        // A task that is blocked would make the drop of the set look as if it had ended.
        self.tasks.detach_all();
        self.running.drain(..).map(|(_, part)| part.name).collect()
    }

    /// Waits for the parts of a stage until a moment, or until everything is aborted. Gives the first failure.
    async fn ended(&mut self, stage: Stage, by: Instant) -> Option<ManagerError> {
        let mut first = None;
        while self.runs(stage) {
            let joined = tokio::select! { biased; // An abort is worth most.
                () = self.abort.cancelled() => None,
                joined = timeout_at(by, self.tasks.join_next_with_id()) => joined.ok().flatten(),
            };
            match joined {
                Some(joined) => first = first.or(self.judge(joined)),
                None => break,
            }
        }
        first
    }

    fn runs(&self, stage: Stage) -> bool {
        self.running.iter().any(|(_, part)| part.stage == stage)
    }

    fn names(&self, stage: Stage) -> Vec<String> {
        let parts = self.running.iter().map(|(_, part)| part);
        let parts = parts.filter(|part| part.stage == stage);
        parts.map(|part| part.name.clone()).collect()
    }
}

/// Completes when a part that was asked to stop has had its own time; never where it has none.
async fn overdue(asked: CancellationToken, within: Option<Duration>) {
    let Some(within) = within else {
        return std::future::pending().await;
    };
    asked.cancelled().await;
    sleep(within).await;
}

fn halfway(deadline: Instant) -> Instant {
    let now = Instant::now();
    now + deadline.saturating_duration_since(now) / 2
}

#[cfg(test)]
mod tests;
