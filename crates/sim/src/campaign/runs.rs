//! The runs of a campaign: the reference, the plans, and those that are made shorter.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use kubewright_cluster::{Builder, BuiltIn, Clock, Cluster, NodesOptions};
use tokio::time::Instant;

use super::{Campaign, Shape};
use crate::base;
use crate::oracle::Violation;
use crate::plan::Plan;
use crate::planner;
use crate::progress::Progress;
use crate::report::{Failure, Report};
use crate::run::{Base, Outcome, execute};
use crate::sample::sampled;
use crate::threads::{self, in_real_time, in_runtime};

/// The lines of a timeline when one plan is repeated.
const REPLAYED: usize = 200;
/// The variable that says how many runs are made at once.
const JOBS: &str = "KUBEWRIGHT_SIM_JOBS";
/// How long the lease of a node is good for that nobody reads.
const UNREAD_LEASE: Duration = Duration::from_secs(3600);
/// Failures that are made shorter.
const SHRUNK: usize = 3;

impl Campaign {
    /// Runs the reference and every plan, and reports what failed.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Secret;
    /// # use kubewright_sim::Campaign;
    /// # fn example(campaign: Campaign) {
    /// let report = campaign.run();
    /// println!("{report}");
    /// # }
    /// ```
    pub fn run(&self) -> Report {
        self.run_plans(|reference| {
            let plans = planner::plans(reference, &self.step_names(), &self.kinds);
            sampled(plans, self.sample)
        })
    }

    /// Runs the workload once for each seed: with up to four faults at once, and with calls and events that take random times,
    /// so that things happen in another order. A plan that fails is made as short as it can be.
    pub fn simulate(&self, seeds: Range<u64>) -> Report {
        let mut report = self.run_plans(|reference| {
            let singles = planner::plans(reference, &self.step_names(), &self.kinds);
            seeds.map(|seed| planner::swarm(&singles, seed)).collect()
        });
        for failure in report.failures.iter_mut().take(SHRUNK) {
            if let Some(smaller) = self.shrunk(&failure.plan) {
                *failure = smaller;
            }
        }
        report
    }

    /// Leaves faults out as long as the plan fails without them.
    fn shrunk(&self, plan: &Plan) -> Option<Failure> {
        let mut shortest = None;
        let mut plan = plan.clone();
        let mut at = 0;
        while at < plan.faults.len() && plan.faults.len() > 1 {
            let mut shorter = plan.clone();
            shorter.faults.remove(at);
            match self.replay(&shorter).failures.pop() {
                Some(failure) => {
                    plan = shorter;
                    shortest = Some(failure);
                }
                None => at += 1,
            }
        }
        shortest
    }

    fn step_names(&self) -> Vec<String> {
        let steps = self.shape.steps.iter();
        steps.map(|(name, _)| name.clone()).collect()
    }

    /// Runs the reference and this one plan. Its timeline is longer than that of a campaign, in which many may fail.
    pub fn replay(&self, plan: &Plan) -> Report {
        let mut report = self.run_plans(|_| vec![plan.clone()]);
        for failure in &mut report.failures {
            failure.timeline = failure.trace.timeline(REPLAYED);
        }
        report
    }

    fn run_plans(&self, plans: impl FnOnce(&Outcome) -> Vec<Plan>) -> Report {
        let began = Instant::now();
        let base = self.prepare();
        let none = Plan::default();
        let reference = self.execute(&base, &none, None);
        let mut report = Report {
            name: self.name.clone(),
            plans: 0,
            kinds: BTreeMap::new(),
            unreached: 0,
            took: Duration::ZERO,
            hash: reference.trace.hash(),
            failures: Vec::new(),
        };
        if let Some(failure) = self.check_reference(&base, &reference) {
            report.failures.push(failure);
            report.took = began.elapsed();
            return report;
        }
        let plans = plans(&reference);
        for plan in &plans {
            for fault in &plan.faults {
                *report.kinds.entry(fault.kind().as_str()).or_default() += 1;
            }
        }
        report.plans = plans.len();
        let outcomes = self.execute_all(&base, &plans, &reference);
        for (plan, outcome) in plans.iter().zip(outcomes) {
            report.hash = report.hash.rotate_left(5) ^ outcome.trace.hash();
            report.unreached += usize::from(!outcome.unreached.is_empty());
            let failure = Failure::of(&self.name, plan, &reference.trace, outcome);
            report.failures.extend(failure);
        }
        report.took = began.elapsed();
        report
    }

