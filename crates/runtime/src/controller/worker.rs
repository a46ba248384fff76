//! A worker: takes a key, reconciles it, and says what becomes of it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use kube::core::ApiResource;
use kubewright_cache::source::BoxFuture;
use kubewright_cache::{Key, Reader, Scope, SharedInformer};
use kubewright_workqueue::Item;
use tokio::task::coop::consume_budget;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::history::{History, Reconciled};
use super::hot_loop::HotLoops;
use super::{Surroundings, Work};
use crate::cause::Raised;
use crate::client::{Client, Object, Objects};
use crate::context::{Context, Left, Lent};
use crate::metrics::{ControllerMetrics, Verdict};
use crate::outcome::Next;
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

/// What one worker works with.
struct Bench<K> {
    objects: Objects<K>,
    informer: SharedInformer<K>,
    reader: Reader<K>,
    metrics: ControllerMetrics,
    requests: Requests,
    history: History,
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
            lent: Arc::new(Lent {
                controller: self.name.clone(),
                client: around.client,
                recorder: around.recorder,
                environment: around.environment,
                cancel: around.abort,
            }),
        };
        Box::pin(async move {
            while let Some(item) = bench.next(&stop).await {
                self.step(&bench, item).await;
            }
        })
    }
}

impl<K> Bench<K> {
    /// The next key. After a stop there is none, ready or not.
    async fn next(&self, stop: &CancellationToken) -> Option<Item<Key>> {
        // A worker that always finds a key must still let the other tasks of its thread run.
        consume_budget().await;
        if stop.is_cancelled() {
            return None;
        }
        let queue = self.requests.queue();
        // To sign up for the end of it all costs as much as a key: only who has to wait does.
        if let Some(item) = queue.try_get() {
            return Some(item);
        }
        tokio::select! { biased; // After a stop no further key is taken.
            () = stop.cancelled() => None,
            item = queue.get() => item,
        }
    }
}

impl<K: Object, R: Reconciler<K>> Worker<K, R> {
    async fn step(&self, bench: &Bench<K>, item: Item<Key>) {
        let key = item.key().clone();
        let controller = &*self.name;
        let point = Point::Step {
            controller,
            key: &key,
        };
        bench.lent.client.seams().pass(point).await;

        let taken = bench.requests.causes(&key);
        let own_doing = self.loops.is_own_doing(&key, &taken);
        let id = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let lent = bench.lent.clone();
        let cx = Context::new(lent, key.clone(), id, item.requeues(), taken);
        let (began, started) = (Instant::now(), cx.now());
        bench.metrics.started();
        let outcome = tracing::field::Empty;
        let span = tracing::info_span!("reconcile", controller, key = key.as_str(), id, outcome);
        let result = self
            .attempt(bench, &key, &cx)
            .instrument(span.clone())
            .await;
        let took = began.elapsed();
        let _in = span.enter();
        let verdict = verdict(&result);
        span.record("outcome", verdict.as_str());
        bench.metrics.finished(verdict, took);
        let Left { causes, writes } = cx.conclude();
        if let Some(length) = self.loops.ran(&key, own_doing, &writes) {
            bench.metrics.hot_loop(&key);
            tracing::warn!(length, write = ?writes.last(), "hot loop: the reconcile's own write makes it run again");
        }
        bench.history.push(Reconciled {
            controller: self.name.clone(),
            id,
            key,
            started,
            took,
            causes,
            writes,
            ended: ended(&result),
        });
        finish(bench, item, result);
    }

    /// The reconcile itself, with everything that can go wrong around it turned into an error.
    async fn attempt(&self, bench: &Bench<K>, key: &Key, cx: &Context) -> Result<Outcome, Error> {
        let run = AssertUnwindSafe(self.reconcile(bench, key, cx)).catch_unwind();
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
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            let text = text.unwrap_or_else(|| "no message".to_owned());
            Err(Error::msg(format!("reconcile panicked: {text}")))
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

fn ended(result: &Result<Outcome, Error>) -> String {
    match result {
        Ok(Outcome(Next::Done)) => "done".to_owned(),
        Ok(Outcome(Next::Requeue)) => "requeue".to_owned(),
        Ok(Outcome(Next::RequeueAfter(delay))) => format!("requeue after {delay:?}"),
        Err(error) => error.report(),
    }
}

/// Gives the key back to the queue.
fn finish<K>(bench: &Bench<K>, item: Item<Key>, result: Result<Outcome, Error>) {
    match result {
        Ok(Outcome(Next::Done)) => item.done(),
        Ok(Outcome(Next::Requeue)) => {
            bench.requests.note(item.key(), Raised::Requeue);
            item.retry();
        }
        Ok(Outcome(Next::RequeueAfter(delay))) => {
            bench.requests.note(item.key(), Raised::Requeue);
            item.run_again_after(delay);
        }
        Err(error) if error.is_terminal() => {
            tracing::error!(error = error.report(), "reconcile failed for good");
            drop(item);
        }
        Err(error) => {
            tracing::warn!(
                error = error.report(),
                attempt = item.requeues() + 1,
                "reconcile failed"
            );
            bench.requests.note(item.key(), Raised::Retry);
            item.retry();
        }
    }
}
