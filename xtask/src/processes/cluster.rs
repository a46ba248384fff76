//! A cluster whose pods are processes, as one user and in one way, and kubectl for it.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::Instant;

use super::tree::{self, Process};
use super::{Tools, open_to_all};
use crate::process::{self, End, Output, Running};

/// How long a command or a state may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Forbids namespaces to all that follows, and gives up the capability to allow them again.
const FORBID: &str = "echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --inh-caps=-all --ambient-caps=-all \"$@\"";

/// Whether containers have namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Namespaces {
    /// Where the kernel allows them.
    Auto,
    /// Never, because nobody wants them.
    Off,
    /// Never, because the kernel does not allow them: the cluster runs in a user namespace in which no other can be made.
    Forbidden,
}

/// Who the cluster runs as, and whether its containers have namespaces.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mode {
    /// Another user than the one who calls.
    user: Option<u32>,
    namespaces: Namespaces,
}

impl Mode {
    pub(crate) fn new(user: Option<u32>, namespaces: Namespaces) -> Self {
        Self { user, namespaces }
    }

    /// How the mode is called on the command line.
    pub(crate) fn name(self) -> &'static str {
        match (self.user, self.namespaces) {
            (None, Namespaces::Auto) => "root",
            (None, Namespaces::Off) => "root-plain",
            (None, Namespaces::Forbidden) => "root-forbidden",
            (Some(_), Namespaces::Auto) => "nobody",
            (Some(_), Namespaces::Off) => "nobody-plain",
            (Some(_), Namespaces::Forbidden) => "nobody-forbidden",
        }
    }

    /// Whether containers see volumes at their paths.
    pub(crate) fn mounts(self) -> bool {
        self.namespaces == Namespaces::Auto
    }

    /// The flag of `kubewright up`.
    fn flag(self) -> &'static str {
        if self.namespaces == Namespaces::Off {
            "--namespaces=off"
        } else {
            "--namespaces=auto"
        }
    }

    /// A program as the user of this mode.
    fn command(self, program: &Path) -> Command {
        let mut words: Vec<String> = Vec::new();
        if let Some(user) = self.user {
            words.extend(["setpriv".to_owned(), "--clear-groups".to_owned()]);
            words.extend([format!("--reuid={user}"), format!("--regid={user}")]);
        }
        if self.namespaces == Namespaces::Forbidden {
            let sandbox = ["unshare", "--user", "--map-current-user", "--keep-caps"];
            let shell = ["sh", "-ec", FORBID, "sh"];
            words.extend(sandbox.into_iter().chain(shell).map(str::to_owned));
        }
        words.push(program.display().to_string());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = if self.user.is_some() {
            "as nobody"
        } else {
            "as the caller"
        };
        let how = match self.namespaces {
            Namespaces::Auto => "namespaces where the kernel allows them",
            Namespaces::Off => "no namespaces",
            Namespaces::Forbidden => "a kernel that allows no namespaces",
        };
        write!(f, "{} ({who}, {how})", self.name())
    }
}

/// A cluster that runs, in a directory of its own.
pub(crate) struct Cluster<'a> {
    tools: &'a Tools,
    mode: Mode,
    folder: TempDir,
    running: Option<Running>,
    nodes: usize,
}

impl<'a> Cluster<'a> {
    /// Starts a cluster.
    pub(crate) fn start(tools: &'a Tools, mode: Mode, nodes: usize) -> Result<Self> {
        let folder = tempfile::tempdir().context("making a temporary directory")?;
        open_to_all(folder.path())?;
        if let Some(user) = mode.user {
            std::os::unix::fs::chown(folder.path(), Some(user), Some(user))?;
        }
        let busybox = tools.busybox.display();
        let page = if mode.mounts() {
            "/srv/page"
        } else {
            "$(VOLUME_PAGE)"
        };
        // A page for those that have none, so that every pod answers.
        let images = format!(
            "- image: web:*\n  command: [{busybox}, httpd, -f, -v]\n  args: [-p, \"$(POD_IP):8080\", -h, /usr/share]\n\
             - image: page:*\n  command: [{busybox}, httpd, -f, -v]\n  args: [-p, \"$(POD_IP):8080\", -h, {page}]\n\
             - image: sh\n  command: [/bin/sh]\n"
        );
        fs::write(folder.path().join("images.yaml"), images)?;
        let mut cluster = Self {
            tools,
            mode,
            folder,
            running: None,
            nodes,
        };
        cluster.up()?;
        Ok(cluster)
    }

