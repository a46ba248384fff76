//! The objects of all kinds at one moment: now, from the feeds, or at a revision of the past.

use crate::feed::Phase;
use crate::feeds::Feeds;
use crate::kinds::Kind;
use crate::rows::Rows;

/// One kind at the moment that is looked at.
pub(crate) struct Collection<'a> {
    pub(crate) kind: &'a Kind,
    pub(crate) rows: &'a Rows,
    pub(crate) phase: Phase,
}

/// Where objects are looked up.
pub(crate) trait World {
    /// Looks at each kind that is known, in the order of their ids.
    fn each(&self, look: &mut dyn FnMut(Collection<'_>));
}

impl World for Feeds {
    fn each(&self, look: &mut dyn FnMut(Collection<'_>)) {
        for feed in self.running() {
            let phase = feed.phase();
            feed.with(|rows| {
                look(Collection {
                    kind: &feed.kind,
                    rows,
                    phase,
                });
            });
        }
    }
}
