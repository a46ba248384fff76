//! A small DNS server: A, SRV, PTR and CNAME records of the cluster's own names, over UDP and TCP.
//!
//! It knows the domain of the cluster and addresses that Services and endpoints have, and refuses everything else: no query
//! leaves the machine.

mod answers;
mod message;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::names::Names;
use answers::answer;
use message::Query;

/// The largest answer over UDP without extensions (RFC 1035, 4.2.1); longer ones are cut, and asked for again over TCP.
const DATAGRAM: usize = 512;
/// The largest query: one name and its type need far less.
const QUERY: usize = 2_048;
/// How many TCP connections are served at once.
const CONNECTIONS: usize = 64;
/// How long a TCP connection may be idle.
const IDLE: Duration = Duration::from_secs(10);
/// How long a socket rests after an error.
const AFTER_ERROR: Duration = Duration::from_millis(20);

/// The sockets of a DNS server.
#[derive(Debug)]
pub(crate) struct DnsServer {
    udp: UdpSocket,
    tcp: TcpListener,
}

impl DnsServer {
    /// Listens over UDP and TCP, on one port.
    pub(crate) async fn bind(address: SocketAddr) -> io::Result<Self> {
        let udp = UdpSocket::bind(address).await?;
        let tcp = TcpListener::bind(udp.local_addr()?).await?;
        Ok(Self { udp, tcp })
    }

    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.udp.local_addr()
    }

    /// Answers until it is dropped.
    pub(crate) async fn serve(self, names: watch::Receiver<Names>) {
        tokio::join!(
            datagrams(self.udp, names.clone()),
            connections(self.tcp, names)
        );
    }
}

/// The answer to the bytes of a query; none when they are not a query.
fn respond(bytes: &[u8], names: &watch::Receiver<Names>, limit: usize) -> Option<Vec<u8>> {
    let query = Query::parse(bytes)?;
    let answered = answer(&query, &names.borrow());
    Some(query.respond(&answered, limit))
}

async fn datagrams(socket: UdpSocket, names: watch::Receiver<Names>) {
    let mut buffer = vec![0; QUERY];
    loop {
        match socket.recv_from(&mut buffer).await {
            Ok((count, peer)) => {
                if let Some(response) = respond(&buffer[..count], &names, DATAGRAM) {
                    let _ = socket.send_to(&response, peer).await;
                }
            }
            Err(_) => sleep(AFTER_ERROR).await,
        }
    }
}

async fn connections(listener: TcpListener, names: watch::Receiver<Names>) {
    let seats = Arc::new(Semaphore::new(CONNECTIONS));
    let mut tasks = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(AFTER_ERROR).await;
            continue;
        };
        while tasks.try_join_next().is_some() {}
        let Ok(seat) = seats.clone().acquire_owned().await else {
            return;
        };
        let names = names.clone();
        tasks.spawn(async move {
            let _seat = seat;
            let _ = connection(stream, &names).await;
        });
    }
}

/// Serves queries, each after its length, until the client ends or sends something else.
async fn connection(mut stream: TcpStream, names: &watch::Receiver<Names>) -> io::Result<()> {
    loop {
        let length = timeout(IDLE, stream.read_u16()).await??;
        if usize::from(length) > QUERY {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut bytes = vec![0; length.into()];
        timeout(IDLE, stream.read_exact(&mut bytes)).await??;
        let Some(response) = respond(&bytes, names, usize::from(u16::MAX)) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let length = u16::try_from(response.len()).map_err(io::Error::other)?;
        let framed = [&length.to_be_bytes()[..], &response].concat();
        timeout(IDLE, stream.write_all(&framed)).await??;
    }
}
