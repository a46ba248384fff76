//! The streams of one connection in turns, so that a connection with a thousand requests gets the processors no more
//! often than one with a few.
//!
//! As tasks of the runtime, a thousand streams that become ready together (the requests of one burst, or a window that
//! was opened for all of them) would stand in the runtime's queue, and whoever comes next behind all of them. Here they
//! stand in a queue of their connection, and at most one task for each processor works it off, a stream at a time.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Wake, Waker};

use hyper::rt::Executor;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::yield_now;

/// Runs the streams of one HTTP/2 connection. Those that are left when the last clone goes, with the connection, end.
#[derive(Clone)]
pub(super) struct Turns(Arc<Owner>);

struct Owner(Arc<SharedQueue>);

/// What the streams of a connection share.
struct SharedQueue {
    runtime: Handle,
    most_runners: usize,
    state: Mutex<QueueState>,
}

#[derive(Default)]
struct QueueState {
    /// Streams that are to be polled, in order.
    ready: VecDeque<Arc<StreamTask>>,
    /// Tasks that work off `ready`. When it is not empty there is at least one.
    runners: usize,
    /// Every stream that was begun and, at some time, those that have ended.
    begun: Vec<Weak<StreamTask>>,
    /// How many streams `begun` may hold before those that have ended are removed.
    many: usize,
}

/// One stream. Its waker is a reference to it, so it lives as long as anybody may wake it.
struct StreamTask {
    connection: Arc<SharedQueue>,
    progress: Mutex<StreamProgress>,
    /// Locked by the one runner that polls it. Gone when it has ended.
    future: Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
}

/// Where a stream stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamProgress {
    /// It waits to be woken.
    Idle,
    /// It is in the queue of its connection.
    Ready,
    Running,
    /// It was woken while it was running, and goes into the queue after that.
    RunningAndWoken,
}

impl Default for Turns {
    /// Turns of a connection in this runtime.
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self(Arc::new(Owner(Arc::new(SharedQueue {
            runtime: Handle::current(),
            most_runners: processors,
            state: Mutex::default(),
        }))))
    }
}

impl<F> Executor<F> for Turns
where
    F: Future + Send + 'static,
{
    fn execute(&self, stream: F) {
        let connection = &self.0.0;
        let stream = Arc::new(StreamTask {
            connection: connection.clone(),
            progress: Mutex::new(StreamProgress::Ready),
            future: Mutex::new(Some(Box::pin(async move { drop(stream.await) }))),
        });
        connection.state.lock().begin(&stream);
        connection.push(stream);
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let begun = std::mem::take(&mut self.0.state.lock().begun);
        for stream in begun.iter().filter_map(Weak::upgrade) {
            // A stream that is running has the connection's last events and ends by itself.
            let future = stream.future.try_lock().and_then(|mut f| f.take());
            drop(future);
        }
    }
}

impl QueueState {
    fn begin(&mut self, stream: &Arc<StreamTask>) {
        if self.begun.len() >= self.many {
            self.begun.retain(|stream| stream.strong_count() > 0);
            self.many = 2 * self.begun.len() + 16;
        }
        self.begun.push(Arc::downgrade(stream));
    }
}

impl SharedQueue {
    /// Puts a stream into the queue, and sees to it that somebody works it off.
    fn push(self: &Arc<Self>, stream: Arc<StreamTask>) {
        let mut state = self.state.lock();
        state.ready.push_back(stream);
        if state.runners < self.most_runners {
            state.runners += 1;
            drop(state);
            self.runtime.spawn(run(self.clone()));
        }
    }

    /// The next stream to be polled. Without one the runner that asks has ended.
    fn next(&self) -> Option<Arc<StreamTask>> {
        let mut state = self.state.lock();
        let next = state.ready.pop_front();
        if next.is_none() {
            state.runners -= 1;
        }
        next
    }
}

