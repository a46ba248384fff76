//! The informer proper: applies deltas to the store and tells what changed. The only writer of the store.

use std::sync::Arc;

use crate::delta::Delta;
use crate::event::Change;
use crate::object::{Object, unchanged};
use crate::store::{Replaced, Writer};

/// Applies deltas. Whoever holds it sees store and changes in step.
#[derive(Debug)]
pub(crate) struct Hub {
    writer: Writer,
    synced: bool,
}

impl Hub {
    pub(crate) fn new(writer: Writer) -> Self {
        Self {
            writer,
            synced: false,
        }
    }

    /// Whether a first whole state has been applied.
    pub(crate) fn is_synced(&self) -> bool {
        self.synced
    }

    /// Applies one delta and gives each change that it makes, after it is in the store.
    pub(crate) fn apply(&mut self, delta: Delta, mut tell: impl FnMut(Change)) {
        match delta {
            Delta::Apply(object) => self.put(object, &mut tell),
            Delta::Delete(last) => {
                let removed = self.writer.remove(last.key());
                let version = last.resource_version();
                if !version.is_empty() {
                    self.writer.bookmark(&version);
                }
                // An object that nobody was told of is not told as deleted.
                if removed.is_some() {
                    let observed = true;
                    tell(Change::Deleted { last, observed });
                }
            }
            Delta::Bookmark(version) => self.writer.bookmark(&version),
            Delta::Replace {
                objects,
                resource_version,
            } => {
                let replaced = self.writer.replace(objects, &resource_version);
                let initial = !std::mem::replace(&mut self.synced, true);
                replace(replaced, initial, &mut tell);
            }
        }
    }

    fn put(&mut self, object: Arc<Object>, tell: &mut impl FnMut(Change)) {
        match self.writer.put(object.clone()) {
            // A watch that is opened again may repeat what is known.
            Some(old) if unchanged(&old, &object) => {}
            old => updated(old, object, false, tell),
        }
    }
}

/// Deletions first, so that whoever counts never counts too many.
fn replace(replaced: Replaced, initial: bool, tell: &mut impl FnMut(Change)) {
    for last in replaced.removed {
        let observed = false;
        tell(Change::Deleted { last, observed });
    }
    for (old, new) in replaced.put {
        updated(old, new, initial, tell);
    }
}

/// Another object of the same name is a deletion that nobody saw, and an addition.
fn updated(
    old: Option<Arc<Object>>,
    new: Arc<Object>,
    initial: bool,
    tell: &mut impl FnMut(Change),
) {
    match old {
        Some(old) if old.is_same_object(&new) => tell(Change::Updated { old, new }),
        other => {
            if let Some(last) = other {
                let observed = false;
                tell(Change::Deleted { last, observed });
            }
            tell(Change::Added {
                object: new,
                initial,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shape;
    use crate::store;

    fn object(name: &str, uid: u32, version: u32) -> Arc<Object> {
        let json = format!(
            r#"{{"metadata":{{"name":"{name}","uid":"{uid}","resourceVersion":"{version}"}}}}"#
        );
        Object::parse(json.as_bytes(), &Shape::default()).expect("it is an object")
    }

    fn everything(objects: &[Arc<Object>]) -> Delta {
        Delta::Replace {
            objects: objects.to_vec(),
            resource_version: "1".to_owned(),
        }
    }

    fn check(script: Vec<(Delta, &[&str])>) {
        let (writer, _reader) = store::new::<serde_json::Value>();
        let mut hub = Hub::new(writer);
        for (delta, expected) in script {
            let mut told = Vec::new();
            let shown = format!("{delta:?}");
            hub.apply(delta, |change| told.push(show(&change)));
            assert_eq!(told, expected, "{shown}");
        }
    }

    fn show(change: &Change) -> String {
        match change {
            Change::Added {
                object,
                initial: true,
            } => format!("initial {object:?}"),
            Change::Added { object, .. } => format!("added {object:?}"),
            Change::Updated { old, new } => format!("updated {old:?} {new:?}"),
            Change::Deleted {
                last,
                observed: true,
            } => format!("deleted {last:?}"),
            Change::Deleted { last, .. } => format!("missed {last:?}"),
        }
    }

    #[test]
    fn deltas_become_changes() {
        check(vec![
            (
                everything(&[object("a", 1, 1), object("b", 2, 2)]),
                &["initial a@1", "initial b@2"],
            ),
            (Delta::Apply(object("a", 1, 3)), &["updated a@1 a@3"]),
            (Delta::Apply(object("c", 3, 4)), &["added c@4"]),
            (Delta::Delete(object("c", 3, 5)), &["deleted c@5"]),
            (Delta::Delete(object("c", 3, 5)), &[]),
            (Delta::Bookmark("9".to_owned()), &[]),
        ]);
    }

    #[test]
    fn store_knows_how_far_it_is() {
        let (writer, reader) = store::new::<serde_json::Value>();
        let mut hub = Hub::new(writer);
        for (delta, expected) in [
            (everything(&[object("a", 1, 1)]), "1"),
            (Delta::Apply(object("a", 1, 3)), "3"),
            (Delta::Delete(object("a", 1, 4)), "4"),
            (Delta::Bookmark("9".to_owned()), "9"),
        ] {
            hub.apply(delta, |_| {});
            assert_eq!(reader.resource_version(), expected);
        }
    }

    #[test]
    fn relist_tells_deletions_that_nobody_saw_first() {
        check(vec![
            (
                everything(&[object("a", 1, 1), object("b", 2, 2)]),
                &["initial a@1", "initial b@2"],
            ),
            (
                everything(&[object("c", 3, 5), object("b", 2, 4)]),
                &["missed a@1", "added c@5", "updated b@2 b@4"],
            ),
        ]);
    }

    #[test]
    fn state_that_is_known_is_not_told_again() {
        check(vec![
            (everything(&[object("a", 1, 1)]), &["initial a@1"]),
            (Delta::Apply(object("a", 1, 1)), &[]),
            (everything(&[object("a", 1, 1)]), &[]),
        ]);
    }

    #[test]
    fn another_object_of_the_same_name_is_a_deletion_and_an_addition() {
        check(vec![
            (everything(&[object("a", 1, 1)]), &["initial a@1"]),
            (
                Delta::Apply(object("a", 2, 3)),
                &["missed a@1", "added a@3"],
            ),
            (
                everything(&[object("a", 3, 7)]),
                &["missed a@3", "added a@7"],
            ),
        ]);
    }
}
