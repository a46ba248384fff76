//! The only way to the database: passes bytes between clients and its socket, while the member may.
//!
//! Nothing that a primary says leaves the pod after its lease has run out: the lease is checked before every write to a client, by a
//! clock that goes on while the process is stopped. A commit whose answer was held back may be in the log of the old primary;
//! nobody has had an answer that says so.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::JoinSet;

use super::Shared;

/// Bytes that are passed on at once.
const CHUNK: usize = 16 * 1024;
/// How often an idle connection is looked at.
const IDLE: Duration = Duration::from_millis(100);
/// Connections at once; PostgreSQL has a limit of its own below that.
const MOST_CONNECTIONS: usize = 2_000;

/// Takes connections until it is dropped.
pub(super) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok((client, _)) = listener.accept().await else {
            tokio::time::sleep(IDLE).await;
            continue;
        };
        // Closed at once: a client tries another member, or again.
        let Some(epoch) = shared.open() else {
            continue;
        };
        if connections.len() < MOST_CONNECTIONS {
            connections.spawn(pass(client, epoch, shared.clone()));
        }
    }
}

/// Binds the address of the database.
pub(super) async fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    TcpListener::bind(address).await
}

async fn pass(client: TcpStream, epoch: u64, shared: Arc<Shared>) {
    let Ok(database) = UnixStream::connect(&shared.socket).await else {
        return;
    };
    let _ = client.set_nodelay(true);
    let (mut from_client, to_client) = client.into_split();
    let (mut from_database, mut to_database) = database.into_split();
    let inward = async {
        let mut chunk = vec![0; CHUNK];
        loop {
            let read = from_client.read(&mut chunk).await.unwrap_or(0);
            if read == 0 || to_database.write_all(&chunk[..read]).await.is_err() {
                return;
            }
        }
    };
    let outward = async {
        let mut chunk = vec![0; CHUNK];
        loop {
            let read = from_database.read(&mut chunk).await.unwrap_or(0);
            let mut rest = &chunk[..read];
            while !rest.is_empty() {
                if to_client.writable().await.is_err() || !shared.is_open(epoch) {
                    return;
                }
                // Nothing is awaited between the check and the write.
                match to_client.try_write(rest) {
                    Ok(written) => rest = &rest[written..],
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                    Err(_) => return,
                }
            }
            if read == 0 {
                return;
            }
        }
    };
    let closed = async {
        while shared.is_open(epoch) {
            tokio::time::sleep(IDLE).await;
        }
    };
    tokio::select! {
        () = inward => {}
        () = outward => {}
        () = closed => {}
    }
}
