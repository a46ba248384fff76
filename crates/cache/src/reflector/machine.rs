//! The rules of the reflector, without any waiting: what came in, what to do next.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::patience::Patience;
use super::phase::{Attempt, Input, Listing, Next, Phase, Progress, Step, Then, Watching};
use super::{Options, Random, is_ordinary};
use crate::Key;
use crate::backoff::Backoff;
use crate::delta::Delta;
use crate::intake::WatchEvent;
use crate::object::Object;
use crate::source::{Failure, FailureKind, Initial, ListRequest, StreamingList, WatchRequest};

/// A watch that ends sooner than this without having delivered anything new is a failure.
const VERY_SHORT: Duration = Duration::from_secs(1);
/// A stream of initial events that is silent for so long will never end: the server does not know of such streams.
const STREAM_SILENCE: Duration = Duration::from_secs(30);
/// How much longer than it was asked to a watch may stay open before it counts as dead.
const GRACE: Duration = Duration::from_secs(30);
/// Servers are obeyed when they ask for patience, up to this.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(300);

/// Follows one resource.
pub(crate) struct Machine {
    page_size: u32,
    shortest_watch: Duration,
    backoff: Backoff,
    /// For internal errors in place of a watch.
    patience: Patience,
    random: Random,
    streaming: StreamingList,
    /// The version up to which everything is known; empty before the first state.
    last: String,
    /// The server could not use `last`; the newest state is asked for until one has come.
    unavailable: bool,
    /// The server pages also where a watch cache would not: it has none.
    pages_anyway: bool,
    phase: Phase,
}

impl Machine {
    pub(crate) fn new(options: Options, streaming: StreamingList) -> Self {
        Self {
            page_size: options.page_size,
            shortest_watch: options.shortest_watch,
            backoff: options.backoff,
            patience: Patience::new(options.internal_errors),
            random: options.random,
            streaming,
            last: String::new(),
            unavailable: false,
            pages_anyway: false,
            phase: Phase::Waiting(Then::Restart),
        }
    }

    /// Takes what came in at `now` and says what to do.
    pub(crate) fn step(&mut self, now: Duration, input: Input) -> Step {
        let idle = Phase::Waiting(Then::Restart);
        match std::mem::replace(&mut self.phase, idle) {
            Phase::Listing(listing) => self.listing(now, listing, input),
            Phase::Streaming { objects } => self.streaming(now, objects, input),
            Phase::Opening { timeout } => self.opening(now, timeout, input),
            Phase::Watching(watching) => self.watching(now, watching, input),
            Phase::Waiting(Then::Restart) => self.restart(),
            Phase::Waiting(Then::Stream) => self.stream(),
            Phase::Waiting(Then::Watch) => self.watch(),
        }
    }

    fn restart(&mut self) -> Step {
        match self.streaming {
            StreamingList::Try => self.stream(),
            StreamingList::No => self.list(),
        }
    }

    // The initial state as a stream.

    fn stream(&mut self) -> Step {
        self.phase = Phase::Streaming {
            objects: BTreeMap::new(),
        };
        let version = if self.unavailable { "" } else { &self.last };
        Next::Watch(WatchRequest {
            resource_version: version.to_owned(),
            initial: Initial::Events,
            timeout: self.timeout(),
        })
        .into()
    }

    fn streaming(
        &mut self,
        now: Duration,
        mut objects: BTreeMap<Key, Arc<Object>>,
        input: Input,
    ) -> Step {
        match input {
            Input::Event(WatchEvent::Bookmark {
                resource_version,
                ends_initial: true,
            }) => return self.streamed(now, objects, resource_version),
            Input::Event(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                objects.insert(object.key().clone(), object);
            }
            Input::Event(WatchEvent::Deleted(object)) => {
                objects.remove(object.key());
            }
            Input::Event(WatchEvent::Error(failure)) | Input::Refused(failure) => {
                return self.stream_failed(now, failure);
            }
            Input::Ended(failure) => {
                let message = "the stream of the initial state ended before its end";
                let broken = Failure::new(FailureKind::Interrupted, message);
                return self.stream_failed(now, failure.unwrap_or(broken));
            }
            Input::Elapsed => return self.stream_silent(),
            Input::Reselected => return self.restart(),
            _ => {}
        }
        self.phase = Phase::Streaming { objects };
        let until = now + STREAM_SILENCE;
        Next::Read { until }.into()
    }

