//! The agent: the program of the pods of a PostgresCluster.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use jiff::Timestamp;
use kubewright_example_postgres::agent::backup::{self, BackupOptions};
use kubewright_example_postgres::agent::restore::{self, RestoreOptions};
use kubewright_example_postgres::agent::{Options, find_account, find_programs, run};
use tokio::signal::unix::{SignalKind, signal};

/// Run a pod of a PostgresCluster
#[derive(Parser)]
#[command(name = "postgres-agent")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a member: the operator says what it is, at port 8008, and clients of the database come in at port 5432
    Member {
        /// The name of the member
        #[arg(long, env = "POD_NAME")]
        member: String,
        /// The address of the pod
        #[arg(long, env = "POD_IP")]
        address: IpAddr,
        #[command(flatten)]
        common: Common,
    },
    /// Keep backups: base backups, and the log of the primary that the operator names at port 8008
    Backup {
        /// The address of the pod
        #[arg(long, env = "POD_IP")]
        address: IpAddr,
        #[command(flatten)]
        common: Common,
    },
    /// Make the database of a backup on an empty volume, and end
    Restore {
        /// The directory with the backups
        #[arg(long)]
        from: PathBuf,
        /// The time at which the database is wanted; the latest one without it
        #[arg(long)]
        time: Option<Timestamp>,
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Args)]
struct Common {
    /// The directory of the volume
    #[arg(long, env = "PGDIRECTORY", default_value = "/var/lib/postgresql")]
    directory: PathBuf,
    /// The directory with the programs of PostgreSQL
    #[arg(long, env = "PG_PROGRAMS")]
    programs: Option<PathBuf>,
    /// The password of the administrator
    #[arg(long, env = "POSTGRES_PASSWORD", hide_env_values = true)]
    password: String,
    /// The account that PostgreSQL runs as, if the agent is root
    #[arg(long, default_value = "postgres")]
    account: String,
}

impl Common {
    fn account(&self) -> anyhow::Result<Option<(u32, u32)>> {
        let status = std::fs::read_to_string("/proc/self/status")?;
        let is_root = status.lines().any(|line| line.starts_with("Uid:\t0\t"));
        Ok(is_root.then(|| find_account(&self.account)).flatten())
    }

    fn programs(&self) -> PathBuf {
        self.programs.clone().unwrap_or_else(find_programs)
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Member {
            member,
            address,
            common,
        } => {
            let options = Options {
                account: common.account()?,
                programs: common.programs(),
                member,
                address,
                directory: common.directory,
                password: common.password,
            };
            println!("{} waits for orders", options.member);
            run(options, stopped()?).await
        }
        Command::Backup { address, common } => {
            let options = BackupOptions {
                account: common.account()?,
                programs: common.programs(),
                address,
                directory: common.directory,
                password: common.password,
            };
            backup::run(options, stopped()?).await
        }
        Command::Restore { from, time, common } => {
            let options = RestoreOptions {
                account: common.account()?,
                programs: common.programs(),
                from,
                time,
                directory: common.directory,
                password: common.password,
            };
            Ok(restore::run(&options).await?)
        }
    }
}

/// Completes when the program is asked to end.
fn stopped() -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminated = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        println!("stops");
    })
}
