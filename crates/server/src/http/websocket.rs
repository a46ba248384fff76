//! Watches and logs over WebSocket, for clients that ask for it: fabric8 does for every watch.
//!
//! A request is answered as any other. When it asked for a WebSocket and the answer is a stream, the answer becomes
//! `101 Switching Protocols`, and the stream's chunks go out as messages once the connection is free (watch.go:
//! `WatchServer.HandleWS`; wsstream: `Reader.Copy`). The frames are written here rather than by a library: the server
//! sends whole messages and reads nothing but pings and closes, and the rest of the protocol would be unused.

pub(crate) mod frame;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{
    CONNECTION, CONTENT_TYPE, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use http_body_util::BodyExt;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use ring::digest;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::body::{ResponseBody, full};
use super::respond::Answer;
use crate::http::streaming::Tunnel;
use crate::status::ApiError;
use frame::{Opcode, encode, read_until_closed};

/// What RFC 6455 has servers add to a client's key.
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// How long a client may take to accept a message, and to say goodbye.
const PATIENCE: Duration = Duration::from_secs(60);
/// Most pings that wait to be answered.
const PINGS: usize = 4;
/// The length in front of an event in protobuf; a message has one of its own.
const LENGTH_PREFIX: usize = 4;
/// Status 1000: the stream is over.
const NORMAL_CLOSURE: [u8; 2] = 1000_u16.to_be_bytes();

/// What the stream of an answer is made of; answers that can go over a WebSocket carry it as an extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Each chunk is an event of a watch.
    Events,
    /// Chunks of text as they come.
    Log,
}

/// What a connection goes on with once its last request was answered with an upgrade.
#[derive(Clone, Default)]
pub(crate) struct Upgraded(Arc<Mutex<Option<Continuation>>>);

type Continuation = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

impl Upgraded {
    /// Takes what is left to do, if the connection was upgraded.
    pub(crate) fn take(&self) -> Option<Continuation> {
        self.0.lock().take()
    }

    /// Answers a request for a WebSocket whose stream was found. Other answers stay as they are.
    pub(crate) fn offer(
        &self,
        headers: &HeaderMap,
        upgrade: Option<OnUpgrade>,
        answer: Answer,
    ) -> Result<Answer, ApiError> {
        if let Some(tunnel) = answer.extensions().get::<Tunnel>() {
            let (answer, rest) = tunnel.accept(headers, upgrade)?;
            *self.0.lock() = Some(rest);
            return Ok(answer);
        }
        let stream = answer.extensions().get::<Stream>().copied();
        let stream = stream.filter(|_| is_request(headers));
        let Some(stream) = stream.filter(|_| answer.status() == StatusCode::OK) else {
            return Ok(answer);
        };
        let Some(upgrade) = upgrade else {
            return Ok(answer);
        };
        let accepted = Handshake::read(headers, stream)?;
        let messages = accepted.messages(&answer);
        *self.0.lock() = Some(Box::pin(async move {
            let upgraded = upgrade.await.map_err(io::Error::other)?;
            send(TokioIo::new(upgraded), answer.into_body(), messages).await
        }));
        Ok(accepted.answer())
    }
}

/// Whether a request asks for a WebSocket.
pub(crate) fn is_request(headers: &HeaderMap) -> bool {
    has_token(headers, &UPGRADE, "websocket") && has_token(headers, &CONNECTION, "upgrade")
}

pub(crate) fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).into_iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|value| value.trim().eq_ignore_ascii_case(token))
}

/// What a server answers to the key of a client.
///
/// # Errors
/// When the client's half of the handshake is not complete.
pub(crate) fn accept_key(headers: &HeaderMap) -> Result<String, ApiError> {
    if !has_token(headers, &SEC_WEBSOCKET_VERSION, "13") {
        return Err(ApiError::bad_request("missing or bad WebSocket Version"));
    }
    let key = headers
        .get(SEC_WEBSOCKET_KEY)
        .map_or(&b""[..], |key| key.as_bytes());
    if STANDARD.decode(key).map(|key| key.len()) != Ok(16) {
        return Err(ApiError::bad_request("missing or bad WebSocket Key"));
    }
    let mut context = digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY);
    context.update(key);
    context.update(GUID.as_bytes());
    Ok(STANDARD.encode(context.finish()))
}

/// What client and server agree on.
struct Handshake {
    accept: String,
    stream: Stream,
    protocol: Option<String>,
}

impl Handshake {
    fn read(headers: &HeaderMap, stream: Stream) -> Result<Self, ApiError> {
        Ok(Self {
            accept: accept_key(headers)?,
            stream,
            protocol: protocol(headers, stream)?,
        })
    }

    fn messages(&self, answer: &Answer) -> Messages {
        let content_type = answer.headers().get(CONTENT_TYPE);
        let is_json = content_type.is_some_and(|value| value == "application/json");
        match self.stream {
            Stream::Events if is_json => Messages::Text,
            Stream::Events => Messages::Protobuf,
            Stream::Log if self.protocol.as_deref() == Some("base64.binary.k8s.io") => {
                Messages::Base64
            }
            Stream::Log => Messages::Binary,
        }
    }

