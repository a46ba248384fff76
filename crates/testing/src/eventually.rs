//! Waits for something that has no signal: polls it by tokio's clock, which tests pause.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::future::IntoFuture;
use std::panic::Location;
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// How often a condition is polled.
const INTERVAL: Duration = Duration::from_millis(100);
/// The longest that a test waits for anything. With a paused clock this takes no time at all.
const LIMIT: Duration = Duration::from_secs(600);

/// What is found within a time, or nothing. With a paused clock this takes no time at all.
pub async fn within<T>(time: Duration, mut look: impl AsyncFnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + time;
    loop {
        if let Some(found) = look().await {
            return Some(found);
        }
        if Instant::now() > end {
            return None;
        }
        sleep(INTERVAL).await;
    }
}

/// What is found within ten minutes.
///
/// # Panics
/// When nothing is, with what was looked for.
pub async fn until<T>(what: &str, look: impl AsyncFnMut() -> Option<T>) -> T {
    let found = within(LIMIT, look).await;
    found.unwrap_or_else(|| panic!("never: {what}; last seen: {}", last_seen()))
}

/// What [`limit`] tells of at most.
const REMEMBERED: usize = 12;

thread_local! {
    static SEEN: RefCell<VecDeque<String>> = const { RefCell::new(VecDeque::new()) };
}

/// Remembers what a test saw last, for [`limit`] to tell. A [`Wire`](crate::Wire) does so with every call.
pub fn seen(what: impl fmt::Display) {
    SEEN.with_borrow_mut(|seen| {
        if seen.len() == REMEMBERED {
            seen.pop_front();
        }
        seen.push_back(what.to_string());
    });
}

/// Waits for a future, but for ten minutes of tokio's clock at most.
///
/// # Panics
/// When it is not ready by then, with where it was waited for and what was [seen] last.
#[track_caller]
pub fn limit<F: IntoFuture>(future: F) -> impl Future<Output = F::Output> {
    let place = Location::caller();
    // On the heap: a test is one large future.
    let future = Box::pin(future.into_future());
    async move {
        let ready = tokio::time::timeout(LIMIT, future).await;
        ready.unwrap_or_else(|_| {
            panic!(
                "not ready within {LIMIT:?} at {place}; last seen: {}",
                last_seen()
            )
        })
    }
}

fn last_seen() -> String {
    SEEN.with_borrow(|seen| {
        if seen.is_empty() {
            "nothing".to_owned()
        } else {
            seen.iter().cloned().collect::<Vec<_>>().join("; ")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_comes_in_time_is_found_and_what_comes_later_is_not() {
        let start = Instant::now();
        let after = async |seconds| {
            let start = Instant::now();
            let time = Duration::from_secs(seconds);
            within(Duration::from_secs(5), async || {
                (start.elapsed() >= time).then_some(seconds)
            })
            .await
        };
        assert_eq!(after(0).await, Some(0));
        assert_eq!(start.elapsed(), Duration::ZERO, "nobody waits for it");
        assert_eq!(after(4).await, Some(4));
        assert_eq!(after(9).await, None);
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "last seen: first; second")]
    async fn limit_tells_what_was_seen_last() {
        assert_eq!(limit(async { 7 }).await, 7);
        seen("first");
        seen("second");
        limit(std::future::pending::<()>()).await;
    }
}
