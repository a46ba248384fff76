//! Waiting for something that has no signal: looked at again and again, by tokio's clock, which tests pause.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// How often is looked.
const INTERVAL: Duration = Duration::from_millis(100);

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
    let found = within(Duration::from_secs(600), look).await;
    found.unwrap_or_else(|| panic!("never: {what}"))
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
}
