//! API priority and fairness: who may have how much of the server at once.
//!
//! FlowSchemas sort requests into flows of priority levels ([`schema`], [`config`]). Each level has its share of the
//! seats, and its flows are served in turn ([`machine`]). [`seat`] is the thin asynchronous shell around that machine,
//! [`crate::memory`] bounds the bytes that requests and unread answers hold, [`sending`] keeps a seat until a list is sent,
//! and [`slices`] keeps long work from delaying short work. A task of `bootstrap` keeps all of it in step with the stored
//! objects.
//!
//! Guarantees: `system:masters` and health checks never wait. A request holds a seat from when its body has arrived
//! until its answer is made, and a list until it is sent, but not while it waits for a webhook, a revision or the disk.
//! A request waits for at most [`seat::LONGEST_WAIT`] and is answered 429 with `Retry-After` otherwise.

mod config;
mod limits;
mod machine;
mod schema;
mod seat;
mod sending;
mod slices;
mod watches;

use std::fmt::Write as _;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use serde_json::Value;

use crate::access::Attributes;
use crate::auth::User;
use crate::memory::{Charge, Memory};
use config::Config;
use seat::Queues;

pub(crate) use config::Classified;
pub use limits::RequestLimits;
pub(crate) use machine::FlowId;
pub(crate) use seat::{Seat, release_while, with_seat};
pub(crate) use sending::{Holdings, Receiver, send};
pub(crate) use slices::{Progress, Slices};
pub(crate) use watches::{WatchPermit, Watches};

/// Flow control of one server.
pub(crate) struct FlowControl {
    /// Seats of all levels together.
    seats: usize,
    config: RwLock<Arc<Config>>,
    queues: Arc<Mutex<Queues>>,
    memory: Arc<Memory>,
    pub(crate) slices: Arc<Slices>,
}

impl FlowControl {
    pub(crate) fn new(limits: &RequestLimits) -> Self {
        Self {
            seats: limits.reads.saturating_add(limits.writes),
            config: RwLock::default(),
            queues: Arc::default(),
            memory: Arc::new(Memory::new(limits.bytes_per_user, limits.bytes)),
            slices: Arc::default(),
        }
    }

    /// Flow control of a copy of the server: the same rules, and nobody there yet.
    pub(crate) fn fork(&self, limits: &RequestLimits) -> Self {
        let fork = Self::new(limits);
        fork.put(self.config.read().clone());
        fork
    }

    /// Takes over stored FlowSchemas and PriorityLevelConfigurations.
    pub(crate) fn configure(&self, schemas: &[Value], levels: &[Value]) {
        self.put(Arc::new(Config::read(schemas, levels, self.seats)));
    }

    fn put(&self, config: Arc<Config>) {
        self.queues.lock().configure(config.limits());
        *self.config.write() = config;
    }

    /// What a request belongs to; none when nothing is configured, which is so while the server starts.
    pub(crate) fn classify(&self, user: &User, asked: &Attributes<'_>) -> Option<Classified> {
        self.config.read().classify(user, asked)
    }

    /// An account of the bytes that a request of this user holds, its answer included until it is sent.
    pub(crate) fn charge(&self, user: &User) -> Charge {
        Charge::new(&self.memory, &user.name)
    }

    /// Lines for `/metrics`, under the names that they have in Kubernetes.
    pub(crate) fn metrics(&self) -> String {
        let mut text = String::new();
        self.queues.lock().metrics(&mut text);
        let _ = write!(
            text,
            "# HELP kubewright_server_request_bytes Bytes held by requests and unread answers.\n\
             # TYPE kubewright_server_request_bytes gauge\nkubewright_server_request_bytes {}\n",
            self.memory.used()
        );
        text
    }
}
