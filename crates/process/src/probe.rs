//! Probes of containers over the network: HTTP, TCP and gRPC.
//!
//! Mirrors `pkg/probe` of Kubernetes, with its texts.

mod grpc;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use bytes::Bytes;
use http::{Request, Response, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::{Container, HTTPGetAction, Probe, TCPSocketAction};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kubewright_cluster::node::runtime::Health;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::insecure::{self, Protocol};

/// How much of an answer is read.
const MOST_BODY: usize = 10 << 10;
/// How many redirects are followed.
const MOST_REDIRECTS: usize = 10;
/// How a kubelet names itself.
const AGENT: &str = concat!("kube-probe/", env!("CARGO_PKG_VERSION"));

/// Why a probe found nothing healthy. The texts are those of a kubelet, which has the causes in them.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProbeError {
    #[error("invalid port number: {0:?}")]
    Port(IntOrString),
    #[error("dial tcp: lookup {0}: no such host")]
    Lookup(String),
    #[error("dial tcp {0}: connect: connection refused")]
    Refused(SocketAddr),
    #[error("dial tcp {address}: {why}")]
    Dial { address: SocketAddr, why: io::Error },
    #[error("{0}")]
    Tls(io::Error),
    #[error("{0}")]
    Request(http::Error),
    #[error("Get {url:?}: {why}")]
    Get { url: String, why: hyper::Error },
    #[error("HTTP probe failed with statuscode: {0}")]
    Status(u16),
    #[error("stopped after {MOST_REDIRECTS} redirects")]
    Redirects,
    #[error("error: failed to connect service at \"{address}\": {why}")]
    Service { address: SocketAddr, why: io::Error },
    #[error("error: health rpc probe failed: {0}")]
    Rpc(hyper::Error),
    #[error("error: health rpc probe failed: the connection was closed")]
    Closed,
    #[error("error: health rpc probe failed: rpc error: code = {code} desc = {message}")]
    Failed { code: &'static str, message: String },
    #[error(
        "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): {0}"
    )]
    NoHealthService(String),
    #[error("service unhealthy (responded with {0:?})")]
    Unhealthy(&'static str),
}

type Found = Result<(), ProbeError>;

/// Carries out a probe that is not a command; nothing when it is one.
pub(crate) async fn network(probe: &Probe, container: &Container, pod: Ipv4Addr) -> Option<Health> {
    let found = if let Some(action) = &probe.http_get {
        http_get(action, container, pod).await
    } else if let Some(action) = &probe.tcp_socket {
        tcp(action, container, pod).await
    } else if let Some(action) = &probe.grpc {
        grpc::check(action, pod).await
    } else {
        return None;
    };
    Some(match found {
        Ok(()) => Health::Healthy,
        Err(why) => Health::Unhealthy(why.to_string()),
    })
}

/// The number of a port that may be a name.
pub(crate) fn port(port: &IntOrString, container: &Container) -> Result<u16, ProbeError> {
    let number = match port {
        IntOrString::Int(number) => *number,
        IntOrString::String(name) => {
            let mut ports = container.ports.iter().flatten();
            let named = ports.find(|port| port.name.as_ref() == Some(name));
            match named {
                Some(named) => named.container_port,
                None => name.parse().unwrap_or(0),
            }
        }
    };
    let number = u16::try_from(number).ok().filter(|number| *number > 0);
    number.ok_or_else(|| ProbeError::Port(port.clone()))
}

fn address(host: Option<&str>, pod: Ipv4Addr, port: u16) -> Result<SocketAddr, ProbeError> {
    let host = host.filter(|host| !host.is_empty());
    let ip: IpAddr = match host {
        None => pod.into(),
        Some("localhost") => Ipv4Addr::LOCALHOST.into(),
        Some(host) => host
            .parse()
            .map_err(|_| ProbeError::Lookup(host.to_owned()))?,
    };
    Ok(SocketAddr::new(ip, port))
}

