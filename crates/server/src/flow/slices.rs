//! Long work in short slices, so that short requests are not delayed by long ones.

use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

/// How long work goes on before others have their turn.
const SLICE: Duration = Duration::from_micros(500);
/// How many steps are done before the clock is looked at.
const STEPS: usize = 64;

/// Lets as many requests do long work at once as there are processors, in turns.
///
/// Yielding alone would not do: a thousand lists that yield are a thousand tasks that are ready to run, and whoever
/// comes next stands behind all of them. Here at most one for each processor is ready.
#[derive(Debug)]
pub(crate) struct Slices(Semaphore);

impl Default for Slices {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self(Semaphore::new(processors))
    }
}

impl Slices {
    /// The items of an iterator that a predicate wants, in slices.
    pub(crate) async fn filter<T>(
        &self,
        mut items: impl Iterator<Item = T>,
        mut wanted: impl FnMut(&T) -> bool,
    ) -> Vec<T> {
        let mut found = Vec::new();
        self.run(|| match items.next() {
            Some(item) => {
                if wanted(&item) {
                    found.push(item);
                }
                Progress::More
            }
            None => Progress::Done,
        })
        .await;
        found
    }

    /// What a function makes of each item of an iterator, in slices; the first error ends it.
    pub(crate) async fn try_map<T, U, E>(
        &self,
        mut items: impl ExactSizeIterator<Item = T>,
        mut map: impl FnMut(T) -> Result<U, E>,
    ) -> Result<Vec<U>, E> {
        let mut mapped = Vec::with_capacity(items.len());
        let mut failed = None;
        self.run(|| match items.next().map(&mut map) {
            Some(Ok(item)) => {
                mapped.push(item);
                Progress::More
            }
            Some(Err(error)) => {
                failed = Some(error);
                Progress::Done
            }
            None => Progress::Done,
        })
        .await;
        failed.map_or(Ok(mapped), Err)
    }

    /// Does work that cannot be cut into slices on a thread of its own.
    pub(crate) async fn offload<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        let _turn = self.0.acquire().await;
        match tokio::task::spawn_blocking(work).await {
            Ok(output) => output,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime is shutting down: nobody waits for this any more.
                Err(_) => std::future::pending().await,
            },
        }
    }

    /// Calls `step` until it is done, in slices.
    pub(crate) async fn run(&self, mut step: impl FnMut() -> Progress) {
        // Most work is shorter than a few steps and need not ask for its turn.
        for _ in 0..STEPS {
            if step() == Progress::Done {
                return;
            }
        }
        loop {
            let _turn = self.0.acquire().await;
            let end = Instant::now() + SLICE;
            while Instant::now() < end {
                for _ in 0..STEPS {
                    if step() == Progress::Done {
                        return;
                    }
                }
            }
            // Others who are ready run first, and then those who wait for a turn longer than this one.
            tokio::task::yield_now().await;
        }
    }
}

/// Whether there is more to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    More,
    Done,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn everything_is_done_once_and_in_order() {
        let slices = Slices::default();
        let even = slices.filter(0..10_000, |n| n % 2 == 0).await;
        assert_eq!(even, (0..5_000).map(|n| n * 2).collect::<Vec<_>>());
        let doubled = slices.try_map(0..1_000, |n| Ok::<_, ()>(n * 2)).await;
        assert_eq!(doubled, Ok((0..1_000).map(|n| n * 2).collect()));
        let failed = slices.try_map(0..1_000, |n| if n == 700 { Err(n) } else { Ok(()) });
        assert_eq!(failed.await, Err(700));
        assert_eq!(slices.offload(|| 7).await, 7);
    }

    /// On one thread, a short task passes long ones: without slices it would run after all of them.
    #[tokio::test]
    async fn short_tasks_pass_long_work() {
        let slices = Arc::new(Slices::default());
        let finished = Arc::new(AtomicUsize::new(0));
        let mut long = tokio::task::JoinSet::new();
        for _ in 0..50 {
            let (slices, finished) = (slices.clone(), finished.clone());
            long.spawn(async move {
                let mut turns = 0;
                slices
                    .run(|| {
                        (0..1_000).for_each(|n| assert!(std::hint::black_box(n) < 1_000));
                        turns += 1;
                        if turns == 2_000 {
                            Progress::Done
                        } else {
                            Progress::More
                        }
                    })
                    .await;
                finished.fetch_add(1, Ordering::Relaxed);
            });
        }
        for _ in 0..5 {
            tokio::task::yield_now().await;
        }
        assert_eq!(
            finished.load(Ordering::Relaxed),
            0,
            "the test was not kept waiting"
        );
    }
}
