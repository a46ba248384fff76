//! One helper and what runs under it, as the runtime sees them.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

use crate::helper::message::{self, Ask, Launch, Report};
use crate::ledger::{Entry, Ledger, MARK};

/// How much is read of what a helper that failed has written, and for how long.
const LAST_WORDS: u64 = 1 << 10;
const LAST_WORDS_WITHIN: Duration = Duration::from_secs(1);
/// How long a helper may take to start a program.
const START_WITHIN: Duration = Duration::from_secs(30);

/// Why nothing runs under a helper.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionError {
    #[error("the helper {} cannot be run: {source}", path.display())]
    Helper { path: PathBuf, source: io::Error },
    #[error("the helper does not answer: {0}")]
    Control(#[from] io::Error),
    /// The helper ended before it started the program; the text is what it wrote last.
    #[error("the helper ended before it started the program: {0}")]
    Ended(String),
    #[error("the program did not start within {} s", START_WITHIN.as_secs())]
    Late,
    /// The program could not be started; the text is the helper's.
    #[error("{0}")]
    Program(String),
}

/// How the helper is called.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) helper: PathBuf,
    /// What comes before the role: the hidden subcommand when the helper is `kubewright` itself.
    pub(crate) subcommand: Option<&'static str>,
    pub(crate) role: Vec<String>,
    /// Where the helper is written down while it runs.
    pub(crate) ledger: Ledger,
}

impl Call {
    /// Whether the helper makes namespaces, and reports the first process in them.
    fn is_contained(&self) -> bool {
        self.role.first().is_some_and(|role| role == "contain")
    }
}

/// A helper whose program runs. Dropping it closes the socket, upon which the helper ends everything.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) asks: OwnedWriteHalf,
    pub(crate) reports: Reports,
    pub(crate) stdout: ChildStdout,
    pub(crate) stderr: ChildStderr,
    pub(crate) pid: i32,
    /// The first process in the namespaces of the container, if it has some.
    pub(crate) init: Option<i32>,
}

/// What a helper reports, and its end.
#[derive(Debug)]
pub(crate) struct Reports {
    from: OwnedReadHalf,
    child: Child,
    /// Written down until the helper has been reaped, or nobody waits for it any more.
    entry: Entry,
}

impl Session {
    /// Starts a helper and its program.
    ///
    /// # Errors
    /// Why it could not be started; nothing of it is left then.
    pub(crate) async fn start(
        call: &Call,
        launch: &Launch,
        stdin: Option<OwnedFd>,
    ) -> Result<Self, SessionError> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        let mut child = Command::new(&call.helper)
            .args(call.subcommand)
            .args(&call.role)
            .env_clear()
            .env(MARK, &call.ledger.id)
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|source| SessionError::Helper {
                path: call.helper.clone(),
                source,
            })?;
        let descriptors: Vec<_> = stdin.iter().map(|fd| fd.as_fd()).collect();
        message::send_descriptors(&ours, &descriptors)?;
        drop(stdin);
        ours.set_nonblocking(true)?;
        let (from, mut asks) = UnixStream::from_std(ours)?.into_split();
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(SessionError::Ended("it has no output".to_owned()));
        };
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
        let entry = call.ledger.enter(pid.unwrap_or(0));
        let mut reports = Reports { from, child, entry };
        let mut init = None;
        let answer = async {
            if call.is_contained() {
                // Asked for its program later, or a short one would have ended before this is reported.
                match reports.next().await? {
                    Some(Report::Contained(pid)) => init = i32::try_from(pid).ok(),
                    other => return io::Result::Ok(other),
                }
            }
            asks.write_all(&message::frame(launch)?).await?;
            reports.next().await
        };
        match tokio::time::timeout(START_WITHIN, answer).await {
            Err(_) => Err(SessionError::Late),
            Ok(Err(error)) => Err(error.into()),
            Ok(Ok(Some(Report::Started))) => {
                if let Some(init) = init {
                    reports.entry.add(init);
                }
                Ok(Self {
                    asks,
                    reports,
                    stdout,
                    stderr,
                    pid: pid.unwrap_or(0),
                    init,
                })
            }
            Ok(Ok(Some(Report::Failed(why)))) => Err(SessionError::Program(why)),
            Ok(Ok(_)) => Err(SessionError::Ended(last_words(stderr).await)),
        }
    }
}

