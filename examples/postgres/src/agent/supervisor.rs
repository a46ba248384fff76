//! Makes the database what the last order says, one step after the other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::database::{Database, DatabaseError, Stop};
use super::sql::{Address, SqlError, position, quoted};
use super::{Options, Serving, Shared};
use crate::protocol::{DATABASE_PORT, Order, Report, Role, State};

/// How often the database is looked at.
const PERIOD: Duration = Duration::from_millis(250);
/// How long a database may take to answer after its start.
const START: Duration = Duration::from_secs(60);
/// How long a replica may fail to follow a primary that is up before it is copied anew.
const LOST: Duration = Duration::from_secs(15);
/// How long all processes of a primary get to notice that commits wait for others.
const RELOAD: Duration = Duration::from_secs(1);

/// Why a step could not be done. It is tried again.
#[derive(Debug, thiserror::Error)]
pub(super) enum StepError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error("{0} failed")]
    Sql(&'static str, #[source] SqlError),
    #[error("there is no database, and none may be made")]
    Missing,
    #[error("the database does not answer")]
    Silent,
}

type Result<T = ()> = std::result::Result<T, StepError>;

/// Runs the database of a member.
pub(super) struct Supervisor {
    options: Options,
    shared: Arc<Shared>,
    database: Database,
    local: Address,
    /// The primary that this member was seen to stream from, and the term.
    followed: Option<(String, u64)>,
    /// When it was last seen to stream.
    streamed: Option<Instant>,
    waits: Waits,
    /// The last restart that was ordered and done.
    restart: i64,
}

/// What is known of those that commits wait for.
#[derive(Default)]
struct Waits {
    term: u64,
    revision: u64,
    applied: Option<Instant>,
    /// Whoever has flushed this has everything that was acknowledged before.
    mark: Option<u64>,
    confirmed: Vec<String>,
}

impl Supervisor {
    pub(super) fn new(options: Options, shared: Arc<Shared>) -> Self {
        let database = Database::new(
            &options.directory,
            &options.programs,
            options.account,
            &options.password,
        );
        let local = Address::local(&database.sockets(), &options.password);
        Self {
            options,
            shared,
            database,
            local,
            followed: None,
            streamed: None,
            waits: Waits::default(),
            restart: 0,
        }
    }

    /// Obeys until it is dropped.
    pub(super) async fn run(&mut self) -> std::result::Result<(), DatabaseError> {
        self.database.prepare().await?;
        loop {
            let done = self.step().await;
            self.note(done);
            tokio::select! {
                () = self.shared.changed.notified() => {}
                () = sleep(PERIOD) => {}
            }
        }
    }

    /// Stops the database.
    pub(super) async fn stop(&mut self) {
        self.database.stop(Stop::Fast).await;
    }

    /// What a step came to, for reports.
    fn note(&mut self, done: Result<Report>) {
        let has_data = self.database.exists();
        let mut inner = self.shared.inner.lock();
        let (problem, report) = match done {
            Ok(report) => (None, report),
            Err(error) => {
                let problem = kubewright::Error::from(error).report();
                let before = inner.report.clone();
                (Some(problem), before)
            }
        };
        if problem.is_some() && problem != inner.report.problem {
            println!("{}", problem.as_deref().unwrap_or_default());
        }
        inner.report = Report {
            problem,
            has_data,
            restart: self.restart,
            ..report
        };
    }

    fn state(&self, state: State) {
        self.shared.inner.lock().report.state = state;
    }

    async fn step(&mut self) -> Result<Report> {
        let (order, holds) = {
            let inner = self.shared.inner.lock();
            (inner.order.clone(), inner.lease.holds(self.shared.now()))
        };
        let Some(order) = order else {
            return Ok(Report::default());
        };
        match &order.role {
            Role::Primary {
                synchronous,
                revision,
                bootstrap,
                ..
            } if holds => {
                let waits = (synchronous.as_slice(), *revision);
                self.lead(&order, waits, *bootstrap).await
            }
            Role::Replica { primary } => self.follow(&order, primary).await,
            Role::Primary { .. } => self.halt(Stop::Immediate).await,
            Role::Stop => self.halt(Stop::Fast).await,
        }
    }

    async fn halt(&mut self, how: Stop) -> Result<Report> {
        self.shared.serve(Serving::Nobody);
        self.database.stop(how).await;
        Ok(Report::default())
    }

