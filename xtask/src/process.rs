//! Child processes with a deadline: their output as it comes, and an end that is certain.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// Lines that may wait to be read before the child has to wait.
const WAITING: usize = 1_024;

/// A child that is killed and reaped when this is dropped.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<Line>,
    output: Output,
}

/// What a child wrote and how it ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct Output {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) end: End,
}

/// How a child ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum End {
    /// It ran until it was stopped.
    #[default]
    Stopped,
    /// It ended by itself with this code; a signal counts as 128.
    Exited(i32),
    /// It was still running at the deadline.
    TooLate,
}

impl Output {
    /// Whether this was written, to either stream.
    pub(crate) fn shows(&self, text: &str) -> bool {
        self.stdout.contains(text) || self.stderr.contains(text)
    }
}

enum Line {
    Stdout(String),
    Stderr(String),
}

impl Running {
    /// Starts a child with this input.
    pub(crate) fn start(command: &mut Command, stdin: &str) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}", command.get_program().display()))?;
        let (sender, lines) = sync_channel(WAITING);
        if let Some(mut input) = child.stdin.take() {
            let stdin = stdin.to_owned();
            // A child that does not read its input closes it: nothing to tell.
            thread::spawn(move || drop(input.write_all(stdin.as_bytes())));
        }
        if let Some(pipe) = child.stdout.take() {
            forward(pipe, sender.clone(), Line::Stdout);
        }
        if let Some(pipe) = child.stderr.take() {
            forward(pipe, sender, Line::Stderr);
        }
        Ok(Self {
            child,
            lines,
            output: Output::default(),
        })
    }

    /// The number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// What was read so far.
    pub(crate) fn output(&self) -> &Output {
        &self.output
    }

    /// Reads until `enough` says so, the child ends, or nothing comes for `patience`. Tells whether it was enough.
    pub(crate) fn read_until(
        &mut self,
        patience: Duration,
        enough: impl Fn(&Output) -> bool,
    ) -> bool {
        while !enough(&self.output) {
            match self.lines.recv_timeout(patience) {
                Ok(Line::Stdout(line)) => self.output.stdout.push_str(&line),
                Ok(Line::Stderr(line)) => self.output.stderr.push_str(&line),
                Err(RecvTimeoutError::Disconnected) => {
                    self.output.end = End::Exited(self.reap());
                    return enough(&self.output);
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.output.end = End::TooLate;
                    return false;
                }
            }
        }
        true
    }

    /// Asks the child to end, and waits until nothing has its output open any more: it and all that it started.
    pub(crate) fn end(mut self, patience: Duration) -> Result<Output> {
        let id = self.child.id().to_string();
        let asked = Command::new("kill").args(["-TERM", &id]).status();
        asked.context("the child cannot be asked to end")?;
        self.read_until(patience, |_| false);
        Ok(self.into_output())
    }

    /// What was read, after the child is no more.
    pub(crate) fn into_output(mut self) -> Output {
        std::mem::take(&mut self.output)
    }

    fn reap(&mut self) -> i32 {
        let status = self.child.wait();
        status.ok().and_then(|s| s.code()).unwrap_or(128)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both are without effect when the child was reaped before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a child to its end.
pub(crate) fn run(command: &mut Command, stdin: &str, patience: Duration) -> Result<Output> {
    let mut running = Running::start(command, stdin)?;
    running.read_until(patience, |_| false);
    Ok(running.into_output())
}

fn forward(
    pipe: impl Read + Send + 'static,
    lines: SyncSender<Line>,
    kind: impl Fn(String) -> Line + Send + 'static,
) {
    thread::spawn(move || {
        let mut reader = BufReader::new(pipe);
        let mut bytes = Vec::new();
        while reader.read_until(b'\n', &mut bytes).is_ok_and(|n| n > 0) {
            let line = String::from_utf8_lossy(&bytes).into_owned();
            if lines.send(kind(line)).is_err() {
                return;
            }
            bytes.clear();
        }
    });
}
