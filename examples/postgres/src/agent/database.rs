//! PostgreSQL as a program: makes, copies, starts and stops a database on a volume.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::time::timeout;

/// The file with the settings that the agent decides.
const SETTINGS: &str = "agent.conf";
/// Clients come through the agent, and with a password.
const ACCESS: &str = "local all all scram-sha-256\nlocal replication all scram-sha-256\n";
/// How long a database may take to stop before it is killed.
const STOP: Duration = Duration::from_secs(20);
/// How long one may take that has nothing to write to disk.
const STOP_AT_ONCE: Duration = Duration::from_secs(3);

/// A database on a volume.
#[derive(Debug)]
pub(super) struct Database {
    /// The directory of the volume.
    directory: PathBuf,
    programs: PathBuf,
    /// Whom the programs run as, if the agent is root: PostgreSQL refuses to run as root.
    account: Option<(u32, u32)>,
    password: String,
    process: Option<Child>,
}

/// Why something could not be done with a database.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatabaseError {
    /// A file could not be read or written.
    #[error("{0} failed")]
    File(&'static str, #[source] io::Error),
    /// A program could not be started.
    #[error("{program} cannot be run")]
    Run {
        /// The program.
        program: &'static str,
        /// Why it could not.
        #[source]
        source: io::Error,
    },
    /// A program ended with an error.
    #[error("{program} failed: {output}")]
    Failed {
        /// The program.
        program: &'static str,
        /// The last line that it wrote.
        output: String,
    },
}

/// How a database is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// Clients are cut off, and everything is written to disk.
    Fast,
    /// At once, as in a crash.
    Immediate,
}

type Result<T = ()> = std::result::Result<T, DatabaseError>;

impl Database {
    pub(super) fn new(
        directory: &Path,
        programs: &Path,
        account: Option<(u32, u32)>,
        password: &str,
    ) -> Self {
        Self {
            directory: directory.to_owned(),
            programs: programs.to_owned(),
            account,
            password: password.to_owned(),
            process: None,
        }
    }

    /// The directory with the socket of the database.
    pub(super) fn sockets(&self) -> PathBuf {
        self.directory.join("run")
    }

    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// Whether there is a whole database: one whose copying was interrupted is none.
    pub(super) fn exists(&self) -> bool {
        self.data().join("PG_VERSION").is_file() && !self.unfinished().exists()
    }

    /// Whether the database on the volume follows another one when it is started.
    pub(super) fn is_standby(&self) -> bool {
        self.data().join("standby.signal").is_file()
    }

    fn unfinished(&self) -> PathBuf {
        self.directory.join("unfinished")
    }

    /// Makes the directories, and ends a database that an earlier run of the agent left behind.
    pub(super) async fn prepare(&self) -> Result {
        for directory in [self.directory.clone(), self.sockets()] {
            fs::create_dir_all(&directory).map_err(file("making a directory"))?;
            self.give(&directory)?;
        }
        let text = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        let Some(id) = text.lines().next().and_then(|id| id.parse::<u32>().ok()) else {
            return Ok(());
        };
        // Only if it is one: numbers of processes are used again.
        let is_postgres = || {
            let name = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
            name.trim() == "postgres"
        };
        for _ in 0..100 {
            if !is_postgres() {
                return Ok(());
            }
            signal(id, "-QUIT").await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        signal(id, "-KILL").await;
        Ok(())
    }

    /// Makes a new database.
    pub(super) async fn init(&self) -> Result {
        self.clear()?;
        let secret = self.directory.join("password");
        self.write(&secret, &format!("{}\n", self.password))?;
        let mut init = self.command("initdb");
        init.arg("-D").arg(self.data());
        init.args(["-U", "postgres", "-A", "scram-sha-256", "--data-checksums"]);
        init.args(["-E", "UTF8", "--no-locale"]);
        init.arg(format!("--pwfile={}", secret.display()));
        let made = run("initdb", &mut init).await;
        fs::remove_file(&secret).map_err(file("removing the password's file"))?;
        made?;
        let main = self.data().join("postgresql.conf");
        let text = fs::read_to_string(&main).map_err(file("reading postgresql.conf"))?;
        self.write(&main, &format!("{text}\ninclude_if_exists '{SETTINGS}'\n"))?;
        self.finish()
    }

    /// Copies the database of a primary, instead of what there is.
    pub(super) async fn copy(&self, host: &str, port: u16, member: &str, slot: &str) -> Result {
        self.clear()?;
        let mut copy = self.command("pg_basebackup");
        copy.arg("-D").arg(self.data());
        copy.args(["-h", host, "-p", &port.to_string(), "-U", "postgres"]);
        copy.args(["-X", "stream", "-c", "fast", "-S", slot, "--no-password"]);
        copy.env("PGPASSWORD", &self.password);
        copy.env("PGAPPNAME", format!("{member}-copy"));
        run("pg_basebackup", &mut copy).await?;
        self.finish()
    }

    /// Puts a copy of a base backup in the place of what there is, which recovers with these settings when it is started. It lets
    /// everybody in who reaches its socket, and is not whole until it is finished.
    pub(super) async fn copy_base(
        &self,
        base: &Path,
        settings: &BTreeMap<String, String>,
    ) -> Result {
        self.clear()?;
        let mut copy = Command::new("cp");
        copy.arg("-a").arg(base).arg(self.data());
        run("cp", &mut copy).await?;
        if let Some((user, group)) = self.account {
            let mut give = Command::new("chown");
            give.args(["-R", &format!("{user}:{group}")]);
            run("chown", give.arg(self.data())).await?;
        }
        let mode = fs::Permissions::from_mode(0o700);
        fs::set_permissions(self.data(), mode).map_err(file("protecting a directory"))?;
        self.configure(settings)?;
        self.write(&self.data().join("pg_hba.conf"), "local all all trust\n")?;
        self.write(&self.data().join("recovery.signal"), "")
    }

    /// Removes what there is. Until something is finished there is no database.
    fn clear(&self) -> Result {
        self.write(&self.unfinished(), "")?;
        match fs::remove_dir_all(self.data()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(file("removing a database")(error))
            }
            _ => Ok(()),
        }
    }

