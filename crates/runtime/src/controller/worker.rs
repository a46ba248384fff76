//! A worker: takes a request, reconciles it, and says what becomes of it.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use kubewright_cache::source::BoxFuture;
use kubewright_workqueue::{Add, Finish, Item, Priority};
use tokio::task::coop::consume_budget;
use tokio_util::sync::CancellationToken;

use super::history::{Entry, History};
use super::hot_loop::HotLoops;
use super::target::{Target, View};
use super::{Surroundings, Work};
use crate::cause::{Raised, Reasons};
use crate::client::{Client, Traces, Write};
use crate::context::{Context, Left, Lent, New};
use crate::gate::{self, Point, ReconcileId};
use crate::lease::LeaderStatus;
use crate::metrics::{ControllerMetrics, Verdict};
use crate::outcome::Next;
use crate::panics;
use crate::requests::{Request, Requests};
use crate::sharding::{Shard, Shards};
use crate::{Error, Outcome};

/// The target of the line that is logged for each reconcile.
const RECONCILES: &str = "kubewright::reconcile";

/// What is common to all workers of a controller. What they reconcile is behind a trait object, so that a worker is compiled once
/// and not for every kind and reconciler of a program.
pub(super) struct Worker<R: Request> {
    pub(super) name: Arc<str>,
    pub(super) target: Arc<dyn Target<R>>,
    pub(super) timeout: Option<Duration>,
    pub(super) loops: HotLoops,
    pub(super) count: AtomicU64,
}

impl<R: Request> Worker<R> {
    pub(super) fn new(
        name: Arc<str>,
        target: Arc<dyn Target<R>>,
        timeout: Option<Duration>,
    ) -> Self {
        Self {
            name,
            target,
            timeout,
            loops: HotLoops::default(),
            count: AtomicU64::default(),
        }
    }
}

/// A request in the hands of a worker, with the causes of its run.
type Task<R> = Item<R, Reasons>;

/// What one worker works with.
struct Bench<R: Request> {
    view: Box<dyn View<R>>,
    metrics: ControllerMetrics,
    requests: Requests<R>,
    history: History,
    lease: Option<LeaderStatus>,
    lent: Arc<Lent>,
    /// What this replica may work on, if requests of this kind are shared.
    shards: Option<Shards>,
}

impl<R: Request> Work<R> for Worker<R> {
    fn work(
        self: Arc<Self>,
        requests: Requests<R>,
        history: History,
        around: Surroundings,
        stop: CancellationToken,
    ) -> BoxFuture<'static, ()> {
        let view = self.target.clone().view(&around.client);
        let shards = around.shards.filter(|_| view.all().is_some());
        let bench = Bench {
            view,
            shards,
            metrics: around.metrics.controller(&self.name),
            requests,
            history,
            lease: around.lease,
            lent: Arc::new(Lent {
                controller: self.name.clone(),
                client: around.client,
                recorder: around.recorder,
                environment: around.environment,
                metrics: around.metrics,
                states: around.states,
                cancel: around.abort,
            }),
        };
        Box::pin(async move {
            // A context that is over makes the next one cheaper.
            let mut spare = None;
            while let Some(mut item) = bench.next(&stop).await {
                loop {
                    let finish = self.step(&bench, &mut item, &mut spare).await;
                    // After a stop no further key is taken.
                    if stop.is_cancelled() {
                        item.finish(finish);
                        break;
                    }
                    match item.finish_then_next(finish) {
                        Some(next) => item = next,
                        None => break,
                    }
                }
            }
        })
    }

    fn take_over(
        self: Arc<Self>,
        requests: Requests<R>,
        client: Client,
        shards: Shards,
    ) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let view = self.target.clone().view(&client);
            let mut changes = shards.changes();
            let mut before = BTreeSet::new();
            loop {
                let held = shards.held();
                let new: BTreeSet<Shard> = held.difference(&before).copied().collect();
                if !new.is_empty() {
                    let all = view.all().unwrap_or_default().into_iter();
                    let how = Add::now().priority(Priority::LOW);
                    all.filter(|request| new.contains(&shards.of(&request.key())))
                        .for_each(|request| requests.raise(request, Raised::TakenOver, how));
                }
                before = held;
                if changes.changed().await.is_err() {
                    return;
                }
            }
        })
    }
}

