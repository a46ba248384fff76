//! Which plans of a campaign a test runs, where it does not run them all.

use std::collections::BTreeSet;

use crate::plan::Plan;

/// The variable that asks for all plans, where a test takes some of them.
const VOLUME: &str = "KUBEWRIGHT_SIM";

/// Whether the environment asks for everything.
pub(crate) fn is_full() -> bool {
    std::env::var(VOLUME).is_ok_and(|volume| volume == "full")
}

/// So many of the plans, unless the environment asks for all.
pub(crate) fn sampled(plans: Vec<Plan>, sample: Option<usize>) -> Vec<Plan> {
    match sample {
        Some(some) if !is_full() && some < plans.len() => spread_over_kinds(plans, some),
        _ => plans,
    }
}

/// The first plan of each kind of fault, and the rest evenly spread over the others, in the order of the plans. There are as many
/// views of the past as all other faults together: spread evenly over all, a small sample would be of those alone.
fn spread_over_kinds(plans: Vec<Plan>, some: usize) -> Vec<Plan> {
    let mut kinds = BTreeSet::new();
    let (first, others): (Vec<usize>, Vec<usize>) = (0..plans.len()).partition(|at| {
        let mut faults = plans[*at].faults.iter();
        faults.any(|fault| kinds.insert(fault.kind()))
    });
    let mut chosen: BTreeSet<usize> = evenly(&first, some).collect();
    chosen.extend(evenly(&others, some.saturating_sub(first.len())));
    let plans = plans.into_iter().enumerate();
    plans
        .filter_map(|(at, plan)| chosen.contains(&at).then_some(plan))
        .collect()
}

/// So many of the numbers, evenly spread.
fn evenly(all: &[usize], some: usize) -> impl Iterator<Item = usize> {
    let some = some.min(all.len());
    (0..some).map(move |at| all[at * all.len() / some])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::EventId;
    use crate::plan::{Fault, FaultKind};

    fn event(number: usize) -> EventId {
        let text = format!("pods,ADDED,default/a#{number}");
        text.parse().expect("it is an event")
    }

    /// Two restarts, forty watches that are cut, and an edit.
    fn plans() -> Vec<Plan> {
        let edit = Fault::HumanEdit("b".to_owned(), "pods".to_owned(), "default/a".to_owned());
        let restart = |step: &str| Fault::Restart(step.to_owned());
        let mut faults = vec![restart("a")];
        faults.extend((1..=40).map(|number| Fault::Cut(event(number))));
        faults.extend([restart("b"), edit]);
        faults.into_iter().map(Plan::single).collect()
    }

    fn kinds(plans: &[Plan]) -> Vec<FaultKind> {
        let faults = plans.iter().flat_map(|plan| &plan.faults);
        faults.map(Fault::kind).collect()
    }

    #[test]
    fn sample_has_every_kind_of_fault_that_the_plans_have() {
        let all: BTreeSet<FaultKind> = kinds(&plans()).into_iter().collect();
        for some in 3..=plans().len() {
            let sample = spread_over_kinds(plans(), some);
            assert_eq!(sample.len(), some);
            let found: BTreeSet<FaultKind> = kinds(&sample).into_iter().collect();
            assert_eq!(found, all, "of {some}");
        }
    }

    #[test]
    fn sample_is_the_same_each_time_and_in_the_order_of_the_plans() {
        let sample = spread_over_kinds(plans(), 5);
        assert_eq!(sample, spread_over_kinds(plans(), 5));
        let restart = Fault::Restart("a".to_owned());
        let edit = Fault::HumanEdit("b".to_owned(), "pods".to_owned(), "default/a".to_owned());
        let faults = [1, 2, 22].map(|number| Fault::Cut(event(number)));
        let faults = [restart].into_iter().chain(faults).chain([edit]);
        assert_eq!(sample, faults.map(Plan::single).collect::<Vec<_>>());
    }

    #[test]
    fn sample_smaller_than_the_kinds_has_as_many_of_them() {
        let sample = spread_over_kinds(plans(), 2);
        assert_eq!(kinds(&sample), [FaultKind::Restart, FaultKind::Cut]);
    }
}
