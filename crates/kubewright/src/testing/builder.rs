//! How a world is to be.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kubewright_cluster::{self as cluster, Clock, Cluster, NodesOptions};
use kubewright_runtime::webhook::Webhooks;
use kubewright_runtime::{Environment, Manager};
use kubewright_server::Authorization;
use kubewright_testing::rbac::Grant;
use kubewright_testing::{Call, Fault, Wire};
use serde::Serialize;
use serde_json::Value;

use super::objects::{self, Source};
use super::role::Identity;
use super::world::World;
use crate::{Error, Result, registered};

/// How long a wait may take by default; it takes milliseconds.
const TIME_LIMIT: Duration = Duration::from_secs(30);

type Adjust = Arc<dyn Fn(Manager) -> Manager + Send + Sync>;
type Faults = Arc<dyn Fn(&Call) -> Fault + Send + Sync>;
type AdjustCluster = Box<dyn FnOnce(cluster::Builder) -> cluster::Builder + Send>;

/// Configures and starts a [`World`].
///
/// ```no_run
/// use std::time::Duration;
///
/// use kubewright::testing::{Clock, Fault, Verb, World};
///
/// # async fn test() {
/// let world = World::builder()
///     .clock(Clock::starting_at("2030-01-01T00:00:00Z".parse().unwrap()))
///     .seed(7)
///     .nodes(3)
///     .time_limit(Duration::from_secs(600))
///     .faults(|call| match (call.verb, call.number) {
///         (Verb::Patch, 1) => Fault::LoseAnswer,
///         _ => Fault::None,
///     })
///     .start()
///     .await;
/// # drop(world);
/// # }
/// ```
#[must_use = "a builder does nothing until it is started"]
pub struct Builder {
    plan: Plan,
    clock: Option<Clock>,
    cluster: Vec<AdjustCluster>,
    objects: Vec<Source>,
}

/// What a world and its forks have in common besides the cluster.
#[derive(Clone)]
pub(super) struct Plan {
    pub(super) identity: Identity,
    pub(super) refusals: Refusals,
    pub(super) seed: u64,
    pub(super) time_limit: Duration,
    serve: Serve,
    /// Those that are served beside the registered ones.
    webhooks: Webhooks,
    adjust: Option<Adjust>,
    faults: Option<Faults>,
}

/// What a wait makes of requests of the operator that no role allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusals {
    Fail,
    Tolerate,
}

/// Whether webhooks are served and asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Serve {
    Webhooks,
    Nothing,
}

impl Default for Builder {
    fn default() -> Self {
        let plan = Plan {
            identity: Identity::Generated,
            refusals: Refusals::Fail,
            serve: Serve::Webhooks,
            webhooks: Webhooks::new(),
            seed: Environment::system().below(u64::MAX),
            time_limit: TIME_LIMIT,
            adjust: None,
            faults: None,
        };
        Self {
            plan,
            clock: None,
            cluster: Vec::new(),
            objects: Vec::new(),
        }
    }
}

impl Builder {
    /// Sets the clock of the cluster and the operator. By default it shows the present moment at the start and goes as tokio's
    /// does, so that in a test with a paused clock an hour takes milliseconds.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Sets the seed of uids, generated names and jitter. By default it is another one each time; failures print it.
    pub fn seed(mut self, seed: u64) -> Self {
        self.plan.seed = seed;
        self
    }

    /// Sets the number of simulated nodes, by default one.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright::prelude::*;
    /// # use kubewright::testing::World;
    /// # async fn test() {
    /// let world = World::builder().nodes(3).start().await;
    /// # drop(world);
    /// # }
    /// ```
    pub fn nodes(self, count: usize) -> Self {
        self.cluster(move |cluster| cluster.nodes(count))
    }

    /// Sets what simulated nodes are like: their capacity, labels and taints, how long containers take.
    pub fn node_options(self, options: NodesOptions) -> Self {
        self.cluster(|cluster| cluster.node_options(options))
    }

    /// Runs an API server without built-in controllers and nodes: Deployments get no Pods, and nothing is collected.
    pub fn without_controllers(self) -> Self {
        self.cluster(cluster::Builder::without_controllers)
    }

    /// Changes the cluster in ways that this builder has no method for.
    pub fn cluster(
        mut self,
        change: impl FnOnce(cluster::Builder) -> cluster::Builder + Send + 'static,
    ) -> Self {
        self.cluster.push(Box::new(change));
        self
    }

    /// Applies the objects of a YAML text before the operator starts, as the administrator: other people's definitions first,
    /// then namespaces, then the rest in order.
    pub fn manifest(mut self, yaml: impl Into<String>) -> Self {
        self.objects.push(Source::Yaml(yaml.into()));
        self
    }

    /// Applies the objects of a YAML file, as [`manifest`](Builder::manifest) does.
    pub fn manifest_file(mut self, path: impl AsRef<Path>) -> Self {
        let path: PathBuf = path.as_ref().to_owned();
        self.objects.push(Source::File(path));
        self
    }

    /// Applies an object before the operator starts, or the definition of a kind: `Foo::crd()`.
    ///
    /// # Panics
    /// When the object cannot be written as JSON.
    pub fn object(mut self, object: &impl Serialize) -> Self {
        let object = serde_json::to_value(object).expect("an object can be written as JSON");
        self.objects.push(Source::Object(object));
        self
    }

    /// Changes the manager before it runs, as [`Operator::manager`](crate::Operator::manager) does, and once more for each fork
    /// and restart. For programs that register nothing this is where their controllers are added.
    pub fn manager(mut self, adjust: impl Fn(Manager) -> Manager + Send + Sync + 'static) -> Self {
        self.plan.adjust = Some(Arc::new(adjust));
        self
    }

