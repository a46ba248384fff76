//! Oracles: what must hold in every run, and how it is said when it does not.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::director::Broken;
use crate::generated::family;
use crate::identity::WriteId;
use crate::normal::{Difference, Normal};
use crate::outage::ATTEMPTS;
use crate::plan::{FaultKind, Plan};
use crate::state::ObjectId;
use crate::trace::{Note, Trace};

/// Faults after which it is right to create or delete something once more than without them.
const RECREATING: [FaultKind; 4] = [
    FaultKind::Skip,
    FaultKind::Expire,
    FaultKind::HumanDelete,
    FaultKind::HumanEdit,
];

/// Faults that show the operator the past. It may create what is there no more, which does no harm for long; it must not
/// delete what is there again.
const STALE: [FaultKind; 4] = [
    FaultKind::Lag,
    FaultKind::StaleRestart,
    FaultKind::StaleReconnect,
    FaultKind::Jitter,
];

/// What went wrong in a run.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Violation {
    /// A reconcile or the whole operator panicked.
    Panicked {
        /// The message.
        message: String,
    },
    /// The operator's process keeps ending.
    KeepsEnding {
        /// How it ended first.
        how: String,
    },
    /// A step of the workload failed.
    StepFailed {
        /// The step.
        step: String,
        /// Why.
        error: String,
    },
    /// The cluster does not come to rest.
    NotSettled {
        /// The step.
        step: String,
        /// The last writes of the operator.
        writes: Vec<String>,
    },
    /// After a step the state is another one than in the run without faults.
    Differs {
        /// The step.
        step: String,
        /// Where it differs first.
        difference: Difference,
    },
    /// An object was created or deleted more or less often than in the run without faults.
    Counts {
        /// The object.
        object: ObjectId,
        /// Creations and deletions in the reference.
        expected: (u32, u32),
        /// Creations and deletions in this run.
        found: (u32, u32),
    },
    /// Nothing happens in the cluster, and the operator writes or reconciles without end.
    NotQuiet {
        /// Writes that changed something.
        writes: Vec<String>,
        /// The number of reconciles.
        reconciles: usize,
    },
    /// An invariant of the user's did not hold after a commit.
    Invariant {
        /// Its name.
        name: String,
        /// The object whose change broke it.
        after: ObjectId,
    },
    /// The operator made a write that it may not make.
    Forbidden {
        /// The name of the rule.
        name: String,
        /// The write.
        write: WriteId,
    },
    /// While nothing could be reached or written, the operator tried more often than once a second.
    Attempts {
        /// The controller and key, or the call, that was tried.
        by: String,
    },
    /// The workload has deleted what it made, and something of the operator's is left.
    Leaked {
        /// What is left.
        objects: Vec<ObjectId>,
    },
    /// The same plan gave two different runs.
    Diverged {
        /// The first event of one.
        first: String,
        /// The event of the other at the same place.
        second: String,
    },
}

impl Violation {
    /// The number of the oracle in the documentation.
    pub fn oracle(&self) -> &'static str {
        match self {
            Self::Panicked { .. } | Self::KeepsEnding { .. } | Self::StepFailed { .. } => {
                "O1 panics and failures"
            }
            Self::Forbidden { .. } => "O2 forbidden writes",
            Self::Differs { .. } => "O3 same state as without faults",
            Self::Counts { .. } => "O4 same creations and deletions",
            Self::NotSettled { .. } | Self::NotQuiet { .. } => "O5 quiet time is silent",
            Self::Attempts { .. } => "O6 bounded attempts in an outage",
            Self::Leaked { .. } => "O7 nothing leaked",
            Self::Invariant { .. } => "O8 invariants",
            Self::Diverged { .. } => "O9 determinism",
        }
    }
}