impl<R: Request> Bench<R> {
    /// Waits for a request. After a stop it returns nothing, even if a request is ready.
    async fn next(&self, stop: &CancellationToken) -> Option<Task<R>> {
        tokio::select! { biased; // After a stop no further key is taken.
            () = stop.cancelled() => None,
            item = self.requests.queue().get() => item,
        }
    }

    /// The name of a reconcile, for gates alone.
    fn named(&self, cx: &Context) -> Option<ReconcileId> {
        let gates = self.lent.client.gates();
        gates.is_set().then(|| ReconcileId {
            controller: self.lent.controller.clone(),
            key: cx.key().clone(),
            number: cx.reconcile_id(),
            attempt: cx.attempt(),
        })
    }

    /// Tells the gate how a reconcile ended.
    async fn report_end(&self, cx: &Context, result: &Result<Outcome, Error>) {
        let Some(id) = self.named(cx) else {
            return;
        };
        let ended = ended(result);
        let mut pass = pin!(
            self.lent
                .client
                .gates()
                .observe(Point::Reconciled { ended: &ended })
        );
        poll_fn(|context| gate::within(Some(&id), || pass.as_mut().poll(context))).await;
    }
}

impl<R: Request> Worker<R> {
    /// Reconciles the request, and says what becomes of it.
    async fn step(
        &self,
        bench: &Bench<R>,
        task: &mut Task<R>,
        spare: &mut Option<Context>,
    ) -> Finish {
        let controller = &*self.name;
        let key = task.key().key();
        // The replica that has the key instead sees the same event, or takes the key over later.
        let _permit = match bench.shards.as_ref().map(|shards| shards.enter(&key)) {
            Some(None) => return Finish::Succeeded,
            Some(Some(permit)) => Some(permit),
            None => None,
        };
        let reasons = task.take_note();
        let own_doing = self.loops.is_own_doing(&key, &reasons);
        let id = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let new = New {
            key,
            id,
            attempt: task.requeues(),
            reasons,
        };
        let cx = Context::new(&bench.lent, spare.take(), new);
        let started = cx.now();
        let outcome = tracing::field::Empty;
        let span = tracing::info_span!(
            "reconcile",
            controller,
            key = cx.key().as_str(),
            id,
            outcome
        );
        let result = {
            // Pinned where it is: a future that is wrapped is moved, which is most of what a short one costs.
            let mut attempt = pin!(self.attempt(bench, task.key(), &cx));
            let named = bench.named(&cx);
            poll_fn(|context| {
                let poll = || span.in_scope(|| attempt.as_mut().poll(context));
                gate::within(named.as_ref(), poll)
            })
            .await
        };
        bench.report_end(&cx, &result).await;
        let took = task.stop_watch();
        let _in = span.enter();
        let verdict = verdict(&result);
        span.record("outcome", verdict.as_str());
        bench.metrics.finished(verdict, took);
        let key = cx.key().clone();
        let (Left { reasons, traces }, over) = cx.conclude();
        let Traces { reads, writes } = traces;
        *spare = over;
        if let Some(length) = self.loops.ran(&key, own_doing, &writes) {
            bench.metrics.hot_loop(&key);
            let write = writes.last().map(tracing::field::display);
            tracing::warn!(
                length,
                write,
                "hot loop: the reconcile's own write makes it run again"
            );
        }
        log(&reasons, &writes, took);
        bench.history.push(Entry {
            id,
            key,
            started,
            took,
            reasons,
            reads,
            writes,
            ended: ended(&result),
        });
        finish(task, result)
    }

