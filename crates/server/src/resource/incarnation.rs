//! A definition from one change of its spec or names to the next: what watches and writes of its objects depend on.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::object;
use crate::storage::Record;

/// One way in which a definition is served. It ends when the definition is deleted or served in another way, and with
/// it its watches, as those of a real server whose storage is torn down (`customresource_handler.go: tearDown`).
#[derive(Debug)]
pub(crate) struct Incarnation {
    pub(crate) uid: String,
    /// Tells one spec from another. The generation would not do: it also counts the deletion.
    pub(crate) spec: u64,
    names: Value,
    /// The newest revision of the definition that is served this way.
    revision: AtomicU64,
    /// Whether the server has yet to write the definition's status or to tear it down.
    unfinished: AtomicBool,
    /// Whether the definition is being deleted: nothing new may be created.
    terminating: AtomicBool,
    ended: CancellationToken,
    /// The revision of the change that ended it; set before `ended`.
    ended_at: OnceLock<u64>,
}

impl Incarnation {
    /// The first moment of a definition that is served as it says.
    pub(crate) fn of(definition: &Value) -> Self {
        Self {
            uid: object::uid(definition).to_owned(),
            spec: fingerprint(&definition["spec"]),
            names: definition["status"]["acceptedNames"].clone(),
            revision: AtomicU64::new(0),
            unfinished: AtomicBool::new(false),
            terminating: AtomicBool::new(false),
            ended: CancellationToken::new(),
            ended_at: OnceLock::new(),
        }
    }

    /// The same in another server, where it ends for itself.
    pub(crate) fn copy(&self) -> Self {
        let copy = |flag: &AtomicBool| AtomicBool::new(flag.load(Ordering::Acquire));
        Self {
            uid: self.uid.clone(),
            spec: self.spec,
            names: self.names.clone(),
            revision: AtomicU64::new(self.revision.load(Ordering::Acquire)),
            unfinished: copy(&self.unfinished),
            terminating: copy(&self.terminating),
            ended: CancellationToken::new(),
            ended_at: OnceLock::new(),
        }
    }

    /// Whether a definition is served in this way.
    pub(crate) fn serves(&self, definition: &Value) -> bool {
        self.uid == object::uid(definition)
            && self.names == definition["status"]["acceptedNames"]
            && self.spec == fingerprint(&definition["spec"])
    }

    /// Whether this was made from the stored definition.
    pub(crate) fn is_of(&self, record: &Record) -> bool {
        self.uid == record.uid() && self.revision.load(Ordering::Acquire) == record.revision()
    }

    /// Notes the newest revision of the definition.
    pub(crate) fn seen(&self, revision: u64, unfinished: bool) {
        self.revision.store(revision, Ordering::Release);
        self.unfinished.store(unfinished, Ordering::Release);
    }

    pub(crate) fn is_unfinished(&self) -> bool {
        self.unfinished.load(Ordering::Acquire)
    }

    /// Nothing may be created from now on.
    pub(crate) fn terminate(&self) {
        self.terminating.store(true, Ordering::Release);
    }

    pub(crate) fn is_terminating(&self) -> bool {
        self.terminating.load(Ordering::Acquire)
    }

    /// Ends it with the change at this revision.
    pub(crate) fn end(&self, revision: u64) {
        // The first end counts.
        let _ = self.ended_at.set(revision);
        self.ended.cancel();
    }

    /// The revision of the change that ended it. Later changes of objects are not for those who read this way.
    pub(crate) fn ended_at(&self) -> Option<u64> {
        self.ended_at.get().copied()
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.ended_at().is_some()
    }

    /// Waits for the end.
    pub(crate) async fn ended(&self) {
        self.ended.cancelled().await;
    }
}

fn fingerprint(spec: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    spec.to_string().hash(&mut hasher);
    hasher.finish()
}
