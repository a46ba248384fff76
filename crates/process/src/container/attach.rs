//! `attach`: somebody reads what a container writes from now on, and may write to its input.

use kubewright_server::{StreamEvent, StreamInput, Streams};
use tokio::sync::MutexGuard;
use tokio::sync::broadcast::{Receiver, error::RecvError};

use super::{Piece, Running};
use crate::streams::Sink;

/// The input of a container for as long as somebody writes to it. With `stdinOnce` it ends with the first who does, however they
/// leave, so that a program which reads to the end of its input comes to it.
struct InputSession<'a> {
    sink: MutexGuard<'a, Sink>,
    once: bool,
}

impl Drop for InputSession<'_> {
    fn drop(&mut self) {
        if self.once {
            *self.sink = Sink::Nowhere;
        }
    }
}

impl Running {
    /// Connects streams until the program ends or nobody watches any more.
    pub(crate) async fn attach(&self, streams: Streams) {
        let writes = streams.has_stdin();
        let (input, output) = streams.split();
        // Before anything is written that the program may answer.
        let pieces = self.pieces.subscribe();
        tokio::select! {
            () = self.feed(input, writes) => {}
            () = self.show(pieces, &output) => {}
        }
    }

    /// Passes on what somebody writes and the size of their terminal. Never ends: whoever has written may still read.
    async fn feed(&self, mut input: StreamInput, writes: bool) {
        let mut session = if writes {
            Some(self.input_session().await)
        } else {
            None
        };
        while let Some(event) = input.next().await {
            match event {
                StreamEvent::Bytes(bytes) => {
                    if let Some(session) = &mut session {
                        session.sink.write(&bytes).await;
                    }
                }
                StreamEvent::Resized(size) => {
                    if let Some(terminal) = &self.terminal {
                        terminal.resize(size);
                    }
                }
                StreamEvent::End => session = None,
            }
        }
        std::future::pending().await
    }

    /// Waits until nobody else writes to the input. A terminal has no end of its input.
    async fn input_session(&self) -> InputSession<'_> {
        InputSession {
            sink: self.input.lock().await,
            once: self.container.stdin_once == Some(true) && self.terminal.is_none(),
        }
    }

    /// Passes on what the program writes, to its last byte.
    async fn show(&self, mut pieces: Receiver<Piece>, output: &Streams) {
        loop {
            let piece = tokio::select! {
                // Output first: all of it was sent before the end was.
                biased;
                piece = pieces.recv() => piece,
                () = self.ended() => return,
            };
            match piece {
                Ok(Piece::Output(bytes)) => output.write(bytes).await,
                Ok(Piece::Error(bytes)) => output.write_error(bytes).await,
                // What somebody missed who is too slow is in the log.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            }
        }
    }
}
