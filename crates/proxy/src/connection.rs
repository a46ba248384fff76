//! One connection: connects it with an endpoint, with another one when that refuses, and relays.
//!
//! A connection is tried again for as long as nothing of the client's has reached an endpoint: when the connect fails, and
//! when the first write does, which is what happens if an endpoint closed its socket with the connection still waiting in
//! it. After the first byte a failure is the client's to handle, because the endpoint may have acted on it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use futures::FutureExt;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, timeout};

use crate::balancer::Balancer;
use crate::limits::ProxyLimits;
use crate::relay::{BUFFER, relay};

/// How many endpoints are tried for one connection.
const ATTEMPTS: usize = 16;

/// Serves one connection to its end.
///
/// # Errors
/// When no endpoint takes it, when a side is reset, or when nothing has come for too long.
pub(crate) async fn serve(
    mut client: TcpStream,
    peer: IpAddr,
    balancer: &Mutex<Balancer>,
    limits: &Arc<ProxyLimits>,
) -> io::Result<()> {
    client.set_nodelay(true)?;
    let order = balancer.lock().order(peer, Instant::now());
    let mut first = Vec::new();
    let mut failure = io::ErrorKind::ConnectionRefused.into();
    for backend in order.into_iter().take(ATTEMPTS) {
        match begin(&mut client, peer, backend, &mut first, limits).await {
            Ok(mut connected) => {
                balancer.lock().connected(peer, backend, Instant::now());
                return relay(&mut client, &mut connected, limits).await;
            }
            Err(Refused::ByEndpoint(error)) => failure = error,
            Err(Refused::ByClient(error)) => return Err(error),
        }
    }
    Err(failure)
}

/// Why a connection did not begin.
enum Refused {
    /// The endpoint has seen nothing of the client: another one can be tried.
    ByEndpoint(io::Error),
    /// The client is gone.
    ByClient(io::Error),
}

/// Connects, and passes on the first bytes of the client, which stay in `first` until an endpoint has taken them.
async fn begin(
    client: &mut TcpStream,
    peer: IpAddr,
    backend: SocketAddr,
    first: &mut Vec<u8>,
    limits: &ProxyLimits,
) -> Result<TcpStream, Refused> {
    let connecting = timeout(limits.connect, connect(peer, backend)).await;
    let connected = connecting.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    let mut connected = connected.map_err(Refused::ByEndpoint)?;
    if first.is_empty() && !first_bytes(client, &connected, first, limits).await? {
        return Ok(connected);
    }
    let written = connected.write(first).await.map_err(Refused::ByEndpoint)?;
    // Something has been delivered: from here on there is one endpoint.
    let rest = first.split_off(written);
    connected
        .write_all(&rest)
        .await
        .map_err(Refused::ByClient)?;
    Ok(connected)
}

/// Waits until somebody speaks. Says whether it was the client, whose bytes are in `first` then.
async fn first_bytes(
    client: &mut TcpStream,
    backend: &TcpStream,
    first: &mut Vec<u8>,
    limits: &ProxyLimits,
) -> Result<bool, Refused> {
    let mut buffer = vec![0; BUFFER];
    let mut byte = [0];
    let count = tokio::select! {
        // An endpoint that speaks, or ends, before its client does is served by the relay.
        spoke = backend.peek(&mut byte) => match spoke {
            Ok(_) => return Ok(false),
            Err(error) => return Err(Refused::ByEndpoint(error)),
        },
        read = timeout(limits.idle, client.read(&mut buffer)) => match read {
            Ok(read) => read.map_err(Refused::ByClient)?,
            Err(_) => return Err(Refused::ByClient(io::ErrorKind::TimedOut.into())),
        },
    };
    buffer.truncate(count);
    *first = buffer;
    // A connection that the endpoint has reset meanwhile has taken nothing.
    match backend.peek(&mut byte).now_or_never() {
        Some(Err(error)) => Err(Refused::ByEndpoint(error)),
        _ => Ok(count > 0),
    }
}

/// Connects from the address of the client, so that endpoints see who calls. Most clients are at 127.0.0.1, which is what
/// the kernel chooses by itself.
async fn connect(peer: IpAddr, backend: SocketAddr) -> io::Result<TcpStream> {
    let both_v4 = peer.is_ipv4() && backend.is_ipv4();
    let own = both_v4 && peer.is_loopback() && peer != Ipv4Addr::LOCALHOST;
    let stream = if own {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::new(peer, 0))?;
        socket.connect(backend).await?
    } else {
        TcpStream::connect(backend).await?
    };
    stream.set_nodelay(true)?;
    Ok(stream)
}
