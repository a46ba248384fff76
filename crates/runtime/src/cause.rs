//! Causes: why a key is reconciled, kept from the event to the reconcile as the note of its key in the queue.
//!
//! Many events of one key lead to one reconcile, which then has many causes. A bounded number of them is kept, and what
//! changed between two states is only computed when somebody takes them.

use std::sync::Arc;

use kubewright_cache::{Event, Key, Object};
use kubewright_workqueue::Note;
use serde::Serialize;

mod fields;

/// Causes of one key that are kept until it runs; more are counted.
const KEPT: usize = 8;

/// Why a key is reconciled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Cause {
    /// What happened.
    #[serde(flatten)]
    pub trigger: Trigger,
    /// The kind of the object that it happened to; empty where there was none.
    #[serde(skip_serializing_if = "str::is_empty", serialize_with = "as_text")]
    pub kind: Arc<str>,
    /// Namespace and name of that object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// The version of that object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
}

/// What makes a key run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "trigger")]
#[non_exhaustive]
pub enum Trigger {
    /// The object was there when the controller began.
    Initial,
    /// The object is new.
    Added,
    /// The object changed.
    Updated {
        /// What changed, as `spec.replicas`.
        fields: Vec<String>,
    },
    /// The object is gone.
    Deleted,
    /// Time has passed, nothing changed.
    Resync,
    /// The reconcile before failed.
    Retry,
    /// The reconcile before asked to run again.
    Requeue,
    /// Somebody asked for it.
    Asked,
    /// More causes than are kept.
    More {
        /// So many.
        count: u32,
    },
}

impl Cause {
    fn plain(trigger: Trigger) -> Self {
        Self {
            trigger,
            kind: Arc::default(),
            object: None,
            resource_version: String::new(),
        }
    }
}

/// Shared text as text.
pub(crate) fn as_text<S: serde::Serializer>(text: &Arc<str>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(text)
}

/// A cause before anybody wants to know what exactly changed.
#[derive(Debug, Clone)]
pub(crate) enum Raised {
    Of {
        kind: Arc<str>,
        what: What,
        object: Arc<Object>,
    },
    Retry,
    Requeue,
    Asked,
}

#[derive(Debug, Clone)]
pub(crate) enum What {
    Initial,
    Added,
    Updated { old: Arc<Object> },
    Deleted,
    Resync,
}

impl Raised {
    pub(crate) fn by<K>(kind: &Arc<str>, event: &Event<K>) -> Self {
        let what = match event {
            Event::Added { initial: true, .. } => What::Initial,
            Event::Added { .. } => What::Added,
            Event::Updated { .. } if event.is_resync() => What::Resync,
            Event::Updated { old, .. } => What::Updated {
                old: old.object().clone(),
            },
            _ => What::Deleted,
        };
        Self::Of {
            kind: kind.clone(),
            what,
            object: event.object().object().clone(),
        }
    }

    /// Whether it can wait behind changes of the moment.
    pub(crate) fn is_patient(&self) -> bool {
        let Self::Of { what, .. } = self else {
            return false;
        };
        matches!(what, What::Initial | What::Resync)
    }

    fn to_cause(&self) -> Cause {
        let (kind, what, object) = match self {
            Self::Of { kind, what, object } => (kind.clone(), what, object),
            Self::Retry => return Cause::plain(Trigger::Retry),
            Self::Requeue => return Cause::plain(Trigger::Requeue),
            Self::Asked => return Cause::plain(Trigger::Asked),
        };
        let trigger = match what {
            What::Initial => Trigger::Initial,
            What::Added => Trigger::Added,
            What::Updated { old } => Trigger::Updated {
                fields: fields::changed(old.json(), object.json()),
            },
            What::Deleted => Trigger::Deleted,
            What::Resync => Trigger::Resync,
        };
        Cause {
            trigger,
            kind,
            object: Some(object.key().as_str().to_owned()),
            resource_version: object.resource_version().into_owned(),
        }
    }
}

