//! One call to a webhook.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, USER_AGENT};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use super::services::ServiceDirectory;
use super::target::{Place, Target};

/// Largest answer of a webhook: an object of the largest size, in base64, and more than that.
const MAX_ANSWER: usize = 8 * 1024 * 1024;
/// The most bytes of an unexpected answer that an error shows.
const MAX_SHOWN: usize = 256;

/// Calls webhooks on behalf of a server.
#[derive(Debug)]
pub(crate) struct Callout {
    /// Where the Services are that targets refer to.
    pub(crate) directory: ServiceDirectory,
}

/// Why a webhook gave no answer, in the words of a Go client.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CalloutError {
    /// It was not reached.
    #[error("Post \"https://{url}\": {why}")]
    Transport { url: String, why: String },
    /// It did not answer as it should.
    #[error("{0}")]
    Answer(String),
}

impl Callout {
    /// Posts JSON to a webhook and gives the JSON that it answers with.
    pub(crate) async fn call(
        &self,
        target: &Target,
        body: &Value,
        timeout: Option<Duration>,
    ) -> Result<Value, CalloutError> {
        let query = timeout.map_or(String::new(), |t| format!("?timeout={}s", t.as_secs()));
        let path = format!("{}{query}", target.path);
        let exchange = self.exchange(target, &path, body);
        let result = match timeout {
            None => exchange.await,
            Some(timeout) => match tokio::time::timeout(timeout, exchange).await {
                Ok(result) => result,
                Err(_) => Err(Failure::Transport("context deadline exceeded".into())),
            },
        };
        result.map_err(|failure| match failure {
            Failure::Transport(why) => CalloutError::Transport {
                url: format!("{}{path}", target.authority),
                why,
            },
            Failure::Answer(why) => CalloutError::Answer(why),
        })
    }

    async fn exchange(&self, target: &Target, path: &str, body: &Value) -> Result<Value, Failure> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(HOST, &target.authority)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, */*")
            .header(USER_AGENT, "kube-apiserver-admission")
            .body(Full::new(Bytes::from(body.to_string())))
            .map_err(transport)?;
        let stream = self.connect(target).await?;
        let tls = TlsConnector::from(target.tls.clone());
        let stream = tls.connect(target.server_name.clone(), stream).await;
        let stream = stream.map_err(|e| Failure::Transport(tls_error(&e)))?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(transport)?;
        // The connection ends with the call, however the call ends.
        let mut driver = JoinSet::new();
        driver.spawn(connection);
        let response = sender.send_request(request).await.map_err(transport)?;
        let status = response.status();
        let answer = Limited::new(response.into_body(), MAX_ANSWER)
            .collect()
            .await;
        let answer = answer.map_err(transport)?.to_bytes();
        read(status, &answer)
    }

    pub(super) async fn connect(&self, target: &Target) -> Result<TcpStream, Failure> {
        let (dialled, stream) = match &target.place {
            Place::Host(host, port) => {
                let stream = TcpStream::connect((host.as_str(), *port)).await;
                (format!("{host}:{port}"), stream)
            }
            Place::Service {
                namespace,
                name,
                port,
            } => {
                let address: SocketAddr = self
                    .directory
                    .resolve(namespace, name, *port)
                    .map_err(transport)?;
                (address.to_string(), TcpStream::connect(address).await)
            }
        };
        stream.map_err(|error| {
            let why = match error.kind() {
                std::io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
                std::io::ErrorKind::HostUnreachable => "no route to host".to_owned(),
                _ => error.to_string(),
            };
            Failure::Transport(format!("dial tcp {dialled}: connect: {why}"))
        })
    }
}

/// What went wrong: on the way, or with the answer.
pub(super) enum Failure {
    Transport(String),
    Answer(String),
}

pub(super) fn transport(error: impl std::fmt::Display) -> Failure {
    Failure::Transport(error.to_string())
}

pub(super) fn tls_error(error: &std::io::Error) -> String {
    use rustls::{CertificateError, Error};
    let inner = error.get_ref().and_then(|e| e.downcast_ref::<Error>());
    match inner {
        Some(Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        )) => "tls: failed to verify certificate: x509: certificate signed by unknown authority"
            .into(),
        Some(Error::InvalidCertificate(CertificateError::Expired)) => {
            "tls: failed to verify certificate: x509: certificate has expired or is not yet valid"
                .into()
        }
        Some(other) => format!("tls: failed to verify certificate: x509: {other}"),
        None => error.to_string(),
    }
}

fn read(status: StatusCode, answer: &[u8]) -> Result<Value, Failure> {
    let shown = String::from_utf8_lossy(&answer[..answer.len().min(MAX_SHOWN)]);
    match status.as_u16() {
        200..=299 => serde_json::from_slice(answer).map_err(|e| {
            Failure::Answer(format!("couldn't get version/kind; json parse error: {e}"))
        }),
        404 => Err(Failure::Answer(
            "the server could not find the requested resource".into(),
        )),
        500..=599 => Err(Failure::Answer(format!(
            "an error on the server ({:?}) has prevented the request from succeeding",
            shown.trim()
        ))),
        code => Err(Failure::Answer(format!(
            "the server responded with the status code {code} but did not return more information"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_in_the_words_of_a_go_client() {
        for (status, body, expect) in [
            (200, r#"{"a":1}"#, Ok(())),
            (
                404,
                "",
                Err("the server could not find the requested resource"),
            ),
            (
                500,
                "boom\n",
                Err(r#"an error on the server ("boom") has prevented the request from succeeding"#),
            ),
            (
                302,
                "",
                Err(
                    "the server responded with the status code 302 but did not return more information",
                ),
            ),
        ] {
            let status = StatusCode::from_u16(status).expect("a code");
            let found = read(status, body.as_bytes()).map(drop);
            let found = found.map_err(|failure| match failure {
                Failure::Transport(why) | Failure::Answer(why) => why,
            });
            assert_eq!(found, expect.map_err(str::to_owned));
        }
        assert!(read(StatusCode::OK, b"nope").is_err());
    }
}