    /// Starts the command, again or for the first time.
    pub(crate) fn up(&mut self) -> Result<()> {
        let mut command = self.mode.command(&self.tools.kubewright);
        command
            .current_dir(self.folder.path())
            .env("HOME", self.folder.path())
            .args(["up", "--runtime=process", "--no-console", "--data-dir=data"])
            .args([
                "--images=images.yaml",
                "--kubeconfig=kubeconfig",
                "--fsync=never",
            ])
            .arg("--image-store=images")
            .arg(self.mode.flag())
            .arg(format!("--nodes={}", self.nodes));
        let mut running = Running::start(&mut command, "")?;
        if !running.read_until(PATIENCE, |output| output.shows("Ctrl-C stops it")) {
            let output = running.into_output();
            bail!(
                "the cluster did not start: {}{}",
                output.stdout,
                output.stderr
            );
        }
        self.running = Some(running);
        // What is copied for another user is read by this one.
        let kubeconfig = self.folder.path().join("kubeconfig");
        fs::metadata(kubeconfig).context("the kubeconfig is missing")?;
        Ok(())
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn tools(&self) -> &Tools {
        self.tools
    }

    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    /// The number of the process that is the cluster.
    pub(crate) fn pid(&self) -> Result<i32> {
        let running = self.running.as_ref().context("the cluster does not run")?;
        Ok(running.id().cast_signed())
    }

    /// Everything that the cluster has started.
    pub(crate) fn processes(&self) -> Result<BTreeSet<Process>> {
        Ok(tree::below(self.pid()?, |_| true))
    }

    /// Sends a signal to the cluster, and waits until it has ended.
    pub(crate) fn signal(&mut self, signal: &str) -> Result<()> {
        let mut running = self.running.take().context("the cluster does not run")?;
        kill(signal, &[running.id().cast_signed()])?;
        running.read_until(PATIENCE, |_| false);
        Ok(())
    }

    /// What the cluster is called with, as a command of the same user.
    pub(crate) fn kubewright(&self, arguments: &[&str]) -> Result<Output> {
        let mut command = self.mode.command(&self.tools.kubewright);
        command
            .current_dir(self.folder.path())
            .env("HOME", self.folder.path())
            .args(arguments);
        process::run(&mut command, "", PATIENCE)
    }

    /// A kubectl for this cluster.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.tools.kubectl);
        command
            .current_dir(self.folder.path())
            .env("KUBECONFIG", self.kubeconfig())
            .env("HOME", self.folder.path())
            .args(arguments);
        command
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// Runs kubectl with this input; returns what it printed.
    pub(crate) fn kubectl_with(&self, arguments: &[&str], input: &str) -> Result<String> {
        let output = process::run(&mut self.command(arguments), input, PATIENCE)?;
        if output.end != End::Exited(0) {
            bail!("kubectl {}: {}", arguments.join(" "), output.stderr.trim());
        }
        Ok(output.stdout)
    }

    pub(crate) fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        self.kubectl_with(arguments, "")
    }

    /// Applies an object.
    pub(crate) fn apply(&self, object: &Value) -> Result<String> {
        self.kubectl_with(&["apply", "-f", "-"], &object.to_string())
    }

    /// Reads an object.
    pub(crate) fn get(&self, arguments: &[&str]) -> Result<Value> {
        let words = [&["get", "-o", "json"], arguments].concat();
        serde_json::from_str(&self.kubectl(&words)?).context("kubectl prints no JSON")
    }

    /// Waits until something is so; the error has what was seen last.
    pub(crate) async fn until<T>(
        &self,
        what: &str,
        mut look: impl FnMut() -> Result<Option<T>>,
    ) -> Result<T> {
        let late = Instant::now() + PATIENCE;
        loop {
            let seen = match look() {
                Ok(Some(found)) => return Ok(found),
                Ok(None) => "not yet".to_owned(),
                Err(error) => format!("{error:#}"),
            };
            if Instant::now() > late {
                bail!("{what}: timed out; last seen: {seen}");
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// The address of a Service, with its port.
    pub(crate) fn service(&self, name: &str) -> Result<(SocketAddr, SocketAddr)> {
        let service = self.get(&["service", name])?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let port = &service["spec"]["ports"][0];
        let cluster = format!("{}:{}", text(&service["spec"]["clusterIP"]), port["port"]);
        let node = format!("127.0.0.1:{}", port["nodePort"]);
        Ok((cluster.parse()?, node.parse()?))
    }
}

/// Sends a signal to processes.
pub(crate) fn kill(signal: &str, pids: &[i32]) -> Result<()> {
    let words = pids.iter().map(ToString::to_string);
    let sent = Command::new("kill").arg(signal).args(words).status();
    sent.context("kill")?;
    Ok(())
}
