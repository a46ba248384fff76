//! How a client is made.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kubewright_cache::Factory;
use parking_lot::Mutex;

use super::warnings::{self, WarningHandler, Warnings};
use super::{Cache, Client, Consistency, RequestPolicy, Settings, Shared, WriteOptions};
use crate::cache::CacheOptions;
use crate::gate::{Gate, Gates};

/// How a client is made.
#[derive(Clone)]
#[must_use]
pub struct ClientBuilder {
    kube: kube::Client,
    factory: Option<Factory>,
    cache: CacheOptions,
    consistency: Consistency,
    sync_timeout: Duration,
    requests: RequestPolicy,
    pub(super) warnings: Option<WarningHandler>,
    gates: Gates,
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("consistency", &self.consistency)
            .field("sync_timeout", &self.sync_timeout)
            .finish_non_exhaustive()
    }
}

impl ClientBuilder {
    /// The informers that reads come from. By default of all namespaces.
    pub fn factory(mut self, factory: Factory) -> Self {
        self.factory = Some(factory);
        self
    }

    /// Sets what the cache holds of each kind. By default everything that is read.
    pub fn cache(mut self, options: CacheOptions) -> Self {
        self.cache = options;
        self
    }

    /// Whether reads wait for own writes.
    pub fn consistency(mut self, consistency: Consistency) -> Self {
        self.consistency = consistency;
        self
    }

    /// How long a read waits for the first state of a kind. By default two minutes.
    pub fn sync_timeout(mut self, timeout: Duration) -> Self {
        self.sync_timeout = timeout;
        self
    }

    /// Sets how long requests may take.
    pub fn requests(mut self, policy: RequestPolicy) -> Self {
        self.requests = policy;
        self
    }

    /// Sets who holds, fails or observes cached reads and reconciles; see [`gate`](crate::gate).
    pub fn gate(self, gate: Arc<dyn Gate>) -> Self {
        self.gates.set(gate);
        self
    }

    /// Builds the client with these options.
    pub fn build(self) -> Client {
        let factory = self
            .factory
            .unwrap_or_else(|| Factory::new(self.kube.clone()));
        let warnings = Arc::new(Warnings::new(self.warnings));
        let factory = warnings::heeded_by(factory, &warnings);
        let shared = Shared {
            kube: self.kube,
            factory,
            sync_timeout: self.sync_timeout,
            warnings,
            settings: Mutex::new(Settings {
                consistency: self.consistency,
                requests: self.requests,
            }),
            gates: self.gates,
            lifetime: Mutex::default(),
            forms: Mutex::default(),
            named: Mutex::default(),
            cache: Mutex::new(Cache {
                options: self.cache,
                entries: BTreeMap::new(),
            }),
        };
        Client {
            shared: Arc::new(shared),
            write: WriteOptions::default(),
            trail: None,
            fence: None,
            sender: None,
            cluster: None,
            clusters: None,
        }
    }
}

impl Client {
    /// A client made in one's own way.
    pub fn builder(kube: kube::Client) -> ClientBuilder {
        ClientBuilder {
            kube,
            factory: None,
            cache: CacheOptions::default(),
            consistency: Consistency::default(),
            sync_timeout: Duration::from_secs(120),
            requests: RequestPolicy::new(),
            warnings: None,
            gates: Gates::default(),
        }
    }
}
