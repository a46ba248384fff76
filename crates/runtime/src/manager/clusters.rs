//! The further clusters of a manager.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kubewright_cache::Factory;

use super::part::{OnEnd, Part, Stage};
use super::supervisor::Supervisor;
use super::{Ended, Manager, ManagerError, follow};
use crate::client::{Client, InformerLifetime};
use crate::controller::AnyController;
use crate::events::{EventWriter, Recorder, RecorderOptions};

/// A cluster besides the manager's own.
pub(super) struct Cluster {
    name: String,
    client: Client,
    informers: Arc<InformerLifetime>,
}

/// A recorder for each cluster, so that one which does not answer keeps nobody else's events waiting.
pub(super) struct Recorders {
    home: Recorder,
    further: BTreeMap<String, Recorder>,
}

impl Recorders {
    /// The recorder for a controller of a cluster; of the manager's own where none is named.
    pub(super) fn of(&self, cluster: Option<&str>) -> &Recorder {
        let further = cluster.and_then(|name| self.further.get(name));
        further.unwrap_or(&self.home)
    }
}

impl Manager {
    /// Adds a further cluster under a name, for controllers that work with several.
    ///
    /// - [`Client::cluster`] leads from a controller's client to that of this cluster.
    /// - [`Watch::cluster`](crate::Watch::cluster) has a controller hear of changes there.
    /// - [`Builder::cluster`](crate::controller::Builder::cluster) makes a controller one of objects there: what it reads and
    ///   writes, finalizers and events included.
    ///
    /// Elections, shards, probes and webhooks are of the manager's own cluster: losing its lease ends the writes to all. The
    /// informers of the cluster are those of this client, with its [cache options](crate::client::ClientBuilder::cache); the
    /// last manager over a client stops them. Their metrics have the label `cluster`.
    ///
    /// A cluster that does not answer holds up those who need it and nobody else. A controller that watches it waits for its
    /// first state as long as [`sync_timeout`](crate::controller::Builder::sync_timeout) says, and then ends the manager; a
    /// watch that is [`optional`](crate::Watch::optional) is not waited for.
    ///
    /// A name that is empty or taken is an error when the manager runs.
    ///
    /// ```no_run
    /// use std::sync::Arc;
    ///
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kubewright_runtime::{Client, Context, Controller, Error, Manager, Outcome, Watch, from_fn};
    ///
    /// /// Copies a ConfigMap to the edge, and puts it back if somebody changes it there.
    /// async fn reconcile(config: Arc<ConfigMap>, cx: Context) -> Result<Outcome, Error> {
    ///     let edge = cx.client().cluster("edge")?;
    ///     let data = config.data.clone();
    ///     edge.create_or_update::<ConfigMap>(cx.key(), move |copy| copy.data = data.clone()).await?;
    ///     Ok(Outcome::done())
    /// }
    ///
    /// # async fn example(here: kube::Client, there: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let controller = Controller::of::<ConfigMap>("copies")
    ///     .watches(Watch::of::<ConfigMap>().cluster("edge"))
    ///     .reconciler(from_fn(reconcile));
    /// Manager::new(here).cluster("edge", Client::new(there)).controller(controller).run().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn cluster(mut self, name: &str, client: Client) -> Self {
        self.clusters.push(Cluster {
            name: name.to_owned(),
            informers: client.informers(),
            client,
        });
        self
    }

    /// The further clusters, with their names.
    pub(super) fn further(&self) -> impl Iterator<Item = (&str, &Client)> {
        let clusters = self.clusters.iter();
        clusters.map(|cluster| (cluster.name.as_str(), &cluster.client))
    }

    /// Looks at the names of clusters, and at those that controllers name.
    pub(super) fn check_clusters(&self) -> Result<(), ManagerError> {
        let mut names = BTreeSet::new();
        for (name, _) in self.further() {
            if name.is_empty() {
                return Err(ManagerError::UnnamedCluster);
            }
            if !names.insert(name) {
                let name = name.to_owned();
                return Err(ManagerError::SameCluster { name });
            }
        }
        for controller in &self.controllers {
            self.client_of(&**controller)?;
        }
        Ok(())
    }

    /// The client of the cluster whose objects a controller reconciles.
    pub(super) fn client_of(&self, controller: &dyn AnyController) -> Result<Client, ManagerError> {
        let Some(name) = controller.cluster() else {
            return Ok(self.client());
        };
        self.client()
            .cluster(name)
            .map_err(|error| ManagerError::Part {
                part: format!("controller {}", controller.name()),
                ended: Ended::Failed(error.into()),
            })
    }

    /// Writes the numbers of all informers whenever metrics are asked for.
    pub(super) fn collect_informers(&self) {
        let factory = |name: &str, client: &Client| (name.to_owned(), client.factory().clone());
        let mut factories: Vec<(String, Factory)> = vec![factory("", &self.client)];
        factories.extend(self.further().map(|(name, client)| factory(name, client)));
        self.metrics.collect("informers", move |out| {
            let mut all = Vec::new();
            for (cluster, factory) in &factories {
                for mut stats in factory.stats() {
                    stats.cluster.clone_from(cluster);
                    all.push(stats);
                }
            }
            // Writing into a string cannot fail.
            let _ = kubewright_cache::prometheus::write(&all, out);
        });
    }

    /// A recorder for what is not a reconcile: a runnable, a webhook, `main`. Its events are reported by `name`, about objects of the
    /// manager's own cluster.
    ///
    /// The manager writes them while it runs, beside those of its controllers, and what is recorded until the end of its parts before
    /// it ends. What is recorded earlier waits, as much of it as [`RecorderOptions::queue`] says. Set the clock and that number
    /// before.
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::Namespace;
    /// use kubewright_runtime::manager::Task;
    /// use kubewright_runtime::{EventKind, Manager};
    ///
    /// # fn example(manager: Manager, namespace: Namespace) -> Manager {
    /// let recorder = manager.recorder_for("janitor");
    /// manager.runnable(Task::new("janitor", move |stop| async move {
    ///     recorder.about(&namespace, EventKind::Normal, "Swept", "old backups are gone");
    ///     stop.cancelled().await;
    ///     Ok(())
    /// }))
    /// # }
    /// ```
    pub fn recorder_for(&self, name: &str) -> Recorder {
        let mut recording = self.recording.lock();
        let recording = recording.get_or_insert_with(|| Box::new(self.new_recorder(&self.client)));
        let (recorder, _) = &**recording;
        recorder.with_component(name)
    }

    fn new_recorder(&self, client: &Client) -> (Recorder, EventWriter) {
        let (kube, environment) = (client.kube().clone(), self.environment.clone());
        Recorder::new(kube, self.recorder_options(), environment)
    }

    fn recorder_options(&self) -> RecorderOptions {
        let options = self.recorder.clone();
        options.unwrap_or_else(|| RecorderOptions::new(&self.name))
    }

    /// The recorders of all clusters. What they record is written as parts of the manager.
    pub(super) fn record(&self, supervisor: &mut Supervisor) -> Recorders {
        let given = self.recording.lock().take();
        let (home, writer) = given.map_or_else(|| self.new_recorder(&self.client), |given| *given);
        // Whoever asked for a recorder may have done so before the options were set.
        let writer = writer.with_options(self.recorder_options());
        write_events("event writer".to_owned(), writer, supervisor);
        let mut further = BTreeMap::new();
        for (name, client) in self.further() {
            let (recorder, writer) = self.new_recorder(client);
            write_events(format!("event writer of {name}"), writer, supervisor);
            further.insert(name.to_owned(), recorder);
        }
        Recorders { home, further }
    }
}

impl Cluster {
    /// Follows the informers of the cluster as a part of the manager.
    pub(super) fn follow(self, supervisor: &mut Supervisor) {
        let part = Part::new(Stage::Informers, format!("informers of {}", self.name));
        supervisor.add(part, |stop| follow(self.informers, stop));
    }
}

fn write_events(part: String, writer: EventWriter, supervisor: &mut Supervisor) {
    // It ends when nobody is left who could record anything.
    let part = Part {
        on_end: OnEnd::Fine,
        ..Part::new(Stage::Events, part)
    };
    supervisor.add(part, |stop| async {
        writer.run(stop).await;
        Ok(())
    });
}
