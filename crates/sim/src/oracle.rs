//! Oracles: what must hold in every run, and how it is said when it does not.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::director::Broken;
use crate::identity::WriteId;
use crate::normal::Difference;
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

/// How often the operator created and deleted each object.
pub(crate) fn counts(trace: &Trace) -> BTreeMap<ObjectId, (u32, u32)> {
    let mut counts: BTreeMap<ObjectId, (u32, u32)> = BTreeMap::new();
    for (_, wrote) in trace.writes() {
        let id = (wrote.id.resource.clone(), wrote.id.key.clone());
        if wrote.created.is_some() {
            counts.entry(id).or_default().0 += 1;
        } else if wrote.id.verb == "delete" && wrote.effective {
            counts.entry(id).or_default().1 += 1;
        }
    }
    counts
}

/// The first object that was created or deleted more or less often than the faults of the plan allow.
pub(crate) fn miscounted(plan: &Plan, expected: &Trace, found: &Trace) -> Option<Violation> {
    if plan.has(&RECREATING) {
        return None;
    }
    let is_stale = plan.has(&STALE);
    let (expected, found) = (counts(expected), counts(found));
    let objects: BTreeSet<&ObjectId> = expected.keys().chain(found.keys()).collect();
    let of = |counts: &BTreeMap<ObjectId, (u32, u32)>, id| counts.get(id).copied();
    objects.into_iter().find_map(|id| {
        let expected = of(&expected, id).unwrap_or_default();
        let found = of(&found, id).unwrap_or_default();
        let differs = match is_stale {
            true => found.1 > expected.1,
            false => expected != found,
        };
        differs.then(|| Violation::Counts {
            object: id.clone(),
            expected,
            found,
        })
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