    fn streamed(
        &mut self,
        now: Duration,
        objects: BTreeMap<Key, Arc<Object>>,
        version: String,
    ) -> Step {
        self.phase = Phase::Watching(Watching {
            from: version.clone(),
            opened: now,
            until: now + self.shortest_watch * 2 + GRACE,
            progress: Progress::Made,
        });
        let delta = self.replace(objects.into_values().collect(), version);
        let until = self.deadline();
        Step {
            delta: Some(delta),
            ..Next::Read { until }.into()
        }
    }

    fn stream_failed(&mut self, now: Duration, failure: Failure) -> Step {
        use FailureKind as Kind;
        match failure.kind {
            Kind::ConnectionRefused | Kind::TooManyRequests | Kind::Interrupted | Kind::Silence => {
                self.wait(now, Some(failure), Then::Stream)
            }
            Kind::Expired | Kind::VersionTooLarge if !self.unavailable => {
                self.unavailable = true;
                self.stream()
            }
            // Whatever it is: a list will do, or fail with the same and say so.
            _ => self.list(),
        }
    }

    /// A server that never ends the initial events does not know them; client-go waits for ever here.
    fn stream_silent(&mut self) -> Step {
        self.streaming = StreamingList::No;
        let message = "the initial state was never marked as complete; lists are used from now on";
        Step {
            report: Some(Failure::new(FailureKind::Silence, message)),
            ..self.list()
        }
    }

    // The initial state as a list.

    fn list(&mut self) -> Step {
        let asked = match (self.unavailable, self.last.is_empty()) {
            (true, _) => String::new(),
            (false, true) => "0".to_owned(),
            (false, false) => self.last.clone(),
        };
        // A list at a version is served from the server's cache unless it is paged.
        let paged = self.pages_anyway || asked.is_empty() || asked == "0";
        let limit = if paged { self.page_size } else { 0 };
        self.begin_list(asked, limit, Attempt::First)
    }

    fn begin_list(&mut self, asked: String, limit: u32, attempt: Attempt) -> Step {
        self.phase = Phase::Listing(Listing {
            asked: asked.clone(),
            version: None,
            objects: Vec::new(),
            attempt,
        });
        Next::List(ListRequest {
            resource_version: asked,
            limit,
            continue_token: String::new(),
        })
        .into()
    }

    fn listing(&mut self, now: Duration, mut listing: Listing, input: Input) -> Step {
        let (objects, version, token) = match input {
            Input::Page(page) => (page.objects, page.resource_version, page.continue_token),
            Input::ListFailed(failure) => return self.list_failed(now, &listing, failure),
            _ => return self.restart(),
        };
        if listing.objects.is_empty() {
            listing.objects = objects
        } else {
            listing.objects.extend(objects)
        }
        let version = listing.version.get_or_insert(version).clone();
        if token.is_empty() {
            let delta = self.replace(listing.objects, version);
            return Step {
                delta: Some(delta),
                ..self.watch()
            };
        }
        self.pages_anyway |= listing.asked == "0";
        self.phase = Phase::Listing(listing);
        Next::List(ListRequest {
            resource_version: String::new(),
            limit: self.page_size,
            continue_token: token,
        })
        .into()
    }

    fn list_failed(&mut self, now: Duration, listing: &Listing, failure: Failure) -> Step {
        let later_page = listing.version.is_some();
        match (failure.kind, listing.attempt) {
            // The pages expired while they were read: everything at once cannot.
            (FailureKind::Expired, Attempt::First) if later_page => {
                self.begin_list(listing.asked.clone(), 0, Attempt::WithoutPages)
            }
            (
                FailureKind::Expired | FailureKind::VersionTooLarge,
                Attempt::First | Attempt::WithoutPages,
            ) => {
                self.unavailable = true;
                self.begin_list(String::new(), self.page_size, Attempt::Newest)
            }
            _ => self.wait(now, Some(failure), Then::Restart),
        }
    }

    // Changes.

    fn watch(&mut self) -> Step {
        let timeout = self.timeout();
        self.phase = Phase::Opening { timeout };
        Next::Watch(WatchRequest {
            resource_version: self.last.clone(),
            initial: Initial::None,
            timeout,
        })
        .into()
    }

