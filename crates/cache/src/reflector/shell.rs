//! Does what the machine says: asks, reads, waits.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::Reflector;
use super::phase::{Input, Next, Step};
use crate::delta::{Closed, Delta};
use crate::frames::{Line, Lines};
use crate::intake::Intake;
use crate::json::Malformed;
use crate::object::Object;
use crate::pages::PageReader;
use crate::report::Report;
use crate::source::{Chunks, Failure, FailureKind, Initial, ListRequest};
use crate::stats::Counters;

/// How long a server may be silent while a watch is opened or a list is read, by default.
pub(crate) const SILENCE: Duration = Duration::from_secs(30);

impl Counters {
    fn count(&self, next: &Next, delta: Option<&Delta>) {
        match next {
            Next::List(_) => self.lists.add(1),
            Next::Watch(request) if request.initial == Initial::Events => self.streams.add(1),
            Next::Watch(_) => self.watches.add(1),
            Next::Sleep { .. } => self.failures.add(1),
            Next::Read { .. } => {}
        }
        if let Some(Delta::Replace { .. }) = delta {
            self.states.add(1);
        }
    }
}

/// How a reflector is doing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Status {
    /// A watch has been opened, so changes are seen.
    pub(crate) live: bool,
    /// Why it is not going on, since the last success.
    pub(crate) failure: Option<Arc<Failure>>,
    /// A first whole state is in the store.
    pub(crate) synced: bool,
    /// It has ended.
    pub(crate) stopped: bool,
}

impl Reflector {
    /// Follows the resource until it is cancelled or nobody takes the deltas.
    pub async fn run(self, cancel: CancellationToken) {
        let status = self.status.clone();
        let name = self.source.describe();
        match cancel.run_until_cancelled_owned(self.follow()).await {
            None => tracing::debug!(%name, "reflector cancelled"),
            Some(Closed) => tracing::debug!(%name, "reflector ends: nobody takes its deltas"),
        }
        status.change(|status| status.stopped = true);
    }

    async fn follow(mut self) -> Closed {
        let start = Instant::now();
        let mut watch: Option<Lines> = None;
        let mut input = Input::Start;
        loop {
            let Step {
                delta,
                report,
                next,
            } = self.machine.step(start.elapsed(), input);
            self.counters.count(&next, delta.as_ref());
            if let Some(failure) = report {
                self.report(failure);
            }
            if let Some(delta) = delta {
                // With more to do here, somebody else is at work on this one in the meantime.
                let more = matches!(delta, Delta::Replace { .. })
                    || watch.as_ref().is_some_and(Lines::have_more);
                let passed_on = if more {
                    self.deltas.push(delta).await
                } else {
                    self.deltas.hand_over(delta).await
                };
                if let Err(closed) = passed_on {
                    return closed;
                }
            }
            // A server that never makes us wait must not keep a thread from everybody else.
            tokio::task::coop::consume_budget().await;
            input = match next {
                Next::Read { until } => self.read(&mut watch, start + until).await,
                other => {
                    watch = None;
                    self.act(other, &mut watch, start).await
                }
            };
        }
    }

    async fn act(&mut self, next: Next, watch: &mut Option<Lines>, start: Instant) -> Input {
        match next {
            Next::Sleep { until } => {
                tokio::time::sleep_until(start + until).await;
                Input::Elapsed
            }
            Next::List(request) => self.list(request).await,
            Next::Watch(request) => match heard(self.silence, self.source.watch(request)).await {
                Ok(chunks) => {
                    *watch = Some(Lines::new(chunks));
                    self.succeed();
                    Input::Opened
                }
                Err(failure) => Input::Refused(failure),
            },
            Next::Read { .. } => Input::Elapsed,
        }
    }

