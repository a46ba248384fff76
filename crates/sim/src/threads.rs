//! Where runs happen: each on a runtime of its own, several at once.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

/// Runs are deep futures in a build without optimisation.
const STACK: usize = 16 << 20;

/// Does the same with each of these on so many threads, and gives what came of each, in their order.
///
/// # Panics
/// When one of them does, and when the system gives no thread.
pub(crate) fn spread<T: Sync, R: Send>(
    jobs: usize,
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let done: Vec<Mutex<Option<R>>> = items.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let take = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { return };
            let result = work(item);
            *done[at].lock() = Some(result);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs.min(items.len()))
            .map(|_| {
                std::thread::Builder::new()
                    .stack_size(STACK)
                    .spawn_scoped(scope, take)
                    .expect("the system gives a thread")
            })
            .collect();
        for worker in workers {
            if let Err(panic) = worker.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
    let done = done.into_iter().map(Mutex::into_inner);
    done.map(|result| result.expect("every item was taken"))
        .collect()
}

/// Runs a future on a runtime of its own, whose clock stands still while anything can go on.
pub(crate) fn in_runtime<F: Future>(make: impl FnOnce() -> F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("the system gives a runtime");
    runtime.block_on(async { Box::pin(make()).await })
}

/// Runs a future on a runtime of its own with the machine's clock.
pub(crate) fn in_real_time<F: Future>(make: impl FnOnce() -> F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("the system gives a runtime");
    runtime.block_on(async { Box::pin(make()).await })
}
