//! How long internal errors of a server are put up with.

use std::time::Duration;

/// Errors further apart than this have nothing to do with each other.
const RESET: Duration = Duration::from_secs(60);

/// Patience that ends `limit` after the first of a row of errors.
#[derive(Debug)]
pub(super) struct Patience {
    limit: Duration,
    /// The first and the last error of the row.
    row: Option<(Duration, Duration)>,
}

impl Patience {
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, row: None }
    }

    /// Whether an error at `now` is put up with. One that is not ends the row.
    pub(super) fn endures(&mut self, now: Duration) -> bool {
        if self.limit.is_zero() {
            return false;
        }
        let row = self
            .row
            .filter(|(_, last)| now.saturating_sub(*last) < RESET);
        let first = row.map_or(now, |(first, _)| first);
        let endures = now.saturating_sub(first) <= self.limit;
        self.row = endures.then_some((first, now));
        endures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_of_errors_is_endured_up_to_the_limit() {
        let cases: &[(u64, &[(u64, bool)])] = &[
            (0, &[(0, false), (1, false)]),
            (
                10,
                &[(5, true), (10, true), (15, true), (16, false), (17, true)],
            ),
            (10, &[(5, true), (64, false), (70, true)]),
            (10, &[(5, true), (65, true), (75, true), (76, false)]),
        ];
        for (limit, errors) in cases {
            let mut patience = Patience::new(Duration::from_secs(*limit));
            for (now, expected) in *errors {
                let endures = patience.endures(Duration::from_secs(*now));
                assert_eq!(endures, *expected, "limit {limit}, at {now}");
            }
        }
    }
}
