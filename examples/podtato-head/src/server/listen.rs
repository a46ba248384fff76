//! Accepts connections until the server is to stop, and a little longer: whoever was sent here before the pod left its Service
//! gets an answer.

use std::convert::Infallible;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::{Identity, answer};

/// Requests that are answered at once; more wait to be accepted.
const MOST_CONNECTIONS: usize = 256;
/// How long a client may take to send its headers.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long connections are accepted after the server was asked to stop. Kubernetes takes a pod out of its Service and asks its
/// containers to stop at the same time, and not everybody has heard of the first when the second comes.
const LINGER: Duration = Duration::from_secs(2);
/// How long requests may take that were begun before the end.
const LAST_ANSWERS: Duration = Duration::from_secs(10);

/// Answers requests until it is asked to stop, and then those that were begun.
pub async fn serve(listener: TcpListener, identity: Identity, stop: impl Future<Output = ()>) {
    let (ends, end) = watch::channel(false);
    let mut connections = JoinSet::new();
    tokio::select! {
        () = accept(&listener, &identity, &end, &mut connections) => {}
        () = async { stop.await; sleep(LINGER).await } => {}
    }
    drop(listener);
    ends.send_replace(true);
    let answered = async { while connections.join_next().await.is_some() {} };
    if timeout(LAST_ANSWERS, answered).await.is_err() {
        println!("some requests were not answered");
    }
}

/// Accepts connections for ever.
async fn accept(
    listener: &TcpListener,
    identity: &Identity,
    end: &watch::Receiver<bool>,
    connections: &mut JoinSet<()>,
) {
    loop {
        if connections.len() >= MOST_CONNECTIONS {
            connections.join_next().await;
        }
        while connections.try_join_next().is_some() {}
        // An error is one of a connection that is gone already, or too many open files, which others close.
        let Ok((stream, _)) = listener.accept().await else {
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        connections.spawn(serve_one(stream, identity.clone(), end.clone()));
    }
}

/// Answers the requests of one connection. After the end it is closed when the last one has its answer.
async fn serve_one(stream: TcpStream, identity: Identity, mut end: watch::Receiver<bool>) {
    let answer = service_fn(|request: Request<Incoming>| {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let identity = &identity;
        async move { Ok::<_, Infallible>(answer(identity, &method, &path).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    let served = http.serve_connection(TokioIo::new(stream), answer);
    tokio::pin!(served);
    tokio::select! {
        // A client that hangs up is nothing to report.
        _ = served.as_mut() => return,
        () = async { drop(end.wait_for(|ended| *ended).await) } => {}
    }
    served.as_mut().graceful_shutdown();
    let _ = served.await;
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::sync::oneshot;

    use super::*;
    use crate::part::Part;

    const LIMIT: Duration = Duration::from_secs(30);

    async fn ask(stream: &mut TcpStream) -> String {
        let request = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";
        stream.write_all(request).await.expect("written");
        let mut answer = Vec::new();
        let read = async {
            while !answer.ends_with(b"\r\n\r\nok") {
                let count = stream.read_buf(&mut answer).await.expect("an answer");
                assert!(count > 0, "the connection was closed");
            }
        };
        timeout(LIMIT, read).await.expect("in time");
        String::from_utf8_lossy(&answer[..12]).into_owned()
    }

    #[tokio::test]
    async fn connections_are_served_for_a_while_after_the_signal() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let identity = Identity {
            part: Part::Hat,
            version: "1".to_owned(),
            app: "app".to_owned(),
            pod: "pod".to_owned(),
        };
        let (signal, signalled) = oneshot::channel::<()>();
        let stop = async { drop(signalled.await) };
        let server = tokio::spawn(serve(listener, identity, stop));
        let mut kept = TcpStream::connect(address).await.expect("it listens");
        assert_eq!(ask(&mut kept).await, "HTTP/1.1 200");
        signal.send(()).expect("it is awaited");
        let mut late = TcpStream::connect(address).await.expect("still");
        assert_eq!(ask(&mut late).await, "HTTP/1.1 200");
        assert_eq!(ask(&mut kept).await, "HTTP/1.1 200");
        // Connections that are kept open for more requests do not hold the end.
        let ended = timeout(LINGER + LAST_ANSWERS / 2, server).await;
        ended.expect("in time").expect("no panic");
        assert!(TcpStream::connect(address).await.is_err());
    }
}
