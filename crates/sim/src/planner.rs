//! The planner: every plan with one fault that the reference run has a place for.

use std::collections::BTreeSet;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::external;
use crate::identity::WriteId;
use crate::plan::{Fault, FaultKind, Plan};
use crate::run::Outcome;
use crate::trace::Entry;
use crate::trace::Note;

/// All plans with one fault, of these kinds, in the order of the trace.
pub(crate) fn plans(
    reference: &Outcome,
    steps: &[String],
    kinds: &BTreeSet<FaultKind>,
) -> Vec<Plan> {
    let mut faults = Vec::new();
    for (_, wrote) in reference.trace.writes().filter(|(_, it)| it.effective) {
        faults.extend(at_write(&wrote.id));
        // Without a lease it is a call that nobody answers for a while.
        if reference.has_lease && wrote.id.resource != external::RESOURCE {
            faults.push(Fault::Partition(wrote.id.clone()));
        }
    }
    faults.extend(at_events(reference));
    for (number, step) in steps.iter().enumerate() {
        faults.extend(after_step(reference, number, step));
    }
    faults.retain(|fault| kinds.contains(&fault.kind()));
    let mut seen = BTreeSet::new();
    faults.retain(|fault| seen.insert(fault.clone()));
    faults.into_iter().map(Plan::single).collect()
}

/// A plan with several faults, chosen by a seed among those with one. Each seed leaves out some kinds of faults altogether, so
/// that no kind hides what another would show.
pub(crate) fn swarm(singles: &[Plan], seed: u64) -> Plan {
    let mut random = StdRng::seed_from_u64(seed);
    let kinds: Vec<FaultKind> = FaultKind::all()
        .filter(|_| random.random_bool(0.5))
        .collect();
    let mut faults: Vec<Fault> = singles
        .iter()
        .flat_map(|plan| plan.faults.clone())
        .collect();
    faults.retain(|fault| kinds.contains(&fault.kind()));
    let wanted = random.random_range(1..=4);
    let mut chosen = Vec::new();
    while chosen.len() < wanted && !faults.is_empty() {
        let at = random.random_range(0..faults.len());
        chosen.push(faults.remove(at));
    }
    chosen.push(Fault::Jitter(seed));
    Plan { faults: chosen }
}

fn at_write(id: &WriteId) -> Vec<Fault> {
    let mut faults = vec![
        Fault::CrashBefore(id.clone()),
        Fault::CrashAfter(id.clone()),
        Fault::LoseAnswer(id.clone()),
        Fault::Refuse(429, id.clone()),
        Fault::Refuse(500, id.clone()),
        Fault::Silence(id.clone()),
    ];
    // A creation or a deletion without preconditions has nothing to be in conflict with.
    if matches!(&*id.verb, "update" | "patch") && id.resource != external::RESOURCE {
        faults.push(Fault::Refuse(409, id.clone()));
    }
    faults
}

fn at_events(reference: &Outcome) -> Vec<Fault> {
    let mut faults = Vec::new();
    let events: Vec<_> = reference.trace.events().collect();
    for (at, (entry, id)) in events.iter().enumerate() {
        let id = (*id).clone();
        faults.push(Fault::Cut(id.clone()));
        faults.push(Fault::Expire(id.clone()));
        faults.push(Fault::Lag(id.clone()));
        faults.push(Fault::StaleReconnect(id.clone()));
        let same_object = |(later, other): &(&Entry, &crate::identity::EventId)| {
            later.step == entry.step && (&other.resource, &other.key) == (&id.resource, &id.key)
        };
        if events[at + 1..].iter().any(same_object) {
            faults.push(Fault::Skip(id));
        }
    }
    faults
}

fn after_step(reference: &Outcome, number: usize, step: &str) -> Vec<Fault> {
    let step = || step.to_owned();
    let mut faults = vec![
        Fault::Restart(step()),
        Fault::Outage(step()),
        Fault::ReadOnly(step()),
    ];
    if reference.has_lease {
        faults.push(Fault::LoseLease(step()));
    }
    let none = Vec::new();
    let made = reference.made.get(number).unwrap_or(&none).iter();
    faults.extend(
        made.map(|(resource, key)| Fault::HumanDelete(step(), resource.clone(), key.clone())),
    );
    let editable = reference.editable.get(number).unwrap_or(&none).iter();
    faults.extend(
        editable.map(|(resource, key)| Fault::HumanEdit(step(), resource.clone(), key.clone())),
    );
    // Views of this step and of the one before: older ones are as stale as those.
    let recent = |entry: &&Entry| entry.step <= number && entry.step + 1 >= number;
    let views = reference.trace.entries.iter().filter(recent);
    let views = views.filter_map(|entry| match &entry.note {
        Note::Event { id, .. } => Some(Fault::StaleRestart(step(), id.clone())),
        _ => None,
    });
    faults.extend(views);
    faults
}
