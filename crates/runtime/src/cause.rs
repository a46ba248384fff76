//! Causes: why a key is reconciled, kept from the event to the reconcile as the note of its key in the queue.
//!
//! Many events of one key lead to one reconcile, which then has many causes. A bounded number of them is kept. What changed
//! between two states is computed when the event is handled, so that a key that waits holds on to no object: on a standby
//! keys wait for a long time.

use std::fmt;
use std::sync::Arc;

use kubewright_cache::{Event, Key, Object};
use kubewright_workqueue::{Note, Priority};
use serde::Serialize;

use crate::client::OfCluster;

mod fields;

/// Causes of one key that are kept until it runs; more are counted.
const KEPT: usize = 8;

/// Why a key is reconciled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Cause {
    /// What happened to the object.
    #[serde(flatten)]
    pub trigger: Trigger,
    /// The kind of the object that it happened to; empty where there was none.
    #[serde(skip_serializing_if = "str::is_empty", serialize_with = "as_text")]
    pub kind: Arc<str>,
    /// The name of the cluster that the object is of; none for the manager's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
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
    /// The object changed in these fields.
    Updated {
        /// What changed, as `spec.replicas`.
        fields: Vec<String>,
    },
    /// The object is gone.
    Deleted,
    /// Time has passed, nothing changed.
    Resync,
    /// An earlier reconcile failed, and its back-off is over.
    Retry,
    /// An earlier reconcile asked to run again, and the time that it named has come.
    Requeue,
    /// Somebody asked for it.
    Asked,
    /// This replica took the object over from another one.
    TakenOver,
    /// More causes than are kept.
    More {
        /// So many.
        count: u32,
    },
}

/// What happened in one phrase: `Deployment default/web updated (spec.replicas)`, `retry`.
impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(object) = &self.object {
            let cluster = OfCluster(self.cluster.as_deref());
            write!(f, "{} {object}{cluster} ", self.kind)?;
        }
        match &self.trigger {
            Trigger::Initial => f.write_str("found at start"),
            Trigger::Added => f.write_str("added"),
            Trigger::Updated { fields } if fields.is_empty() => f.write_str("updated"),
            Trigger::Updated { fields } => write!(f, "updated ({})", fields.join(", ")),
            Trigger::Deleted => f.write_str("deleted"),
            Trigger::Resync => f.write_str("resync"),
            Trigger::Retry => f.write_str("retry"),
            Trigger::Requeue => f.write_str("requeue"),
            Trigger::Asked => f.write_str("requested"),
            Trigger::TakenOver => f.write_str("taken over"),
            Trigger::More { count } => write!(f, "{count} more"),
        }
    }
}

impl Cause {
    fn plain(trigger: Trigger) -> Self {
        Self {
            trigger,
            kind: Arc::default(),
            cluster: None,
            object: None,
            resource_version: String::new(),
        }
    }
}

/// Shared text as text.
pub(crate) fn as_text<S: serde::Serializer>(text: &Arc<str>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(text)
}

/// A cause on its way through the queue. Cheap to clone: one event can lead to many keys.
#[derive(Debug, Clone)]
pub(crate) enum Raised {
    Of(Arc<Happened>),
    Retry,
    Requeue,
    Asked,
    TakenOver,
}

/// What the objects of a watch are, and where.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub(crate) kind: Arc<str>,
    /// None for the manager's own cluster.
    pub(crate) cluster: Option<Arc<str>>,
}

/// What happened to an object.
#[derive(Debug)]
pub(crate) struct Happened {
    origin: Origin,
    object: Key,
    resource_version: String,
    trigger: Trigger,
}

impl Raised {
    pub(crate) fn by<K>(origin: &Origin, event: &Event<K>) -> Self {
        let trigger = match event {
            Event::Added { initial: true, .. } => Trigger::Initial,
            Event::Added { .. } => Trigger::Added,
            Event::Updated { .. } if event.is_resync() => Trigger::Resync,
            Event::Updated { old, new } => Trigger::Updated {
                fields: fields::changed(old.json(), new.json()),
            },
            _ => Trigger::Deleted,
        };
        Self::happened(origin, event.object(), trigger)
    }

    fn happened(origin: &Origin, object: &Object, trigger: Trigger) -> Self {
        Self::Of(Arc::new(Happened {
            origin: origin.clone(),
            object: object.key().clone(),
            resource_version: object.resource_version().into_owned(),
            trigger,
        }))
    }

