//! UDP ports: each client has an endpoint and a socket of its own, for as long as it keeps talking.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::balancer::Balancer;
use crate::limits::ProxyLimits;

/// The largest datagram of UDP.
const LARGEST: usize = 65_535;

/// A client: the socket that stands for it, and when it last spoke.
struct Client {
    socket: Arc<UdpSocket>,
    backend: SocketAddr,
    seen: Instant,
}

/// Passes on datagrams until it is dropped.
pub(crate) async fn serve(
    socket: Arc<UdpSocket>,
    balancer: Arc<Mutex<Balancer>>,
    limits: Arc<ProxyLimits>,
) {
    let mut clients: BTreeMap<SocketAddr, Client> = BTreeMap::new();
    let mut replies = JoinSet::new();
    let mut buffer = vec![0; LARGEST];
    loop {
        // An error belongs to an earlier datagram, whose receiver was gone.
        let Ok((count, peer)) = socket.recv_from(&mut buffer).await else {
            tokio::task::yield_now().await;
            continue;
        };
        while replies.try_join_next().is_some() {}
        let now = Instant::now();
        let order = balancer.lock().order(peer.ip(), now);
        let Some(next) = order.first().copied() else {
            continue;
        };
        // A client keeps its endpoint while that takes connections.
        let known = clients.get(&peer);
        let current = known.is_some_and(|client| {
            order.contains(&client.backend) && now.duration_since(client.seen) < limits.datagrams
        });
        if !current {
            forget(&mut clients, &limits, now);
            let Ok(own) = open(next).await.map(Arc::new) else {
                continue;
            };
            balancer.lock().connected(peer.ip(), next, now);
            replies.spawn(reply(own.clone(), socket.clone(), peer, limits.clone()));
            let client = Client {
                socket: own,
                backend: next,
                seen: now,
            };
            clients.insert(peer, client);
        }
        if let Some(client) = clients.get_mut(&peer) {
            client.seen = now;
            let _ = client.socket.send(&buffer[..count]).await;
        }
    }
}

async fn open(backend: SocketAddr) -> io::Result<UdpSocket> {
    let any = if backend.is_ipv4() {
        "127.0.0.1:0"
    } else {
        "[::1]:0"
    };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(backend).await?;
    Ok(socket)
}

/// Passes answers back until none has come for a while. It ends with the socket's last datagram, not with the client's.
async fn reply(
    from: Arc<UdpSocket>,
    to: Arc<UdpSocket>,
    peer: SocketAddr,
    limits: Arc<ProxyLimits>,
) {
    let mut buffer = vec![0; LARGEST];
    while let Ok(received) = timeout(limits.datagrams, from.recv(&mut buffer)).await {
        // Nothing listens there at the moment: the next datagram may find somebody.
        let Ok(count) = received else { continue };
        let _ = to.send_to(&buffer[..count], peer).await;
    }
}

/// Drops clients that have been silent, and the oldest one when there are too many.
fn forget(clients: &mut BTreeMap<SocketAddr, Client>, limits: &ProxyLimits, now: Instant) {
    clients.retain(|_, client| now.duration_since(client.seen) < limits.datagrams);
    if clients.len() >= limits.datagram_clients {
        let oldest = clients.iter().min_by_key(|(_, client)| client.seen);
        if let Some(oldest) = oldest.map(|(peer, _)| *peer) {
            clients.remove(&oldest);
        }
    }
}