async fn connect(address: SocketAddr) -> Result<TcpStream, ProbeError> {
    let connected = TcpStream::connect(address).await;
    connected.map_err(|why| match why.kind() {
        io::ErrorKind::ConnectionRefused => ProbeError::Refused(address),
        _ => ProbeError::Dial { address, why },
    })
}

async fn tcp(action: &TCPSocketAction, container: &Container, pod: Ipv4Addr) -> Found {
    let address = address(action.host.as_deref(), pod, port(&action.port, container)?)?;
    connect(address).await.map(drop)
}

/// Sends the request of a probe or of a hook, and checks its answer.
pub(crate) async fn http_get(
    action: &HTTPGetAction,
    container: &Container,
    pod: Ipv4Addr,
) -> Found {
    let address = address(action.host.as_deref(), pod, port(&action.port, container)?)?;
    let https = action.scheme.as_deref() == Some("HTTPS");
    let scheme = if https { "https" } else { "http" };
    let mut path = action
        .path
        .clone()
        .filter(|path| !path.is_empty())
        .unwrap_or("/".to_owned());
    if !path.starts_with('/') {
        path.insert(0, '/');
    }
    for _ in 0..MOST_REDIRECTS {
        let request = request(action, address, &path)?;
        let answer = if https {
            let stream = connect(address).await?;
            let stream = insecure::connect(stream, address.ip(), Protocol::Http).await;
            send(stream.map_err(ProbeError::Tls)?, request).await
        } else {
            send(connect(address).await?, request).await
        };
        let url = || format!("{scheme}://{address}{path}");
        let answer = answer.map_err(|why| ProbeError::Get { url: url(), why })?;
        let code = answer.status();
        if (200..300).contains(&code.as_u16()) {
            return Ok(());
        }
        if !code.is_redirection() {
            return Err(ProbeError::Status(code.as_u16()));
        }
        match here(&answer, address) {
            Some(next) => path = next,
            // A redirect to another host counts as a success, as in a kubelet.
            None => return Ok(()),
        }
    }
    Err(ProbeError::Redirects)
}

/// Where an answer redirects to, if that is the same host.
fn here(answer: &Response<Bytes>, address: SocketAddr) -> Option<String> {
    let location = answer.headers().get(header::LOCATION)?.to_str().ok()?;
    let uri: Uri = location.parse().ok()?;
    let same = uri
        .authority()
        .is_none_or(|authority| authority.as_str() == address.to_string());
    same.then(|| {
        uri.path_and_query()
            .map_or("/".to_owned(), ToString::to_string)
    })
}

fn request(
    action: &HTTPGetAction,
    address: SocketAddr,
    path: &str,
) -> Result<Request<Full<Bytes>>, ProbeError> {
    let mut request = Request::get(path)
        .header(header::USER_AGENT, AGENT)
        .header(header::ACCEPT, "*/*")
        .header(header::CONNECTION, "close");
    let mut host = address.to_string();
    for one in action.http_headers.iter().flatten() {
        if one.name.eq_ignore_ascii_case("host") {
            host.clone_from(&one.value);
        } else {
            request = request.header(&one.name, &one.value);
        }
    }
    let request = request.header(header::HOST, host).body(Full::default());
    request.map_err(ProbeError::Request)
}

/// Sends one request over a connection and reads the answer.
pub(crate) async fn send<S>(
    stream: S,
    request: Request<Full<Bytes>>,
) -> Result<Response<Bytes>, hyper::Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream));
    let (mut sender, connection) = handshake.await?;
    let answer = async {
        let (parts, body) = sender.send_request(request).await?.into_parts();
        let body = Limited::new(body, MOST_BODY).collect().await;
        let body = body.map(|body| body.to_bytes()).unwrap_or_default();
        Ok(Response::from_parts(parts, body))
    };
    tokio::pin!(connection);
    tokio::pin!(answer);
    tokio::select! {
        // The answer first: the connection ends right after the last byte of it.
        biased;
        answer = &mut answer => answer,
        ended = &mut connection => match ended {
            Ok(()) => answer.await,
            Err(error) => Err(error),
        },
    }
}
