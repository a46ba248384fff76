//! A campaign: the workload once without faults, then once for every fault that it has a place for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use futures::future::LocalBoxFuture;
use kubewright_cluster::{Builder, BuiltIn, Clock, Cluster, NodesOptions};
use kubewright_runtime::client::Consistency;
use kubewright_runtime::{Error, Manager};
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::base;
use crate::director::Rules;
use crate::external::{AnyExternal, ExternalSystem};
use crate::identity::WriteId;
use crate::normal::Masks;
use crate::oracle::Violation;
use crate::pace::Pace;
use crate::plan::{FaultKind, Plan};
use crate::planner;
use crate::process::{Process, Start};
use crate::program::Program;
use crate::progress::Progress;
use crate::replay::{self, Asked, REPLAY};
use crate::report::{Failure, Report};
use crate::run::{Base, Outcome, execute};
use crate::sheet;
use crate::state::State;
use crate::threads::{self, in_real_time, in_runtime};
use crate::user::User;

/// The lines of a timeline when one plan is repeated.
const REPLAYED: usize = 200;
/// The variable that asks for all plans, where a test takes some of them.
const VOLUME: &str = "KUBEWRIGHT_SIM";
/// The variable that says how many seeds are run.
const SEEDS: &str = "KUBEWRIGHT_SIM_SEEDS";
/// The variable that says how many runs are made at once.
const JOBS: &str = "KUBEWRIGHT_SIM_JOBS";
/// How long nothing may change in a run of a program until a step counts as done.
const REAL_SETTLE: Duration = Duration::from_millis(2500);
/// How long the lease of a node is good for that nobody reads.
const UNREAD_LEASE: Duration = Duration::from_secs(3600);
/// Failures that are made shorter.
const SHRUNK: usize = 3;

/// A step of a workload.
pub(crate) type Step =
    Arc<dyn Fn(User) -> LocalBoxFuture<'static, Result<(), Error>> + Send + Sync>;
type MakeExternal = Arc<dyn Fn() -> Arc<dyn AnyExternal> + Send + Sync>;
type Configure = Box<dyn Fn(Builder) -> Builder + Send + Sync>;

/// What every run of a campaign is made of.
#[derive(Clone)]
pub(crate) struct Shape {
    pub(crate) start: Start,
    pub(crate) pace: Pace,
    pub(crate) steps: Vec<(String, Step)>,
    pub(crate) rules: Rules,
    pub(crate) masks: Masks,
    pub(crate) external: Option<MakeExternal>,
    /// The built-in controllers of runs; none for those of the cluster.
    pub(crate) controllers: Option<BTreeSet<BuiltIn>>,
    pub(crate) consistency: Consistency,
    pub(crate) replicas: u32,
    pub(crate) settle: Duration,
    pub(crate) quiet: Duration,
}

/// Runs an operator through a workload, once without faults and once for each fault that has a place in it, and compares.
///
/// Everything is in this process and in virtual time: the API server, the built-in controllers, a node, the operator. The
/// same plan gives the same run, and every failure comes with the line that repeats it.
#[must_use = "a campaign does nothing until it runs"]
pub struct Campaign {
    name: String,
    shape: Shape,
    kinds: BTreeSet<FaultKind>,
    objects: Vec<Value>,
    configure: Option<Configure>,
    jobs: Option<usize>,
    sample: Option<usize>,
    cancel: CancellationToken,
}

impl Campaign {
    /// A campaign over the operator that this function starts. The function is called for every process: for each run, and
    /// within a run again after each crash. The name is part of replay tokens.
    pub fn new(name: &str, operator: impl Fn(&Process) -> Manager + Send + Sync + 'static) -> Self {
        Self::of(name, Start::Manager(Arc::new(operator)), Pace::VIRTUAL)
    }

    /// A campaign over an operator that is a program of any language, started once for every process. It reaches the API server
    /// by the kubeconfig that the variable `KUBECONFIG` names. The clock is the machine's, so a run takes seconds, most of which
    /// are waited; several run at once. Runs are less exact than those of an operator in this process: what is between two
    /// requests of a program is its own.
    pub fn of_program(name: &str, program: Program) -> Self {
        let campaign = Self::of(name, Start::Program(program), Pace::REAL);
        campaign.settle(REAL_SETTLE).quiet(REAL_SETTLE)
    }