    /// The reference has to hold by itself, and to be the same twice.
    fn check_reference(&self, base: &Base, reference: &Outcome) -> Option<Failure> {
        let none = Plan::default();
        if reference.violation.is_some() {
            return Failure::of(&self.name, &none, &reference.trace, reference.clone());
        }
        if self.shape.pace.is_real {
            // Nobody promises that a program does the same twice in the same order.
            return None;
        }
        let mut again = self.execute(base, &none, None);
        let (first, second) = reference.trace.divergence(&again.trace)?;
        again.violation = Some(Violation::Diverged { first, second });
        Failure::of(&self.name, &none, &reference.trace, again)
    }

    /// The parts that every run of the operator needs, its workload included.
    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The name that replay tokens begin with.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// How many runs are made at once.
    pub(crate) fn jobs_at_once(&self) -> usize {
        let asked = std::env::var(JOBS).ok().and_then(|jobs| jobs.parse().ok());
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        // Runs of a program are waiting most of the time.
        let usual = || {
            if self.shape.pace.is_real {
                processors() * 3
            } else {
                processors()
            }
        };
        asked.or(self.jobs).unwrap_or_else(usual).max(1)
    }

    /// Starts a cluster with the objects of the campaign, and keeps it for runs to begin with.
    pub(crate) fn prepare(&self) -> Base {
        in_runtime(|| async { base::prepare(self.builder(), &self.objects).await })
    }

    fn builder(&self) -> Builder {
        let start = "2030-01-01T00:00:00Z".parse().expect("a moment");
        let builder = Cluster::builder().node_options(self.node_options());
        let builder = match &self.configure {
            Some(configure) => configure(builder),
            None => builder,
        };
        builder.seed(base::SEED).clock(Clock::starting_at(start))
    }

    /// Nodes renew their leases for the controller of their lifecycle. Where a campaign names its controllers and leaves that one
    /// out, nobody reads them, and a tenth of a run would be spent on writing them.
    fn node_options(&self) -> NodesOptions {
        let parts = self.shape.controllers.as_ref();
        let leases_are_read = parts.is_none_or(|parts| parts.contains(&BuiltIn::NodeLifecycle));
        if leases_are_read {
            NodesOptions::default()
        } else {
            NodesOptions::default().lease_duration(UNREAD_LEASE)
        }
    }

    fn execute(&self, base: &Base, plan: &Plan, reference: Option<&Outcome>) -> Outcome {
        if self.shape.pace.is_real {
            in_real_time(|| self.until_cancelled(base, plan, reference))
        } else {
            in_runtime(|| execute(&self.shape, base, plan, reference))
        }
    }

    /// Executes a plan with a real clock. A run that is cancelled is dropped, and its processes with it.
    async fn until_cancelled(
        &self,
        base: &Base,
        plan: &Plan,
        reference: Option<&Outcome>,
    ) -> Outcome {
        tokio::select! {
            biased; // What is cancelled does not begin.
            () = self.cancel.cancelled() => Outcome::default(),
            outcome = execute(&self.shape, base, plan, reference) => outcome,
        }
    }

    fn execute_all(&self, base: &Base, plans: &[Plan], reference: &Outcome) -> Vec<Outcome> {
        let progress = Progress::new(&self.name, plans.len());
        let run = |plan: &Plan| {
            let outcome = self.execute(base, plan, Some(reference));
            progress.step(outcome.violation.is_some());
            outcome
        };
        threads::spread(self.jobs_at_once(), plans, run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_renew_their_leases_as_kubelets_do_where_somebody_reads_them() {
        let lease = |campaign: Campaign| campaign.node_options().lease_duration;
        let campaign = || Campaign::new("a", |process| process.manager());
        let usual = NodesOptions::default().lease_duration;
        assert_eq!(lease(campaign()), usual);
        let read = campaign().controllers([BuiltIn::Nodes, BuiltIn::NodeLifecycle]);
        assert_eq!(lease(read), usual);
        let unread = campaign().controllers([BuiltIn::Nodes, BuiltIn::Scheduler]);
        assert_eq!(lease(unread), UNREAD_LEASE);
    }
}
