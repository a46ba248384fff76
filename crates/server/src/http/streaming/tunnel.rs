//! Client and server agree on what a connection goes on with.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use futures::future::BoxFuture;
use http::header::{CONNECTION, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{HeaderMap, HeaderValue, StatusCode};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;
use tokio_util::sync::PollSender;

use super::channels::{self, Coding};
use super::messages::{Message, MessageReader, send};
use super::{Purpose, Tunnel, spdy};
use crate::http::body::full;
use crate::http::respond::Answer;
use crate::http::websocket::frame::Opcode;
use crate::http::websocket::{accept_key, has_token, is_request};
use crate::status::ApiError;

/// What a connection goes on with.
pub(crate) type Continuation = BoxFuture<'static, io::Result<()>>;

const STREAM_PROTOCOL: &str = "x-stream-protocol-version";
/// SPDY within WebSocket messages.
const TUNNELLED: &str = "SPDY/3.1+portforward.k8s.io";

/// How the rest of a connection speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speech {
    Channels(Coding),
    Tunnelled,
    Spdy,
}

impl Tunnel {
    /// Agrees with a client on how to go on.
    ///
    /// # Errors
    /// When the client asks for no upgrade, or for none that is known.
    pub(crate) fn accept(
        &self,
        headers: &HeaderMap,
        upgrade: Option<OnUpgrade>,
    ) -> Result<(Answer, Continuation), ApiError> {
        let spdy = has_token(headers, &UPGRADE, "SPDY/3.1");
        if !spdy && !is_request(headers) {
            return Err(ApiError::bad_request("Upgrade request required"));
        }
        let upgrade = upgrade.ok_or_else(|| {
            ApiError::bad_request("this connection cannot be upgraded: use HTTP/1.1 over a socket")
        })?;
        let purpose = self
            .take()
            .ok_or_else(|| ApiError::internal("a tunnel is used once"))?;
        let (speech, protocol) = agree(headers, &purpose, spdy)?;
        let answer = answer(headers, speech, protocol)?;
        let rest = Box::pin(async move {
            let connection = TokioIo::new(upgrade.await.map_err(io::Error::other)?);
            match speech {
                Speech::Channels(coding) => channels::serve(connection, purpose, coding).await,
                Speech::Spdy => spdy::serve(connection, purpose).await,
                Speech::Tunnelled => spdy::serve(Unwrapped::new(connection), purpose).await,
            }
        });
        Ok((answer, rest))
    }
}

/// The first protocol of the client's that is known.
fn agree(
    headers: &HeaderMap,
    purpose: &Purpose,
    spdy: bool,
) -> Result<(Speech, Option<String>), ApiError> {
    let asked: Vec<String> = if spdy {
        values(headers, STREAM_PROTOCOL)
    } else {
        values(headers, SEC_WEBSOCKET_PROTOCOL.as_str())
    };
    let process = matches!(purpose, Purpose::Process { .. });
    let known = |protocol: &str| match (spdy, process, protocol) {
        (true, true, "v4.channel.k8s.io" | "v3.channel.k8s.io" | "v2.channel.k8s.io") => {
            Some(Speech::Spdy)
        }
        (true, false, "portforward.k8s.io") => Some(Speech::Spdy),
        (false, false, TUNNELLED) => Some(Speech::Tunnelled),
        (false, true, "v5.channel.k8s.io") => Some(Speech::Channels(Coding::Binary)),
        (false, _, "v4.channel.k8s.io" | "channel.k8s.io") => {
            Some(Speech::Channels(Coding::Binary))
        }
        (false, _, "v4.base64.channel.k8s.io" | "base64.channel.k8s.io") => {
            Some(Speech::Channels(Coding::Base64))
        }
        _ => None,
    };
    if asked.is_empty() && !spdy {
        return Ok((Speech::Channels(Coding::Binary), None));
    }
    let chosen = asked
        .iter()
        .find_map(|one| Some((known(one)?, one.clone())));
    match chosen {
        Some((speech, protocol)) => Ok((speech, Some(protocol))),
        None => Err(ApiError::bad_request(format!(
            "unable to upgrade: unable to negotiate protocol: client supports [{}]",
            asked.join(" ")
        ))),
    }
}

