//! Makes the database of a backup as it was at a time, on a volume that a first member starts with.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{Instant, sleep};

use super::database::{Database, DatabaseError, Stop};
use super::sql::{Address, SqlError, quoted};
use super::store::{Base, Store};

/// How long the log may take to be read.
const PATIENCE: Duration = Duration::from_secs(4 * 3600);

/// What is restored, and where.
#[derive(Debug, Clone)]
pub struct RestoreOptions {
    /// The directory with the backups.
    pub from: PathBuf,
    /// The directory of the volume.
    pub directory: PathBuf,
    /// The directory with the programs of PostgreSQL.
    pub programs: PathBuf,
    /// Whom the programs run as, if this runs as root.
    pub account: Option<(u32, u32)>,
    /// The password that the administrator has from then on.
    pub password: String,
    /// The time; the end of the log without it.
    pub time: Option<Timestamp>,
}

/// Why a database could not be restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// There is no base backup to begin with.
    #[error("no base backup was finished before that time")]
    NoBase,
    /// PostgreSQL could not be run, or a file not written.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// PostgreSQL ended before the time was reached: the log has a gap or does not go that far.
    #[error("the log does not lead to that time")]
    NotReached,
    /// The log was not read in time.
    #[error("the log was not read within {PATIENCE:?}")]
    Late,
    /// The password could not be set.
    #[error("the password cannot be set")]
    Password(#[source] SqlError),
}

/// Restores a database.
///
/// # Errors
/// When there is no base backup, or its log does not lead to that time.
pub async fn run(options: &RestoreOptions) -> Result<(), RestoreError> {
    let store = Store(options.from.clone());
    let time = options.time.map(Timestamp::as_microsecond);
    let base = store.before(time).ok_or(RestoreError::NoBase)?;
    println!("begins with {}", base.path.display());
    let mut database = Database::new(
        &options.directory,
        &options.programs,
        options.account,
        &options.password,
    );
    database.prepare().await?;
    let settings = settings(&store, &base, options.time);
    database.copy_base(&base.path, &settings).await?;
    database.start()?;
    let address = Address::local(&database.sockets(), &options.password);
    recovered(&mut database, &address).await?;
    let password = quoted(&options.password);
    let set = format!("ALTER ROLE postgres PASSWORD {password}");
    address.rows(&set).await.map_err(RestoreError::Password)?;
    database.stop(Stop::Fast).await;
    database.configure(&BTreeMap::new())?;
    database.finish()?;
    println!("restored");
    Ok(())
}

/// Waits until the database takes writes.
async fn recovered(database: &mut Database, address: &Address) -> Result<(), RestoreError> {
    let began = Instant::now();
    while database.is_running() {
        let rows = address.rows("SELECT pg_is_in_recovery()").await;
        if rows.is_ok_and(|rows| rows.first().is_some_and(|row| row[0] == "f")) {
            return Ok(());
        }
        if began.elapsed() > PATIENCE {
            return Err(RestoreError::Late);
        }
        sleep(Duration::from_millis(100)).await;
    }
    Err(RestoreError::NotReached)
}

/// How the log is read: whole files, and of the last one what there is.
fn settings(store: &Store, base: &Base, time: Option<Timestamp>) -> BTreeMap<String, String> {
    let log = store.log(base.generation);
    let log = log.display();
    let command = format!("cp \"{log}/%f\" \"%p\" || cp \"{log}/%f.partial\" \"%p\"");
    let mut settings = vec![
        ("restore_command", command),
        ("recovery_target_action", "promote".to_owned()),
        // Settings of the old primary may be larger than these, which only readers of a replica need.
        ("hot_standby", "off".to_owned()),
    ];
    if let Some(time) = time {
        // Names of time zones, `Z` among them, are not known where settings are read.
        let time = time.strftime("%Y-%m-%d %H:%M:%S%.6f+00").to_string();
        settings.push(("recovery_target_time", time));
    }
    settings
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_one_that_settings_can_have() {
        let base = Base {
            generation: 2,
            time: 0,
            path: PathBuf::new(),
        };
        let time = "2026-01-02T03:04:05.5Z".parse().ok();
        let settings = settings(&Store("/backup".into()), &base, time);
        assert_eq!(
            settings["recovery_target_time"],
            "2026-01-02 03:04:05.500000+00"
        );
        assert!(settings["restore_command"].starts_with("cp \"/backup/2/wal/%f\" \"%p\""));
    }
}
