//! A campaign: the workload once without faults, then once for every fault that it has a place for.

mod runs;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::LocalBoxFuture;
use kubewright_cluster::{Builder, BuiltIn};
use kubewright_runtime::client::Consistency;
use kubewright_runtime::{Error, Manager};
use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::director::Rules;
use crate::external::{AnyExternal, ExternalSystem};
use crate::identity::WriteId;
use crate::normal::Masks;
use crate::pace::Pace;
use crate::plan::FaultKind;
use crate::process::{Process, Start};
use crate::program::Program;
use crate::replay::{self, Asked, REPLAY};
use crate::report::Report;
use crate::sheet;
use crate::state::State;
use crate::user::User;

/// The variable that says how many seeds are run.
const SEEDS: &str = "KUBEWRIGHT_SIM_SEEDS";
/// How long nothing may change in a run of a program until a step counts as done.
const REAL_SETTLE: Duration = Duration::from_millis(2500);

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

    /// Leaves a field of every object out of comparisons, as `status.lastRun`. It takes the paths that reports print, with
    /// indexes of lists and keys that have dots in them: `spec.containers.0.image`, `metadata.annotations.example.com/at`.
    pub fn mask(mut self, field: &str) -> Self {
        self.shape.masks.fields.push(field.to_owned());
        self
    }

    /// Leaves a field of one resource out of comparisons: `mask_of("deployments.apps", "status.conditions")`. The path is one
    /// as of [`mask`](Campaign::mask).
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