    /// Runs the operator with a role that is written by hand: a manifest with a ServiceAccount, roles and their bindings. By
    /// default it has the role that is generated from what is registered.
    ///
    /// # Panics
    /// When the manifest is not a [`Grant`].
    pub fn role(self, manifest: &str) -> Self {
        match Grant::read(manifest) {
            Ok(grant) => self.grant(grant),
            Err(error) => panic!("the role cannot be used: {error}"),
        }
    }

    /// Runs the operator with these permissions and no others.
    pub fn grant(mut self, grant: Grant) -> Self {
        self.plan.identity = Identity::Granted(grant);
        self
    }

    /// Runs the operator as the administrator: nothing it asks for is refused.
    pub fn as_admin(mut self) -> Self {
        self.plan.identity = Identity::Admin;
        self
    }

    /// Lets waits go on when a role does not allow a request of the operator. By default they fail at once, and name the rule
    /// that is missing.
    pub fn tolerate_refusals(mut self) -> Self {
        self.plan.refusals = Refusals::Tolerate;
        self
    }

    /// Sets what happens to each request of the operator, from the first one on: errors, delays, lost answers, silence. Those of
    /// the test itself are not disturbed. [`World::wire`] changes it later, and breaks watches.
    pub fn faults(mut self, plan: impl Fn(&Call) -> Fault + Send + Sync + 'static) -> Self {
        self.plan.faults = Some(Arc::new(plan));
        self
    }

    /// Serves webhooks beside those that are registered, as [`Operator::webhooks`](crate::Operator::webhooks) does. The server asks
    /// them where an attribute says so, such as one on the type that answers.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright::testing::World;
    /// # use kubewright::webhook::{Denial, Request, Validating, ValidationResult, Webhooks};
    /// #[kubewright::webhook(
    ///     validating,
    ///     name = "vconfigmap.my.domain",
    ///     path = "/validate-configmap",
    ///     groups = "",
    ///     versions = "v1",
    ///     resources = "configmaps",
    ///     verbs = "create"
    /// )]
    /// struct Quota(usize);
    ///
    /// impl Validating<ConfigMap> for Quota {
    ///     async fn create(&self, map: &ConfigMap, _: &Request) -> ValidationResult {
    ///         let size = map.data.as_ref().map_or(0, |data| data.len());
    ///         if size > self.0 { Err(Denial::new("it is too large")) } else { Ok(Vec::new()) }
    ///     }
    /// }
    ///
    /// # async fn test() {
    /// let hooks = Webhooks::new().validating("/validate-configmap", Quota(10));
    /// let world = World::builder().webhooks(hooks).start().await;
    /// # drop(world);
    /// # }
    /// ```
    pub fn webhooks(mut self, webhooks: Webhooks) -> Self {
        self.plan.webhooks = self.plan.webhooks.and(webhooks);
        self
    }

    /// Leaves all webhooks out: the server asks nobody. The server calls webhooks over a socket, which a paused clock
    /// does not wait for, so tests in virtual time of an operator that has webhooks need this.
    pub fn without_webhooks(mut self) -> Self {
        self.plan.serve = Serve::Nothing;
        self
    }

    /// Sets how long a wait may take, by tokio's clock. By default 30 seconds.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.plan.time_limit = limit;
        self
    }

    /// Starts the cluster, installs what is registered, and runs the operator.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright::prelude::*;
    /// # use kubewright::testing::World;
    /// # async fn test() {
    /// let world = World::builder().as_admin().start().await;
    /// # drop(world);
    /// # }
    /// ```
    ///
    /// # Panics
    /// When the cluster does not start, or does not accept an object.
    pub async fn start(self) -> World {
        match Box::pin(self.try_start()).await {
            Ok(world) => world,
            Err(error) => panic!("the world does not start: {}", error.report()),
        }
    }

    /// Starts as [`start`](Builder::start) does, and gives the error.
    ///
    /// # Errors
    /// When the cluster does not start, or does not accept an object.
    pub async fn try_start(self) -> Result<World> {
        // Tied to tokio's clock, which a test may have paused.
        let clock = self
            .clock
            .unwrap_or_else(|| Clock::starting_at(Clock::system().now()));
        let cluster = Cluster::builder()
            .clock(clock)
            .seed(self.plan.seed)
            .authorization(Authorization::Rbac);
        let cluster = self
            .cluster
            .into_iter()
            .fold(cluster, |cluster, change| change(cluster));
        let cluster = cluster.start().await.map_err(Error::from)?;
        let objects: Vec<Value> = objects::read(self.objects)?;
        objects::apply_all(&cluster.client(), objects).await?;
        World::over(cluster, self.plan).await
    }
}

impl Plan {
    /// The operator's manager over its own transport.
    pub(super) fn manager(&self, wire: &Wire, environment: Environment) -> Manager {
        let manager = Manager::new(wire.client()).environment(environment);
        match &self.adjust {
            Some(adjust) => adjust(manager),
            None => manager,
        }
    }

    /// What the operator answers of what the server asks.
    pub(super) fn webhooks(&self) -> Webhooks {
        match self.serve {
            Serve::Webhooks => registered::webhooks().and(self.webhooks.clone()),
            Serve::Nothing => Webhooks::new(),
        }
    }

    /// Has the faults of this plan happen on a transport.
    pub(super) fn disturb(&self, wire: &Wire) {
        if let Some(faults) = self.faults.clone() {
            wire.plan(move |call| faults(call));
        }
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Builder").field(&self.plan).finish()
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("identity", &self.identity)
            .field("seed", &self.seed)
            .field("time_limit", &self.time_limit)
            .finish_non_exhaustive()
    }
}
