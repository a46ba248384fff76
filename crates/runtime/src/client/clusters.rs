//! The clusters of a manager, and the way of a client from one to another.
//!
//! The clusters are a part of a client's value and not of what its clones share: two managers over one client may have
//! different ones. A client that goes to another cluster takes along what belongs to its user: the lease without which nothing
//! is written, how it writes, and the reconcile that it notes reads and writes for. What belongs to the cluster stays there:
//! the cache with what was written to it, credentials, and time limits.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use super::{Client, ClientError, Shared};
use crate::{Error, States};

/// The clusters of one manager.
#[derive(Clone)]
pub(super) struct Clusters {
    home: Place,
    further: BTreeMap<Arc<str>, Place>,
    /// What the manager was given, wherever its clients go.
    states: States,
}

/// How a client reaches one cluster.
#[derive(Clone)]
struct Place {
    shared: Arc<Shared>,
    sender: Option<kube::Client>,
}

/// The name of a cluster at the end of a phrase; nothing for the manager's own.
pub(crate) struct OfCluster<'a>(pub(crate) Option<&'a str>);

impl fmt::Display for OfCluster<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(name) => write!(f, " of cluster {name}"),
            None => Ok(()),
        }
    }
}

impl Place {
    fn of(client: &Client) -> Self {
        Self {
            shared: client.shared.clone(),
            sender: client.sender.clone(),
        }
    }
}

impl Clusters {
    pub(super) fn home(&self) -> &Shared {
        &self.home.shared
    }

    /// Has all who come back to a cluster send their requests as this client of it does.
    pub(super) fn remember(&mut self, client: &Client) {
        let place = match &client.cluster {
            None => Some(&mut self.home),
            Some(name) => self.further.get_mut(name),
        };
        if let Some(place) = place {
            *place = Place::of(client);
        }
    }
}

impl Client {
    /// The same client for a [further cluster](crate::Manager::cluster) of its manager: reads come from that cluster's cache,
    /// writes go to that cluster.
    ///
    /// The client writes as this one does: under the same field owner, within the same reconcile, and not at all once the
    /// lease of the process has run out. Cache, credentials, time limits and [`Consistency`](super::Consistency) are those of
    /// the client that the manager was given for the cluster.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_runtime::{Context, Error, Outcome};
    /// # async fn reconcile(config: Arc<ConfigMap>, cx: Context) -> Result<Outcome, Error> {
    /// let edge = cx.client().cluster("edge")?;
    /// let data = config.data.clone();
    /// edge.create_or_update::<ConfigMap>(cx.key(), move |copy| copy.data = data.clone()).await?;
    /// # Ok(Outcome::done())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ClientError::UnknownCluster`], with the names that are known, when the manager has no cluster of this name, or the
    /// client is not one of a manager.
    pub fn cluster(&self, name: &str) -> Result<Self, ClientError> {
        let clusters = self.clusters.as_deref();
        let found = clusters.and_then(|clusters| clusters.further.get_key_value(name));
        match found {
            Some((name, place)) => Ok(self.at(Some(name.clone()), place)),
            None => {
                let known = clusters.into_iter().flat_map(|all| all.further.keys());
                let known: Vec<&str> = known.map(|name| &**name).collect();
                Err(ClientError::UnknownCluster {
                    name: name.to_owned(),
                    known: known.join(", "),
                })
            }
        }
    }

    /// The same client for the manager's own cluster, which is where it already is unless it comes from
    /// [`Client::cluster`] or belongs to a [controller of another cluster](crate::controller::Builder::cluster).
    #[must_use]
    pub fn home(&self) -> Self {
        match &self.clusters {
            Some(clusters) => self.at(None, &clusters.home),
            None => self.clone(),
        }
    }

    /// What the [manager](crate::Manager::state) of this client was given, by its type: for mappers and handlers of watches, and for
    /// sources, which have a client and no [`Context`](crate::Context).
    ///
    /// ```
    /// use std::collections::BTreeMap;
    ///
    /// use k8s_openapi::api::core::v1::{ConfigMap, Node};
    /// use kubewright_runtime::{Key, Watch};
    ///
    /// /// Given to the manager with `manager.state(Zones(..))`.
    /// struct Zones(BTreeMap<String, Key>);
    ///
    /// let watch = Watch::of::<Node>().map(|node, client| {
    ///     let name = node.metadata.name.as_ref();
    ///     let zones = client.state::<Zones>().ok();
    ///     let key = zones.zip(name).and_then(|(zones, name)| zones.0.get(name));
    ///     key.cloned().into_iter().collect()
    /// });
    /// # let watch: Watch<Node> = watch;
    /// ```
    ///
    /// # Errors
    /// When the manager was given no value of this type, or the client is not one of a manager. The error is terminal.
    pub fn state<T: Send + Sync + 'static>(&self) -> Result<&T, Error> {
        static NOTHING: LazyLock<States> = LazyLock::new(States::default);
        let clusters = self.clusters.as_deref();
        let states = clusters.map_or(&*NOTHING, |clusters| &clusters.states);
        states.get().map_err(Error::terminal)
    }

    /// The name of its cluster; none for the manager's own.
    pub fn cluster_name(&self) -> Option<&str> {
        self.cluster.as_deref()
    }

    /// Its cluster, for those who keep the name.
    pub(crate) fn shared_cluster_name(&self) -> Option<Arc<str>> {
        self.cluster.clone()
    }

    /// The same client as that of a manager with these further clusters, and with what it was given.
    pub(crate) fn with_clusters<'a>(
        &self,
        further: impl Iterator<Item = (&'a str, &'a Self)>,
        states: &States,
    ) -> Self {
        let further = further.map(|(name, client)| (name.into(), Place::of(client)));
        let further: BTreeMap<Arc<str>, Place> = further.collect();
        let clusters = Clusters {
            home: Place::of(self),
            further,
            states: states.clone(),
        };
        let mut other = self.clone();
        other.cluster = None;
        // A manager of one cluster that was given nothing has clients that are as small as they can be.
        let is_plain = clusters.further.is_empty() && clusters.states.is_empty();
        other.clusters = (!is_plain).then(|| Arc::new(clusters));
        other
    }

    fn at(&self, cluster: Option<Arc<str>>, place: &Place) -> Self {
        let Place { shared, sender } = place.clone();
        Self {
            shared,
            sender,
            cluster,
            ..self.clone()
        }
    }
}