    /// Is the primary, and says how far it is and who has everything.
    async fn lead(
        &mut self,
        order: &Order,
        (names, revision): (&[String], u64),
        bootstrap: bool,
    ) -> Result<Report> {
        self.followed = None;
        if !self.database.exists() {
            if !bootstrap {
                return Err(StepError::Missing);
            }
            self.state(State::Busy);
            self.database.init().await?;
        }
        let settings = self.settings(order, Some(names), None);
        let changed = self.database.configure(&settings)?;
        self.restart_if_ordered(order).await;
        if !self.database.is_running() {
            self.state(State::Busy);
            self.shared.serve(Serving::Nobody);
            self.database.start()?;
            self.answers().await?;
        } else if changed {
            self.ask("reloading", "SELECT pg_reload_conf()").await?;
        }
        if self.is_in_recovery().await? {
            self.state(State::Busy);
            self.shared.serve(Serving::Nobody);
            let promoted = self.local.promote().await;
            promoted.map_err(|error| StepError::Sql("promoting", error))?;
        }
        if (self.waits.term, self.waits.revision) != (order.term, revision) || changed {
            self.waits = Waits {
                term: order.term,
                revision,
                applied: Some(Instant::now()),
                ..Waits::default()
            };
        }
        self.shared.serve(Serving::Writers);
        self.primary_report().await
    }

    async fn primary_report(&mut self) -> Result<Report> {
        let rows = self
            .ask("asking", "SELECT pg_current_wal_flush_lsn()")
            .await?;
        let flushed = rows.first().map_or(0, |row| position(&row[0]));
        let is_old = |at: Instant| at.elapsed() >= RELOAD;
        if self.waits.mark.is_none() && self.waits.applied.is_some_and(is_old) {
            self.waits.mark = Some(flushed);
        }
        let query = "SELECT application_name, flush_lsn FROM pg_stat_replication \
                     WHERE state = 'streaming' AND sync_state IN ('sync', 'quorum')";
        for row in self.ask("asking", query).await? {
            let has_all = self
                .waits
                .mark
                .is_some_and(|mark| position(&row[1]) >= mark);
            if has_all && !self.waits.confirmed.contains(&row[0]) {
                self.waits.confirmed.push(row[0].clone());
            }
        }
        Ok(Report {
            state: State::Primary,
            position: flushed,
            synchronous: self.waits.confirmed.clone(),
            pending_restart: self.pending_restart().await?,
            ..Report::default()
        })
    }

    /// Follows a primary: with a copy of its database, if this member has none or had a term of its own.
    async fn follow(&mut self, order: &Order, primary: &str) -> Result<Report> {
        let target = (primary.to_owned(), order.term);
        let is_known = self.followed.as_ref() == Some(&target);
        let was_primary = self.database.exists() && !self.database.is_standby();
        if was_primary {
            self.halt(Stop::Fast).await?;
        }
        if !is_known {
            self.state(State::Busy);
            self.make_slot(primary).await?;
        }
        if was_primary || !self.database.exists() || self.is_lost() {
            println!("copies the database of {primary}");
            self.halt(Stop::Immediate).await?;
            self.state(State::Busy);
            let (member, slot) = (self.options.member.clone(), self.slot());
            let overtaken = overtaken(self.shared.clone(), order.clone());
            tokio::select! {
                copied = self.database.copy(primary, DATABASE_PORT, &member, &slot) => copied?,
                // Whom it copies may never answer: what is ordered by then is what counts.
                () = overtaken => return Ok(Report::default()),
            }
            self.database.follow()?;
            self.streamed = None;
        }
        let settings = self.settings(order, None, Some(primary));
        let changed = self.database.configure(&settings)?;
        self.restart_if_ordered(order).await;
        if !self.database.is_running() {
            self.state(State::Busy);
            self.database.start()?;
            self.answers().await?;
        } else if changed {
            self.ask("reloading", "SELECT pg_reload_conf()").await?;
        }
        self.shared.serve(Serving::Readers);
        self.replica_report(target).await
    }

    async fn replica_report(&mut self, target: (String, u64)) -> Result<Report> {
        let query = "SELECT sender_host FROM pg_stat_wal_receiver WHERE status = 'streaming'";
        let senders = self.ask("asking", query).await?;
        if senders.iter().any(|row| row[0] == target.0) {
            self.streamed = Some(Instant::now());
            self.followed = Some(target.clone());
        }
        // Until it was seen to stream its time has not begun.
        self.streamed.get_or_insert_with(Instant::now);
        let query = "SELECT greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())";
        let rows = self.ask("asking", query).await?;
        let follows = self.followed.as_ref() == Some(&target);
        Ok(Report {
            state: if follows { State::Replica } else { State::Busy },
            position: rows.first().map_or(0, |row| position(&row[0])),
            pending_restart: self.pending_restart().await?,
            ..Report::default()
        })
    }

