//! A worker: takes a key, reconciles it, and says what becomes of it.

use std::borrow::Cow;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use kube::core::ApiResource;
use kubewright_cache::source::BoxFuture;
use kubewright_cache::{Key, Reader, Scope, SharedInformer};
use kubewright_workqueue::{Finish, Item};
use tokio::task::coop::consume_budget;
use tokio_util::sync::CancellationToken;

use super::history::{Entry, History};
use super::hot_loop::HotLoops;
use super::{Surroundings, Work};
use crate::cause::{Raised, Reasons};
use crate::client::{Client, Object, Objects};
use crate::context::{Context, Left, Lent, New};
use crate::lease::Leadership;
use crate::metrics::{ControllerMetrics, Verdict};
use crate::outcome::Next;
use crate::panics;
use crate::reconciler::Reconciler;
use crate::requests::Requests;
use crate::seam::Point;
use crate::{Error, Outcome};

/// The typed part of a controller, shared by its workers.
pub(super) struct Worker<K, R> {
    pub(super) name: Arc<str>,
    pub(super) objects: fn(&Client, &ApiResource) -> Objects<K>,
    pub(super) resource: ApiResource,
    pub(super) scope: Option<Scope>,
    pub(super) reconciler: R,
    pub(super) timeout: Option<Duration>,
    pub(super) loops: HotLoops,
    pub(super) count: AtomicU64,
}

/// A key in the hands of a worker, with the causes of its run.
type Task = Item<Key, Reasons>;

/// What one worker works with.
struct Bench<K> {
    objects: Objects<K>,
    informer: SharedInformer<K>,
    reader: Reader<K>,
    metrics: ControllerMetrics,
    requests: Requests,
    history: History,
    lease: Option<Leadership>,
    lent: Arc<Lent>,
}

impl<K: Object, R: Reconciler<K>> Work for Worker<K, R> {
    fn work(
        self: Arc<Self>,
        requests: Requests,
        history: History,
        around: Surroundings,
        stop: CancellationToken,
    ) -> BoxFuture<'static, ()> {
        let objects = (self.objects)(&around.client, &self.resource);
        let informer = match &self.scope {
            None => objects.informer(),
            Some(scope) => objects.informer_in(scope.clone()),
        };
        let bench = Bench {
            metrics: around.metrics.controller(&self.name),
            objects,
            reader: informer.reader(),
            informer,
            requests,
            history,
            lease: around.lease,
            lent: Arc::new(Lent {
                controller: self.name.clone(),
                client: around.client,
                recorder: around.recorder,
                environment: around.environment,
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
}

impl<K> Bench<K> {
    /// Waits for a key. After a stop there is none, ready or not.
    async fn next(&self, stop: &CancellationToken) -> Option<Task> {
        tokio::select! { biased; // After a stop no further key is taken.
            () = stop.cancelled() => None,
            item = self.requests.queue().get() => item,
        }
    }
}

impl<K: Object, R: Reconciler<K>> Worker<K, R> {
    /// Reconciles the key, and says what becomes of it.
    async fn step(&self, bench: &Bench<K>, task: &mut Task, spare: &mut Option<Context>) -> Finish {
        let controller = &*self.name;
        let reasons = task.take_note();
        let own_doing = self.loops.is_own_doing(task.key(), &reasons);
        let id = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let new = New {
            key: task.key().clone(),
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
            let mut attempt = pin!(self.attempt(bench, &cx));
            let attempt = poll_fn(|context| span.in_scope(|| attempt.as_mut().poll(context)));
            attempt.await
        };
        let took = task.stop_watch();
        let _in = span.enter();
        let verdict = verdict(&result);
        span.record("outcome", verdict.as_str());
        bench.metrics.finished(verdict, took);
        let key = cx.key().clone();
        let (Left { why, writes }, over) = cx.conclude();
        *spare = over;
        if let Some(length) = self.loops.ran(&key, own_doing, &writes) {
            bench.metrics.hot_loop(&key);
            tracing::warn!(length, write = ?writes.last(), "hot loop: the reconcile's own write makes it run again");
        }
        bench.history.push(Entry {
            id,
            key,
            started,
            took,
            why,
            writes,
            ended: ended(&result),
        });
        finish(task, result)
    }

    /// The reconcile itself, with everything that can go wrong around it turned into an error.
    async fn attempt(&self, bench: &Bench<K>, cx: &Context) -> Result<Outcome, Error> {
        // A worker that always finds a key must still let the other tasks of its thread run.
        consume_budget().await;
        let step = Point::Step {
            controller: &self.name,
            key: cx.key(),
        };
        bench.lent.client.seams().pass(step).await;
        // Asked by the clock: a process that was held for long finds its lease gone before anybody has told it.
        if bench
            .lease
            .as_ref()
            .is_some_and(|lease| !lease.is_leading())
        {
            return Err(Error::msg("the lease of this process ran out"));
        }
        let run = pin!(self.reconcile(bench, cx.key(), cx));
        let run = AssertUnwindSafe(run).catch_unwind();
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

    async fn reconcile(&self, bench: &Bench<K>, key: &Key, cx: &Context) -> Result<Outcome, Error> {
        bench.objects.caught_up_in(&bench.informer, key).await?;
        let Some(entry) = bench.reader.entry(key) else {
            return self.reconciler.gone(key, cx).await;
        };
        match entry.value() {
            Some(object) => self.reconciler.reconcile(object, cx).await,
            // It has been reported by the cache; another run cannot mend it, another state can.
            None => Err(Error::terminal(format!(
                "{} {} does not decode",
                self.resource.kind,
                key.as_str()
            ))),
        }
    }
}

fn verdict(result: &Result<Outcome, Error>) -> Verdict {
    match result {
        Ok(Outcome(Next::Done)) => Verdict::Success,
        Ok(Outcome(Next::Requeue)) => Verdict::Requeue,
        Ok(Outcome(Next::RequeueAfter(_))) => Verdict::RequeueAfter,
        Err(error) if error.is_terminal() => Verdict::Terminal,
        Err(_) => Verdict::Error,
    }
}

fn ended(result: &Result<Outcome, Error>) -> Cow<'static, str> {
    match result {
        Ok(Outcome(Next::Done)) => "done".into(),
        Ok(Outcome(Next::Requeue)) => "requeue".into(),
        Ok(Outcome(Next::RequeueAfter(delay))) => format!("requeue after {delay:?}").into(),
        Err(error) => error.report().into(),
    }
}

/// What becomes of the key. If it runs again, that run is told why.
fn finish(task: &mut Task, result: Result<Outcome, Error>) -> Finish {
    match result {
        Ok(Outcome(Next::Done)) => Finish::Succeeded,
        Ok(Outcome(Next::Requeue)) => {
            task.leave(Raised::Requeue.into());
            Finish::Failed
        }
        Ok(Outcome(Next::RequeueAfter(delay))) => {
            task.leave(Raised::Requeue.into());
            Finish::Again(delay)
        }
        Err(error) if error.is_terminal() => {
            tracing::error!(error = error.report(), "reconcile failed for good");
            Finish::Ended
        }
        Err(error) => {
            tracing::warn!(
                error = error.report(),
                attempt = task.requeues() + 1,
                "reconcile failed"
            );
            task.leave(Raised::Retry.into());
            Finish::Failed
        }
    }
}
