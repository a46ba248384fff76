//! What must hold for a step of a walk: oracles over the states that its run went through.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::normal::{Normal, difference};
use crate::oracle::{self, Violation};
use crate::run::Outcome;
use crate::state::ObjectId;
use crate::target;
use crate::trace::{Note, Trace};

/// The steps of the run of one change, after those of preparation.
pub(crate) const CREATE: usize = 0;
pub(crate) const CHANGE: usize = 1;
pub(crate) const REST: usize = 2;
pub(crate) const BACK: usize = 3;
pub(crate) const DELETE: usize = 4;

/// What a step of a walk showed.
#[derive(Debug, Default)]
pub(crate) struct Finding {
    /// Whether anything but the object's own spec is different because of the change.
    pub(crate) has_effect: bool,
    /// Whether the operator could not do what was asked for.
    pub(crate) is_error: bool,
    /// The rules that did not hold, each with what was seen.
    pub(crate) broken: Vec<(&'static str, String)>,
}

/// Judges the run of one change. `prepared` is the number of steps before the first; `fresh` is the run of the next change,
/// which begins with a new object of the content that this one ends with.
pub(crate) fn judge(
    run: &Outcome,
    fresh: Option<&Outcome>,
    subject: &ObjectId,
    prepared: usize,
    quiet: u64,
) -> Finding {
    let mut finding = Finding::default();
    if let Some(violation) = &run.violation {
        finding
            .broken
            .push((violation.oracle(), violation.to_string()));
    }
    let state = |run: &Outcome, step: usize| run.steps.get(prepared + step).cloned();
    let (Some(before), Some(changed)) = (state(run, CREATE), state(run, CHANGE)) else {
        return finding;
    };
    finding.has_effect = effect(&before, subject) != effect(&changed, subject);
    finding.is_error = is_error(&run.trace, prepared + CHANGE, &subject.1);
    if !finding.is_error {
        let unrest = unrest(&run.trace, prepared + REST, quiet);
        finding
            .broken
            .extend(unrest.map(|it| (it.oracle(), it.to_string())));
    }
    let touched = touched(&run.trace);
    // What an error left as it was before is not what it comes back to.
    let began_well = !is_error(&run.trace, prepared + CREATE, &subject.1);
    if let Some(back) = state(run, BACK).filter(|_| began_well) {
        let (before, back) = (
            own(&before, &touched, subject),
            own(&back, &touched, subject),
        );
        if let Some(difference) = difference(&before, &back) {
            let what = format!(
                "after the change was taken back, {}",
                seen(&difference, "before it")
            );
            finding.broken.push(("W3 taking back restores", what));
        }
    }
    let left = run.made.get(prepared + DELETE).into_iter().flatten();
    let left: Vec<String> = left
        .map(|(resource, key)| format!("{resource} {key}"))
        .collect();
    if !left.is_empty() && !matches!(run.violation, Some(Violation::Leaked { .. })) {
        let what = format!("left behind after deletion: {}", left.join(", "));
        finding.broken.push(("O7 nothing leaked", what));
    }
    let Some(fresh) = fresh.filter(|_| !finding.is_error) else {
        return finding;
    };
    if let Some(made) = state(fresh, CREATE) {
        let mut touched = touched;
        touched.extend(self::touched(&fresh.trace));
        let (made, changed) = (
            own(&made, &touched, subject),
            own(&changed, &touched, subject),
        );
        if let Some(difference) = difference(&made, &changed) {
            let what = format!("after the change {}", seen(&difference, "in a new cluster"));
            finding.broken.push(("W2 as in a new cluster", what));
        }
    }
    finding
}

fn seen(difference: &crate::normal::Difference, where_else: &str) -> String {
    let (resource, key) = &difference.object;
    format!(
        "{resource} {key} {}: {}, {where_else} {}",
        difference.path,
        oracle::short(&difference.found),
        oracle::short(&difference.expected)
    )
}

/// Everything in a state but what the user wrote into the object.
fn effect(state: &Normal, subject: &ObjectId) -> Normal {
    let all = state.iter().map(|(id, object)| {
        if id == subject {
            (id.clone(), object["status"].clone())
        } else {
            (id.clone(), object.clone())
        }
    });
    all.collect()
}

/// What is the operator's in a state: the objects that it wrote, without the status of those that others report on.
fn own(state: &Normal, touched: &BTreeSet<ObjectId>, subject: &ObjectId) -> Normal {
    let is_own = |id: &ObjectId| {
        touched.contains(id)
            || touched.iter().any(|(resource, key)| {
                let prefix = key.strip_suffix('*');
                *resource == id.0 && prefix.is_some_and(|prefix| id.1.starts_with(prefix))
            })
            || id.0 == "external"
    };
    let kept = state.iter().filter(|(id, _)| is_own(id) || *id == subject);
    kept.map(|(id, object)| (id.clone(), trimmed(object, id == subject)))
        .collect()
}

fn trimmed(object: &Value, is_subject: bool) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut()
        && !is_subject
    {
        fields.remove("status");
    }
    // The history of a Deployment is its controller's.
    let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return object; // The state of an external system may be anything.
    };
    let annotations = meta.get_mut("annotations").and_then(Value::as_object_mut);
    if let Some(annotations) = annotations {
        annotations.remove("deployment.kubernetes.io/revision");
        if annotations.is_empty() {
            meta.remove("annotations");
        }
    }
    object
}

/// The objects that the operator wrote.
fn touched(trace: &Trace) -> BTreeSet<ObjectId> {
    let written = trace.writes().filter(|(_, wrote)| wrote.effective);
    let written = written.map(|(_, wrote)| {
        let resource = target::plain(&wrote.id.resource).to_owned();
        (resource, wrote.id.key.clone())
    });
    written.collect()
}

/// Whether the last reconcile of the object in a step failed.
fn is_error(trace: &Trace, step: usize, key: &str) -> bool {
    let mut last = trace.entries.iter().rev().filter_map(|entry| {
        let of = entry.reconcile.as_ref()?;
        match &entry.note {
            Note::Reconciled(ended) if entry.step == step && of.key.as_str() == key => Some(ended),
            _ => None,
        }
    });
    let ended = last.next();
    ended.is_some_and(|ended| ended != "done" && !ended.starts_with("requeue"))
}

/// What the operator did in a step in which nothing happened.
fn unrest(trace: &Trace, step: usize, seconds: u64) -> Option<Violation> {
    let entries = trace.entries.iter().filter(|entry| entry.step == step);
    let quiet = Trace {
        entries: entries.cloned().collect(),
    };
    oracle::unrest(&quiet, 0, seconds)
}