impl From<Broken> for Violation {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Invariant { name, after } => Self::Invariant { name, after },
            Broken::Forbidden { name, write } => Self::Forbidden { name, write },
            Broken::Panicked(message) => Self::Panicked { message },
            Broken::Attempts { by } => Self::Attempts { by },
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panicked { message } => write!(f, "the operator panicked: {message}"),
            Self::KeepsEnding { how } => write!(f, "the operator keeps ending: {how}"),
            Self::StepFailed { step, error } => write!(f, "step {step:?} failed: {error}"),
            Self::NotSettled { step, writes } => write!(
                f,
                "the cluster does not come to rest after {step:?}; the operator's last writes: {}",
                writes.join("; ")
            ),
            Self::Differs { step, difference } => {
                write!(f, "after {step:?} {difference}")
            }
            Self::Counts {
                object,
                expected,
                found,
            } => write!(
                f,
                "{} {} was created {} times and deleted {} times; without the fault {} and {}",
                object.0, object.1, found.0, found.1, expected.0, expected.1
            ),
            Self::NotQuiet { writes, reconciles } => {
                write!(f, "in quiet time the operator ran {reconciles} reconciles")?;
                match writes.first() {
                    Some(first) => write!(f, " and wrote {} times: {first}", writes.len()),
                    None => Ok(()),
                }
            }
            Self::Invariant { name, after } => write!(
                f,
                "invariant {name:?} does not hold after a change of {} {}",
                after.0, after.1
            ),
            Self::Forbidden { name, write } => write!(
                f,
                "forbidden by {name:?}: {} {} {}",
                write.verb, write.resource, write.key
            ),
            Self::Attempts { by } => write!(
                f,
                "{by} was tried more than {ATTEMPTS} times in an outage of {ATTEMPTS} s"
            ),
            Self::Leaked { objects } => {
                let objects: Vec<String> =
                    objects.iter().map(|(r, k)| format!("{r} {k}")).collect();
                write!(f, "left behind after deletion: {}", objects.join(", "))
            }
            Self::Diverged { first, second } => write!(
                f,
                "two runs of the same plan differ; first: {first} | second: {second}"
            ),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (resource, key) = &self.object;
        let (expected, found) = (short(&self.expected), short(&self.found));
        match &*self.path {
            "" => write!(f, "{resource} {key}: {found}, without the fault {expected}"),
            path => write!(
                f,
                "{resource} {key} {path}: {found}, without the fault {expected}"
            ),
        }
    }
}

/// A text of which no more than a line is shown.
pub(crate) fn short(text: &str) -> String {
    match text.char_indices().nth(120) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// The run without faults.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reference<'a> {
    pub(crate) trace: &'a Trace,
    /// The state after each step.
    pub(crate) steps: &'a [Normal],
}

/// How often the operator created and deleted an object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    created: u32,
    deleted: u32,
    /// How often it was deleted in each step.
    deleted_in: BTreeMap<usize, u32>,
}

/// How often the operator created and deleted each object. Those whose names the server made from one prefix count together.
pub(crate) fn counts(trace: &Trace) -> BTreeMap<ObjectId, Counts> {
    let mut counts: BTreeMap<ObjectId, Counts> = BTreeMap::new();
    for (entry, wrote) in trace.writes() {
        let key = family(&wrote.id.key).into_owned();
        let id = (wrote.id.resource.clone(), key);
        if wrote.created.is_some() {
            counts.entry(id).or_default().created += 1;
        } else if wrote.id.verb == "delete" && wrote.effective {
            let counts = counts.entry(id).or_default();
            counts.deleted += 1;
            *counts.deleted_in.entry(entry.step).or_default() += 1;
        }
    }
    counts
}

/// The first object that was created or deleted more or less often than the faults of the plan allow.
pub(crate) fn miscounted(
    plan: &Plan,
    reference: Reference<'_>,
    found: &Trace,
) -> Option<Violation> {
    if plan.has(&RECREATING) {
        return None;
    }
    let is_stale = plan.has(&STALE);
    let (expected, found) = (counts(reference.trace), counts(found));
    let objects: BTreeSet<&ObjectId> = expected.keys().chain(found.keys()).collect();
    let of = |counts: &BTreeMap<ObjectId, Counts>, id| counts.get(id).cloned().unwrap_or_default();
    objects.into_iter().find_map(|id| {
        let (expected, found) = (of(&expected, id), of(&found, id));
        let differs = if is_stale {
            is_deleted_too_often(id, reference.steps, &expected, &found)
        } else {
            (expected.created, expected.deleted) != (found.created, found.deleted)
        };
        differs.then(|| Violation::Counts {
            object: id.clone(),
            expected: (expected.created, expected.deleted),
            found: (found.created, found.deleted),
        })
    })
}

