//! Probes by gRPC: `grpc.health.v1.Health/Check`.
//!
//! Mirrors `pkg/probe/grpc` of Kubernetes. One message to write and one to read do not need a code generator.

use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use http::{HeaderMap, Request, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::{TokioExecutor, TokioIo};
use k8s_openapi::api::core::v1::GRPCAction;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::{AGENT, Found, MOST_BODY, ProbeError};
use crate::insecure::{self, Protocol};

/// The statuses of gRPC by their numbers, as Go names them.
const CODES: [&str; 17] = [
    "OK",
    "Canceled",
    "Unknown",
    "InvalidArgument",
    "DeadlineExceeded",
    "NotFound",
    "AlreadyExists",
    "PermissionDenied",
    "ResourceExhausted",
    "FailedPrecondition",
    "Aborted",
    "OutOfRange",
    "Unimplemented",
    "Internal",
    "Unavailable",
    "DataLoss",
    "Unauthenticated",
];
/// The code of a method that a server does not have.
const UNIMPLEMENTED: &str = "Unimplemented";

/// What a server answered: the status of the call, and its message.
struct Answer {
    code: &'static str,
    message: String,
    body: Bytes,
}

/// Asks the health service of a pod.
pub(super) async fn check(action: &GRPCAction, pod: Ipv4Addr) -> Found {
    let port = u16::try_from(action.port);
    let port = port.map_err(|_| ProbeError::Port(IntOrString::Int(action.port)))?;
    let address = SocketAddr::new(pod.into(), port);
    let stream = TcpStream::connect(address).await;
    let stream = stream.map_err(|why| ProbeError::Service { address, why })?;
    let service = action.service.as_deref().unwrap_or_default();
    let answer = if action.mode.as_deref() == Some("TLS") {
        let stream = insecure::connect(stream, address.ip(), Protocol::Grpc).await;
        let stream = stream.map_err(|why| ProbeError::Service { address, why })?;
        call(stream, address, service).await?
    } else {
        call(stream, address, service).await?
    };
    let message = answer.message;
    match answer.code {
        "OK" => serving(&answer.body),
        UNIMPLEMENTED => Err(ProbeError::NoHealthService(message)),
        code => Err(ProbeError::Failed { code, message }),
    }
}

async fn call<S>(stream: S, address: SocketAddr, service: &str) -> Result<Answer, ProbeError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let handshake =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.map_err(ProbeError::Rpc)?;
    let request = Request::post(format!("http://{address}/grpc.health.v1.Health/Check"))
        .header(header::CONTENT_TYPE, "application/grpc")
        .header(header::USER_AGENT, AGENT)
        .header("te", "trailers")
        .body(Full::new(request(service)))
        .map_err(ProbeError::Request)?;
    let answer = async {
        let (parts, body) = sender.send_request(request).await?.into_parts();
        // What cannot be read is an answer without a status.
        let body = Limited::new(body, MOST_BODY).collect().await;
        let body = body.unwrap_or_default();
        // A call that fails at once has its status before the body, not after it.
        let ends = [Some(&parts.headers), body.trailers()];
        let status = ends.into_iter().flatten().find_map(status);
        let (code, message) = status.unwrap_or(("Unknown", "no status".to_owned()));
        Ok(Answer {
            code,
            message,
            body: body.to_bytes(),
        })
    };
    tokio::select! {
        answer = answer => answer.map_err(ProbeError::Rpc),
        ended = connection => Err(ended.err().map_or(ProbeError::Closed, ProbeError::Rpc)),
    }
}

/// The status of a call in headers or trailers.
fn status(headers: &HeaderMap) -> Option<(&'static str, String)> {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    let number: usize = text("grpc-status")?.parse().ok()?;
    let message = text("grpc-message").unwrap_or_default().to_owned();
    Some((CODES.get(number).copied().unwrap_or("Unknown"), message))
}

/// `HealthCheckRequest` with its prefix: not compressed, and a length.
fn request(service: &str) -> Bytes {
    let mut message = Vec::new();
    if !service.is_empty() {
        message.push(0x0a);
        let mut length = service.len();
        while length >= 0x80 {
            message.push(u8::try_from(length & 0x7f).unwrap_or(0) | 0x80);
            length >>= 7;
        }
        message.push(u8::try_from(length).unwrap_or(0));
        message.extend_from_slice(service.as_bytes());
    }
    let mut body = vec![0];
    body.extend(u32::try_from(message.len()).unwrap_or(0).to_be_bytes());
    body.extend(message);
    body.into()
}

