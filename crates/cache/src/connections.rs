//! Connections that go on in the task of whoever reads from them.
//!
//! hyper runs each connection as a task of its own. Whenever a piece of an answer is taken, that task is woken to get the
//! next one, and so it is the task that the thread runs next. Whatever the reader wakes after it, the handler of an
//! event say, is then one task too many for a thread: tokio wakes another one, and on an idle machine that call takes longer
//! than everything else between the event and its handler. [`Connections`] is an executor that knows who reads: a
//! connection that is woken by a read is polled by the reader, at once, and nobody has to be woken for it.

use std::any::Any;
use std::cell::Cell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use futures::task::AtomicWaker;
use hyper::rt::Executor;
use parking_lot::Mutex;

/// Runs the connections of a client on tokio, so that changes which its informers see reach handlers sooner.
///
/// Nothing depends on it: over any other client informers work the same.
///
/// ```no_run
/// use kube::client::ClientBuilder;
/// use kubewright_cache::Connections;
///
/// # fn example(config: kube::Config) -> Result<(), kube::Error> {
/// let client = ClientBuilder::try_from((config, Connections))?.build();
/// # drop(client);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Connections;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Executor<Task> for Connections {
    fn execute(&self, task: Task) {
        tokio::spawn(Run(Arc::new(Connection {
            task: Mutex::new(Some(task)),
            panic: Mutex::new(None),
            runner: AtomicWaker::new(),
        })));
    }
}

/// A connection, which its own task and its reader may poll.
struct Connection {
    /// Nothing when it is over.
    task: Mutex<Option<Task>>,
    /// What it panicked with while its reader polled it, until its own task panics with it.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    /// Wakes its own task.
    runner: AtomicWaker,
}

/// The task of a connection.
struct Run(Arc<Connection>);

impl Future for Run {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.runner.register(cx.waker());
        if let Some(panic) = self.0.panic.lock().take() {
            resume_unwind(panic);
        }
        let mut task = self.0.task.lock();
        self.0.poll(&mut task)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // Its wakers hold the connection, and it holds them.
        let task = self.0.task.lock().take();
        drop(task);
    }
}

impl Connection {
    fn poll(self: &Arc<Self>, task: &mut Option<Task>) -> Poll<()> {
        let waker = Waker::from(self.clone());
        let over = match task {
            Some(task) => task.as_mut().poll(&mut Context::from_waker(&waker)),
            None => return Poll::Ready(()),
        };
        if over.is_ready() {
            *task = None;
        }
        over
    }

    /// Goes on with it here, unless its own task is at it. A panic of the connection is for its own task: the reader sees
    /// a connection that is over.
    fn advance(self: &Arc<Self>) {
        let polled = self.task.try_lock().map(|mut task| {
            let polled = catch_unwind(AssertUnwindSafe(|| self.poll(&mut task)));
            polled.unwrap_or_else(|panic| {
                *self.panic.lock() = Some(panic);
                *task = None;
                Poll::Ready(())
            })
        });
        if polled != Some(Poll::Pending) {
            self.runner.wake();
        }
    }
}

impl Wake for Connection {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // A thread that ends reads no more.
        let noted = READING.try_with(|reading| {
            let (now, noted) = match reading.take() {
                Reading::Yes => (Reading::Woke(self.clone()), true),
                Reading::Woke(other) => {
                    let noted = Arc::ptr_eq(&other, self);
                    (Reading::Woke(other), noted)
                }
                Reading::No => (Reading::No, false),
            };
            reading.set(now);
            noted
        });
        if !noted.unwrap_or(false) {
            self.runner.wake();
        }
    }
}

/// Whether a thread is reading from a connection, and which one that has woken.
#[derive(Default)]
enum Reading {
    #[default]
    No,
    Yes,
    Woke(Arc<Connection>),
}

thread_local! {
    static READING: Cell<Reading> = const { Cell::new(Reading::No) };
}

/// While it is there, a connection that is woken is noted and not woken.
struct Noting {
    /// What a read around this one has noted.
    before: Reading,
}

impl Noting {
    fn begin() -> Self {
        let before = READING.replace(Reading::Yes);
        Self { before }
    }

    fn woken(self) -> Option<Arc<Connection>> {
        match READING.take() {
            Reading::Woke(connection) => Some(connection),
            _ => None,
        }
    }
}

impl Drop for Noting {
    fn drop(&mut self) {
        // Something is left only after a panic.
        if let Reading::Woke(connection) = READING.replace(std::mem::take(&mut self.before)) {
            connection.runner.wake();
        }
    }
}

/// Polls what reads an answer, and goes on with the connection that this wakes.
pub(crate) fn read<T>(poll: impl FnOnce() -> Poll<T>) -> Poll<T> {
    let noting = Noting::begin();
    let polled = poll();
    if let Some(connection) = noting.woken() {
        match polled {
            Poll::Ready(_) => connection.advance(),
            // What it reads now would wake whoever waits for it here.
            Poll::Pending => connection.runner.wake(),
        }
    }
    polled
}

#[cfg(test)]
mod tests;
