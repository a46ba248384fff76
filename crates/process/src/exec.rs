//! Commands in a container that runs.

use std::sync::Arc;

use bytes::Bytes;
use kubewright_cluster::node::runtime::ExecError;
use kubewright_server::{Streams, Wanted};
use tokio::sync::mpsc;

use crate::cgroup::Cgroup;
use crate::container::Running;
use crate::helper::message::Launch;
use crate::session::{self, Call, Session};
use crate::streams::{Output, Sink, feed};
use crate::terminal::Terminal;

/// How much of the output of a probe or hook is kept, as a kubelet keeps it.
const MOST_OUTPUT: usize = 10 << 10;

/// Runs a command with streams and returns its exit code. Dropping this ends it.
///
/// # Errors
/// Why it could not be started.
pub(crate) async fn exec(
    call: &Call,
    running: &Running,
    command: Vec<String>,
    streams: Streams,
) -> Result<i32, ExecError> {
    let failed = |error: &dyn std::fmt::Display| ExecError(error.to_string());
    let mut words = command.into_iter();
    let Some(program) = words.next() else {
        return Err(ExecError("no command was given".to_owned()));
    };
    let mut launch = Launch {
        program,
        args: words.collect(),
        env: running.env.clone(),
        directory: running.directory.clone(),
        identity: running.identity.clone(),
        groups: running.cgroup().map(Cgroup::members).unwrap_or_default(),
        ..Launch::default()
    };
    let (mut terminal, mut stdin, mut sink) = (None, None, Sink::Nowhere);
    if streams.tty() {
        let opened = Arc::new(Terminal::open().map_err(|e| failed(&e))?);
        launch.terminal = Some(opened.path.clone());
        sink = Sink::Terminal(opened.clone());
        terminal = Some(opened);
    } else if streams.has_stdin() {
        let (ours, theirs) = Sink::pipe().map_err(|e| failed(&e))?;
        (sink, stdin) = (ours, Some(theirs));
    }
    let session = Session::start(call, &launch, stdin).await;
    let session = session.map_err(|error| failed(&error))?;
    let (input, output) = streams.split();
    let show = async {
        match terminal {
            Some(terminal) => show(Output::Terminal(terminal), &output).await,
            None => {
                let stdout = show(Output::Stdout(session.stdout), &output);
                let stderr = show(Output::Stderr(session.stderr), &output);
                tokio::join!(stdout, stderr);
            }
        }
    };
    let feed = async {
        feed(input, sink).await;
        std::future::pending::<()>().await;
    };
    // The socket stays open until the end: closing it would end the command.
    let _asks = session.asks;
    let end = session.reports.end();
    let both = async { tokio::join!(end, show).0 };
    let report = tokio::select! {
        report = both => report,
        () = feed => return Err(ExecError("the input ended the command".to_owned())),
    };
    Ok(session::exit_code(&report))
}

async fn show(mut from: Output, to: &Streams) {
    let is_error = matches!(from, Output::Stderr(_));
    while let Some(bytes) = from.next().await {
        if is_error {
            to.write_error(bytes).await;
        } else {
            to.write(bytes).await;
        }
    }
}

/// Runs a command without input, and returns its exit code with what it wrote.
///
/// # Errors
/// Why it could not be started.
pub(crate) async fn capture(
    call: &Call,
    running: &Running,
    command: Vec<String>,
) -> Result<(i32, String), ExecError> {
    let (streams, mut ends) = Streams::pair(Wanted::output());
    let stdout = keep(ends.stdout.take());
    let stderr = keep(ends.stderr.take());
    let run = exec(call, running, command, streams);
    let (code, stdout, stderr) = tokio::join!(run, stdout, stderr);
    let text = String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned();
    Ok((code?, text))
}

/// The first bytes of a stream, and whatever follows dropped.
async fn keep(from: Option<mpsc::Receiver<Bytes>>) -> Vec<u8> {
    let mut kept = Vec::new();
    let Some(mut from) = from else {
        return kept;
    };
    while let Some(bytes) = from.recv().await {
        let room = MOST_OUTPUT.saturating_sub(kept.len());
        kept.extend(bytes.iter().take(room));
    }
    kept
}
