//! What one reconcile read and wrote.

use std::fmt;
use std::sync::Arc;

use kubewright_cache::Key;
use parking_lot::Mutex;

use super::OfCluster;

/// A write that a reconcile made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Write {
    /// What was asked for.
    pub verb: &'static str,
    /// The resource, as `deployments.apps`.
    pub resource: Arc<str>,
    /// The name of the cluster that was written to; none for the manager's own.
    pub cluster: Option<Arc<str>>,
    /// The key of the object that was written.
    pub key: Key,
    /// The version that the server answered with; empty for a deletion.
    pub resource_version: String,
}

/// Reads as `patch deployments.apps default/web`, or `patch deployments.apps default/web of cluster edge`.
impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cluster = OfCluster(self.cluster.as_deref());
        write!(f, "{} {} {}{cluster}", self.verb, self.resource, self.key)
    }
}

/// A read that a reconcile made with the client of its context, from the cache or from the server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Read {
    /// The resource, as `deployments.apps`.
    pub resource: Arc<str>,
    /// The name of the cluster that was read from; none for the manager's own.
    pub cluster: Option<Arc<str>>,
    /// The objects that were asked for.
    pub subject: ReadSubject,
    /// The number of objects that were found.
    pub found: usize,
}

/// The objects that a [`Read`] asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadSubject {
    /// One object by its key.
    Key(Key),
    /// The objects of a namespace, of which a selector or an index may have left some out.
    Namespace(Arc<str>),
    /// The objects of all namespaces.
    All,
}

impl ReadSubject {
    /// The subject of a list.
    pub(super) fn of(namespace: Option<&str>) -> Self {
        namespace.map_or(Self::All, |namespace| Self::Namespace(namespace.into()))
    }
}

/// Reads as `get configmaps default/web: not found`, or `list pods in default: 3`.
impl fmt::Display for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            resource, found, ..
        } = self;
        let of = OfCluster(self.cluster.as_deref());
        match &self.subject {
            ReadSubject::Key(key) if *found == 0 => {
                write!(f, "get {resource} {key}{of}: not found")
            }
            ReadSubject::Key(key) => write!(f, "get {resource} {key}{of}: found"),
            ReadSubject::Namespace(namespace) => {
                write!(f, "list {resource} in {namespace}{of}: {found}")
            }
            ReadSubject::All => write!(f, "list {resource}{of}: {found}"),
        }
    }
}

/// The reads that are kept of one reconcile: enough to understand it, and bounded if it reads in a loop.
const READS: usize = 32;

/// What was read and written, in order. Of the reads only the first are kept.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Traces {
    pub(crate) reads: Vec<Read>,
    pub(crate) writes: Vec<Write>,
}

/// The traces of one reconcile until it ends. What a clone of its client does later is nobody's to take.
#[derive(Debug)]
pub(crate) struct Trail(Mutex<Option<Traces>>);

impl Default for Trail {
    fn default() -> Self {
        Self(Mutex::new(Some(Traces::default())))
    }
}

impl Trail {
    pub(crate) fn note(&self, write: Write) {
        if let Some(traces) = &mut *self.0.lock() {
            traces.writes.push(write);
        }
    }

    pub(crate) fn note_read(&self, read: impl FnOnce() -> Read) {
        if let Some(traces) = &mut *self.0.lock()
            && traces.reads.len() < READS
        {
            traces.reads.push(read());
        }
    }

    /// The reads and writes. The trail ends here.
    pub(crate) fn take(&self) -> Traces {
        self.0.lock().take().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trail_that_was_taken_keeps_nothing() {
        let trail = Trail::default();
        let write = || Write {
            verb: "update",
            resource: "pods".into(),
            cluster: None,
            key: Key::new("default", "a"),
            resource_version: "1".to_owned(),
        };
        let read = || Read {
            resource: "pods".into(),
            cluster: None,
            subject: ReadSubject::All,
            found: 2,
        };
        trail.note(write());
        trail.note_read(read);
        let traces = Traces {
            reads: vec![read()],
            writes: vec![write()],
        };
        assert_eq!(trail.take(), traces);
        trail.note(write());
        trail.note_read(read);
        assert_eq!(trail.take(), Traces::default());
    }

    #[test]
    fn reconcile_that_reads_in_a_loop_keeps_its_first_reads() {
        let trail = Trail::default();
        for found in 0..READS + 10 {
            trail.note_read(|| Read {
                resource: "pods".into(),
                cluster: None,
                subject: ReadSubject::Namespace("default".into()),
                found,
            });
        }
        let reads = trail.take().reads;
        assert_eq!(reads.len(), READS);
        assert_eq!(reads[1].to_string(), "list pods in default: 1");
    }
}
