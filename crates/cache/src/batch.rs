//! Deltas made ready to be applied, several at a time.
//!
//! An informer works in two steps. Deltas are prepared first, with nothing locked, because index functions and the
//! reporter are the user's; then they are applied, which takes no longer than our own code does.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::delta::{Delta, Receiver};
use crate::index::Indexers;
use crate::object::Object;
use crate::store::{Entries, Plan, Shared};

/// Deltas that are applied before handlers are added or removed.
const BATCH: usize = 256;

/// A delta that is ready to be applied.
#[derive(Debug)]
pub(crate) enum Prepared {
    Replace {
        plan: Plan,
        resource_version: String,
    },
    Apply(Arc<Object>, Entries),
    Delete(Arc<Object>),
    Bookmark(String),
}

impl Prepared {
    /// Makes a delta ready. A replacement is worked out against the present state: whatever comes before it must have
    /// been applied.
    pub(crate) fn new(delta: Delta, store: &Shared, indexers: &Arc<Indexers>) -> Self {
        match delta {
            Delta::Replace {
                objects,
                resource_version,
            } => Self::Replace {
                plan: store.plan(indexers, objects),
                resource_version,
            },
            Delta::Apply(object) => {
                let entries = store.entries(indexers, &object);
                Self::Apply(object, entries)
            }
            Delta::Delete(last) => Self::Delete(last),
            Delta::Bookmark(version) => Self::Bookmark(version),
        }
    }

    /// Makes it ready again, for the indexes that there are now.
    pub(crate) fn renew(self, store: &Shared) -> Self {
        match self {
            Self::Replace {
                plan,
                resource_version,
            } => Self::Replace {
                plan: store.renew(plan),
                resource_version,
            },
            Self::Apply(object, _) => {
                let entries = store.entries(&store.indexers(), &object);
                Self::Apply(object, entries)
            }
            other => other,
        }
    }
}

/// Makes a delta and those that wait behind it ready to be applied together.
///
/// A replacement comes alone, because it is worked out against what is there; one that was taken from the queue too
/// early is given back, to be the first of the next batch.
pub(crate) fn take(
    first: Delta,
    waiting: &mut Receiver,
    store: &Shared,
) -> (VecDeque<Prepared>, Option<Delta>) {
    let indexers = store.indexers();
    let is_whole = |delta: &Delta| matches!(delta, Delta::Replace { .. });
    let alone = is_whole(&first);
    let mut batch = VecDeque::from([Prepared::new(first, store, &indexers)]);
    while !alone && batch.len() < BATCH {
        match waiting.try_pop() {
            Some(delta) if is_whole(&delta) => return (batch, Some(delta)),
            Some(delta) => batch.push_back(Prepared::new(delta, store, &indexers)),
            None => break,
        }
    }
    (batch, None)
}

#[cfg(test)]
mod tests {
    use kubewright_testing::limit;
    use serde_json::Value;

    use super::*;
    use crate::{Shape, delta, store};

    fn applied(name: &str) -> Delta {
        let json = format!(r#"{{"metadata":{{"name":"{name}"}}}}"#);
        let object = Object::parse(json.as_bytes(), &Shape::default());
        Delta::Apply(object.expect("it is an object"))
    }

    fn whole() -> Delta {
        Delta::Replace {
            objects: Vec::new(),
            resource_version: "1".to_owned(),
        }
    }

    /// The sizes of the batches that a queue is taken in.
    async fn check(deltas: Vec<Delta>, expected: &[usize]) {
        let (_writer, reader) = store::new::<Value>();
        let (mut sender, mut receiver) = delta::queue(1000);
        for delta in deltas {
            limit(sender.push(delta)).await.expect("it is open");
        }
        let mut sizes = Vec::new();
        let mut next = receiver.try_pop();
        while let Some(first) = next {
            let (batch, rest) = take(first, &mut receiver, reader.shared());
            sizes.push(batch.len());
            next = rest.or_else(|| receiver.try_pop());
        }
        assert_eq!(sizes, expected);
    }

    #[limited::test]
    async fn batch_ends_at_its_size_and_a_replacement_comes_alone() {
        let many = |count: usize| (0..count).map(|n| applied(&n.to_string()));
        check(many(3).collect(), &[3]).await;
        check(vec![applied("a"), applied("a"), applied("a")], &[3]).await;
        check(many(BATCH).collect(), &[BATCH]).await;
        check(many(2 * BATCH + 1).collect(), &[BATCH, BATCH, 1]).await;
        check(vec![whole(), whole()], &[1, 1]).await;
        let around = many(2).chain([whole()]).chain(many(3));
        check(around.collect(), &[2, 1, 3]).await;
    }
}
