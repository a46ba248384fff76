//! One of a thing for each of a few threads, so that threads that count and note things do not wait for each other.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// More threads than this share.
const MOST: usize = 8;

/// As many as there are processors, within reason.
static COUNT: LazyLock<usize> = LazyLock::new(|| {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    processors.min(MOST)
});

/// Threads that have asked for a stripe.
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static NUMBER: usize = THREADS.fetch_add(1, Ordering::Relaxed);
}

/// One of a thing for each of a few threads. Which thread has which says nothing: all count.
#[derive(Debug)]
pub(crate) struct Striped<T>(Box<[Alone<T>]>);

/// Alone in what a processor fetches at once, which is two lines of its cache.
#[derive(Debug)]
#[repr(align(128))]
struct Alone<T>(T);

impl<T> Striped<T> {
    pub(crate) fn new(make: impl Fn() -> T) -> Self {
        Self((0..*COUNT).map(|_| Alone(make())).collect())
    }

    /// That of this thread.
    pub(crate) fn mine(&self) -> &T {
        let number = NUMBER.with(|number| *number);
        &self.0[number % self.0.len()].0
    }

    /// Those of all threads.
    pub(crate) fn all(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|alone| &alone.0)
    }
}

impl<T: Default> Default for Striped<T> {
    fn default() -> Self {
        Self::new(T::default)
    }
}
