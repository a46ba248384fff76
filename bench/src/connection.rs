//! One connection to a server: requests with their answers, and watches line by line.

use std::net::SocketAddr;

use anyhow::{Context as _, Result, bail};
use bytes::{Buf as _, Bytes, BytesMut};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsConnector;

use crate::access::Access;

/// Longest line of a watch. An object may have 3 MiB; nothing a server sends is longer than a few of them.
const MAX_LINE: usize = 16 * 1024 * 1024;

/// What is spoken on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1 with keep-alive: one request at a time.
    Http1,
    /// HTTP/2: many requests at once.
    Http2,
}

/// An open connection; it ends when this is dropped.
#[derive(Debug)]
pub struct Connection {
    sender: Sender,
    address: SocketAddr,
    authorization: Option<HeaderValue>,
    driver: JoinHandle<()>,
}

#[derive(Debug)]
enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// A whole answer.
#[derive(Debug)]
pub struct Reply {
    /// The status code.
    pub status: StatusCode,
    /// The body.
    pub body: Bytes,
}

/// The lines of an answer that goes on, such as a watch.
#[derive(Debug)]
pub struct Lines {
    body: Incoming,
    buffer: BytesMut,
    /// How much of `buffer` is known to have no line end.
    searched: usize,
}

impl Protocol {
    pub(crate) fn alpn(self) -> &'static [u8] {
        match self {
            Self::Http1 => b"http/1.1",
            Self::Http2 => b"h2",
        }
    }
}

impl Connection {
    /// Opens a connection.
    ///
    /// # Errors
    /// When the server cannot be reached, is not who it should be, or does not speak the protocol.
    pub async fn open(access: &Access, protocol: Protocol) -> Result<Self> {
        let stream = TcpStream::connect(access.address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::IpAddress(access.address.ip().into());
        let connector = TlsConnector::from(access.tls(protocol));
        let stream = connector
            .connect(name, stream)
            .await
            .context("the TLS handshake failed")?;
        let stream = TokioIo::new(stream);
        let (sender, driver) = match protocol {
            Protocol::Http1 => {
                let (sender, connection) = http1::handshake(stream).await?;
                (Sender::Http1(sender), tokio::spawn(drive(connection)))
            }
            Protocol::Http2 => {
                let (sender, connection) = http2::Builder::new(TokioExecutor::new())
                    .initial_stream_window_size(4 * 1024 * 1024)
                    .initial_connection_window_size(64 * 1024 * 1024)
                    .handshake(stream)
                    .await?;
                (Sender::Http2(sender), tokio::spawn(drive(connection)))
            }
        };
        Ok(Self {
            sender,
            address: access.address,
            authorization: access.authorization.clone(),
            driver,
        })
    }

    /// Sends a request and reads its whole answer.
    ///
    /// # Errors
    /// When the connection breaks. A refusal by the server is an answer, not an error.
    pub async fn send(
        &mut self,
        method: Method,
        path: &str,
        content_type: &'static str,
        body: impl Into<Bytes>,
    ) -> Result<Reply> {
        let mut request = self.request(method, path, body.into())?;
        request
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        reply(self.dispatch(request).await?).await
    }

    /// Reads one path.
    ///
    /// # Errors
    /// As `send`.
    pub async fn get(&mut self, path: &str) -> Result<Reply> {
        self.send(Method::GET, path, "application/json", Bytes::new())
            .await
    }

    /// Reads one path in a format of choice.
    ///
    /// # Errors
    /// As `send`.
    pub async fn get_as(&mut self, path: &str, accept: &'static str) -> Result<Reply> {
        let mut request = self.request(Method::GET, path, Bytes::new())?;
        request
            .headers_mut()
            .insert(ACCEPT, HeaderValue::from_static(accept));
        reply(self.dispatch(request).await?).await
    }

    /// Reads one path very often, all at once; the answers come in any order.
    ///
    /// # Errors
    /// When the connection speaks HTTP/1.1, which has one request at a time.
    pub fn get_at_once(&self, path: &str, times: usize) -> Result<JoinSet<Result<Reply>>> {
        let Sender::Http2(sender) = &self.sender else {
            bail!("HTTP/1.1 has one request at a time");
        };
        let mut replies = JoinSet::new();
        for _ in 0..times {
            let (mut sender, request) = (
                sender.clone(),
                self.request(Method::GET, path, Bytes::new())?,
            );
            replies.spawn(async move {
                sender.ready().await?;
                reply(sender.send_request(request).await?).await
            });
        }
        Ok(replies)
    }

    /// Asks for an answer that is read line by line.
    ///
    /// # Errors
    /// When the connection breaks, or the server refuses.
    pub async fn lines(&mut self, path: &str) -> Result<Lines> {
        let request = self.request(Method::GET, path, Bytes::new())?;
        let response = self.dispatch(request).await?;
        if response.status() != StatusCode::OK {
            let reply = reply(response).await?;
            let text = String::from_utf8_lossy(&reply.body);
            bail!("{path}: {}: {text}", reply.status);
        }
        Ok(Lines {
            body: response.into_body(),
            buffer: BytesMut::new(),
            searched: 0,
        })
    }

    fn request(&self, method: Method, path: &str, body: Bytes) -> Result<Request<Full<Bytes>>> {
        let mut request = Request::builder().method(method);
        request = match self.sender {
            Sender::Http1(_) => request.uri(path).header(HOST, self.address.to_string()),
            Sender::Http2(_) => request.uri(format!("https://{}{path}", self.address)),
        };
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        Ok(request.body(Full::new(body))?)
    }

    async fn dispatch(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>> {
        Ok(match &mut self.sender {
            Sender::Http1(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
            Sender::Http2(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
        })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

async fn reply(response: Response<Incoming>) -> Result<Reply> {
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    Ok(Reply { status, body })
}

/// Moves the bytes of a connection until it ends; the request that notices reports why it ended.
async fn drive<E>(connection: impl Future<Output = Result<(), E>>) {
    let _ = connection.await;
}

impl Lines {
    /// The next line, without its end; nothing when the answer is over.
    ///
    /// # Errors
    /// When the connection breaks or a line is far too long.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) {
                let line = self.buffer.split_to(self.searched + at).freeze();
                self.buffer.advance(1);
                self.searched = 0;
                return Ok(Some(line));
            }
            self.searched = self.buffer.len();
            if self.searched > MAX_LINE {
                bail!("a line of a watch is longer than {MAX_LINE} bytes");
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(frame) => {
                    if let Ok(data) = frame?.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
            }
        }
    }
}
