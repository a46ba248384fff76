//! The parts of a manager in the stages in which they start and stop.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::ManagerError;
use crate::Error;
use crate::controller::{Controller, Leadership, Surroundings};

/// Stages, in the order of their start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    Servers,
    Others,
    Leader,
}

/// Everything that runs.
pub(super) struct Groups {
    abort: CancellationToken,
    stages: BTreeMap<Stage, CancellationToken>,
    tasks: JoinSet<(Part, Result<(), Error>)>,
    /// What has not ended. A name may be there more than once.
    running: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    stage: Stage,
    name: String,
}

impl Groups {
    pub(super) fn new(abort: CancellationToken) -> Self {
        Self {
            abort,
            stages: BTreeMap::new(),
            tasks: JoinSet::new(),
            running: Vec::new(),
        }
    }

    /// Starts a part; it is given what tells it to stop.
    pub(super) fn add<F>(
        &mut self,
        stage: Stage,
        name: String,
        start: impl FnOnce(CancellationToken) -> F,
    ) where
        F: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let stop = self.stages.entry(stage).or_default().clone();
        let part = Part { stage, name };
        self.running.push(part.clone());
        let run = start(stop);
        self.tasks.spawn(async move { (part, run.await) });
    }

    /// Starts a part that waits for leadership.
    pub(super) fn add_led<F>(
        &mut self,
        name: String,
        leading: CancellationToken,
        start: impl FnOnce(CancellationToken) -> F + Send + 'static,
    ) where
        F: Future<Output = Result<(), Error>> + Send + 'static,
    {
        self.add(Stage::Leader, name, |stop| async move {
            tokio::select! { biased; // A stop is worth more than a start.
                () = stop.cancelled() => return Ok(()),
                () = leading.cancelled() => {}
            }
            start(stop).await
        });
    }

    pub(super) fn control(&mut self, controller: Controller, around: &Surroundings) {
        let stage = match controller.settings.leadership {
            Leadership::Required => Stage::Leader,
            Leadership::NotNeeded => Stage::Others,
        };
        let name = format!("controller {}", controller.name);
        let around = around.clone();
        self.add(stage, name, |stop| async move {
            controller.run(around, stop).await.map_err(Error::from)
        });
    }

    /// Completes when a part fails, or the time to finish is over.
    pub(super) async fn failure(&mut self) -> ManagerError {
        loop {
            tokio::select! { biased; // An abort is worth most.
                () = self.abort.cancelled() => return ManagerError::Aborted,
                Some(ended) = self.tasks.join_next() => {
                    if let Some(failed) = self.ended(ended) {
                        return failed;
                    }
                }
                // Nothing runs: only an abort can end this wait.
                else => self.abort.cancelled().await,
            }
        }
    }

    fn ended(
        &mut self,
        ended: Result<(Part, Result<(), Error>), tokio::task::JoinError>,
    ) -> Option<ManagerError> {
        match ended {
            Ok((part, result)) => {
                if let Some(place) = self.running.iter().position(|other| *other == part) {
                    self.running.remove(place);
                }
                let error = result.err()?;
                Some(ManagerError::Part {
                    part: part.name,
                    error,
                })
            }
            Err(error) => Some(ManagerError::Part {
                part: "a part".to_owned(),
                error: Error::msg(format!("it panicked: {error}")),
            }),
        }
    }

    /// Stops all, last stage first, and waits for each stage to end; those that do not in time are cut off.
    pub(super) async fn stop(mut self, timeout: Duration) -> Result<(), ManagerError> {
        let deadline = Instant::now() + timeout;
        let mut first = None;
        let mut late = Vec::new();
        for (stage, stop) in std::mem::take(&mut self.stages).into_iter().rev() {
            stop.cancel();
            while self.running.iter().any(|part| part.stage == stage) {
                let next = tokio::select! { biased; // An abort is worth most.
                    () = self.abort.cancelled() => None,
                    next = timeout_at(deadline, self.tasks.join_next()) => next.ok().flatten(),
                };
                match next {
                    Some(ended) => first = first.or(self.ended(ended)),
                    None => break,
                }
            }
            let parts = self.running.iter().filter(|part| part.stage == stage);
            late.extend(parts.map(|part| part.name.clone()));
            self.running.retain(|part| part.stage != stage);
        }
        let aborted = self.abort.is_cancelled();
        // Whoever is late learns that nobody waits any more, and is then cut off.
        self.abort.cancel();
        self.tasks.shutdown().await;
        match (first, late.is_empty()) {
            (Some(failed), _) => Err(failed),
            (None, true) => Ok(()),
            (None, false) if aborted => Err(ManagerError::Aborted),
            (None, false) => Err(ManagerError::Shutdown {
                parts: late.join(", "),
                waited: timeout,
            }),
        }
    }
}
