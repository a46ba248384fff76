//! The page as visitors see it: through the Service of the entry, and through `kubectl port-forward`.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Service;
use kubewright::prelude::*;
use kubewright_lane::Deployed;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdout, Command};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The Service of the entry.
const ENTRY: &str = "podtato-head-entry";
/// The port of all Services.
const PORT: u16 = 9000;

/// A `kubectl port-forward` to the entry, which ends with this.
pub(crate) struct Forward {
    address: SocketAddr,
    /// It writes a line for each connection, and ends when nobody could read it.
    _output: Lines<BufReader<ChildStdout>>,
    _kubectl: Child,
}

impl Forward {
    /// Starts it, and waits until it listens.
    pub(crate) async fn start(kubectl: &Path, kubeconfig: &Path) -> Result<Self> {
        let mut command = Command::new(kubectl);
        command.arg("--kubeconfig").arg(kubeconfig);
        command.args(["port-forward", &format!("service/{ENTRY}")]);
        command.arg(format!(":{PORT}"));
        command.stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().context("kubectl cannot be started")?;
        let output = child.stdout.take().context("kubectl has an output")?;
        let mut lines = BufReader::new(output).lines();
        let line = timeout(PATIENCE, lines.next_line()).await;
        let line = line
            .context("kubectl does not listen")??
            .unwrap_or_default();
        // As in `Forwarding from 127.0.0.1:40001 -> 9000`.
        let address = line.split(' ').nth(2).and_then(|it| it.parse().ok());
        Ok(Self {
            address: address.with_context(|| format!("kubectl prints {line:?}"))?,
            _output: lines,
            _kubectl: child,
        })
    }

    /// The versions on the page, one of each part.
    pub(crate) async fn versions(&self) -> Result<Vec<String>> {
        let page = get(self.address).await?;
        let rows = page.split("<i>").skip(1);
        let versions = rows.filter_map(|row| row.split_once("</i>"));
        Ok(versions.map(|(version, _)| version.to_owned()).collect())
    }

    /// Takes a picture of the page.
    pub(crate) async fn picture(&self, file: &Path) -> Result<()> {
        let mut chromium = Command::new("chromium");
        chromium.args(["--headless=new", "--no-sandbox", "--disable-gpu"]);
        chromium.args(["--hide-scrollbars", "--window-size=1200,760"]);
        chromium.arg(format!("--screenshot={}", file.display()));
        chromium.arg(format!("http://{}/", self.address));
        chromium.stdout(Stdio::null()).stderr(Stdio::null());
        let done = timeout(6 * PATIENCE, chromium.kill_on_drop(true).status()).await;
        let done = done.context("Chromium takes too long")??;
        ensure!(done.success() && file.is_file(), "Chromium made no picture");
        Ok(())
    }
}

/// Somebody who asks for the page through the Service all the time.
pub(crate) struct Visitors {
    answered: Arc<AtomicU64>,
    failed: Arc<AtomicU64>,
    tasks: JoinSet<()>,
}

impl Visitors {
    /// Begins to visit.
    pub(crate) async fn of(deployed: &Deployed) -> Result<Self> {
        let key = Key::new("default", ENTRY);
        let service = deployed.client.live().get::<Service>(&key).await?;
        let address = service.and_then(|it| it.spec).and_then(|it| it.cluster_ip);
        let address = address.context("the entry is exposed")?;
        let address = SocketAddr::new(address.parse()?, PORT);
        let mut visitors = Self {
            answered: Arc::default(),
            failed: Arc::default(),
            tasks: JoinSet::new(),
        };
        let (answered, failed) = (visitors.answered.clone(), visitors.failed.clone());
        visitors.tasks.spawn(async move {
            loop {
                match get(address).await {
                    Ok(_) => answered.fetch_add(1, Ordering::Relaxed),
                    Err(error) => {
                        println!("a visitor saw no page: {error:#}");
                        failed.fetch_add(1, Ordering::Relaxed)
                    }
                };
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        Ok(visitors)
    }

    /// Ends the visits, and gives how many were answered and how many were not.
    pub(crate) fn leave(self) -> (u64, u64) {
        let counted = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (counted(&self.answered), counted(&self.failed))
    }
}

/// The page at an address.
async fn get(address: SocketAddr) -> Result<String> {
    let asked = async {
        let mut stream = TcpStream::connect(address).await?;
        let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        // A forwarded connection stays open when its server has closed it.
        while stream.read_buf(&mut answer).await? > 0 && !answer.ends_with(b"</html>\n") {}
        Ok::<_, std::io::Error>(String::from_utf8_lossy(&answer).into_owned())
    };
    let answer = timeout(PATIENCE, asked).await.context("no answer")??;
    ensure!(
        answer.starts_with("HTTP/1.1 200"),
        "the answer is {:?}",
        answer.lines().next()
    );
    Ok(answer)
}