/// Whether a `HealthCheckResponse` with its prefix says that the service serves. A message without fields says `UNKNOWN`.
fn serving(body: &[u8]) -> Found {
    match body.get(5..) {
        Some([0x08, 1, ..]) => Ok(()),
        Some([] | [0x08, 0, ..]) => Err(ProbeError::Unhealthy("UNKNOWN")),
        Some([0x08, 3, ..]) => Err(ProbeError::Unhealthy("SERVICE_UNKNOWN")),
        _ => Err(ProbeError::Unhealthy("NOT_SERVING")),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;

    use http::Response;
    use http_body_util::StreamBody;
    use hyper::body::{Frame, Incoming};
    use hyper::service::service_fn;
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    use super::*;

    #[test]
    fn requests_are_those_of_protobuf() {
        assert_eq!(&request("")[..], [0, 0, 0, 0, 0]);
        assert_eq!(&request("ab")[..], [0, 0, 0, 0, 4, 0x0a, 2, b'a', b'b']);
        assert_eq!(request(&"x".repeat(300))[6..8], [0xac, 0x02]);
    }

    type Frames = futures::stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, Infallible>>>;

    /// A health service whose services answer in different ways.
    async fn answer(asked: Request<Incoming>) -> Result<Response<StreamBody<Frames>>, Infallible> {
        assert_eq!(asked.uri().path(), "/grpc.health.v1.Health/Check");
        assert_eq!(asked.headers()["content-type"], "application/grpc");
        let body = asked.into_body().collect().await.expect("a request");
        let body = body.to_bytes();
        let (message, status, text): (&[u8], _, _) = match body.get(7..).unwrap_or_default() {
            b"" => (&[8, 1], "0", ""),
            b"starting" => (&[], "0", ""),
            b"down" => (&[8, 2], "0", ""),
            b"old" => (&[], "12", "unknown method"),
            _ => (&[], "5", "unknown service"),
        };
        let mut end = HeaderMap::new();
        end.insert("grpc-status", status.parse().expect("a header"));
        end.insert("grpc-message", text.parse().expect("a header"));
        let mut response = Response::builder();
        let mut frames = Vec::new();
        if status == "0" {
            let length = u8::try_from(message.len()).expect("short");
            let data = [&[0, 0, 0, 0, length][..], message].concat();
            frames.push(Ok(Frame::data(data.into())));
            frames.push(Ok(Frame::trailers(end)));
        } else {
            response.headers_mut().expect("no error").extend(end);
        }
        let body = StreamBody::new(futures::stream::iter(frames));
        Ok(response.body(body).expect("a response"))
    }

    async fn serve(listener: TcpListener, tls: Option<TlsAcceptor>) {
        while let Ok((stream, _)) = listener.accept().await {
            match &tls {
                Some(tls) => {
                    let stream = tls.accept(stream).await.expect("TLS");
                    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
                    tokio::spawn(serve_one(stream));
                }
                None => drop(tokio::spawn(serve_one(stream))),
            }
        }
    }

    async fn serve_one<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(stream: S) {
        let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        let served = server.serve_connection(TokioIo::new(stream), service_fn(answer));
        // A client that has its answer does not say good-bye.
        let _ = served.await;
    }

    fn acceptor() -> TlsAcceptor {
        let made = rcgen::generate_simple_self_signed(["pod".to_owned()]).expect("made");
        let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key.expect("a key"));
        let mut config = config.expect("a certificate");
        config.alpn_protocols = vec![b"h2".to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }

    async fn ask(port: u16, service: &str, mode: Option<&str>) -> Result<(), String> {
        let action = GRPCAction {
            port: port.into(),
            service: Some(service.to_owned()),
            mode: mode.map(str::to_owned),
        };
        let asked = check(&action, Ipv4Addr::LOCALHOST).await;
        asked.map_err(|error| error.to_string())
    }

    async fn listen() -> (TcpListener, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        (listener, port)
    }

    #[tokio::test]
    async fn answers_of_health_services_are_understood() {
        let (listener, port) = listen().await;
        let server = tokio::spawn(serve(listener, None));
        let unhealthy = |word: &str| Err(format!("service unhealthy (responded with {word:?})"));
        assert_eq!(ask(port, "", None).await, Ok(()));
        assert_eq!(ask(port, "", Some("Plaintext")).await, Ok(()));
        assert_eq!(ask(port, "starting", None).await, unhealthy("UNKNOWN"));
        assert_eq!(ask(port, "down", None).await, unhealthy("NOT_SERVING"));
        let old = ask(port, "old", None).await.expect_err("it has none");
        let text = "(grpc.health.v1.Health): unknown method";
        assert!(old.ends_with(text), "{old}");
        let other = ask(port, "other", None).await.expect_err("it is not known");
        let text = "health rpc probe failed: rpc error: code = NotFound desc = unknown service";
        assert!(other.ends_with(text), "{other}");
        server.abort();
        assert!(server.await.expect_err("it was aborted").is_cancelled());
        let refused = ask(port, "", None).await.expect_err("nobody listens");
        let text = format!("failed to connect service at \"127.0.0.1:{port}\"");
        assert!(refused.contains(&text), "{refused}");
    }

    #[tokio::test]
    async fn certificates_are_not_verified_where_tls_is_asked_for() {
        let (listener, port) = listen().await;
        let server = tokio::spawn(serve(listener, Some(acceptor())));
        assert_eq!(ask(port, "", Some("TLS")).await, Ok(()));
        let down = ask(port, "down", Some("TLS")).await;
        assert!(down.is_err_and(|text| text.contains("NOT_SERVING")));
        server.abort();
    }
}
