//! What happened in a run, in order: the material of plans, oracles and timelines.

use std::fmt;
use std::time::Duration;

use kubewright_runtime::gate::ReconcileId;

use crate::identity::{EventId, WriteId, hash};

/// One thing that happened.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// When, counted from the start of the run in virtual time.
    pub at: Duration,
    /// The step of the workload, from zero.
    pub step: usize,
    /// The reconcile that did it.
    pub reconcile: Option<ReconcileId>,
    /// What happened at that moment.
    pub note: Note,
}

/// One thing that happened in a run.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Note {
    /// The workload goes on with this step.
    Step(String),
    /// The operator's process starts, for the nth time.
    Started(u32),
    /// The operator's process ends: why.
    Ended(String),
    /// A reconcile of the operator begins.
    Reconcile,
    /// A reconcile ends: how.
    Reconciled(String),
    /// A cached read found this version of an object, or that it is absent.
    Read {
        /// The resource.
        resource: String,
        /// Namespace and name.
        key: String,
        /// The version; none if it is absent.
        version: Option<String>,
        /// The version that the cache had reached.
        cache: String,
    },
    /// A cached list had so many objects.
    Listed {
        /// The resource.
        resource: String,
        /// What was asked for, as `in default with app=web`.
        query: String,
        /// The number of objects.
        count: usize,
        /// The version that the cache had reached.
        cache: String,
    },
    /// A write was answered, or got lost.
    Wrote(Wrote),
    /// An event was delivered to the operator.
    Event {
        /// The identity of the write.
        id: EventId,
        /// The version of the object.
        revision: u64,
    },
    /// A fault of the plan happened.
    Fault(String),
    /// Somebody else did something.
    Other(String),
}

/// A write of the operator's, and what became of it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Wrote {
    /// The identity of the write.
    pub id: WriteId,
    /// The status code of the answer; zero if there was none.
    pub code: u16,
    /// Whether it changed anything.
    pub effective: bool,
    /// Whether it made a new object, of this key.
    pub created: Option<String>,
    /// Whether a deletion named the uid that it was about.
    pub by_uid: bool,
}

/// Everything that happened in a run.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Trace {
    /// The entries in the order in which they happened.
    pub entries: Vec<Entry>,
}

impl Trace {
    /// The writes, in order.
    pub fn writes(&self) -> impl Iterator<Item = (&Entry, &Wrote)> {
        self.entries.iter().filter_map(|entry| match &entry.note {
            Note::Wrote(wrote) => Some((entry, wrote)),
            _ => None,
        })
    }

    /// The events that were delivered, in order.
    pub fn events(&self) -> impl Iterator<Item = (&Entry, &EventId)> {
        self.entries.iter().filter_map(|entry| match &entry.note {
            Note::Event { id, .. } => Some((entry, id)),
            _ => None,
        })
    }

    /// A number that two runs have in common if the same happened in both.
    pub fn hash(&self) -> u64 {
        let lines: Vec<String> = self.entries.iter().map(Entry::to_string).collect();
        hash(lines.join("\n").as_bytes())
    }

    /// The first entry in which two runs differ, as lines: this one's and the other's.
    pub fn divergence(&self, other: &Self) -> Option<(String, String)> {
        let line = |trace: &Self, at: usize| match trace.entries.get(at) {
            Some(entry) => entry.to_string(),
            None => "nothing more happens".to_owned(),
        };
        let longest = self.entries.len().max(other.entries.len());
        let mut pairs = (0..longest).map(|at| (line(self, at), line(other, at)));
        pairs.find(|(ours, theirs)| ours != theirs)
    }

    /// The lines around the first fault that matter, at most so many: what led to it and what followed.
    pub fn timeline(&self, lines: usize) -> Vec<String> {
        let mut entries = self.entries.iter();
        let fault = entries.position(|entry| matches!(entry.note, Note::Fault(_)));
        let fault = fault.unwrap_or(self.entries.len());
        let (before, after) = self.entries.split_at(fault);
        let telling = |entries: &[Entry], since: Since| -> Vec<String> {
            let kept = entries.iter().filter(|entry| entry.note.tells(since));
            kept.map(Entry::to_string).collect()
        };
        let (mut before, mut after) = (telling(before, Since::Start), telling(after, Since::Fault));
        let first = before.len().saturating_sub(lines / 3);
        let mut shown = before.split_off(first);
        let room = lines.saturating_sub(shown.len());
        if after.len() > room {
            let left_out = after.len() - room + 1;
            after.truncate(room.saturating_sub(1));
            after.push(format!("... and {left_out} more"));
        }
        shown.append(&mut after);
        shown
    }
}

/// Where in a run something happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Since {
    Start,
    Fault,
}

impl Note {
    /// Whether it is worth a line of a timeline: what changes something, what fails, and what is missed after a fault.
    fn tells(&self, since: Since) -> bool {
        match self {
            Self::Listed { .. } | Self::Reconcile | Self::Event { .. } => false,
            Self::Reconciled(ended) => ended != "done" && !ended.starts_with("requeue"),
            Self::Read { version, .. } => version.is_none() && since == Since::Fault,
            Self::Wrote(wrote) => wrote.effective || !(200..300).contains(&wrote.code),
            _ => true,
        }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>9.3}s  ", self.at.as_secs_f64())?;
        if let Some(id) = &self.reconcile {
            write!(f, "{} {} #{}: ", id.controller, id.key.as_str(), id.number)?;
        }
        self.note.fmt(f)
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step(name) => write!(f, "STEP {name}"),
            Self::Started(number) => write!(f, "operator starts (process {number})"),
            Self::Ended(why) => write!(f, "operator ends: {why}"),
            Self::Reconcile => f.write_str("reconcile"),
            Self::Reconciled(ended) => write!(f, "ended: {ended}"),
            Self::Read {
                resource,
                key,
                version,
                cache,
            } => match version {
                Some(version) => write!(f, "reads {resource} {key} at {version}"),
                None => write!(f, "reads {resource} {key}: absent at {cache}"),
            },
            Self::Listed {
                resource,
                query,
                count,
                cache,
            } => write!(f, "lists {count} {resource} {query} at {cache}"),
            Self::Wrote(wrote) => wrote.fmt(f),
            Self::Event { id, revision } => {
                write!(
                    f,
                    "sees {} {} {} at {revision}",
                    id.kind, id.resource, id.key
                )
            }
            Self::Fault(text) => write!(f, "FAULT {text}"),
            Self::Other(text) => f.write_str(text),
        }
    }
}

impl fmt::Display for Wrote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WriteId {
            verb,
            resource,
            key,
            ..
        } = &self.id;
        write!(f, "{verb} {resource} {key}")?;
        match (self.code, self.effective) {
            (0, _) => f.write_str(" -> no answer"),
            (200..300, true) => Ok(()),
            (200..300, false) => f.write_str(" -> unchanged"),
            (code, _) => write!(f, " -> {code}"),
        }
    }
}
