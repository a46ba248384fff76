//! The agent of the backups: receives the log of the primary as it is written, and takes base backups when they are due.
//!
//! It holds a replication slot, so that the primary keeps what was not received yet. After a fail-over it goes on with the new
//! primary; where that cannot give what follows, another generation begins with a base backup.

use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use ::http::StatusCode;
use anyhow::Context as _;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use super::database::{DatabaseError, as_account, run as run_program};
use super::http::Obeys;
use super::store::{Store, first_log};
use super::{http, proxy};
use crate::protocol::{AGENT_PORT, BackupOrder, BackupReport, DATABASE_PORT};

/// How often the agent looks at what it does.
const PERIOD: Duration = Duration::from_secs(1);
/// How long a base backup may take.
const BASE: Duration = Duration::from_secs(3600);
/// How long making a slot may take.
const SLOT: Duration = Duration::from_secs(10);
/// The slot that keeps what was not received yet.
const NAME: &str = "backup";
/// What PostgreSQL says when the log cannot go on where it ended.
const GAPS: [&str; 3] = [
    "has already been removed",
    "is ahead of the WAL flush position",
    "is not in this server's history",
];

/// How the agent of the backups is to be.
#[derive(Debug, Clone)]
pub struct BackupOptions {
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

#[derive(Default)]
struct Shared(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    order: Option<BackupOrder>,
    report: BackupReport,
}

impl Obeys for Shared {
    fn unready(&self) -> Option<String> {
        None
    }

    fn report(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&self.0.lock().report)
    }

    fn order(&self, body: &[u8]) -> Result<(), (StatusCode, String)> {
        let order = serde_json::from_slice(body);
        let order = order.map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
        self.0.lock().order = Some(order);
        Ok(())
    }
}

/// Runs the agent of the backups until it is stopped.
///
/// # Errors
/// When it cannot listen, or cannot use its volume.
pub async fn run(options: BackupOptions, stopped: impl Future<Output = ()>) -> anyhow::Result<()> {
    fs::create_dir_all(&options.directory).context("the volume cannot be used")?;
    let shared = Arc::new(Shared::default());
    let orders = proxy::bind((options.address, AGENT_PORT).into()).await;
    let orders = orders.context("the agent cannot listen")?;
    let mut keeper = Keeper {
        store: Store(options.directory.clone()),
        options,
        shared: shared.clone(),
        receiver: None,
    };
    tokio::select! {
        () = http::serve(orders, shared) => {}
        () = keeper.keep() => {}
        () = stopped => {}
    }
    Ok(())
}

/// Keeps the backups.
struct Keeper {
    options: BackupOptions,
    store: Store,
    shared: Arc<Shared>,
    /// What receives the log, and from where.
    receiver: Option<(String, Child)>,
}

impl Keeper {
    async fn keep(&mut self) {
        loop {
            let order = self.shared.0.lock().order.clone();
            let problem = match &order {
                Some(order) => self.step(order).await.err(),
                None => None,
            };
            let problem = problem.map(|error| kubewright::Error::from(error).report());
            if let Some(problem) = &problem {
                println!("{problem}");
            }
            let bases = self.store.bases().iter().map(|base| base.time).collect();
            self.shared.0.lock().report = BackupReport {
                bases,
                receives: self.receiver.is_some(),
                problem,
            };
            sleep(PERIOD).await;
        }
    }

    async fn step(&mut self, order: &BackupOrder) -> Result<(), DatabaseError> {
        self.receive(order).await?;
        let bases = self.store.bases();
        let last = bases.last();
        let due = i64::try_from(order.interval_seconds).unwrap_or(i64::MAX);
        let due = due.saturating_mul(1_000_000);
        let now = Timestamp::now().as_microsecond();
        let is_due = last.is_none_or(|last| {
            last.generation != self.store.generation() || now.saturating_sub(last.time) >= due
        });
        if is_due {
            self.take_base(order).await?;
            self.clean_up(order.keep).await?;
        }
        Ok(())
    }