/// What a helper that has ended wrote to its standard error.
async fn last_words(stderr: ChildStderr) -> String {
    let mut text = Vec::new();
    let mut stderr = stderr.take(LAST_WORDS);
    let read = stderr.read_to_end(&mut text);
    // Whatever was read until then is better than nothing.
    let _ = tokio::time::timeout(LAST_WORDS_WITHIN, read).await;
    let text = String::from_utf8_lossy(&text);
    let text = text.trim();
    if text.is_empty() {
        "it wrote nothing".to_owned()
    } else {
        text.to_owned()
    }
}

impl Reports {
    /// The next report; nothing when the helper has closed its socket.
    async fn next(&mut self) -> io::Result<Option<Report>> {
        let mut prefix = [0; 4];
        match self.from.read_exact(&mut prefix).await {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        }
        let mut body = vec![0; message::body_length(prefix)?];
        self.from.read_exact(&mut body).await?;
        Ok(Some(serde_json::from_slice(&body)?))
    }

    /// Waits for the end of the program and of its helper. Not to be dropped and called again.
    pub(crate) async fn end(mut self) -> Report {
        let report = self.next().await.ok().flatten();
        // Reaped here, so that nothing is left when the end is known.
        let status = self.child.wait().await;
        if let Some(report) = report {
            return report;
        }
        tracing::warn!(?status, "the helper of a container ended without a report");
        let entry = self.entry;
        if let Err(error) = tokio::task::spawn_blocking(move || entry.end_session()).await {
            tracing::warn!(%error, "what a helper has left could not be ended");
        }
        Report::Killed(9)
    }
}

/// Sends a request to a helper; one that has ended needs none.
pub(crate) async fn ask(asks: &mut OwnedWriteHalf, ask: Ask) {
    if let Ok(frame) = message::frame(&ask) {
        // An error means that the helper has ended, of which its report tells.
        let _ = asks.write_all(&frame).await;
    }
}

/// The exit code of an end, as shells and container runtimes count.
pub(crate) fn exit_code(report: &Report) -> i32 {
    match report {
        Report::Exited(code) => *code,
        Report::Killed(signal) => 128 + signal,
        Report::Contained(_) | Report::Started | Report::Failed(_) => 128,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A helper that is slow to report the namespaces, and whose program ends as soon as it was asked for.
    const SLOW_TO_CONTAIN: &str = r#"exec 3<&0
{
    head -c 5 <&3 > /dev/null
    printf '\000\000\000\011"Started"\000\000\000\014{"Exited":0}' >&3
} &
sleep 0.2
printf '\000\000\000\017{"Contained":1}' >&3
wait
"#;

    #[tokio::test]
    async fn a_program_may_end_before_its_namespaces_are_reported() {
        let directory = tempfile::tempdir().expect("a directory");
        let script = directory.path().join("helper");
        std::fs::write(&script, SLOW_TO_CONTAIN).expect("written");
        let script = script.to_str().expect("a name").to_owned();
        let call = Call {
            helper: PathBuf::from("/bin/sh"),
            subcommand: Some(script.leak()),
            role: vec!["contain".to_owned()],
            ledger: Ledger {
                directory: directory.path().to_owned(),
                id: "test".to_owned(),
            },
        };
        let started = Session::start(&call, &Launch::default(), None).await;
        let session = started.expect("it starts");
        assert_eq!(session.init, Some(1));
        assert_eq!(session.reports.end().await, Report::Exited(0));
    }
}
