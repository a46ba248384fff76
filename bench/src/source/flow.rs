//! The body of an answer that is made while it is sent.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use tokio::sync::mpsc;

/// So many chunks may wait to be sent.
const CHUNKS: usize = 4;
/// So many bytes make a chunk.
const CHUNK: usize = 64 * 1_024;

/// Chunks as they come.
pub(crate) struct Flow(Content);

enum Content {
    Whole(Option<Bytes>),
    Chunks(mpsc::Receiver<Bytes>),
}

/// The end where chunks go in.
pub(crate) struct Inlet {
    sender: mpsc::Sender<Bytes>,
    pub(crate) buffer: Vec<u8>,
}

/// The client has gone.
pub(crate) struct Gone;

impl Flow {
    pub(crate) fn of(bytes: Bytes) -> Self {
        Self(Content::Whole(
            Some(bytes).filter(|bytes| !bytes.is_empty()),
        ))
    }

    pub(crate) fn new() -> (Inlet, Self) {
        let (sender, receiver) = mpsc::channel(CHUNKS);
        let inlet = Inlet {
            sender,
            buffer: Vec::with_capacity(CHUNK + CHUNK / 4),
        };
        (inlet, Self(Content::Chunks(receiver)))
    }
}

impl Inlet {
    /// Sends what is in the buffer if it makes a chunk.
    pub(crate) async fn flow(&mut self) -> Result<(), Gone> {
        if self.buffer.len() < CHUNK {
            Ok(())
        } else {
            self.flush().await
        }
    }

    /// Sends what is in the buffer.
    pub(crate) async fn flush(&mut self) -> Result<(), Gone> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let next = Vec::with_capacity(CHUNK + CHUNK / 4);
        let chunk = std::mem::replace(&mut self.buffer, next);
        self.sender.send(chunk.into()).await.map_err(|_| Gone)
    }

    /// Returns when the client has gone.
    pub(crate) async fn gone(&self) {
        self.sender.closed().await;
    }
}

impl Body for Flow {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match &mut self.0 {
            Content::Whole(bytes) => Poll::Ready(bytes.take()),
            Content::Chunks(chunks) => chunks.poll_recv(context),
        };
        next.map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
    }
}