    /// Makes what there is a whole database.
    pub(super) fn finish(&self) -> Result {
        self.write(&self.data().join("pg_hba.conf"), ACCESS)?;
        fs::remove_file(self.unfinished()).map_err(file("finishing a database"))
    }

    /// Writes the settings. Says whether they differ from what was there.
    pub(super) fn configure(&self, settings: &BTreeMap<String, String>) -> Result<bool> {
        let line = |(name, value): (&String, &String)| {
            let value = value.replace(['\n', '\r'], " ").replace('\'', "''");
            format!("{name} = '{value}'\n")
        };
        let text: String = settings.iter().map(line).collect();
        let path = self.data().join(SETTINGS);
        if fs::read_to_string(&path).is_ok_and(|present| present == text) {
            return Ok(false);
        }
        self.write(&path, &text)?;
        Ok(true)
    }

    /// Makes the database follow a primary from its next start on.
    pub(super) fn follow(&self) -> Result {
        self.write(&self.data().join("standby.signal"), "")
    }

    /// Starts the database. It is up when it answers.
    pub(super) fn start(&mut self) -> Result {
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data());
        command.arg("-k").arg(self.sockets());
        command.args(["-c", "listen_addresses=", "-c", "logging_collector=off"]);
        command.stdin(Stdio::null()).kill_on_drop(true);
        let process = command.spawn().map_err(|source| DatabaseError::Run {
            program: "postgres",
            source,
        })?;
        self.process = Some(process);
        Ok(())
    }

    /// Whether the program runs.
    pub(super) fn is_running(&mut self) -> bool {
        let Some(process) = &mut self.process else {
            return false;
        };
        if matches!(process.try_wait(), Ok(None)) {
            return true;
        }
        self.process = None;
        false
    }

    /// Stops the database, and kills it if that takes too long.
    pub(super) async fn stop(&mut self, how: Stop) {
        let Some(mut process) = self.process.take() else {
            return;
        };
        let (name, limit) = match how {
            Stop::Fast => ("-INT", STOP),
            Stop::Immediate => ("-QUIT", STOP_AT_ONCE),
        };
        if let Some(id) = process.id() {
            signal(id, name).await;
        }
        if timeout(limit, process.wait()).await.is_err() {
            // Its children notice that it is gone and end.
            let _ = process.kill().await;
        }
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        as_account(&mut command, self.account);
        command.current_dir(&self.directory);
        command
    }

    fn write(&self, path: &Path, text: &str) -> Result {
        fs::write(path, text).map_err(file("writing a file"))?;
        let mode = fs::Permissions::from_mode(0o600);
        fs::set_permissions(path, mode).map_err(file("protecting a file"))?;
        self.give(path)
    }

    fn give(&self, path: &Path) -> Result {
        let Some((user, group)) = self.account else {
            return Ok(());
        };
        chown(path, Some(user), Some(group)).map_err(file("giving a file to PostgreSQL"))
    }
}

fn file(what: &'static str) -> impl FnOnce(io::Error) -> DatabaseError {
    move |error| DatabaseError::File(what, error)
}

/// Runs a program to its end.
pub(super) async fn run(program: &'static str, command: &mut Command) -> Result {
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = output
        .await
        .map_err(|source| DatabaseError::Run { program, source })?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    Err(DatabaseError::Failed {
        program,
        output: last.unwrap_or("no reason given").trim().to_owned(),
    })
}

/// Has a program run as another account.
pub(super) fn as_account(command: &mut Command, account: Option<(u32, u32)>) {
    if let Some((user, group)) = account {
        command.uid(user).gid(group);
    }
}

/// Signals a process that this agent started, or that its volume names.
async fn signal(id: u32, name: &str) {
    let sent = Command::new("kill").args([name, &id.to_string()]).status();
    if let Err(error) = sent.await {
        tracing::warn!(%error, id, "a process cannot be signalled");
    }
}
