//! The world: a cluster, the operator on it, and a client of the administrator's.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kubewright_cluster::Cluster;
use kubewright_runtime::controller::Reconciled;
use kubewright_runtime::{Client, Environment};
use kubewright_testing::Wire;
use kubewright_testing::rbac::Grant;
use parking_lot::Mutex;

use super::builder::{Builder, Plan};
use super::install::install_as;
use super::operator::Running;
use super::role;
use crate::{Result, registered};

/// A cluster in this process that knows the kinds of this program, with its controllers at work and its webhooks asked. All of
/// it ends with this value.
///
/// Each wait has a limit of time, 30 seconds by default, and fails with what can be known: see [`until`](World::until). When the
/// operator ends by itself, or asks for something that its roles do not allow, waits fail at once.
#[derive(Debug)]
pub struct World {
    /// Dropped first: the operator ends before its cluster.
    operator: Mutex<Option<Arc<Running>>>,
    /// Reads and writes as the administrator.
    pub client: Client,
    /// The cluster: what it is made of, and clients of other people.
    pub cluster: Cluster,
    wire: Wire,
    grant: Option<Grant>,
    pub(super) plan: Plan,
    /// How many operators there were, each with randomness of its own.
    starts: AtomicU64,
}

impl World {
    /// Starts a cluster, installs everything that is registered, and runs it with the role that is generated for it.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright::prelude::*;
    /// # use kubewright::testing::World;
    /// # async fn test() {
    /// let world = World::start().await;
    /// world.until_event("Synced").await;
    /// # }
    /// ```
    ///
    /// # Panics
    /// When a definition or configuration is not accepted.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// Configures a world: clock, seed, nodes, faults, roles, other people's objects.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright::prelude::*;
    /// # use kubewright::testing::World;
    /// # async fn test() {
    /// let world = World::builder().seed(7).nodes(3).start().await;
    /// # drop(world);
    /// # }
    /// ```
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Runs the operator of this plan on a new cluster.
    ///
    /// # Errors
    /// When the server refuses a role, a definition or a configuration.
    pub(super) async fn over(cluster: Cluster, plan: Plan) -> Result<Self> {
        let grant = plan.identity.grant()?;
        if let Some(grant) = &grant {
            role::install(&cluster, grant).await?;
        }
        let world = Self::idle(cluster, plan, grant);
        world.start_operator().await?;
        Ok(world)
    }

    fn idle(cluster: Cluster, plan: Plan, grant: Option<Grant>) -> Self {
        let wire = role::connect(&cluster, grant.as_ref());
        plan.disturb(&wire);
        Self {
            operator: Mutex::new(None),
            client: Client::new(cluster.client()),
            cluster,
            wire,
            grant,
            plan,
            starts: AtomicU64::new(0),
        }
    }

    /// Makes a world of its own with all that this one has at this moment, and an operator that starts there. The faults are
    /// those of the builder again.
    ///
    /// # Panics
    /// When the copy does not start.
    pub async fn fork(&self) -> Self {
        match Box::pin(self.try_fork()).await {
            Ok(world) => world,
            Err(error) => panic!("the copy of a world does not start: {}", error.report()),
        }
    }

    async fn try_fork(&self) -> Result<Self> {
        let cluster = self.cluster.fork().await?;
        let world = Self::idle(cluster, self.plan.clone(), self.grant.clone());
        world.start_operator().await?;
        Ok(world)
    }

    /// Starts the operator again, after [`stop_operator`](World::stop_operator) or [`kill_operator`](World::kill_operator): a
    /// new manager with an empty cache, over the same transport.
    ///
    /// # Errors
    /// When a definition or configuration is not accepted.
    pub async fn start_operator(&self) -> Result {
        let starts = self.starts.fetch_add(1, Ordering::Relaxed);
        // Another sequence than the cluster's, from the same seed.
        let seed = self.plan.seed.rotate_left(32).wrapping_add(starts);
        let environment = Environment::seeded(self.cluster.clock().clone(), seed);
        let manager = self.plan.manager(&self.wire, environment);
        let client = self.cluster.client();
        let manager = install_as(&client, manager, self.plan.webhooks()).await?;
        let controllers = registered::controllers(manager.states()).into_iter();
        let manager = controllers.fold(manager, |manager, controller| controller.add_to(manager));
        *self.operator.lock() = Some(Arc::new(Running::start(manager)));
        Ok(())
    }

    /// Stops the operator as a signal would, and completes when it has ended.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright::prelude::*;
    /// # use kubewright::testing::World;
    /// # async fn test() {
    /// # let world = World::start().await;
    /// # let (key, map) = (Key::new("default", "settings"), ConfigMap::default());
    /// // What happens while nobody watches is found after the start.
    /// world.stop_operator().await.expect("it ends in order");
    /// world.client.create(&map).await.expect("created");
    /// world.start_operator().await.expect("it starts again");
    /// world.until(&key, |map: Option<&ConfigMap>| map.is_some_and(|map| map.data.is_some())).await;
    /// # }
    /// ```
    ///
    /// # Errors
    /// When a part of it failed, or did not end in time.
    pub async fn stop_operator(&self) -> Result {
        match self.running() {
            Some(running) => Ok(running.stop().await?),
            None => Ok(()),
        }
    }

    /// Ends the operator as a crash would: what it was about to do it does not do.
    pub async fn kill_operator(&self) {
        if let Some(running) = self.running() {
            running.kill().await;
        }
    }

    /// The operator's transport to the server: disturbs requests, delays and breaks watches, knows what was asked.
    pub fn wire(&self) -> &Wire {
        &self.wire
    }

    /// The last reconciles of all controllers: why each ran, what it wrote, how it ended.
    pub fn reconciles(&self) -> Vec<Reconciled> {
        self.running()
            .map_or_else(Vec::new, |running| running.reconciles())
    }

    /// The seed of this world.
    pub fn seed(&self) -> u64 {
        self.plan.seed
    }

    /// The operator, while it runs and after.
    pub(super) fn running(&self) -> Option<Arc<Running>> {
        self.operator.lock().clone()
    }

    pub(super) fn grant(&self) -> Option<&Grant> {
        self.grant.as_ref()
    }
}
