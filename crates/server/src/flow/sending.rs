//! Large answers on their way out: they keep their seat until they are sent, and their bytes are counted until they
//! are read.
//!
//! A client that does not read keeps nobody out: its answer loses the seat after a moment, and is cut off when nothing
//! of it was taken for a while.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use parking_lot::Mutex;
use tokio::task::AbortHandle;

use super::seat::Seat;
use crate::http::body::ResponseBody;
use crate::http::respond::Answer;
use crate::memory::Charge;
use crate::status::ApiError;

/// Answers up to this size are left to the buffers of the connection.
const SMALL: u64 = 64 * 1024;
/// How long an answer that is being sent keeps its seat.
const SEATED: Duration = Duration::from_secs(1);
/// An answer is cut off when nothing of it was taken for this long.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where an answer goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Receiver {
    /// To a caller in this process, who may keep the bytes for as long as it likes.
    InProcess,
    /// Through a socket, whose buffers hold the bytes until they are sent.
    Socket,
}

/// What a request holds.
pub(crate) struct Holdings {
    pub(crate) seat: Option<Seat>,
    /// None for those whose bytes are not counted.
    pub(crate) charge: Option<Charge>,
}

/// Passes an answer on. One that is large takes along what its request holds; a small one, or a stream without an end
/// such as a watch, gives it up here.
///
/// # Errors
/// 429 when the user has too many answers that were not read.
pub(crate) fn send(
    answer: Answer,
    holdings: Holdings,
    receiver: Receiver,
) -> Result<Answer, ApiError> {
    let Some(size) = answer.body().size_hint().exact().filter(|n| *n > SMALL) else {
        return Ok(answer);
    };
    let Holdings { seat, mut charge } = holdings;
    if let Some(charge) = &mut charge {
        charge.add(usize::try_from(size).unwrap_or(usize::MAX))?;
    }
    Ok(answer.map(|body| {
        let state = Arc::new(Mutex::new(State {
            body: Some(body),
            seat,
            charge,
            taken: false,
        }));
        let timer = tokio::spawn(impatience(Arc::downgrade(&state))).abort_handle();
        let sending = Sending {
            state,
            receiver,
            timer,
        };
        sending.boxed_unsync()
    }))
}

/// A body that is being sent.
struct Sending {
    state: Arc<Mutex<State>>,
    receiver: Receiver,
    /// Ends with the answer.
    timer: AbortHandle,
}

struct State {
    /// Gone when it was sent or cut off.
    body: Option<ResponseBody>,
    seat: Option<Seat>,
    charge: Option<Charge>,
    /// Whether a part of it was taken since the last look.
    taken: bool,
}

/// Takes the seat of an answer that is not sent soon, and then all of one that nobody takes.
async fn impatience(sending: Weak<Mutex<State>>) {
    tokio::time::sleep(SEATED).await;
    if let Some(state) = sending.upgrade() {
        state.lock().seat = None;
    }
    loop {
        tokio::time::sleep(PATIENCE).await;
        let Some(state) = sending.upgrade() else {
            return;
        };
        let mut state = state.lock();
        if !std::mem::take(&mut state.taken) {
            tracing::debug!("an answer that was not read is cut off");
            (state.body, state.charge) = (None, None);
            return;
        }
    }
}

impl Body for Sending {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let mut state = self.state.lock();
        let Some(body) = &mut state.body else {
            return Poll::Ready(None);
        };
        match Pin::new(body).poll_frame(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(Ok(frame))) => {
                state.taken = true;
                let size = frame.data_ref().map_or(0, Bytes::len);
                let part = state.charge.as_mut().map(|charge| charge.split(size));
                Poll::Ready(Some(Ok(
                    frame.map_data(|bytes| self.receiver.hand(bytes, part))
                )))
            }
            Poll::Ready(Some(Err(never))) => match never {},
            Poll::Ready(None) => {
                (state.body, state.seat, state.charge) = (None, None, None);
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let state = self.state.lock();
        state.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let state = self.state.lock();
        state
            .body
            .as_ref()
            .map_or_else(SizeHint::default, Body::size_hint)
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.timer.abort();
    }
}

impl Receiver {
    /// Bytes that a connection holds are counted until it has sent them.
    fn hand(self, bytes: Bytes, charge: Option<Charge>) -> Bytes {
        match (self, charge) {
            (Self::Socket, Some(charge)) => Bytes::from_owner(Part {
                bytes,
                _charge: charge,
            }),
            _ => bytes,
        }
    }
}

/// A part of an answer in the buffers of a connection.
struct Part {
    bytes: Bytes,
    _charge: Charge,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