    fn answer(&self) -> Answer {
        let mut answer = http::Response::new(full(""));
        *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = answer.headers_mut();
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        let agreed = [
            (SEC_WEBSOCKET_ACCEPT, Some(&self.accept)),
            (SEC_WEBSOCKET_PROTOCOL, self.protocol.as_ref()),
        ];
        for (name, value) in agreed {
            let value = value.and_then(|value| HeaderValue::from_str(value).ok());
            headers.extend(value.map(|value| (name, value)));
        }
        answer
    }
}

/// The subprotocol: the client's only one for a watch, one of those for byte streams for a log.
fn protocol(headers: &HeaderMap, stream: Stream) -> Result<Option<String>, ApiError> {
    let wished = headers
        .get(SEC_WEBSOCKET_PROTOCOL)
        .and_then(|v| v.to_str().ok());
    let mut wished = wished
        .unwrap_or("")
        .split(',')
        .map(str::trim)
        .filter(|p| !p.is_empty());
    let known = |protocol: &&str| matches!(*protocol, "binary.k8s.io" | "base64.binary.k8s.io");
    let Some(first) = wished.next() else {
        return Ok(None);
    };
    match stream {
        Stream::Events => Ok(Some(first.to_owned())),
        Stream::Log => match [first].into_iter().chain(wished).find(known) {
            Some(protocol) => Ok(Some(protocol.to_owned())),
            None => Err(ApiError::bad_request(
                "requested protocol(s) are not supported: use binary.k8s.io or base64.binary.k8s.io",
            )),
        },
    }
}

/// How a chunk becomes a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Messages {
    Text,
    Binary,
    Base64,
    Protobuf,
}

impl Messages {
    fn encode(self, chunk: &[u8]) -> Vec<u8> {
        match self {
            Self::Text => encode(Opcode::Text, chunk),
            Self::Binary => encode(Opcode::Binary, chunk),
            Self::Base64 => encode(Opcode::Text, STANDARD.encode(chunk).as_bytes()),
            Self::Protobuf => encode(Opcode::Binary, chunk.get(LENGTH_PREFIX..).unwrap_or(chunk)),
        }
    }
}

/// Sends a stream until it ends or the client leaves.
async fn send(
    connection: TokioIo<hyper::upgrade::Upgraded>,
    mut stream: ResponseBody,
    messages: Messages,
) -> io::Result<()> {
    let (reader, mut writer) = tokio::io::split(connection);
    let (pings, mut unanswered) = mpsc::channel(PINGS);
    let mut client = std::pin::pin!(read_until_closed(reader, pings));
    if matches!(messages, Messages::Binary | Messages::Base64) {
        // Tells the client that the log was found before its first line is there.
        write(&mut writer, &messages.encode(b"")).await?;
    }
    loop {
        // A client that has left is noticed before more is written to it.
        tokio::select! {
            biased;
            left = client.as_mut() => {
                write(&mut writer, &encode(Opcode::Close, &NORMAL_CLOSURE)).await?;
                return left;
            }
            Some(ping) = unanswered.recv() => write(&mut writer, &encode(Opcode::Pong, &ping)).await?,
            chunk = stream.frame() => match chunk {
                Some(Ok(chunk)) => {
                    let chunk = chunk.into_data().unwrap_or_default();
                    write(&mut writer, &messages.encode(&chunk)).await?;
                }
                None => break,
            },
        }
    }
    write(&mut writer, &encode(Opcode::Close, &NORMAL_CLOSURE)).await?;
    timeout(PATIENCE, client).await.unwrap_or(Ok(()))
}

async fn write(writer: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
    timeout(PATIENCE, async {
        writer.write_all(bytes).await?;
        writer.flush().await
    })
    .await?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn handshake_is_the_one_of_the_standard() {
        let asked = headers(&[
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ]);
        let handshake = Handshake::read(&asked, Stream::Events).expect("a handshake");
        // The example of RFC 6455, section 1.3.
        assert_eq!(handshake.accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        for broken in [
            headers(&[("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")]),
            headers(&[
                ("sec-websocket-version", "8"),
                ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ]),
            headers(&[
                ("sec-websocket-version", "13"),
                ("sec-websocket-key", "c2hvcnQ="),
            ]),
        ] {
            assert!(
                Handshake::read(&broken, Stream::Events).is_err(),
                "{broken:?}"
            );
        }
    }

    #[test]
    fn only_complete_requests_ask_for_an_upgrade() {
        for (pairs, expected) in [
            (
                &[
                    ("upgrade", "WebSocket"),
                    ("connection", "keep-alive, Upgrade"),
                ][..],
                true,
            ),
            (&[("upgrade", "websocket")], false),
            (&[("upgrade", "h2c"), ("connection", "Upgrade")], false),
        ] {
            assert_eq!(is_request(&headers(pairs)), expected, "{pairs:?}");
        }
    }

    #[test]
    fn logs_take_the_protocols_of_byte_streams_alone() {
        let wish = |text| headers(&[("sec-websocket-protocol", text)]);
        let chosen = |text, stream| protocol(&wish(text), stream).ok().flatten();
        assert_eq!(
            chosen("x, base64.binary.k8s.io", Stream::Log).as_deref(),
            Some("base64.binary.k8s.io")
        );
        assert_eq!(chosen("v4.channel.k8s.io", Stream::Log), None);
        assert_eq!(chosen("any", Stream::Events).as_deref(), Some("any"));
    }
}
