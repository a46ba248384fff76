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
mod tests {
    use kubewright_testing::limit;
    use std::future::poll_fn;

    use futures::channel::mpsc;
    use futures::future::FutureExt;
    use futures::{SinkExt, StreamExt};

    use super::*;

    /// A connection that sends numbers, each when the one before was taken, as hyper's do.
    fn numbers(count: u32) -> mpsc::Receiver<u32> {
        let (mut sender, receiver) = mpsc::channel(0);
        Connections.execute(Box::pin(async move {
            for number in 0..count {
                let sent = sender.send(number).await;
                assert_eq!(sent, Ok(()), "somebody reads");
            }
        }));
        receiver
    }

    async fn next(receiver: &mut mpsc::Receiver<u32>) -> Option<u32> {
        poll_fn(|cx| read(|| receiver.poll_next_unpin(cx))).await
    }

    #[tokio::test]
    async fn connection_goes_on_while_it_is_read() {
        let mut receiver = numbers(3);
        assert_eq!(limit(next(&mut receiver)).await, Some(0));
        // Nobody else runs in between.
        assert_eq!(next(&mut receiver).now_or_never(), Some(Some(1)));
        assert_eq!(next(&mut receiver).now_or_never(), Some(Some(2)));
        assert_eq!(limit(next(&mut receiver)).await, None);
    }

    #[tokio::test]
    async fn reader_that_does_not_tell_gets_everything_too() {
        let receiver = numbers(5);
        let read: Vec<u32> = receiver.collect().await;
        assert_eq!(read, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn connection_goes_with_its_runtime() {
        let held = Arc::new(());
        let inside = held.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.expect("a runtime");
        runtime.block_on(async move {
            let own = AtomicWaker::new();
            Connections.execute(Box::pin(poll_fn(move |cx| {
                // Holds its own waker, as one that waits for a socket does.
                own.register(cx.waker());
                let _inside = &inside;
                Poll::Pending
            })));
            tokio::task::yield_now().await;
        });
        drop(runtime);
        assert_eq!(Arc::strong_count(&held), 1);
    }

    #[tokio::test]
    async fn reader_that_panics_wakes_what_it_took_from() {
        let mut receiver = numbers(2);
        let panics = AssertUnwindSafe(poll_fn(|cx| {
            read(|| match receiver.poll_next_unpin(cx) {
                Poll::Ready(_) => panic!("on purpose"),
                Poll::Pending => Poll::<()>::Pending,
            })
        }));
        assert!(panics.catch_unwind().await.is_err());
        assert_eq!(limit(receiver.next()).await, Some(1));
    }

    #[tokio::test]
    async fn read_within_a_read_loses_no_wake_up() {
        let mut receiver = numbers(2);
        tokio::task::yield_now().await;
        let first = poll_fn(|cx| {
            read(|| {
                let polled = receiver.poll_next_unpin(cx);
                let inner = read(|| Poll::Ready(()));
                assert!(inner.is_ready());
                polled
            })
        });
        assert_eq!(limit(first).await, Some(0));
        assert_eq!(limit(receiver.next()).await, Some(1));
    }

    #[tokio::test]
    async fn panic_of_a_connection_stays_in_its_own_task() {
        let (mut sender, mut receiver) = mpsc::channel(0);
        Connections.execute(Box::pin(async move {
            assert_eq!(sender.send(0).await, Ok(()), "somebody reads");
            panic!("a defect of the connection");
        }));
        let read = AssertUnwindSafe(limit(next(&mut receiver))).catch_unwind();
        let read = read.await.expect("the reader does not panic");
        assert_eq!(read, Some(0));
        assert_eq!(limit(next(&mut receiver)).await, None, "it is over");
    }
}
