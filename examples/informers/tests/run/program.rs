//! An example as a process.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// What says where the cluster is.
const PLACES: [&str; 2] = ["KUBECONFIG", "KUBERNETES_SERVICE_HOST"];

/// Nothing takes so long: whoever waits longer waits for ever.
const LONG: Duration = Duration::from_secs(120);

pub(crate) struct Program {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    /// What it has said so far.
    pub(crate) said: Vec<String>,
}

/// How a program ended.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) said: Vec<String>,
    pub(crate) errors: String,
}

impl Program {
    /// Starts a program on a server of its own.
    pub(crate) fn alone(program: &str) -> Self {
        Self::start(&mut command(program))
    }

    /// Starts a program by a kubeconfig.
    pub(crate) fn by(program: &str, kubeconfig: &Path) -> Self {
        Self::start(command(program).env("KUBECONFIG", kubeconfig))
    }

    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.spawn().expect("the program starts");
        let output = child.stdout.take().expect("a pipe");
        Self {
            child,
            lines: BufReader::new(output).lines(),
            said: Vec::new(),
        }
    }

    /// Reads until a line that starts like this.
    pub(crate) async fn says(&mut self, start: &str) {
        while let Some(line) = self.line().await {
            if line.starts_with(start) {
                return;
            }
        }
        panic!("no {start:?} in {:#?}", self.said);
    }

    /// Ctrl-C, then the end.
    pub(crate) async fn interrupt(self) -> Ended {
        let id = self.child.id().expect("it runs").to_string();
        let mut kill = Command::new("kill");
        let sent = kill.args(["-INT", &id]).status().await;
        assert!(sent.expect("a signal is sent").success());
        self.end().await
    }

    /// Reads everything to the end.
    pub(crate) async fn end(mut self) -> Ended {
        while self.line().await.is_some() {}
        let mut errors = String::new();
        let mut pipe = self.child.stderr.take().expect("a pipe");
        let read = pipe.read_to_string(&mut errors).await;
        read.expect("errors are text");
        Ended {
            status: self.child.wait().await.expect("it ends"),
            said: self.said,
            errors,
        }
    }

    async fn line(&mut self) -> Option<String> {
        let line = tokio::time::timeout(LONG, self.lines.next_line()).await;
        let line = line
            .unwrap_or_else(|_| panic!("it says no more than {:#?}", self.said))
            .expect("it is text")?;
        self.said.push(line.clone());
        Some(line)
    }
}

impl Ended {
    /// Insists that all went well.
    pub(crate) fn well(self) -> Vec<String> {
        assert!(self.status.success(), "{:#?}\n{}", self.said, self.errors);
        self.said
    }
}

/// How often a line was said.
pub(crate) fn count(said: &[String], line: &str) -> usize {
    said.iter().filter(|said| *said == line).count()
}

pub(crate) fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    for place in PLACES {
        command.env_remove(place);
    }
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}