    fn of(name: &str, start: Start, pace: Pace) -> Self {
        Self {
            name: name.to_owned(),
            shape: Shape {
                start,
                pace,
                steps: Vec::new(),
                rules: Rules::default(),
                masks: Masks::default(),
                external: None,
                controllers: None,
                consistency: Consistency::default(),
                replicas: 1,
                settle: Duration::from_secs(60),
                quiet: Duration::from_secs(120),
            },
            kinds: FaultKind::usual().collect(),
            objects: Vec::new(),
            configure: None,
            jobs: None,
            sample: None,
            cancel: CancellationToken::new(),
        }
    }

    /// Creates an object before anything starts: a definition of a kind, a namespace, a configuration.
    ///
    /// # Panics
    /// When the object cannot be written as JSON.
    pub fn install(mut self, object: &impl Serialize) -> Self {
        let object = serde_json::to_value(object).expect("the object can be written as JSON");
        self.objects.push(object);
        self
    }

    /// Adds a step to the workload. The next step begins when the cluster has come to rest after this one.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Secret;
    /// # use kubewright_sim::Campaign;
    /// # fn example(campaign: Campaign) {
    /// campaign
    ///     .step("create", async |user| {
    ///         let mut secret = Secret::default();
    ///         secret.metadata.name = Some("a".to_owned());
    ///         secret.metadata.namespace = Some("default".to_owned());
    ///         user.create(&secret).await?;
    ///         Ok(())
    ///     })
    ///     .check();
    /// # }
    /// ```
    pub fn step(
        mut self,
        name: &str,
        step: impl AsyncFn(User) -> Result<(), Error> + Send + Sync + 'static,
    ) -> Self {
        let step = Arc::new(step);
        let erased: Step = Arc::new(move |user| {
            let step = step.clone();
            Box::pin(async move { step(user).await })
        });
        self.shape.steps.push((name.to_owned(), erased));
        self
    }

    /// Adds a step that is erased already.
    pub(crate) fn with_step(mut self, name: &str, step: Step) -> Self {
        self.shape.steps.push((name.to_owned(), step));
        self
    }

    /// Adds a rule over the whole state that has to hold after every commit, whoever makes it.
    pub fn invariant(
        mut self,
        name: &str,
        holds: impl Fn(&State) -> bool + Send + Sync + 'static,
    ) -> Self {
        let rule = (name.to_owned(), Arc::new(holds) as _);
        self.shape.rules.invariants.push(rule);
        self
    }

    /// Adds a rule about writes that the operator must never make, whether the server takes them or not.
    pub fn forbid(
        mut self,
        name: &str,
        is_forbidden: impl Fn(&WriteId) -> bool + Send + Sync + 'static,
    ) -> Self {
        let rule = (name.to_owned(), Arc::new(is_forbidden) as _);
        self.shape.rules.forbidden.push(rule);
        self
    }

    /// Adds a system outside of the cluster, made anew for each run; see [`Process::external`].
    pub fn external<E: ExternalSystem>(
        mut self,
        make: impl Fn() -> E + Send + Sync + 'static,
    ) -> Self {
        self.shape.external = Some(Arc::new(move || Arc::new(make())));
        self
    }

    /// Sets how many replicas of the operator run at once. By default one. Each is a process of its own with a clock of its own;
    /// give their managers a leader election or shards, with [`Process::number`] in their identities.
    pub fn replicas(mut self, replicas: u32) -> Self {
        self.shape.replicas = replicas.max(1);
        self
    }

    /// Sets whether reads wait for the operator's own writes. By default they do, as in production.
    pub fn consistency(mut self, consistency: Consistency) -> Self {
        self.shape.consistency = consistency;
        self
    }

    /// Leaves a resource out of comparisons and out of what may not be left behind, as `jobs.batch`.
    pub fn ignore(mut self, resource: &str) -> Self {
        self.shape.masks.resources.push(resource.to_owned());
        self
    }

    /// Leaves a field out of comparisons, as `status.lastRun`.
    pub fn mask(mut self, field: &str) -> Self {
        self.shape.masks.fields.push(field.to_owned());
        self
    }

    /// Leaves a field of one resource out of comparisons: `mask_of("deployments.apps", "status.conditions")`.
    pub fn mask_of(mut self, resource: &str, field: &str) -> Self {
        let masked = (resource.to_owned(), field.to_owned());
        self.shape.masks.fields_of.push(masked);
        self
    }

    /// Sets how long nothing may change until a step counts as done. By default a minute of virtual time: longer than any
    /// single wait of the runtime.
    pub fn settle(mut self, time: Duration) -> Self {
        self.shape.settle = time;
        self
    }

    /// Sets how long the operator has to be silent after the last step. By default two minutes of virtual time.
    pub fn quiet(mut self, time: Duration) -> Self {
        self.shape.quiet = time;
        self
    }