    async fn read(&mut self, watch: &mut Option<Lines>, until: Instant) -> Input {
        let Some(lines) = watch else {
            return Input::Ended(None);
        };
        let read = tokio::select! { biased; // What is read by the old selection would be read again.
            () = reselected(&mut self.selections) => return Input::Reselected,
            read = tokio::time::timeout_at(until, lines.next()) => read,
        };
        match read {
            Err(_) => Input::Elapsed,
            Ok(None) => Input::Ended(None),
            Ok(Some(Err(failure))) => Input::Ended(Some(failure)),
            Ok(Some(Ok(Line::Whole(line)))) => match self.intake.event(&line) {
                Ok(event) => {
                    self.counters.events.add(1);
                    Input::Event(self.intake.selected(event))
                }
                Err(failure) => Input::Ended(Some(failure)),
            },
            // The connection went in the middle of a line; the next watch delivers that event again.
            Ok(Some(Ok(Line::Unfinished(line)))) => match self.intake.event(&line) {
                Ok(event) => Input::Event(self.intake.selected(event)),
                Err(_) => Input::Ended(None),
            },
        }
    }

    async fn list(&mut self, request: ListRequest) -> Input {
        let answer = match heard(self.silence, self.source.list(request)).await {
            Ok(chunks) => read_page(chunks, &self.intake, self.silence).await,
            Err(failure) => Err(failure),
        };
        match answer {
            Ok(page) => Input::Page(page),
            Err(failure) => Input::ListFailed(failure),
        }
    }

    fn succeed(&self) {
        let news = |status: &Status| !status.live || status.failure.is_some();
        if self.status.look(news) {
            self.status.change(|status| {
                status.live = true;
                status.failure = None;
            });
        }
    }

    fn report(&self, failure: Failure) {
        let failure = Arc::new(failure);
        self.intake
            .reporter
            .report(&Report::Source(failure.clone()));
        self.status.change(|status| status.failure = Some(failure));
    }
}

/// One page of a list.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) objects: Vec<Arc<Object>>,
    pub(crate) resource_version: String,
    pub(crate) continue_token: String,
}

/// The answer, or a failure when the server says nothing for too long: a connection that is half open never ends by itself.
pub(crate) async fn heard<T>(
    silence: Duration,
    answer: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    timeout(silence, answer)
        .await
        .unwrap_or_else(|_| Err(silent(silence)))
}

fn silent(silence: Duration) -> Failure {
    let message = format!("the server was silent for {silence:?}");
    Failure::new(FailureKind::Silence, message)
}

/// Reads a page while it arrives. A page may take long, as long as some of it keeps coming.
pub(crate) async fn read_page(
    mut chunks: Box<dyn Chunks>,
    intake: &Intake,
    silence: Duration,
) -> Result<Page, Failure> {
    let malformed = |Malformed| Failure::new(FailureKind::Malformed, "no list");
    let mut reader = PageReader::default();
    let mut objects: Vec<Arc<Object>> = Vec::new();
    while let Some(chunk) = timeout(silence, chunks.next())
        .await
        .map_err(|_| silent(silence))?
    {
        let item = |bytes: &[u8], types: Option<&_>| {
            let item = intake.item(bytes, types);
            objects.extend(item.filter(|object| intake.is_selected(object)));
        };
        reader.feed(&chunk?, item).map_err(malformed)?;
        tokio::task::coop::consume_budget().await;
    }
    let end = reader.finish().map_err(malformed)?;
    if end.kind == "Table" {
        let message = "the server answers with a Table, which cannot be cached";
        return Err(Failure::new(FailureKind::Malformed, message));
    }
    Ok(Page {
        objects,
        resource_version: end.resource_version,
        continue_token: end.continue_token,
    })
}

/// Completes when other objects are to be kept than before.
async fn reselected(selections: &mut Option<watch::Receiver<u64>>) {
    let changed = match selections {
        Some(selections) => selections.changed().await.is_ok(),
        None => false,
    };
    if !changed {
        // The sender is gone: the selection does not change any more.
        *selections = None;
        std::future::pending().await
    }
}
