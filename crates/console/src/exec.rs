//! A terminal in a container: WebSocket messages between the page and the API server, with the user's own credentials.
//!
//! Both ends speak the channel protocol of `kubectl exec`, so messages are passed on as they are. What is typed is never
//! logged, and nothing of it is kept.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::{SinkExt as _, StreamExt as _};
use http::header::{
    CONNECTION, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use rand::{RngCore as _, TryRngCore as _, rngs::OsRng};
use tokio::time::{Instant, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use crate::cluster::escape;
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
/// The largest message that is passed on.
const LARGEST: usize = 1 << 20;
/// How long the page may take to go on with the connection.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a terminal lives in which nothing happens.
const IDLE: Duration = Duration::from_secs(4 * 3600);

type Socket = WebSocketStream<TokioIo<Upgraded>>;

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
    let cluster = connect(state, uri).await?;
    state.terminals.lock().spawn(async move {
        if let Ok(Ok(page)) = timeout(PATIENCE, page).await {
            let page = socket(page, Role::Server).await;
            relay(page, cluster).await;
        }
    });
    let mut response = whole(
        StatusCode::SWITCHING_PROTOCOLS,
        "text/plain",
        Default::default(),
    );
    let accept = derive_accept_key(key.as_bytes());
    let accept = HeaderValue::from_str(&accept).map_err(|_| not_a_socket())?;
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

async fn connect(state: &State, uri: String) -> Result<Socket, Problem> {
    let mut nonce = [0; 16];
    OsRng.unwrap_err().fill_bytes(&mut nonce);
    let request = Request::get(uri)
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_VERSION, "13")
        .header(SEC_WEBSOCKET_KEY, STANDARD.encode(nonce))
        .header(SEC_WEBSOCKET_PROTOCOL, PROTOCOLS);
    let upgraded = state.terminal_connection.upgrade(request).await?;
    Ok(socket(upgraded, Role::Client).await)
}

async fn socket(upgraded: Upgraded, role: Role) -> Socket {
    let limits = WebSocketConfig::default()
        .max_message_size(Some(LARGEST))
        .max_frame_size(Some(LARGEST));
    WebSocketStream::from_raw_socket(TokioIo::new(upgraded), role, Some(limits)).await
}

/// Passes messages on until one end closes, fails, or nothing happened for long.
async fn relay(mut page: Socket, mut cluster: Socket) {
    let end = tokio::time::sleep(IDLE);
    tokio::pin!(end);
    loop {
        let passed = tokio::select! {
            () = &mut end => break,
            message = page.next() => pass(message, &mut cluster).await,
            message = cluster.next() => pass(message, &mut page).await,
        };
        if !passed {
            break;
        }
        end.as_mut().reset(Instant::now() + IDLE);
    }
    // The other end may be gone already.
    let _ = page.close(None).await;
    let _ = cluster.close(None).await;
}

/// Passes a message on. Pings are answered by the library.
async fn pass<E>(message: Option<Result<Message, E>>, to: &mut Socket) -> bool {
    match message {
        Some(Ok(message @ (Message::Binary(_) | Message::Text(_)))) => {
            to.send(message).await.is_ok()
        }
        Some(Ok(Message::Close(_)) | Err(_)) | None => false,
        Some(Ok(_)) => true,
    }
}
