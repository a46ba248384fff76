//! What has changed since the console looks: revisions, times and objects, for the slider over the past.

use std::collections::VecDeque;

use jiff::Timestamp;
use serde::Serialize;

/// Changes that are remembered.
const KEPT: usize = 20_000;

/// One change of one object.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Moment {
    /// The revision of the change; for a deletion the one that the server reported with it.
    pub(crate) revision: u64,
    /// Milliseconds since 1970.
    pub(crate) at: i64,
    pub(crate) kind: String,
    pub(crate) key: String,
    pub(crate) change: Change,
}

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Change {
    Added,
    Changed,
    Deleted,
}

/// The last changes in the order in which they were seen.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    moments: VecDeque<Moment>,
}

impl Timeline {
    /// Notes a change. One whose version is not a number has no place in time and is left out.
    pub(crate) fn note(&mut self, kind: &str, key: &str, version: &str, change: Change) {
        let Ok(revision) = version.parse() else {
            return;
        };
        if self.moments.len() == KEPT {
            self.moments.pop_front();
        }
        self.moments.push_back(Moment {
            revision,
            at: Timestamp::now().as_millisecond(),
            kind: kind.to_owned(),
            key: key.to_owned(),
            change,
        });
    }

    /// Changes with a revision after one and up to another, oldest first.
    pub(crate) fn between(&self, after: u64, until: u64) -> Vec<Moment> {
        let within = |moment: &&Moment| moment.revision > after && moment.revision <= until;
        let mut moments: Vec<Moment> = self.moments.iter().filter(within).cloned().collect();
        moments.sort_by_key(|moment| moment.revision);
        moments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_between_two_revisions_are_given_in_order() {
        let mut timeline = Timeline::default();
        for (revision, change) in [
            ("5", Change::Changed),
            ("3", Change::Added),
            ("x", Change::Added),
            ("9", Change::Deleted),
        ] {
            timeline.note("v1/pods", "a/b", revision, change);
        }
        let revisions = |after, until| -> Vec<u64> {
            timeline
                .between(after, until)
                .iter()
                .map(|moment| moment.revision)
                .collect()
        };
        assert_eq!(revisions(0, u64::MAX), [3, 5, 9]);
        assert_eq!(revisions(3, 5), [5]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut timeline = Timeline::default();
        for revision in 0..KEPT + 10 {
            timeline.note("v1/pods", "a/b", &revision.to_string(), Change::Changed);
        }
        assert_eq!(timeline.between(0, u64::MAX).len(), KEPT);
    }
}