/// Whether an operator that saw the past deleted an object more often than that explains. One that was made again because of an
/// old view goes again; in a step after which the run without faults has it, it is not deleted more often than there.
fn is_deleted_too_often(
    id: &ObjectId,
    reference: &[Normal],
    expected: &Counts,
    found: &Counts,
) -> bool {
    let again = found.created.saturating_sub(expected.created);
    if found.deleted > expected.deleted + again {
        return true;
    }
    let mut deleted_in = found.deleted_in.iter();
    deleted_in.any(|(step, deleted)| {
        let there = reference.get(*step);
        let is_there = there.is_some_and(|objects| objects.contains_key(id));
        is_there && deleted > expected.deleted_in.get(step).unwrap_or(&0)
    })
}

/// What the operator did from an entry of the trace on, while nothing happened.
pub(crate) fn unrest(trace: &Trace, from: usize, seconds: u64) -> Option<Violation> {
    let entries = trace.entries.iter().skip(from);
    let (mut writes, mut reconciles) = (Vec::new(), 0_usize);
    for entry in entries {
        match &entry.note {
            Note::Wrote(wrote) if wrote.effective => writes.push(entry.to_string()),
            Note::Reconcile => reconciles += 1,
            _ => {}
        }
    }
    let many = usize::try_from(seconds).unwrap_or(usize::MAX);
    (!writes.is_empty() || reconciles > many).then_some(Violation::NotQuiet { writes, reconciles })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Fault;
    use crate::trace::{Entry, Wrote};
    use serde_json::Value;
    use std::time::Duration;

    /// A trace of writes of a ConfigMap, each with its step.
    fn trace(writes: &[(usize, &str)]) -> Trace {
        let mut trace = Trace::default();
        for (step, verb) in writes {
            let id: WriteId = format!("a,{verb},configmaps,n/a,0000#1")
                .parse()
                .expect("a write");
            let wrote = Wrote {
                created: (*verb == "create").then(|| id.key.clone()),
                id,
                code: 200,
                effective: true,
                by_uid: false,
            };
            trace.entries.push(Entry {
                at: Duration::ZERO,
                step: *step,
                reconcile: None,
                note: Note::Wrote(wrote),
            });
        }
        trace
    }

    /// A run in which the ConfigMap is created in the first of three steps and deleted in the last one.
    fn reference() -> (Trace, [Normal; 3]) {
        let id = ("configmaps".to_owned(), "n/a".to_owned());
        let there = Normal::from([(id, Value::Null)]);
        let trace = trace(&[(0, "create"), (2, "delete")]);
        (trace, [there.clone(), there, Normal::new()])
    }

    fn is_miscounted(fault: &str, writes: &[(usize, &str)]) -> bool {
        let fault: Fault = fault.parse().expect("a fault");
        let plan = Plan::single(fault);
        let (expected, steps) = reference();
        let reference = Reference {
            trace: &expected,
            steps: &steps,
        };
        miscounted(&plan, reference, &trace(writes)).is_some()
    }

    #[test]
    fn writes_are_counted_after_a_crash() {
        let crash = "crash-after:a,create,configmaps,n/a,0000#1";
        assert!(!is_miscounted(crash, &[(0, "create"), (2, "delete")]));
        assert!(is_miscounted(crash, &[(0, "create")]));
        let twice = [(0, "create"), (0, "delete"), (0, "create"), (2, "delete")];
        assert!(is_miscounted(crash, &twice));
    }

    #[test]
    fn what_an_old_view_brings_back_may_go_again() {
        let stale = "stale-reconnect:configmaps,DELETED,n/a#1";
        let again = [(0, "create"), (2, "delete"), (2, "create"), (2, "delete")];
        assert!(!is_miscounted(stale, &again));
        assert!(!is_miscounted(stale, &again[..3]));
    }

    #[test]
    fn what_is_there_all_the_time_is_not_deleted_because_of_an_old_view() {
        let stale = "stale-reconnect:configmaps,DELETED,n/a#1";
        let while_kept = [(0, "create"), (1, "delete"), (1, "create"), (2, "delete")];
        assert!(is_miscounted(stale, &while_kept));
        let too_often = [(0, "create"), (2, "delete"), (2, "delete")];
        assert!(is_miscounted(stale, &too_often));
    }
}