    fn to_cause(&self) -> Cause {
        match self {
            Self::Of(happened) => Cause {
                trigger: happened.trigger.clone(),
                kind: happened.origin.kind.clone(),
                cluster: happened.origin.cluster.as_deref().map(str::to_owned),
                object: Some(happened.object.as_str().to_owned()),
                resource_version: happened.resource_version.clone(),
            },
            Self::Retry => Cause::plain(Trigger::Retry),
            Self::Requeue => Cause::plain(Trigger::Requeue),
            Self::Asked => Cause::plain(Trigger::Asked),
            Self::TakenOver => Cause::plain(Trigger::TakenOver),
        }
    }
}

/// How urgent a reconcile because of this event is: what was there before can wait behind changes of the moment.
pub(crate) fn priority_of<K>(event: &Event<K>) -> Priority {
    let can_wait = matches!(event, Event::Added { initial: true, .. }) || event.is_resync();
    if can_wait {
        Priority::LOW
    } else {
        Priority::NORMAL
    }
}

/// Why a key waits for its turn: goes with it through the queue, and is described when somebody asks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reasons {
    /// Most keys have one, which needs no memory of its own.
    first: Option<Raised>,
    others: Option<Box<Others>>,
}

#[derive(Debug, Clone, Default)]
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
            Raised::Of(it) => is_own(&it.origin.kind, &it.object, &it.resource_version),
            _ => false,
        };
        self.more() == 0 && self.first.is_some() && self.iter().all(own)
    }

    /// The causes, in words.
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
    use kube::core::DynamicObject;
    use kubewright_cache::{Cached, Shape, store};

    use super::*;

    /// A state of one object, with the object itself.
    fn state(version: u32, replicas: u32) -> Cached<DynamicObject> {
        let json = format!(
            r#"{{"metadata":{{"name":"a","namespace":"n","resourceVersion":"{version}"}},"spec":{{"replicas":{replicas}}}}}"#
        );
        let object = Object::parse(json.as_bytes(), &Shape::default());
        let (mut writer, reader) = store::new::<DynamicObject>();
        writer.put(object.expect("it is an object"));
        reader.entry(&Key::new("n", "a")).expect("it is there")
    }

    fn updated(old: (u32, u32), new: (u32, u32)) -> Event<DynamicObject> {
        Event::Updated {
            old: state(old.0, old.1),
            new: state(new.0, new.1),
        }
    }

    fn deployment(cluster: Option<&str>) -> Origin {
        Origin {
            kind: "Deployment".into(),
            cluster: cluster.map(Arc::from),
        }
    }

    #[test]
    fn cause_says_what_changed_in_what() {
        let reasons = Reasons::from(Raised::by(&deployment(None), &updated((1, 1), (2, 3))));
        let causes = reasons.to_causes();
        let json = serde_json::to_value(&causes).expect("causes are JSON");
        let expected = serde_json::json!([{
            "trigger": "updated", "fields": ["spec.replicas"],
            "kind": "Deployment", "object": "n/a", "resourceVersion": "2",
        }]);
        assert_eq!(json, expected);
        let text = causes[0].to_string();
        assert_eq!(text, "Deployment n/a updated (spec.replicas)");
        assert_eq!(Raised::Retry.to_cause().to_string(), "retry");
        let far = Raised::by(&deployment(Some("edge")), &updated((1, 1), (2, 3))).to_cause();
        let text = far.to_string();
        assert_eq!(
            text,
            "Deployment n/a of cluster edge updated (spec.replicas)"
        );
        let json = serde_json::to_value(&far).expect("a cause is JSON");
        assert_eq!(json["cluster"], "edge");
    }

    #[test]
    fn key_that_waits_holds_no_object() {
        let (origin, mut reasons) = (deployment(None), Reasons::default());
        let mut states = Vec::new();
        for version in 1..20 {
            let event = updated((version, version), (version + 1, version + 1));
            let Event::Updated { old, new } = &event else {
                unreachable!("it was made above")
            };
            states.extend([old, new].map(|state| Arc::downgrade(state.object())));
            reasons.merge(Raised::by(&origin, &event).into());
        }
        assert!(states.iter().all(|state| state.upgrade().is_none()));
        assert_eq!(reasons.to_causes().len(), KEPT + 1);
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
