//! Connections and their readers: on one thread, then on several.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use futures::channel::mpsc;
use futures::future::{FutureExt, join_all};
use futures::{SinkExt, StreamExt};
use kubewright_testing::limit;
use tokio::task::JoinSet;

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

#[limited::test]
async fn connection_goes_on_while_it_is_read() {
    let mut receiver = numbers(3);
    assert_eq!(limit(next(&mut receiver)).await, Some(0));
    // Nobody else runs in between.
    assert_eq!(next(&mut receiver).now_or_never(), Some(Some(1)));
    assert_eq!(next(&mut receiver).now_or_never(), Some(Some(2)));
    assert_eq!(limit(next(&mut receiver)).await, None);
}

#[limited::test]
async fn reader_that_does_not_tell_gets_everything_too() {
    let receiver = numbers(5);
    let read: Vec<u32> = limit(receiver.collect()).await;
    assert_eq!(read, [0, 1, 2, 3, 4]);
}

#[limited::test]
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

#[limited::test]
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

#[limited::test]
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

#[limited::test]
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

#[limited::test(start_paused = true)]
async fn read_that_finds_nothing_wakes_the_connection_that_it_waits_for() {
    let (own, reader) = (Arc::new(AtomicWaker::new()), Arc::new(AtomicWaker::new()));
    let (asked, answered) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let (waker, listener) = (own.clone(), reader.clone());
    let (question, answer) = (asked.clone(), answered.clone());
    Connections.execute(Box::pin(poll_fn(move |cx| {
        waker.register(cx.waker());
        if !question.load(Ordering::SeqCst) {
            return Poll::Pending;
        }
        answer.store(true, Ordering::SeqCst);
        listener.wake();
        Poll::Ready(())
    })));
    tokio::task::yield_now().await;
    // Asks for a piece and waits for it, as readers of HTTP/2 do.
    let piece = poll_fn(|cx| {
        read(|| {
            reader.register(cx.waker());
            if answered.load(Ordering::SeqCst) {
                return Poll::Ready(());
            }
            asked.store(true, Ordering::SeqCst);
            own.wake();
            Poll::Pending
        })
    });
    limit(piece).await;
}

#[limited::test(flavor = "multi_thread", worker_threads = 2)]
async fn read_during_a_poll_on_another_thread_has_the_connection_polled_again() {
    let (entered, poll_began) = std::sync::mpsc::channel();
    let (read_over, go_on) = std::sync::mpsc::channel::<()>();
    let (answer, answered) = futures::channel::oneshot::channel();
    let own = Arc::new(AtomicWaker::new());
    let asked = Arc::new(AtomicBool::new(false));
    let (waker, question) = (own.clone(), asked.clone());
    let mut answer = Some(answer);
    Connections.execute(Box::pin(poll_fn(move |cx| {
        waker.register(cx.waker());
        if question.load(Ordering::SeqCst) {
            let sent = answer.take().map(|answer| answer.send(()));
            assert_eq!(sent, Some(Ok(())), "the test waits for it");
            return Poll::Ready(());
        }
        // It has looked, and is still being polled while somebody reads.
        entered.send(()).expect("the reader waits for it");
        go_on.recv_timeout(PATIENCE).expect("the read is over");
        Poll::Pending
    })));
    let reading = tokio::task::spawn_blocking(move || {
        let began = poll_began.recv_timeout(PATIENCE);
        began.expect("the connection is polled");
        let polled = read(|| {
            asked.store(true, Ordering::SeqCst);
            own.wake();
            Poll::Ready(())
        });
        assert!(polled.is_ready());
        read_over.send(()).expect("the connection waits for it");
    });
    let answered = tokio::time::timeout(PATIENCE, answered).await;
    let answered = answered.expect("the connection is polled again");
    answered.expect("it answers");
    limit(reading).await.expect("the reader does not panic");
}

/// So many readers, on half as many threads.
const READERS: usize = 8;
/// So many numbers each of them gets.
const NUMBERS: u32 = 5_000;
/// How long readers may take by the clock of the machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many numbers each reader has read.
type Progress = Arc<[AtomicU32; READERS]>;

/// Sends numbers until all are sent or nobody reads any more.
async fn send(mut sender: mpsc::Sender<u32>, count: u32) {
    for number in 0..count {
        if sender.send(number).await.is_err() {
            return;
        }
    }
}

/// One connection that carries an answer for each of many readers, as those of HTTP/2 do.
fn one_for_all() -> Vec<mpsc::Receiver<u32>> {
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..READERS).map(|_| mpsc::channel(0)).unzip();
    let answers = senders.into_iter().map(|sender| send(sender, NUMBERS));
    let answers = join_all(answers);
    Connections.execute(Box::pin(async move {
        answers.await;
    }));
    receivers
}

/// A connection for each reader, as with HTTP/1.1. The first one fails half way.
fn one_for_each() -> Vec<mpsc::Receiver<u32>> {
    let connect = |at: usize| {
        let (sender, receiver) = mpsc::channel(0);
        Connections.execute(Box::pin(async move {
            if at == 0 {
                send(sender, NUMBERS / 2).await;
                panic!("a defect of the connection");
            }
            send(sender, NUMBERS).await;
        }));
        receiver
    };
    (0..READERS).map(connect).collect()
}

/// Reads as many numbers as there are, or as this reader wants, and checks that each follows the one before.
async fn follow(mut receiver: mpsc::Receiver<u32>, at: usize, most: u32, progress: Progress) {
    let mut expected = 0;
    while expected < most {
        let Some(number) = next(&mut receiver).await else {
            return;
        };
        assert_eq!(number, expected, "reader {at}");
        expected += 1;
        progress[at].store(expected, Ordering::Relaxed);
        // A handler that lets others run, so that readers change their threads.
        if number % 64 == at as u32 {
            tokio::task::yield_now().await;
        }
    }
}

/// How much each of these readers gets; the second one leaves early.
async fn read_by_all(receivers: Vec<mpsc::Receiver<u32>>) -> Vec<u32> {
    let progress = Progress::default();
    let mut readers = JoinSet::new();
    for (at, receiver) in receivers.into_iter().enumerate() {
        let most = if at == 1 { 100 } else { NUMBERS };
        readers.spawn(follow(receiver, at, most, progress.clone()));
    }
    let ended = tokio::time::timeout(PATIENCE, async {
        while let Some(ended) = readers.join_next().await {
            ended.expect("no reader panics");
        }
    });
    assert!(ended.await.is_ok(), "a reader hangs: {progress:?}");
    progress
        .iter()
        .map(|it| it.load(Ordering::Relaxed))
        .collect()
}

#[limited::test(flavor = "multi_thread", worker_threads = 4)]
async fn connection_that_many_threads_read_loses_nothing() {
    for _ in 0..5 {
        let mut expected = [NUMBERS; READERS];
        expected[1] = 100;
        assert_eq!(read_by_all(one_for_all()).await, expected);
    }
}

#[limited::test(flavor = "multi_thread", worker_threads = 4)]
async fn connection_that_fails_on_one_thread_leaves_the_others_alone() {
    for _ in 0..5 {
        let mut expected = [NUMBERS; READERS];
        (expected[0], expected[1]) = (NUMBERS / 2, 100);
        assert_eq!(read_by_all(one_for_each()).await, expected);
    }
}
