//! Waits of tests, which do not wait for ever.

use std::future::{Future, IntoFuture};
use std::panic::Location;
use std::time::Duration;

/// More than any wait of these tests takes, and no time at all with a paused clock.
const LIMIT: Duration = Duration::from_secs(600);

/// Waits for a future, but not for ever, and says where it was waited for.
#[track_caller]
pub(crate) fn limit<F: IntoFuture>(future: F) -> impl Future<Output = F::Output> {
    let place = Location::caller();
    let future = Box::pin(future.into_future());
    async move {
        let ready = tokio::time::timeout(LIMIT, future).await;
        ready.unwrap_or_else(|_| panic!("not ready within {LIMIT:?} at {place}"))
    }
}
