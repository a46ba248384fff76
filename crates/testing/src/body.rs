//! Bodies that come late or break.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use tokio::sync::{broadcast, mpsc};
use tokio::time::{Instant, sleep_until};
use tower::BoxError;

pub(crate) type WireBody = UnsyncBoxBody<Bytes, BoxError>;
pub(crate) type Delay = Arc<dyn Fn() -> Duration + Send + Sync>;
type WireFrame = Result<Frame<Bytes>, BoxError>;

/// Parts of a watch that may be under way.
const UNDER_WAY: usize = 4096;

/// What happens to every open watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Break {
    /// It ends without an error.
    Close,
    /// The connection is reset.
    Reset,
    /// It ends in the middle of a line.
    Truncate,
    /// A line arrives that is not an event, and then nothing.
    Garbage,
    /// It stays open and nothing ever comes, as on a half-open connection.
    Silence,
}

/// The body, until it is broken.
pub(crate) fn breakable(body: WireBody, breaks: broadcast::Receiver<Break>) -> WireBody {
    let frames = stream::unfold(Some((body, breaks)), |open| async move {
        let (mut body, mut breaks) = open?;
        tokio::select! { biased; // What is broken tells no more.
            Ok(how) = breaks.recv() => match how {
                Break::Silence => std::future::pending().await,
                how => broken(how).map(|frame| (frame, None)),
            },
            frame = body.frame() => Some((frame?, Some((body, breaks)))),
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

fn broken(how: Break) -> Option<WireFrame> {
    let frame = |bytes| Ok(Frame::data(Bytes::from_static(bytes)));
    match how {
        Break::Close | Break::Silence => None,
        Break::Reset => Some(Err("connection reset".into())),
        Break::Truncate => Some(frame(
            br#"{"type":"MODIFIED","object":{"metadata":{"name":"x"#,
        )),
        Break::Garbage => Some(frame(b"<html>bad gateway\n")),
    }
}

/// The first half of the body's first frame, and then nothing for ever.
pub(crate) fn stalled(body: WireBody) -> WireBody {
    let frames = stream::unfold(Some(body), |open| async move {
        let Some(mut body) = open else {
            return std::future::pending().await;
        };
        let frame = body.frame().await?;
        let half = frame.map(|frame| frame.map_data(|data| data.slice(..data.len() / 2)));
        Some((half, None))
    });
    StreamBody::new(frames).boxed_unsync()
}

/// The body, each part of it later. The order stays: a part that is quicker than the one before waits for it.
pub(crate) fn delayed(body: WireBody, delay: Delay) -> WireBody {
    let (sender, receiver) = mpsc::channel::<(Instant, WireFrame)>(UNDER_WAY);
    // Ends with the body, or when nobody reads any more.
    tokio::spawn(async move {
        let mut frames = pin!(body.into_stream());
        while let Some(frame) = frames.next().await {
            if sender
                .send((Instant::now() + delay(), frame))
                .await
                .is_err()
            {
                return;
            }
        }
    });
    let frames = stream::unfold(receiver, |mut receiver| async move {
        let (due, frame) = receiver.recv().await?;
        sleep_until(due).await;
        Some((frame, receiver))
    });
    StreamBody::new(frames).boxed_unsync()
}
