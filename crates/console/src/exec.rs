//! A terminal in a container: a WebSocket between the page and the API server, with the user's own credentials.
//!
//! Both ends speak the channel protocol of `kubectl exec`. The handshake goes on with the key of the page, so that the answer of
//! the API server is the one that the page waits for, and from then on bytes are passed on as they are: it is between the two
//! ends what is in them. What is typed is never logged, and nothing of it is kept.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::header::{
    CONNECTION, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, split};
use tokio::time::{Instant, timeout};

use crate::cluster::{ClusterError, escape};
use crate::http::{Body, Problem, whole};
use crate::query::Query;
use crate::read;
use crate::state::State;

/// The protocols of channels, newest first.
const PROTOCOLS: &str = "v5.channel.k8s.io, v4.channel.k8s.io";
/// The protocol that the page is answered with; its messages are those of every version.
const PROTOCOL: &str = "v5.channel.k8s.io";
/// Terminals that may be open at once.
const MOST: usize = 32;
/// How many bytes are passed on at once.
const PIECE: usize = 16 << 10;
/// How long the page may take to go on with the connection.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a terminal lives in which nothing happens.
const IDLE: Duration = Duration::from_secs(4 * 3600);

/// Connects the page with a command in a container.
///
/// # Errors
/// When the request is not a WebSocket, too many are open, or the API server refuses.
pub(crate) async fn exec(
    state: &Arc<State>,
    head: &mut Parts,
    query: &Query,
) -> Result<Response<Body>, Problem> {
    let not_a_socket = || Problem::BadRequest("this is an address for WebSockets".to_owned());
    let key = head.headers.get(SEC_WEBSOCKET_KEY).cloned();
    let key = key.ok_or_else(not_a_socket)?;
    let page = head.extensions.remove::<OnUpgrade>();
    let page = page.ok_or_else(not_a_socket)?;
    let uri = uri(query)?;
    if open_terminals(state) >= MOST {
        let message = format!("{MOST} terminals are open; close one");
        return Err(Problem::BadRequest(message));
    }
    let (accept, cluster) = connect(state, uri, key).await?;
    state.terminals.lock().spawn(async move {
        if let Ok(Ok(page)) = timeout(PATIENCE, page).await {
            relay(TokioIo::new(page), TokioIo::new(cluster)).await;
        }
    });
    let mut response = whole(
        StatusCode::SWITCHING_PROTOCOLS,
        "text/plain",
        Default::default(),
    );
    let headers = response.headers_mut();
    headers.clear();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(PROTOCOL));
    Ok(response)
}

fn open_terminals(state: &State) -> usize {
    let mut open = state.terminals.lock();
    while open.try_join_next().is_some() {}
    open.len()
}

/// The address of the command at the API server.
fn uri(query: &Query) -> Result<String, Problem> {
    let namespace = escape(query.need("ns")?);
    let name = escape(read::name(query)?);
    let mut uri = format!(
        "/api/v1/namespaces/{namespace}/pods/{name}/exec?stdin=true&stdout=true&stderr=true&tty=true"
    );
    if let Some(container) = query.get("container") {
        uri.push_str(&format!("&container={}", escape(container)));
    }
    for word in query.get("command").unwrap_or("sh").split_whitespace() {
        uri.push_str(&format!("&command={}", escape(word)));
    }
    Ok(uri)
}

/// The API server's answer to the key of the page, and the connection that goes on.
async fn connect(
    state: &State,
    uri: String,
    key: HeaderValue,
) -> Result<(HeaderValue, Upgraded), ClusterError> {
    let request = Request::get(uri)
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_VERSION, "13")
        .header(SEC_WEBSOCKET_KEY, key)
        .header(SEC_WEBSOCKET_PROTOCOL, PROTOCOLS);
    let (mut headers, upgraded) = state.terminal_connection.upgrade(request).await?;
    let accept = headers.remove(SEC_WEBSOCKET_ACCEPT);
    let accept = accept.ok_or_else(|| ClusterError::malformed("it goes on without a WebSocket"))?;
    Ok((accept, upgraded))
}

/// Passes bytes on until one end closes, fails, or nothing happened for long.
async fn relay(page: impl AsyncRead + AsyncWrite, cluster: impl AsyncRead + AsyncWrite) {
    let (mut from_page, mut to_page) = split(page);
    let (mut from_cluster, mut to_cluster) = split(cluster);
    let (mut typed, mut shown) = (vec![0; PIECE], vec![0; PIECE]);
    let end = tokio::time::sleep(IDLE);
    tokio::pin!(end);
    loop {
        let passed = tokio::select! {
            () = &mut end => break,
            read = from_page.read(&mut typed) => pass(read, &typed, &mut to_cluster).await,
            read = from_cluster.read(&mut shown) => pass(read, &shown, &mut to_page).await,
        };
        if !matches!(passed, Ok(true)) {
            break;
        }
        end.as_mut().reset(Instant::now() + IDLE);
    }
    // The other end may be gone already.
    let _ = to_page.shutdown().await;
    let _ = to_cluster.shutdown().await;
}

/// Passes on what was read. False at the end of it.
async fn pass(
    read: io::Result<usize>,
    bytes: &[u8],
    to: &mut (impl AsyncWrite + Unpin),
) -> io::Result<bool> {
    let read = read?;
    to.write_all(&bytes[..read]).await?;
    to.flush().await?;
    Ok(read > 0)
}