    /// Runs no plans with this kind of fault.
    pub fn without(mut self, kind: FaultKind) -> Self {
        self.kinds.remove(&kind);
        self
    }

    /// Runs plans with these kinds of faults only.
    pub fn only(mut self, kinds: impl IntoIterator<Item = FaultKind>) -> Self {
        self.kinds = kinds.into_iter().collect();
        self
    }

    /// Changes the cluster: more nodes, an API server alone. Clock and seed are the simulation's.
    pub fn cluster(
        mut self,
        configure: impl Fn(Builder) -> Builder + Send + Sync + 'static,
    ) -> Self {
        self.configure = Some(Box::new(configure));
        self
    }

    /// Ends the runs of a program when this is cancelled: their processes are killed, and the report is about what was run so
    /// far. Runs in virtual time take no time worth cancelling.
    pub fn cancelled_by(mut self, cancel: CancellationToken) -> Self {
        self.cancel = cancel;
        self
    }

    /// Sets which built-in controllers runs have besides the operator. By default those of the cluster, which is prepared with
    /// all of them and comes to rest before any run begins. A run costs as much as the controllers that it has: name those that
    /// the operator depends on, as the garbage collector if it relies on owner references.
    pub fn controllers(mut self, parts: impl IntoIterator<Item = BuiltIn>) -> Self {
        self.shape.controllers = Some(parts.into_iter().collect());
        self
    }

    /// Sets how many plans run at once. By default one for each processor.
    pub fn jobs(mut self, jobs: usize) -> Self {
        self.jobs = Some(jobs.max(1));
        self
    }

    /// Runs this many plans, unless the variable `KUBEWRIGHT_SIM` is `full`: the first of each kind of fault, and others evenly
    /// spread.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Secret;
    /// # use kubewright_sim::Campaign;
    /// # fn example(campaign: Campaign) {
    /// // Enough for every `cargo test`; `KUBEWRIGHT_SIM=full` runs them all.
    /// campaign.sample(50).check();
    /// # }
    /// ```
    pub fn sample(mut self, plans: usize) -> Self {
        self.sample = Some(plans.max(1));
        self
    }

    /// Runs the campaign, or the one plan that `KUBEWRIGHT_REPLAY` names, and panics with a report if anything failed.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Secret;
    /// # use kubewright_sim::Campaign;
    /// # fn example(campaign: Campaign) {
    /// campaign.check();
    /// # }
    /// ```
    ///
    /// # Panics
    /// When a plan fails, and when the token in `KUBEWRIGHT_REPLAY` cannot be read.
    pub fn check(&self) {
        self.check_asked(|| self.run());
    }

    /// Runs so many seeds of [`simulate`](Campaign::simulate), or as many as the variable `KUBEWRIGHT_SIM_SEEDS` says, and panics
    /// with a report if anything failed.
    ///
    /// # Panics
    /// When a plan fails, and when the token in `KUBEWRIGHT_REPLAY` cannot be read.
    pub fn check_seeds(&self, seeds: u64) {
        let asked = std::env::var(SEEDS).ok().and_then(|text| text.parse().ok());
        self.check_asked(|| self.simulate(0..asked.unwrap_or(seeds)));
    }

    /// Does what the environment asks for: everything, one plan again, or nothing if that is a plan of another campaign.
    fn check_asked(&self, everything: impl FnOnce() -> Report) {
        let report = match replay::asked(&self.name) {
            Asked::Everything => everything(),
            Asked::Other(other) => {
                println!("{}: {REPLAY} is about {other}", self.name);
                return;
            }
            Asked::One(plan) => {
                let plan = plan.parse();
                self.replay(&plan.unwrap_or_else(|error| panic!("{REPLAY}: {error}")))
            }
        };
        self.finish(&report);
    }

    /// Writes the report where it is wanted, and fails if a plan failed.
    fn finish(&self, report: &Report) {
        sheet::keep(|directory| report.write(directory));
        assert!(report.is_clean(), "\n{report}");
        println!("{report}");
    }

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

/// So many of the plans, unless the environment asks for all.
fn sampled(plans: Vec<Plan>, sample: Option<usize>) -> Vec<Plan> {
    let full = std::env::var(VOLUME).is_ok_and(|volume| volume == "full");
    match sample {
        Some(some) if !full && some < plans.len() => spread_over_kinds(plans, some),
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

impl fmt::Debug for Campaign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Campaign({}, {} steps)",
            self.name,
            self.shape.steps.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::EventId;
    use crate::plan::Fault;

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
