//! Hints: what a failure probably means, where it looks like a mistake that many operators have made.

use crate::oracle::Violation;
use crate::plan::{Fault, Plan};
use crate::trace::{Entry, Note, Trace};

/// What the failure of a plan probably means.
pub(crate) fn hint(
    plan: &Plan,
    violation: &Violation,
    reference: &Trace,
    trace: &Trace,
) -> Option<String> {
    match violation {
        Violation::NotQuiet { .. } | Violation::NotSettled { .. } => {
            return Some(
                "every reconcile changes the object again: write only what differs, and no times, counters or versions \
                 that change by themselves"
                    .to_owned(),
            );
        }
        Violation::Attempts { .. } => {
            return Some(
                "what fails is tried again without a growing pause: return the error, and the work queue backs off".to_owned(),
            );
        }
        Violation::Panicked { .. } => {
            return Some(
                "a state that the code takes for impossible can happen: return an error instead"
                    .to_owned(),
            );
        }
        _ => {}
    }
    let fault = plan.faults.first()?;
    before_its_effect(fault, reference)
        .or_else(|| ignored_error(fault, trace))
        .or_else(|| by_name(trace))
        .or_else(|| edge_triggered(fault))
        .or_else(|| twice(violation))
}

/// A status, or a finalizer's removal, that was written before what it stands for.
fn before_its_effect(fault: &Fault, reference: &Trace) -> Option<String> {
    let (Fault::CrashAfter(id) | Fault::LoseAnswer(id)) = fault else {
        return None;
    };
    let writes: Vec<_> = reference.writes().collect();
    let at = writes.iter().position(|(_, wrote)| wrote.id == *id)?;
    let (entry, _) = writes[at];
    let mut later = writes[at + 1..].iter();
    let effect = later.find(|(later, wrote)| {
        later.reconcile.is_some() && later.reconcile == entry.reconcile && wrote.effective
    });
    let (_, effect) = effect?;
    if effect.id.is_status() {
        return Some(format!(
            "the status of {} {} is written only by the run that also did {} {} {}; if that run ends in between, the next one \
             finds nothing to do: derive the status from the state",
            effect.id.resource, effect.id.key, id.verb, id.resource, id.key
        ));
    }
    let what = if id.is_status() { "status" } else { &id.verb };
    Some(format!(
        "the {what} of {} {} was written before its effect ({} {} {}): a process that ends in between takes it for done",
        id.resource, id.key, effect.id.verb, effect.id.resource, effect.id.key
    ))
}

/// A write that failed in a reconcile that ended well all the same.
fn ignored_error(fault: &Fault, trace: &Trace) -> Option<String> {
    let id = match fault {
        Fault::Refuse(_, id) | Fault::LoseAnswer(id) | Fault::Silence(id) => id,
        _ => return None,
    };
    let entries = &trace.entries;
    let at = entries
        .iter()
        .position(|entry| matches!(&entry.note, Note::Wrote(wrote) if wrote.id == *id))?;
    let reconcile = entries[at].reconcile.as_ref()?;
    let mut later = entries[at..].iter();
    let end = later.find(|entry| {
        entry.reconcile.as_ref() == Some(reconcile) && matches!(entry.note, Note::Reconciled(_))
    })?;
    let ended_well = matches!(&end.note, Note::Reconciled(ended) if ended == "done");
    ended_well.then(|| {
        format!(
            "the error of {} {} {} was ignored: its reconcile ended as done and nobody tries again",
            id.verb, id.resource, id.key
        )
    })
}

/// A deletion that named no uid.
fn by_name(trace: &Trace) -> Option<String> {
    let fault = trace.entries.iter();
    let fault = fault
        .clone()
        .position(|entry| matches!(entry.note, Note::Fault(_)))?;
    let after: &[Entry] = &trace.entries[fault..];
    let id = after.iter().find_map(|entry| match &entry.note {
        Note::Wrote(wrote) if wrote.id.verb == "delete" && wrote.effective && !wrote.by_uid => {
            Some(&wrote.id)
        }
        _ => None,
    })?;
    Some(format!(
        "{} {} was deleted by name: give the uid that was read as a precondition, or another object of that name goes",
        id.resource, id.key
    ))
}

fn edge_triggered(fault: &Fault) -> Option<String> {
    let (Fault::Skip(id) | Fault::Expire(id)) = fault else {
        return None;
    };
    Some(format!(
        "something depends on seeing the event {} of {} {}, which can be missed: derive what to do from the state \
         alone, and clean up behind a finalizer",
        id.kind, id.resource, id.key
    ))
}

fn twice(violation: &Violation) -> Option<String> {
    match violation {
        Violation::Counts {
            expected, found, ..
        } if found.0 > expected.0 => Some(
            "a creation was repeated: give the object a name that follows from its owner, or look for it first"
                .to_owned(),
        ),
        _ => None,
    }
}
