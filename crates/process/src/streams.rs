//! Bytes between a process and whoever watches it.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use bytes::Bytes;
use kubewright_server::{StreamEvent, StreamInput};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe;
use tokio::process::{ChildStderr, ChildStdout};

use crate::terminal::Terminal;

/// How much is read at once.
pub(crate) const CHUNK: usize = 16 << 10;

/// Where the input of a process goes.
#[derive(Debug)]
pub(crate) enum Sink {
    Pipe(pipe::Sender),
    Terminal(Arc<Terminal>),
    /// The process has no input.
    Nowhere,
}

impl Sink {
    /// A pipe for the input of a process, and the end that the process reads.
    pub(crate) fn pipe() -> std::io::Result<(Self, OwnedFd)> {
        let (theirs, ours) = std::io::pipe()?;
        let ours = pipe::Sender::from_owned_fd(ours.into())?;
        Ok((Self::Pipe(ours), theirs.into()))
    }

    /// Writes bytes; says whether the process still reads.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> Reads {
        let written = match self {
            Self::Pipe(pipe) => pipe.write_all(bytes).await,
            Self::Terminal(terminal) => terminal.write(bytes).await,
            Self::Nowhere => Ok(()),
        };
        match written {
            Ok(()) => Reads::On,
            Err(_) => Reads::NoMore,
        }
    }

    fn resize(&self, size: kubewright_server::TerminalSize) {
        if let Self::Terminal(terminal) = self {
            terminal.resize(size);
        }
    }
}

/// Whether a process still reads its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reads {
    On,
    NoMore,
}

/// Passes on what comes in until nothing more does, and closes the input of the process at its end.
pub(crate) async fn feed(mut input: StreamInput, mut sink: Sink) {
    while let Some(event) = input.next().await {
        match event {
            StreamEvent::Bytes(bytes) => {
                if sink.write(&bytes).await == Reads::NoMore {
                    sink = Sink::Nowhere;
                }
            }
            StreamEvent::End if matches!(sink, Sink::Pipe(_)) => sink = Sink::Nowhere,
            // What a terminal reads ends with a character that means so.
            StreamEvent::End => drop(sink.write(&[4]).await),
            StreamEvent::Resized(size) => sink.resize(size),
        }
    }
}

/// Where the output of a process comes from, piece by piece.
#[derive(Debug)]
pub(crate) enum Output {
    Stdout(ChildStdout),
    Stderr(ChildStderr),
    Terminal(Arc<Terminal>),
}

impl Output {
    /// The next piece; nothing when there is no more.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        let mut buffer = vec![0; CHUNK];
        let count = match self {
            Self::Stdout(stdout) => stdout.read(&mut buffer).await.ok()?,
            Self::Stderr(stderr) => stderr.read(&mut buffer).await.ok()?,
            Self::Terminal(terminal) => terminal.read(&mut buffer).await?,
        };
        buffer.truncate(count);
        (count > 0).then(|| buffer.into())
    }
}

/// Splits output into lines for a log. A line that never ends is cut where containerd cuts it.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    rest: Vec<u8>,
}

impl Lines {
    /// The whole lines that are there with these bytes, as one text; empty when there are none.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        self.rest.extend_from_slice(bytes);
        let end = match self.rest.iter().rposition(|byte| *byte == b'\n') {
            Some(at) => at + 1,
            None if self.rest.len() >= CHUNK => self.rest.len(),
            None => return String::new(),
        };
        let rest = self.rest.split_off(end);
        let lines = std::mem::replace(&mut self.rest, rest);
        String::from_utf8_lossy(&lines).into_owned()
    }

    /// What is left when nothing more comes.
    pub(crate) fn finish(self) -> String {
        String::from_utf8_lossy(&self.rest).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_and_long_ones_are_cut() {
        let mut lines = Lines::default();
        assert_eq!(lines.push(b"a"), "");
        assert_eq!(lines.push(b"b\nc\nd"), "ab\nc\n");
        assert_eq!(lines.push(&vec![b'x'; CHUNK]).len(), CHUNK + 1);
        assert_eq!(lines.push(b"end"), "");
        assert_eq!(lines.finish(), "end");
    }
}
