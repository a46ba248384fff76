//! Fetches the picture of a part from its Service, within limits.

use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{POD, VERSION};
use crate::desired::PORT;

/// How long a part may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// The largest picture that is taken.
const LARGEST: usize = 64 * 1024;

/// The picture of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fetched {
    pub(super) version: String,
    pub(super) pod: String,
    pub(super) picture: Bytes,
}

/// Asks the Service of a part for its picture. A part that does not answer in time, or with something else, has none.
pub(super) async fn fetch(service: &str) -> Option<Fetched> {
    timeout(PATIENCE, ask(service)).await.ok().flatten()
}

async fn ask(service: &str) -> Option<Fetched> {
    let stream = connect(service).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .ok()?;
    let request = Request::get("/part.svg").header(HOST, service);
    let request = request.body(Empty::<Bytes>::new()).ok()?;
    let exchange = async move {
        let response = sender.send_request(request).await.ok()?;
        if response.status() != StatusCode::OK {
            return None;
        }
        let (head, body) = response.into_parts();
        let picture = Limited::new(body, LARGEST).collect().await.ok()?.to_bytes();
        Some(Fetched {
            version: header(&head.headers, VERSION),
            pod: header(&head.headers, POD),
            picture,
        })
    };
    // The exchange needs the connection to be driven, and is over when it has its answer.
    tokio::select! {
        biased;
        answer = exchange => answer,
        _ = connection => None,
    }
}

/// Connects by name, or by the address in the environment where names of Services do not resolve.
async fn connect(service: &str) -> Option<TcpStream> {
    if let Ok(stream) = TcpStream::connect((service, PORT)).await {
        return Some(stream);
    }
    let variable = service.to_ascii_uppercase().replace('-', "_");
    let host = std::env::var(format!("{variable}_SERVICE_HOST")).ok()?;
    TcpStream::connect((host.as_str(), PORT)).await.ok()
}

fn header(headers: &HeaderMap, name: &str) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}
