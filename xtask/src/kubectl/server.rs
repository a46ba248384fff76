//! A server of its own for each kubectl, with everything it writes in one temporary directory.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use kubewright_bench::{Access, Connection, Protocol, Reply};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::step::World;
use crate::process::Running;

/// How long the server may take to be there.
const PATIENCE: Duration = Duration::from_secs(20);
/// The only format in which kubectl up to 1.28 reads the OpenAPI document.
const OPENAPI_V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// A running server.
pub(crate) struct Server {
    folder: TempDir,
    access: Access,
    runtime: Runtime,
    _process: Running,
}

impl Server {
    /// Starts a server and waits until it answers.
    pub(crate) fn start(binary: &Path, world: World) -> Result<Self> {
        let folder = tempfile::tempdir().context("making a temporary directory")?;
        let kubeconfig = folder.path().join("kubeconfig");
        let mut command = Command::new(binary);
        command
            .current_dir(folder.path())
            .args(["up", "--port=0", "--kubeconfig"])
            .arg(&kubeconfig)
            .args(match world {
                World::Server => &["--no-controllers"][..],
                World::Cluster => &["--nodes=3", "--load-balancers=203.0.113.0/24"],
            });
        let mut process = Running::start(&mut command, "")?;
        if !process.read_until(PATIENCE, |output| output.stdout.contains("answers at")) {
            bail!("the server did not start: {}", process.into_output().stderr);
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        Ok(Self {
            access: Access::of_kubeconfig(&kubeconfig)?,
            folder,
            runtime,
            _process: process,
        })
    }

    /// The directory that goes with the server.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The kubeconfig of its administrator.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder().join("kubeconfig")
    }

    /// Whether old kubectls can read the OpenAPI document.
    pub(crate) fn serves_openapi_protobuf(&self) -> Result<bool> {
        let reply = self.runtime.block_on(async {
            let mut connection = Connection::open(&self.access, Protocol::Http1).await?;
            connection.get_as("/openapi/v2", OPENAPI_V2_PROTOBUF).await
        })?;
        Ok(reply.status.is_success())
    }

    /// Sends one plain HTTP request.
    pub(crate) fn send(
        &self,
        method: http::Method,
        path: &str,
        content_type: &'static str,
        body: &'static str,
    ) -> Result<Reply> {
        self.runtime.block_on(async {
            let mut connection = Connection::open(&self.access, Protocol::Http1).await?;
            let reply = connection.send(method, path, content_type, body);
            tokio::time::timeout(PATIENCE, reply)
                .await
                .context("no answer in time")?
        })
    }
}
