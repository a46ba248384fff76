//! The servers that are measured: started as processes of their own, gone with their data afterwards.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};
use kubewright_bench::{Access, Connection, Protocol};
use tempfile::TempDir;

use crate::process::Process;
use crate::stopwatch::Stopwatch;
use crate::upstream::Upstream;

/// How long a server may take to be ready.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often it is asked whether it is.
const INTERVAL: Duration = Duration::from_millis(1);

/// What is measured.
pub(crate) enum Target {
    /// `kubewright up`.
    Kubewright(PathBuf),
    /// A kube-apiserver with an etcd.
    Upstream(Upstream),
}

/// A server that is ready.
pub(crate) struct Running {
    pub(crate) access: Access,
    /// From starting the process to a good answer of `/readyz`.
    pub(crate) start: Duration,
    processes: Vec<Process>,
    folder: TempDir,
}

impl Target {
    /// Starts a fresh server and waits until it is ready.
    pub(crate) async fn start(&self) -> Result<Running> {
        self.start_with(&[]).await
    }

    /// As [`Target::start`], with arguments that only our server knows.
    pub(crate) async fn start_with(&self, arguments: &[&str]) -> Result<Running> {
        self.launch(&[&["--no-controllers"], arguments].concat())
            .await
    }

    /// Starts a whole cluster, as `kubewright up` does by default; none where there is no such thing.
    pub(crate) async fn start_cluster(&self) -> Result<Option<Running>> {
        match self {
            Self::Kubewright(_) => self.launch(&[]).await.map(Some),
            Self::Upstream(_) => Ok(None),
        }
    }

    async fn launch(&self, arguments: &[&str]) -> Result<Running> {
        let folder = tempfile::tempdir()?;
        let address = free_address()?;
        let stopwatch = Stopwatch::start();
        let (processes, access): (_, Box<dyn Fn() -> Result<Access>>) = match self {
            Self::Kubewright(binary) => {
                let kubeconfig = folder.path().join("kubeconfig");
                let port = address.port().to_string();
                let mut command = Command::new(binary);
                command
                    .args(["up", "--port", &port, "--kubeconfig"])
                    .arg(&kubeconfig)
                    .args(arguments);
                let process = Process::start(&mut command)?;
                (
                    vec![process],
                    Box::new(move || Access::of_kubeconfig(&kubeconfig)),
                )
            }
            Self::Upstream(upstream) => {
                let (processes, access) = upstream.start(folder.path(), address)?;
                (processes, Box::new(move || Ok(access.clone())))
            }
        };
        let access = ready(access, stopwatch).await?;
        Ok(Running {
            access,
            start: stopwatch.elapsed(),
            processes,
            folder,
        })
    }
}

impl Running {
    /// Resident memory of all its processes.
    pub(crate) fn memory(&self) -> u64 {
        self.processes.iter().map(Process::memory).sum()
    }

    /// Where the kubeconfig of our server is.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// A new connection.
    pub(crate) async fn connect(&self, protocol: Protocol) -> Result<Connection> {
        Connection::open(&self.access, protocol).await
    }
}

/// An address that nobody listens on now.
pub(crate) fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?)
}

/// Asks until `/readyz` says so.
async fn ready(access: impl Fn() -> Result<Access>, stopwatch: Stopwatch) -> Result<Access> {
    loop {
        let answer = async {
            let access = access()?;
            let mut connection = Connection::open(&access, Protocol::Http1).await?;
            let reply = connection.get("/readyz").await?;
            if !reply.status.is_success() {
                bail!("not ready: {}", reply.status);
            }
            Ok(access)
        };
        match answer.await {
            Ok(access) => return Ok(access),
            Err(error) if stopwatch.elapsed() > PATIENCE => {
                return Err(error.context("the server did not become ready"));
            }
            Err(_) => tokio::time::sleep(INTERVAL).await,
        }
    }
}
