//! Creates many objects without making the same mistake many times.

use std::future::Future;

use futures::future::join_all;

/// How many of the wanted calls succeeded, and why the rest was not tried.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Batch<E> {
    /// Calls that succeeded.
    pub(crate) done: usize,
    /// The first failure, after which no further batch was started.
    pub(crate) failure: Option<E>,
}

/// Calls `step` for `0..count` in batches of 1, 2, 4, … at once. A batch with a failure is the last: where a quota
/// is used up, one call in the first batch learns so, not five hundred.
pub(crate) async fn slow_start<E, F>(count: usize, step: impl Fn(usize) -> F) -> Batch<E>
where
    F: Future<Output = Result<(), E>>,
{
    let mut done = 0;
    let mut next = 0;
    let mut size = 1;
    while next < count {
        let end = count.min(next + size);
        let mut failure = None;
        for result in join_all((next..end).map(&step)).await {
            match result {
                Ok(()) => done += 1,
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        if failure.is_some() {
            return Batch { done, failure };
        }
        next = end;
        size *= 2;
    }
    Batch {
        done,
        failure: None,
    }
}
