//! The agent of a member: it runs the database, obeys the operator, and is the only way to the database.
//!
//! `lease` is pure and says whether writes may be taken; `proxy` asks it before every byte that leaves; `supervisor` makes the database
//! what the last order says; `http` is where orders come in. `backup` is the agent of the backups of a cluster, `store` where they are,
//! and `restore` makes a database of them.

pub mod backup;
mod database;
mod http;
pub mod lease;
mod proxy;
pub mod restore;
mod sql;
mod store;
mod supervisor;

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ::http::StatusCode;
use anyhow::Context as _;
use parking_lot::Mutex;
use rand::TryRngCore as _;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::protocol::{AGENT_PORT, DATABASE_PORT, Order, Report, State};
use lease::{Lease, Refused};

/// How an agent is to be.
#[derive(Debug, Clone)]
pub struct Options {
    /// The name of the member.
    pub member: String,
    /// The address of the pod.
    pub address: IpAddr,
    /// The directory of the volume.
    pub directory: PathBuf,
    /// The directory with the programs of PostgreSQL.
    pub programs: PathBuf,
    /// Whom the programs run as, if the agent is root.
    pub account: Option<(u32, u32)>,
    /// The password of the administrator.
    pub password: String,
}

/// What the tasks of an agent share.
pub(crate) struct Shared {
    began: Instant,
    volume: PathBuf,
    socket: PathBuf,
    inner: Mutex<Inner>,
    /// Somebody has to look at the order again.
    changed: Notify,
}

struct Inner {
    lease: Lease,
    order: Option<Order>,
    /// When the last order came.
    ordered: Option<Instant>,
    report: Report,
    /// How clients are let in.
    serving: Serving,
    /// Counts how often that changed, so that connections of before are closed.
    epoch: u64,
}

/// How clients are let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Serving {
    Nobody,
    /// While the lease lasts.
    Writers,
    /// The database follows, and takes no writes by itself.
    Readers,
}

/// What survives a crash of the agent.
#[derive(Serialize, Deserialize, Default)]
struct Written {
    term: u64,
    stopped: bool,
}

impl Shared {
    fn new(options: &Options) -> Self {
        let volume = options.directory.join("agent.json");
        let text = fs::read(&volume).unwrap_or_default();
        let written: Written = serde_json::from_slice(&text).unwrap_or_default();
        let name = format!(".s.PGSQL.{DATABASE_PORT}");
        Self {
            began: Instant::now(),
            volume,
            socket: options.directory.join("run").join(name),
            inner: Mutex::new(Inner {
                lease: Lease::restore(written.term, written.stopped),
                order: None,
                ordered: None,
                report: Report::default(),
                serving: Serving::Nobody,
                epoch: 0,
            }),
            changed: Notify::new(),
        }
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// A report with a new nonce.
    fn report(&self) -> Report {
        // Without randomness there is no nonce that could be known, and no lease.
        let nonce = rand::rngs::OsRng.try_next_u64().ok();
        let now = self.now();
        let mut inner = self.inner.lock();
        if let Some(nonce) = nonce {
            inner.lease.remember(now, nonce);
        }
        let (term, fenced) = inner.lease.record();
        let mut report = inner.report.clone();
        // What was true when it was looked at is not when the lease has run out since.
        if report.state == State::Primary && !inner.lease.holds(now) {
            report.state = State::Busy;
        }
        Report {
            nonce: nonce.unwrap_or_default(),
            term,
            fenced,
            revision: inner.lease.revision(),
            ..report
        }
    }

    /// Obeys an order, on disk first.
    fn obey(&self, order: Order) -> Result<(), Refused> {
        let now = self.now();
        let mut inner = self.inner.lock();
        let mut lease = inner.lease.clone();
        lease.obey(now, &order)?;
        if lease.record() != inner.lease.record() {
            // Without it a crash could forget that this member was stopped: then it is not obeyed either.
            if let Err(error) = self.write(&lease) {
                tracing::error!(%error, "the term cannot be written down");
                return Err(Refused::Unwritten);
            }
        }
        inner.lease = lease;
        let is_news = inner.order.as_ref() != Some(&order);
        inner.order = Some(order);
        inner.ordered = Some(Instant::now());
        drop(inner);
        if is_news {
            self.changed.notify_one();
        }
        Ok(())
    }

    fn write(&self, lease: &Lease) -> std::io::Result<()> {
        let (term, stopped) = lease.record();
        let text = serde_json::to_vec(&Written { term, stopped })?;
        let new = self.volume.with_extension("new");
        fs::write(&new, text)?;
        fs::File::open(&new)?.sync_all()?;
        fs::rename(&new, &self.volume)
    }

    /// Lets clients in from now on, or nobody; those that are in are cut off.
    fn serve(&self, serving: Serving) {
        let mut inner = self.inner.lock();
        if inner.serving != serving {
            inner.serving = serving;
            inner.epoch += 1;
        }
    }

    /// The present epoch, if clients are let in.
    fn open(&self) -> Option<u64> {
        let epoch = self.inner.lock().epoch;
        self.is_open(epoch).then_some(epoch)
    }

    /// Whether connections of this epoch may go on at this moment.
    fn is_open(&self, epoch: u64) -> bool {
        let inner = self.inner.lock();
        // The clock is read after the lock was waited for.
        let now = self.now();
        inner.epoch == epoch
            && match inner.serving {
                Serving::Nobody => false,
                Serving::Writers => inner.lease.holds(now),
                Serving::Readers => true,
            }
    }
}

impl http::Obeys for Shared {
    fn unready(&self) -> Option<String> {
        match Shared::report(self).state {
            State::Primary | State::Replica => None,
            state => Some(format!("{state:?}")),
        }
    }