    /// Receives the log from the primary, if nobody does.
    async fn receive(&mut self, order: &BackupOrder) -> Result<(), DatabaseError> {
        if let Some((from, child)) = &mut self.receiver {
            if *from == order.primary && matches!(child.try_wait(), Ok(None)) {
                return Ok(());
            }
            // Both fail when it has ended already, which is what is wanted.
            let _ = child.start_kill();
            let _ = child.wait().await;
            self.receiver = None;
        }
        let said = self.options.directory.join("receive.log");
        let ended = fs::read_to_string(&said).unwrap_or_default();
        let mut generation = self.store.generation();
        if GAPS.iter().any(|gap| ended.contains(gap)) {
            generation += 1;
            println!("the log has a gap: generation {generation} begins");
        }
        for directory in [self.store.log(generation), self.store.bases_of(generation)] {
            self.make(&directory)?;
        }
        let mut slot = self.command("pg_receivewal", &order.primary);
        slot.args(["--create-slot", "--if-not-exists", "-S", NAME]);
        run_within(SLOT, "pg_receivewal", &mut slot).await?;
        let said = fs::File::create(&said).map_err(file("writing a log"))?;
        let mut receive = self.command("pg_receivewal", &order.primary);
        receive.args(["--no-loop", "--synchronous", "-S", NAME, "-D"]);
        receive.arg(self.store.log(generation));
        receive.stdin(Stdio::null()).stdout(Stdio::null());
        let child = receive.stderr(said).kill_on_drop(true).spawn();
        let child = child.map_err(|source| DatabaseError::Run {
            program: "pg_receivewal",
            source,
        })?;
        self.receiver = Some((order.primary.clone(), child));
        Ok(())
    }

    async fn take_base(&self, order: &BackupOrder) -> Result<(), DatabaseError> {
        let directory = self.store.bases_of(self.store.generation());
        let unfinished = directory.join("unfinished");
        remove(&unfinished)?;
        let mut base = self.command("pg_basebackup", &order.primary);
        base.args(["-X", "stream", "-c", "fast", "-D"]);
        base.arg(&unfinished);
        run_within(BASE, "pg_basebackup", &mut base).await?;
        let now = Timestamp::now().as_microsecond();
        let finished = fs::rename(&unfinished, directory.join(now.to_string()));
        finished.map_err(file("finishing a base backup"))
    }

    /// Removes what is too old, and the log that nothing needs any more.
    async fn clean_up(&self, keep: usize) -> Result<(), DatabaseError> {
        for base in self.store.superfluous(keep) {
            remove(&base.path)?;
        }
        for generation in self.store.empty() {
            remove(&generation)?;
        }
        let present = self.store.generation();
        let bases = self.store.bases();
        let oldest = bases.iter().find(|base| base.generation == present);
        if let Some(first) = oldest.and_then(|base| first_log(&base.path)) {
            let program = self.options.programs.join("pg_archivecleanup");
            let mut clean = Command::new(program);
            as_account(&mut clean, self.options.account);
            clean.arg(self.store.log(present)).arg(first);
            run_program("pg_archivecleanup", &mut clean).await?;
        }
        Ok(())
    }

    fn command(&self, program: &str, host: &str) -> Command {
        let mut command = Command::new(self.options.programs.join(program));
        as_account(&mut command, self.options.account);
        command.args(["-h", host, "-p", &DATABASE_PORT.to_string()]);
        command.args(["-U", "postgres", "--no-password"]);
        command.env("PGPASSWORD", &self.options.password);
        command.env("PGAPPNAME", NAME);
        command.current_dir(&self.options.directory);
        command
    }

    /// Makes a directory that PostgreSQL's programs may write to.
    fn make(&self, directory: &std::path::Path) -> Result<(), DatabaseError> {
        fs::create_dir_all(directory).map_err(file("making a directory"))?;
        if let Some((user, group)) = self.options.account {
            for it in directory.ancestors().take(2) {
                let given = std::os::unix::fs::chown(it, Some(user), Some(group));
                given.map_err(file("giving a directory to PostgreSQL"))?;
            }
        }
        Ok(())
    }
}

async fn run_within(
    limit: Duration,
    program: &'static str,
    command: &mut Command,
) -> Result<(), DatabaseError> {
    let late = || DatabaseError::Failed {
        program,
        output: format!("not done within {limit:?}"),
    };
    let done = timeout(limit, run_program(program, command)).await;
    done.map_err(|_| late())?
}

fn remove(directory: &std::path::Path) -> Result<(), DatabaseError> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(file("removing a backup")(error))
        }
        _ => Ok(()),
    }
}

fn file(what: &'static str) -> impl FnOnce(std::io::Error) -> DatabaseError {
    move |error| DatabaseError::File(what, error)
}
