//! The agent: the program of the pods of a PostgresCluster.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Parser;
use kubewright_example_postgres::agent::{Options, find_account, find_programs, run};
use tokio::signal::unix::{SignalKind, signal};

/// Run a member of a PostgresCluster
///
/// It does nothing by itself: the operator says what the member is, over HTTP at port 8008. Clients of the database come in at
/// port 5432.
#[derive(Parser)]
#[command(name = "postgres-agent")]
struct Arguments {
    /// The name of the member
    #[arg(long, env = "POD_NAME")]
    member: String,
    /// The address of the pod
    #[arg(long, env = "POD_IP")]
    address: IpAddr,
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

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let is_root = std::fs::read_to_string("/proc/self/status")?
        .lines()
        .any(|line| line.starts_with("Uid:\t0\t"));
    let options = Options {
        member: arguments.member,
        address: arguments.address,
        directory: arguments.directory,
        programs: arguments.programs.unwrap_or_else(find_programs),
        account: is_root.then(|| find_account(&arguments.account)).flatten(),
        password: arguments.password,
    };
    println!("{} waits for orders", options.member);
    let mut terminated = signal(SignalKind::terminate())?;
    let stopped = async {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        println!("stops");
    };
    run(options, stopped).await
}
