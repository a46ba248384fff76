//! Watches over WebSocket, as fabric8 asks for them, with a client that was not written here.

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::{Duration, timeout};
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::socket::{Identity, Site};

/// Longest wait for anything that must happen.
const PATIENCE: Duration = Duration::from_secs(60);
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

type Socket = WebSocketStream<TlsStream<TcpStream>>;

/// Opens a WebSocket at a path; the error is the answer's code.
async fn open(site: &Site, path: &str, headers: &[(&'static str, &str)]) -> Result<Socket, u16> {
    let wire = site.connect(&Identity::Admin, "http/1.1").await;
    let url = format!("wss://{}{path}", site.endpoint.address());
    let mut request = url.into_client_request().expect("a request");
    for (name, value) in headers {
        let value = value.parse().expect("a header");
        request.headers_mut().insert(*name, value);
    }
    let opened = timeout(PATIENCE, client_async(request, wire.into_stream())).await;
    match opened.expect("answered in time") {
        Ok((socket, _)) => Ok(socket),
        Err(Error::Http(answer)) => Err(answer.status().as_u16()),
        Err(error) => panic!("{path}: {error}"),
    }
}

async fn next(socket: &mut Socket) -> Message {
    let message = timeout(PATIENCE, socket.next()).await;
    message
        .expect("a message in time")
        .expect("not at its end")
        .expect("a message")
}

/// The next event: its type and the object's name.
async fn event(socket: &mut Socket) -> (String, String) {
    let Message::Text(text) = next(socket).await else {
        panic!("events in JSON are texts");
    };
    let event: Value = serde_json::from_str(&text).expect("one event");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (
        text(&event["type"]),
        text(&event["object"]["metadata"]["name"]),
    )
}

async fn create(site: &Site, path: &str, body: Value) {
    let mut wire = site.connect(&Identity::Admin, "http/1.1").await;
    let body = body.to_string();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    wire.write(request).await.expect("written");
    let answer = wire.read_answer().await;
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
}

fn map(name: &str) -> Value {
    json!({ "metadata": { "name": name } })
}

#[tokio::test]
async fn events_come_as_messages_and_the_end_as_a_close() {
    let site = Site::start().await;
    create(&site, MAPS, map("a")).await;
    let path = format!(
        "{MAPS}?watch=true&timeoutSeconds=2&fieldSelector=metadata.name!%3Dkube-root-ca.crt"
    );
    let mut socket = open(&site, &path, &[]).await.expect("upgraded");
    assert_eq!(event(&mut socket).await, ("ADDED".into(), "a".into()));
    create(&site, MAPS, map("b")).await;
    assert_eq!(event(&mut socket).await, ("ADDED".into(), "b".into()));
    socket
        .send(Message::Text("nobody reads this".into()))
        .await
        .expect("sent");
    socket
        .send(Message::Ping("hello".into()))
        .await
        .expect("sent");
    assert_eq!(next(&mut socket).await, Message::Pong("hello".into()));
    assert!(
        matches!(next(&mut socket).await, Message::Close(Some(frame)) if u16::from(frame.code) == 1000)
    );
}

#[tokio::test]
async fn protobuf_events_are_binary_and_have_no_length_before_them() {
    let site = Site::start().await;
    create(&site, MAPS, map("a")).await;
    let accept = ("accept", "application/vnd.kubernetes.protobuf;stream=watch");
    let path = format!("{MAPS}?watch=true&fieldSelector=metadata.name%3Da");
    let mut socket = open(&site, &path, &[accept]).await.expect("upgraded");
    let Message::Binary(event) = next(&mut socket).await else {
        panic!("events in protobuf are bytes");
    };
    // Field 1 of the event is its type.
    assert_eq!(&event[..7], b"\x0a\x05ADDED");
    // A client that leaves gives its watch back.
    socket.close(None).await.expect("closed");
    timeout(PATIENCE, async { while socket.next().await.is_some() {} })
        .await
        .expect("the server closes, too");
}

#[tokio::test]
async fn refusals_are_ordinary_answers() {
    let site = Site::start().await;
    assert_eq!(
        open(&site, "/apis/nowhere.io/v1/things?watch=true", &[])
            .await
            .err(),
        Some(404)
    );
    assert_eq!(
        open(&site, "/api/v1/configmaps?watch=true&timeoutSeconds=x", &[])
            .await
            .err(),
        Some(400)
    );
    let version = ("sec-websocket-version", "8");
    assert_eq!(
        open(&site, "/api/v1/configmaps?watch=true", &[version])
            .await
            .err(),
        Some(400)
    );
    // What is not a stream is answered as it always is.
    assert_eq!(
        open(&site, "/api/v1/configmaps", &[]).await.err(),
        Some(200)
    );
    site.serves().await;
}