/// The values of a header, whether they are in one line or in many.
fn values(headers: &HeaderMap, name: &str) -> Vec<String> {
    let lines = headers.get_all(name).into_iter();
    let lines = lines.filter_map(|value| value.to_str().ok());
    let values = lines.flat_map(|line| line.split(',')).map(str::trim);
    values
        .filter(|value| !value.is_empty())
        .map(str::to_owned)
        .collect()
}

fn answer(
    headers: &HeaderMap,
    speech: Speech,
    protocol: Option<String>,
) -> Result<Answer, ApiError> {
    let mut answer = http::Response::new(full(""));
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let out = answer.headers_mut();
    out.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    let protocol = protocol.and_then(|protocol| HeaderValue::from_str(&protocol).ok());
    if speech == Speech::Spdy {
        out.insert(UPGRADE, HeaderValue::from_static("SPDY/3.1"));
        out.extend(protocol.map(|value| (http::HeaderName::from_static(STREAM_PROTOCOL), value)));
        return Ok(answer);
    }
    out.insert(UPGRADE, HeaderValue::from_static("websocket"));
    let accept = HeaderValue::from_str(&accept_key(headers)?).map_err(ApiError::internal)?;
    out.insert(http::header::SEC_WEBSOCKET_ACCEPT, accept);
    out.extend(protocol.map(|value| (SEC_WEBSOCKET_PROTOCOL, value)));
    Ok(answer)
}

/// The bytes within the messages of a WebSocket, as a stream.
struct Unwrapped {
    incoming: mpsc::Receiver<Vec<u8>>,
    current: Bytes,
    outgoing: PollSender<Vec<u8>>,
    /// Reads and writes messages; ends with this.
    _tasks: tokio::task::JoinSet<()>,
}

impl Unwrapped {
    fn new<IO>(connection: IO) -> Self
    where
        IO: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (reader, mut writer) = tokio::io::split(connection);
        let (received, incoming) = mpsc::channel(16);
        let (sender, mut waiting) = mpsc::channel::<Vec<u8>>(16);
        let (pongs, mut pings) = mpsc::channel::<Vec<u8>>(4);
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(async move {
            let mut reader = MessageReader::new(reader);
            loop {
                match reader.next().await {
                    Ok(Message::Data(bytes)) => {
                        if received.send(bytes).await.is_err() {
                            return;
                        }
                    }
                    Ok(Message::Ping(ping)) => {
                        // One that is not taken in time may be left unanswered.
                        let _ = pongs.try_send(ping);
                    }
                    Ok(Message::Close) | Err(_) => return,
                }
            }
        });
        tasks.spawn(async move {
            loop {
                let written = tokio::select! {
                    Some(ping) = pings.recv() => send(&mut writer, Opcode::Pong, &ping).await,
                    next = waiting.recv() => match next {
                        Some(bytes) => send(&mut writer, Opcode::Binary, &bytes).await,
                        None => {
                            let goodbye = 1000_u16.to_be_bytes();
                            // An error means that the client has gone already.
                            let _ = send(&mut writer, Opcode::Close, &goodbye).await;
                            return;
                        }
                    },
                };
                if written.is_err() {
                    return;
                }
            }
        });
        Self {
            incoming,
            current: Bytes::new(),
            outgoing: PollSender::new(sender),
            _tasks: tasks,
        }
    }
}

impl AsyncRead for Unwrapped {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.current.is_empty() {
            match self.incoming.poll_recv(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Ready(Some(bytes)) => self.current = bytes.into(),
            }
        }
        let count = self.current.len().min(buffer.remaining());
        buffer.put_slice(&self.current[..count]);
        self.current.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Unwrapped {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.outgoing.poll_reserve(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(_)) => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            Poll::Ready(Ok(())) => {
                let sent = self.outgoing.send_item(bytes.to_vec());
                let sent = sent.map_err(|_| io::ErrorKind::BrokenPipe.into());
                Poll::Ready(sent.map(|()| bytes.len()))
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.outgoing.close();
        Poll::Ready(Ok(()))
    }
}