/// Why a key waits for its turn: goes with it through the queue, and is described when somebody asks.
#[derive(Debug, Default)]
pub(crate) struct Reasons {
    /// Most keys have one, which needs no memory of its own.
    first: Option<Raised>,
    others: Option<Box<Others>>,
}

#[derive(Debug, Default)]
struct Others {
    kept: Vec<Raised>,
    more: u32,
}

impl From<Raised> for Reasons {
    fn from(raised: Raised) -> Self {
        Self {
            first: Some(raised),
            others: None,
        }
    }
}

impl Note for Reasons {
    fn merge(&mut self, later: Self) {
        let Some(first) = later.first else {
            return;
        };
        if self.first.is_none() {
            self.first = Some(first);
            self.others = later.others;
            return;
        }
        let others = self.others.get_or_insert_default();
        let later = later.others.map(|others| *others).unwrap_or_default();
        others.more += later.more;
        for raised in std::iter::once(first).chain(later.kept) {
            if others.kept.len() + 1 < KEPT {
                others.kept.push(raised);
            } else {
                others.more += 1;
            }
        }
    }
}

impl Reasons {
    /// Whether every cause is a change to one of these states.
    pub(crate) fn are_all_of(&self, is_own: impl Fn(&str, &Key, &str) -> bool) -> bool {
        let own = |raised: &Raised| match raised {
            Raised::Of { kind, object, .. } => {
                is_own(kind, object.key(), &object.resource_version())
            }
            _ => false,
        };
        self.more() == 0 && self.first.is_some() && self.iter().all(own)
    }

    /// Whether they hold on to an object, which may be large.
    pub(crate) fn hold_objects(&self) -> bool {
        self.iter()
            .any(|raised| matches!(raised, Raised::Of { .. }))
    }

    /// The causes, in words. This is where changes are looked for, so it is not for the way to a reconcile.
    pub(crate) fn to_causes(&self) -> Vec<Cause> {
        let more = self.more();
        let mut causes: Vec<Cause> = self.iter().map(Raised::to_cause).collect();
        if more > 0 {
            causes.push(Cause::plain(Trigger::More { count: more }));
        }
        causes
    }

    fn iter(&self) -> impl Iterator<Item = &Raised> {
        let others = self.others.iter().flat_map(|others| &others.kept);
        self.first.iter().chain(others)
    }

    fn more(&self) -> u32 {
        self.others.as_ref().map_or(0, |others| others.more)
    }
}

#[cfg(test)]
mod tests {
    use kubewright_cache::Shape;

    use super::*;

    fn object(version: u32, replicas: u32) -> Arc<Object> {
        let json = format!(
            r#"{{"metadata":{{"name":"a","namespace":"n","resourceVersion":"{version}"}},"spec":{{"replicas":{replicas}}}}}"#
        );
        Object::parse(json.as_bytes(), &Shape::default()).expect("it is an object")
    }

    fn updated(kind: &Arc<str>, from: (u32, u32), to: (u32, u32)) -> Raised {
        Raised::Of {
            kind: kind.clone(),
            what: What::Updated {
                old: object(from.0, from.1),
            },
            object: object(to.0, to.1),
        }
    }

    #[test]
    fn cause_says_what_changed_in_what() {
        let kind = Arc::from("Deployment");
        let reasons = Reasons::from(updated(&kind, (1, 1), (2, 3)));
        let causes = reasons.to_causes();
        let json = serde_json::to_value(&causes).expect("causes are JSON");
        let expected = serde_json::json!([{
            "trigger": "updated", "fields": ["spec.replicas"],
            "kind": "Deployment", "object": "n/a", "resourceVersion": "2",
        }]);
        assert_eq!(json, expected);
    }

    #[test]
    fn causes_are_bounded_and_the_rest_is_counted() {
        let many = |count: usize| {
            let mut reasons = Reasons::default();
            (0..count).for_each(|_| reasons.merge(Raised::Asked.into()));
            reasons
        };
        let mut reasons = many(3);
        reasons.merge(many(KEPT + 2));
        let causes = reasons.to_causes();
        assert_eq!(causes.len(), KEPT + 1);
        assert_eq!(causes[KEPT].trigger, Trigger::More { count: 5 });
    }
}