    /// The reconcile itself, with everything that can go wrong around it turned into an error.
    async fn attempt(&self, bench: &Bench<R>, request: &R, cx: &Context) -> Result<Outcome, Error> {
        // A worker that always finds a key must still let the other tasks of its thread run.
        consume_budget().await;
        let gates = bench.lent.client.gates();
        gates.pass(Point::Reconcile).await?;
        // Asked by the clock: a process that was held for long finds its lease gone before it is notified.
        if bench
            .lease
            .as_ref()
            .is_some_and(|lease| !lease.is_leading())
        {
            return Err(Error::msg("the lease of this process ran out"));
        }
        let run = AssertUnwindSafe(bench.view.reconcile(request, cx)).catch_unwind();
        let caught = match self.timeout {
            None => run.await,
            Some(timeout) => match tokio::time::timeout(timeout, run).await {
                Ok(caught) => caught,
                Err(_) => {
                    bench.metrics.timed_out();
                    return Err(Error::msg(format!(
                        "reconcile took longer than {timeout:?}"
                    )));
                }
            },
        };
        caught.unwrap_or_else(|panic| {
            bench.metrics.panicked();
            Err(Error::msg(format!(
                "reconcile panicked: {}",
                panics::text(&*panic)
            )))
        })
    }
}

/// Writes one line for a reconcile: why it ran, what it wrote, how long it took. Its span says of which key.
fn log(reasons: &Reasons, writes: &[Write], took: Duration) {
    if !tracing::enabled!(target: RECONCILES, tracing::Level::DEBUG) {
        return;
    }
    let texts = |all: Vec<String>| {
        if all.is_empty() {
            "nothing".to_owned()
        } else {
            all.join(", ")
        }
    };
    let causes = reasons.to_causes();
    let causes = texts(causes.iter().map(ToString::to_string).collect());
    let writes = texts(writes.iter().map(ToString::to_string).collect());
    tracing::debug!(target: RECONCILES, "because: {causes}; wrote: {writes}; took {took:.1?}");
}

fn verdict(result: &Result<Outcome, Error>) -> Verdict {
    match result {
        Ok(outcome) => match outcome.next {
            Next::Done => Verdict::Success,
            Next::Requeue => Verdict::Requeue,
            Next::RequeueAfter(_) => Verdict::RequeueAfter,
        },
        Err(error) if error.is_terminal() => Verdict::Terminal,
        Err(_) => Verdict::Error,
    }
}

fn ended(result: &Result<Outcome, Error>) -> Cow<'static, str> {
    match result {
        Ok(outcome) => match outcome.next {
            Next::Done => "done".into(),
            Next::Requeue => "requeue".into(),
            Next::RequeueAfter(delay) => format!("requeue after {delay:?}").into(),
        },
        Err(error) => error.report().into(),
    }
}

/// Decides what becomes of the request. A run that follows gets the reason as its cause.
fn finish<R: Request>(task: &mut Task<R>, result: Result<Outcome, Error>) -> Finish {
    match result {
        Ok(outcome) => {
            if outcome.next != Next::Done {
                task.leave(Raised::Requeue.into());
            }
            if let Some(priority) = outcome.priority {
                task.requeue_with(priority);
            }
            match outcome.next {
                Next::Done => Finish::Succeeded,
                Next::Requeue => Finish::Failed,
                Next::RequeueAfter(delay) => Finish::Again(delay),
            }
        }
        Err(error) if error.is_terminal() => {
            tracing::error!(error = error.report(), "reconcile failed for good");
            Finish::Ended
        }
        Err(error) => {
            let (attempt, report) = (task.requeues() + 1, error.report());
            if error.is_conflict() {
                tracing::debug!(error = report, attempt, "an object has changed meanwhile");
            } else {
                tracing::warn!(error = report, attempt, "reconcile failed");
            }
            task.leave(Raised::Retry.into());
            Finish::Failed
        }
    }
}
