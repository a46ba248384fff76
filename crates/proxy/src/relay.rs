//! Bytes both ways between two connections, until both sides have ended or nothing has come for too long.

use std::io;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use crate::limits::ProxyLimits;

/// How many bytes are on their way in one direction.
pub(crate) const BUFFER: usize = 16 * 1024;

/// When the last byte came, and how many directions are still open.
struct Activity {
    last: Mutex<Instant>,
    open: AtomicU8,
    idle: Duration,
    half_closed: Duration,
}

impl Activity {
    fn note(&self) {
        *self.last.lock() = Instant::now();
    }

    /// When the connection counts as abandoned, if no byte comes.
    fn deadline(&self) -> Instant {
        let open = self.open.load(Ordering::Relaxed);
        let limit = if open == 2 {
            self.idle
        } else {
            self.half_closed
        };
        *self.last.lock() + limit
    }
}

/// Copies both ways. The end of one direction is passed on, and the other goes on: a client may have said everything and
/// still wait for its answer.
///
/// # Errors
/// When a side is reset, or nothing has come for too long. Both connections are then to be dropped.
pub(crate) async fn relay(
    client: &mut TcpStream,
    backend: &mut TcpStream,
    limits: &ProxyLimits,
) -> io::Result<()> {
    let activity = Activity {
        last: Mutex::new(Instant::now()),
        open: AtomicU8::new(2),
        idle: limits.idle,
        half_closed: limits.half_closed,
    };
    let (mut client_read, mut client_write) = client.split();
    let (mut backend_read, mut backend_write) = backend.split();
    let there = copy(&mut client_read, &mut backend_write, &activity);
    let back = copy(&mut backend_read, &mut client_write, &activity);
    tokio::try_join!(there, back)?;
    Ok(())
}

async fn copy(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    activity: &Activity,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let count = within(activity, from.read(&mut buffer)).await?;
        activity.note();
        if count == 0 {
            break;
        }
        let mut rest = &buffer[..count];
        while !rest.is_empty() {
            let written = within(activity, to.write(rest)).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            activity.note();
            rest = &rest[written..];
        }
    }
    activity.open.fetch_sub(1, Ordering::Relaxed);
    to.shutdown().await
}

/// Waits for one read or write. Bytes of the other direction postpone the deadline.
async fn within(
    activity: &Activity,
    work: impl Future<Output = io::Result<usize>>,
) -> io::Result<usize> {
    tokio::pin!(work);
    loop {
        let deadline = activity.deadline();
        if let Ok(done) = timeout_at(deadline, &mut work).await {
            return done;
        }
        if activity.deadline() <= Instant::now() {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// Two connected pairs: the ends that are relayed, and the ends outside.
    async fn pairs() -> [TcpStream; 4] {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut made = Vec::new();
        for _ in 0..2 {
            made.push(TcpStream::connect(address).await.expect("connected"));
            made.push(listener.accept().await.expect("accepted").0);
        }
        made.try_into().expect("four")
    }

    #[tokio::test]
    async fn the_end_of_one_side_leaves_the_other_open() {
        let [mut user, mut client, mut backend, mut server] = pairs().await;
        let limits = ProxyLimits::default();
        let relayed = tokio::spawn(async move { relay(&mut client, &mut backend, &limits).await });
        user.write_all(b"question").await.expect("written");
        user.shutdown().await.expect("half closed");
        let mut question = String::new();
        server
            .read_to_string(&mut question)
            .await
            .expect("read to the end");
        assert_eq!(question, "question");
        server.write_all(b"answer").await.expect("written");
        drop(server);
        let mut answer = String::new();
        user.read_to_string(&mut answer)
            .await
            .expect("read to the end");
        assert_eq!(answer, "answer");
        relayed.await.expect("no panic").expect("both ended");
    }

    #[tokio::test]
    async fn an_idle_connection_ends_and_a_busy_direction_keeps_the_other() {
        let [mut user, mut client, mut backend, mut server] = pairs().await;
        let limits = ProxyLimits::default().idle(Duration::from_millis(400));
        let started = Instant::now();
        let relayed = tokio::spawn(async move { relay(&mut client, &mut backend, &limits).await });
        for _ in 0..6 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            user.write_all(b"x")
                .await
                .expect("the connection is in use");
            let mut byte = [0];
            server.read_exact(&mut byte).await.expect("relayed");
        }
        let ended = relayed.await.expect("no panic").expect_err("idle");
        assert_eq!(ended.kind(), io::ErrorKind::TimedOut);
        assert!(
            started.elapsed() >= Duration::from_millis(900),
            "{:?}",
            started.elapsed()
        );
    }
}