    /// Whether this member has not followed for long although its primary is up.
    fn is_lost(&self) -> bool {
        let is_long = self.streamed.is_some_and(|at| at.elapsed() > LOST);
        let ordered = self.shared.inner.lock().ordered;
        is_long && ordered.is_some_and(|at| at.elapsed() < LOST / 3)
    }

    /// Keeps the primary from throwing away what this member has not got yet.
    async fn make_slot(&self, primary: &str) -> Result {
        let remote = Address::remote(primary, DATABASE_PORT, &self.options.password);
        let slot = quoted(&self.slot());
        let query = format!(
            "SELECT pg_create_physical_replication_slot({slot}) \
             WHERE NOT EXISTS (SELECT 1 FROM pg_replication_slots WHERE slot_name = {slot})"
        );
        let made = remote.rows(&query).await;
        made.map(drop)
            .map_err(|error| StepError::Sql("making a replication slot", error))
    }

    fn slot(&self) -> String {
        let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        self.options
            .member
            .to_lowercase()
            .chars()
            .map(letter)
            .collect()
    }

    /// The user's settings, and over them those of the agent.
    fn settings(
        &self,
        order: &Order,
        names: Option<&[String]>,
        primary: Option<&str>,
    ) -> BTreeMap<String, String> {
        let mut settings = order.parameters.clone();
        let mut set = |name: &str, value: &str| settings.insert(name.to_owned(), value.to_owned());
        set("wal_level", "replica");
        set("hot_standby", "on");
        set("synchronous_commit", "on");
        set("max_slot_wal_keep_size", "1GB");
        // Whoever followed another primary before has no slot here yet.
        set("wal_keep_size", "256MB");
        set("wal_receiver_status_interval", "1s");
        set("wal_receiver_timeout", "5s");
        set("wal_sender_timeout", "5s");
        set("wal_retrieve_retry_interval", "500ms");
        set(
            "synchronous_standby_names",
            &waits_for(names.unwrap_or_default()),
        );
        if let Some(primary) = primary {
            let Options {
                member, password, ..
            } = &self.options;
            let connection = format!(
                "host={primary} port={DATABASE_PORT} user=postgres password={password} \
                 application_name={member} connect_timeout=3"
            );
            set("primary_conninfo", &connection);
            set("primary_slot_name", &self.slot());
        }
        settings
    }

    async fn restart_if_ordered(&mut self, order: &Order) {
        if order.restart > self.restart {
            self.restart = order.restart;
            self.state(State::Busy);
            self.shared.serve(Serving::Nobody);
            self.database.stop(Stop::Fast).await;
        }
    }

    /// Waits until the database answers.
    async fn answers(&mut self) -> Result {
        let began = Instant::now();
        while began.elapsed() < START && self.database.is_running() {
            if self.local.rows("SELECT 1").await.is_ok() {
                return Ok(());
            }
            sleep(Duration::from_millis(50)).await;
        }
        Err(StepError::Silent)
    }

    async fn is_in_recovery(&self) -> Result<bool> {
        let rows = self.ask("asking", "SELECT pg_is_in_recovery()").await?;
        Ok(rows.first().is_some_and(|row| row[0] == "t"))
    }

    async fn pending_restart(&self) -> Result<Vec<String>> {
        let query = "SELECT name FROM pg_settings WHERE pending_restart ORDER BY name";
        let rows = self.ask("asking", query).await?;
        Ok(rows.into_iter().map(|mut row| row.remove(0)).collect())
    }

    async fn ask(&self, what: &'static str, query: &str) -> Result<Vec<Vec<String>>> {
        let rows = self.local.rows(query).await;
        rows.map_err(|error| StepError::Sql(what, error))
    }
}

/// Completes when the agent has to do something else than this order says.
async fn overtaken(shared: Arc<Shared>, order: Order) {
    loop {
        sleep(PERIOD).await;
        let inner = shared.inner.lock();
        let is_same = |it: &Order| it.role == order.role && it.term == order.term;
        if !inner.order.as_ref().is_some_and(is_same) {
            return;
        }
    }
}

/// The setting that has commits wait for all of these members.
fn waits_for(names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    format!("FIRST {} ({})", names.len(), quoted.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_wait_for_all_members_of_the_list() {
        assert_eq!(waits_for(&[]), "");
        let names = ["db-1", "db-2"].map(str::to_owned);
        assert_eq!(waits_for(&names), r#"FIRST 2 ("db-1", "db-2")"#);
    }
}