    fn opening(&mut self, now: Duration, timeout: Duration, input: Input) -> Step {
        match input {
            Input::Opened => {
                let until = now + timeout + GRACE;
                self.phase = Phase::Watching(Watching {
                    from: self.last.clone(),
                    opened: now,
                    until,
                    progress: Progress::None,
                });
                Next::Read { until }.into()
            }
            Input::Refused(failure) => self.watch_failed(now, failure),
            _ => self.restart(),
        }
    }

    fn watching(&mut self, now: Duration, mut watching: Watching, input: Input) -> Step {
        let delta = match input {
            Input::Event(WatchEvent::Error(failure)) => return self.watch_failed(now, failure),
            Input::Event(event) => self.event(&mut watching, event),
            Input::Ended(Some(failure)) if failure.kind != FailureKind::Interrupted => {
                return self.watch_failed(now, failure);
            }
            Input::Ended(_) => return self.watch_ended(now, &watching),
            Input::Elapsed => return self.watch(),
            Input::Reselected => return self.restart(),
            _ => None,
        };
        let until = watching.until;
        self.phase = Phase::Watching(watching);
        Step {
            delta,
            ..Next::Read { until }.into()
        }
    }

    fn event(&mut self, watching: &mut Watching, event: WatchEvent) -> Option<Delta> {
        let (delta, version) = match event {
            WatchEvent::Added(object) => {
                let version = object.resource_version().into_owned();
                let unordered = watching.from.is_empty() || watching.from == "0";
                if unordered && watching.progress != Progress::Made {
                    // These come in no order of versions: only what follows them says how far we are.
                    watching.progress = Progress::InitialOnly;
                    return Some(Delta::Apply(object));
                }
                (Delta::Apply(object), version)
            }
            WatchEvent::Modified(object) => {
                let version = object.resource_version().into_owned();
                (Delta::Apply(object), version)
            }
            WatchEvent::Deleted(object) => {
                let version = object.resource_version().into_owned();
                (Delta::Delete(object), version)
            }
            WatchEvent::Bookmark {
                resource_version, ..
            } => (Delta::Bookmark(resource_version.clone()), resource_version),
            WatchEvent::Error(_) | WatchEvent::Skipped => return None,
        };
        if !version.is_empty() && version != self.last {
            watching.progress = Progress::Made;
            self.last = version;
        }
        Some(delta)
    }

    fn watch_ended(&mut self, now: Duration, watching: &Watching) -> Step {
        let lasted = now.saturating_sub(watching.opened);
        if watching.progress == Progress::None && lasted < VERY_SHORT {
            let message = "it ended within a second without anything new";
            let failure = Failure::new(FailureKind::ShortWatch, message);
            return self.wait(now, Some(failure), Then::Restart);
        }
        self.watch()
    }

    fn watch_failed(&mut self, now: Duration, failure: Failure) -> Step {
        let then = match failure.kind {
            // Nothing indicates that the version is invalid.
            FailureKind::ConnectionRefused
            | FailureKind::TooManyRequests
            | FailureKind::Silence => Then::Watch,
            FailureKind::Internal if self.patience.endures(now) => Then::Watch,
            _ => Then::Restart,
        };
        self.wait(now, Some(failure), then)
    }

    // What all of them need.

    fn replace(&mut self, objects: Vec<Arc<Object>>, version: String) -> Delta {
        self.unavailable = false;
        self.last.clone_from(&version);
        Delta::Replace {
            objects,
            resource_version: version,
        }
    }

    fn wait(&mut self, now: Duration, failure: Option<Failure>, then: Then) -> Step {
        let delay = self.backoff.next(now, (self.random)());
        let suggested = failure.as_ref().and_then(|failure| failure.retry_after);
        let delay = delay.max(suggested.unwrap_or_default().min(LONGEST_RETRY_AFTER));
        self.phase = Phase::Waiting(then);
        Step {
            report: failure.filter(|failure| !is_ordinary(failure)),
            ..Next::Sleep { until: now + delay }.into()
        }
    }

    fn timeout(&mut self) -> Duration {
        self.shortest_watch
            .mul_f64(1.0 + (self.random)().clamp(0.0, 1.0))
    }

    fn deadline(&self) -> Duration {
        match &self.phase {
            Phase::Watching(watching) => watching.until,
            _ => Duration::ZERO,
        }
    }
}