/// Polls streams until none is ready; everybody else has a turn after each.
async fn run(connection: Arc<SharedQueue>) {
    let mut next = connection.next();
    while let Some(stream) = next {
        stream.poll();
        next = connection.next();
        if next.is_some() {
            yield_now().await;
        }
    }
}

impl StreamTask {
    fn poll(self: Arc<Self>) {
        *self.progress.lock() = StreamProgress::Running;
        let waker = Waker::from(self.clone());
        let mut future = self.future.lock();
        if let Some(running) = future.as_mut() {
            let mut context = Context::from_waker(&waker);
            // A panic ends the stream, as it would end a task. It has been reported by then.
            let polled = catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(&mut context)));
            if polled.map_or(true, |polled| polled.is_ready()) {
                *future = None;
            }
        }
        drop(future);
        let woken = {
            let mut progress = self.progress.lock();
            let woken = *progress == StreamProgress::RunningAndWoken;
            *progress = if woken {
                StreamProgress::Ready
            } else {
                StreamProgress::Idle
            };
            woken
        };
        if woken {
            self.connection.clone().push(self);
        }
    }
}

impl Wake for StreamTask {
    fn wake(self: Arc<Self>) {
        let idle = {
            let mut progress = self.progress.lock();
            let before = *progress;
            *progress = match before {
                StreamProgress::Idle | StreamProgress::Ready => StreamProgress::Ready,
                StreamProgress::Running | StreamProgress::RunningAndWoken => {
                    StreamProgress::RunningAndWoken
                }
            };
            before == StreamProgress::Idle
        };
        if idle {
            self.connection.clone().push(self);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use tokio::sync::{mpsc, oneshot};

    use super::*;

    /// On one thread, somebody else runs between any few polls of a thousand streams that are always ready.
    #[tokio::test]
    async fn others_run_between_the_streams_of_a_busy_connection() {
        let (turns, polls) = (Turns::default(), Arc::new(AtomicUsize::new(0)));
        for _ in 0..1_000 {
            let polls = polls.clone();
            turns.execute(async move {
                for _ in 0..10 {
                    polls.fetch_add(1, Ordering::Relaxed);
                    yield_now().await;
                }
            });
        }
        let observed = tokio::spawn(async move {
            let mut longest = 0;
            while polls.load(Ordering::Relaxed) < 10_000 {
                let before = polls.load(Ordering::Relaxed);
                yield_now().await;
                longest = longest.max(polls.load(Ordering::Relaxed) - before);
            }
            longest
        });
        let longest = observed.await.expect("it does not fail");
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        assert!(longest <= 4 * processors, "{longest} polls in a row");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn every_stream_ends_whoever_wakes_it() {
        let (turns, (done, mut all)) = (Turns::default(), mpsc::channel(1_000));
        for i in 0..1_000_u64 {
            let done = done.clone();
            turns.execute(async move {
                for _ in 0..20 {
                    let (tell, told) = oneshot::channel();
                    std::thread::yield_now();
                    tokio::spawn(async move { tell.send(i) });
                    assert_eq!(told.await, Ok(i));
                }
                let _ = done.send(i).await;
            });
        }
        drop(done);
        let mut seen = 0;
        let count = async {
            while all.recv().await.is_some() {
                seen += 1;
            }
        };
        let ended = tokio::time::timeout(Duration::from_secs(60), count).await;
        assert!(ended.is_ok() && seen == 1_000, "{seen} streams have ended");
    }

    #[tokio::test]
    async fn a_panic_ends_its_stream_alone_and_the_rest_end_with_the_connection() {
        let turns = Turns::default();
        let (held, gone) = oneshot::channel::<()>();
        turns.execute(async { panic!("on purpose") });
        turns.execute(async move {
            let _held = held;
            std::future::pending::<()>().await;
        });
        let (tell, told) = oneshot::channel();
        turns.execute(async move { tell.send(7) });
        assert_eq!(told.await, Ok(7), "the panic did not stop it");
        drop(turns);
        assert!(gone.await.is_err(), "it ended with the connection");
    }
}