    fn report(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&Shared::report(self))
    }

    fn order(&self, body: &[u8]) -> Result<(), (StatusCode, String)> {
        let order = serde_json::from_slice(body);
        let order = order.map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
        let obeyed = self.obey(order);
        obeyed.map_err(|refused| (StatusCode::CONFLICT, refused.to_string()))
    }
}

/// Runs the agent until it is stopped.
///
/// # Errors
/// When it cannot listen, or cannot use its volume.
pub async fn run(options: Options, stopped: impl Future<Output = ()>) -> anyhow::Result<()> {
    fs::create_dir_all(&options.directory).context("the volume cannot be used")?;
    let shared = Arc::new(Shared::new(&options));
    let listen = |port| proxy::bind((options.address, port).into());
    let orders = listen(AGENT_PORT)
        .await
        .context("the agent cannot listen")?;
    let clients = listen(DATABASE_PORT)
        .await
        .context("the database's port is taken")?;
    let mut supervisor = supervisor::Supervisor::new(options, shared.clone());
    tokio::select! {
        () = proxy::serve(clients, shared.clone()) => {}
        () = http::serve(orders, shared.clone()) => {}
        done = supervisor.run() => done?,
        () = stopped => {}
    }
    shared.serve(Serving::Nobody);
    supervisor.stop().await;
    Ok(())
}

/// Finds the programs of PostgreSQL: those of the newest version of Debian's packages, or those on the path.
pub fn find_programs() -> PathBuf {
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let directories = installed.flatten().map(|entry| entry.path().join("bin"));
    let mut found: Vec<PathBuf> = directories
        .filter(|directory| directory.join("postgres").is_file())
        .collect();
    found.sort();
    found.pop().unwrap_or_else(|| Path::new("").to_owned())
}

/// The account that PostgreSQL runs as when the agent is root.
pub fn find_account(name: &str) -> Option<(u32, u32)> {
    let accounts = fs::read_to_string("/etc/passwd").ok()?;
    let line = accounts
        .lines()
        .find(|line| line.split(':').next() == Some(name))?;
    let mut fields = line.split(':').skip(2);
    let mut number = || fields.next()?.parse().ok();
    Some((number()?, number()?))
}
