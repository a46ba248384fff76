//! `exec` and `port-forward` over WebSocket, with a client that was not written here, and clients that break the rules.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, SinkExt, StreamExt};
use http::{Request, Response};
use kubewright_server::{
    AgentError, ContainerTarget, NodeAgents, PodTarget, PodUsage, Server, Streams, Usage,
};
use serde_json::{Value, json};
use tokio::io::DuplexStream;
use tokio::net::TcpStream;
use tokio::time::{Duration, timeout};
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::call::Ask;
use crate::socket::{Identity, Site};

/// Longest wait for anything that must happen.
const PATIENCE: Duration = Duration::from_secs(60);

type Socket = WebSocketStream<TlsStream<TcpStream>>;

/// A node whose commands repeat what they read, and whose ports do the same.
struct Echo;

impl NodeAgents for Echo {
    fn exec(
        &self,
        _: ContainerTarget,
        command: Vec<String>,
        mut streams: Streams,
    ) -> BoxFuture<'static, Result<i32, AgentError>> {
        async move {
            streams.write_error(command.join(" ")).await;
            while let Some(bytes) = streams.read().await {
                streams.write(bytes).await;
            }
            Ok(3)
        }
        .boxed()
    }

    fn attach(
        &self,
        target: ContainerTarget,
        _: Streams,
    ) -> BoxFuture<'static, Result<Option<i32>, AgentError>> {
        async move { Err(AgentError::NotRunning(target.container)) }.boxed()
    }

    fn port_forward(
        &self,
        _: PodTarget,
        port: u16,
        stream: DuplexStream,
    ) -> BoxFuture<'static, Result<(), AgentError>> {
        async move {
            if port != 80 {
                return Err(AgentError::Refused(port));
            }
            let (mut read, mut write) = tokio::io::split(stream);
            // An error means that the client has gone.
            let _ = tokio::io::copy(&mut read, &mut write).await;
            Ok(())
        }
        .boxed()
    }

    fn pod_http(
        &self,
        _: PodTarget,
        _: u16,
        request: Request<Bytes>,
    ) -> BoxFuture<'static, Result<Response<Bytes>, AgentError>> {
        async move { Ok(Response::new(request.uri().to_string().into())) }.boxed()
    }

    fn node_http(
        &self,
        node: String,
        _: Request<Bytes>,
    ) -> BoxFuture<'static, Result<Response<Bytes>, AgentError>> {
        async move { Err(AgentError::Unreachable(node)) }.boxed()
    }

    fn pod_usage(&self, _: &Value) -> Option<PodUsage> {
        None
    }

    fn node_usage(&self, _: &Value, _: &[Value]) -> Option<Usage> {
        None
    }
}

async fn site() -> Site {
    let server = Server::builder().node_agents(Arc::new(Echo)).start().await;
    let site = Site::of(server.expect("starts")).await;
    let mut wire = site.connect(&Identity::Admin, "http/1.1").await;
    let pod = json!({"metadata": {"name": "p"},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}]}});
    let body = pod.to_string();
    let request = format!(
        "POST /api/v1/namespaces/default/pods HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    wire.write(request).await.expect("written");
    let answer = wire.read_answer().await;
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    site
}

async fn open(site: &Site, path: &str, protocol: &str) -> Result<Socket, u16> {
    let wire = site.connect(&Identity::Admin, "http/1.1").await;
    let url = format!(
        "wss://{}/api/v1/namespaces/default/pods/p/{path}",
        site.endpoint.address()
    );
    let mut request = url.into_client_request().expect("a request");
    let value = protocol.parse().expect("a header");
    request
        .headers_mut()
        .insert("sec-websocket-protocol", value);
    let opened = timeout(PATIENCE, client_async(request, wire.into_stream())).await;
    match opened.expect("answered in time") {
        Ok((socket, _)) => Ok(socket),
        Err(Error::Http(answer)) => Err(answer.status().as_u16()),
        Err(error) => panic!("{path}: {error}"),
    }
}

async fn next(socket: &mut Socket) -> (u8, String) {
    loop {
        let message = timeout(PATIENCE, socket.next()).await.expect("in time");
        match message {
            Some(Ok(Message::Binary(bytes))) if bytes.len() > 1 => {
                return (bytes[0], String::from_utf8_lossy(&bytes[1..]).into_owned());
            }
            Some(Ok(Message::Binary(_))) => {}
            other => panic!("{other:?}"),
        }
    }
}

async fn send(socket: &mut Socket, bytes: &[u8]) {
    let message = Message::Binary(bytes.to_vec().into());
    socket.send(message).await.expect("sent");
}

const EXEC: &str = "exec?command=a&command=b&stdin=true&stdout=true&stderr=true";

#[tokio::test]
async fn command_reads_writes_and_ends_with_its_code() {
    let site = site().await;
    let mut socket = open(&site, EXEC, "v5.channel.k8s.io")
        .await
        .expect("upgraded");
    assert_eq!(next(&mut socket).await, (2, "a b".to_owned()));
    send(&mut socket, b"\0hello").await;
    assert_eq!(next(&mut socket).await, (1, "hello".to_owned()));
    // The end of its input, as version 5 has it.
    send(&mut socket, &[255, 0]).await;
    let (channel, status) = next(&mut socket).await;
    let status: Value = serde_json::from_str(&status).expect("a status");
    assert_eq!((channel, &status["reason"]), (3, &json!("NonZeroExitCode")));
    assert_eq!(
        status["details"]["causes"][0],
        json!({"reason": "ExitCode", "message": "3"})
    );
}

/// Admission changes the options of a connection, and what is opened is what it made of them.
#[tokio::test]
async fn command_is_the_one_that_a_policy_made_of_it() {
    let site = site().await;
    let group = "/apis/admissionregistration.k8s.io/v1";
    let rule = json!({"operations": ["CONNECT"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/exec"]});
    let patch = "[JSONPatch{op: 'replace', path: '/command/1', value: 'c'}]";
    let policy = json!({"metadata": {"name": "x"}, "spec": {
        "matchConstraints": {"resourceRules": [rule]}, "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
    }});
    let binding = json!({"metadata": {"name": "x"}, "spec": {"policyName": "x"}});
    for (plural, object) in [
        ("mutatingadmissionpolicies", policy),
        ("mutatingadmissionpolicybindings", binding),
    ] {
        let ask = Ask::post(format!("{group}/{plural}"), object);
        let answer = ask.send(&site.server.service()).await;
        assert_eq!(answer.code, 201, "{}", answer.text());
    }
    let mut socket = open(&site, EXEC, "v5.channel.k8s.io")
        .await
        .expect("upgraded");
    assert_eq!(next(&mut socket).await, (2, "a c".to_owned()));
}

#[tokio::test]
async fn ports_carry_bytes_and_refusals() {
    let site = site().await;
    let path = "portforward?ports=80&ports=81";
    let mut socket = open(&site, path, "v4.channel.k8s.io")
        .await
        .expect("upgraded");
    for channel in 0..4 {
        // Each channel begins with its port.
        let port = if channel < 2 { "P\0" } else { "Q\0" };
        assert_eq!(next(&mut socket).await, (channel, port.to_owned()));
    }
    let refused = "failed to connect to localhost:81 inside the pod: connection refused";
    assert_eq!(next(&mut socket).await, (3, refused.to_owned()));
    send(&mut socket, b"\0ping").await;
    assert_eq!(next(&mut socket).await, (0, "ping".to_owned()));
}

#[tokio::test]
async fn what_cannot_be_agreed_on_or_is_not_there_is_refused() {
    let site = site().await;
    for (path, protocol, code) in [
        (EXEC, "v9.channel.k8s.io", 400),
        ("exec?stdin=true", "v5.channel.k8s.io", 400),
        ("exec?command=a", "v5.channel.k8s.io", 400),
        (
            "exec?command=a&stdout=true&container=x",
            "v5.channel.k8s.io",
            400,
        ),
        ("portforward?ports=no", "v4.channel.k8s.io", 400),
    ] {
        assert_eq!(
            open(&site, path, protocol).await.err(),
            Some(code),
            "{path}"
        );
    }
    let mut wire = site.connect(&Identity::Admin, "http/1.1").await;
    let request =
        format!("GET /api/v1/namespaces/default/pods/p/{EXEC} HTTP/1.1\r\nHost: x\r\n\r\n");
    wire.write(request).await.expect("written");
    let answer = wire.read_answer().await;
    assert!(
        answer.starts_with("HTTP/1.1 400") && answer.contains("Upgrade request required"),
        "{answer}"
    );
    // A message without a channel ends the connection, and nothing else.
    let mut socket = open(&site, EXEC, "v4.channel.k8s.io")
        .await
        .expect("upgraded");
    assert_eq!(next(&mut socket).await, (2, "a b".to_owned()));
    send(&mut socket, b"").await;
    let end = timeout(PATIENCE, socket.next()).await.expect("in time");
    assert!(!matches!(end, Some(Ok(Message::Binary(_)))), "{end:?}");
    site.serves().await;
}

#[tokio::test]
async fn failure_of_the_agent_is_said_on_the_channel_of_errors() {
    let site = site().await;
    let mut socket = open(&site, "attach?stdout=true", "v4.channel.k8s.io")
        .await
        .expect("upgraded");
    let (channel, status) = next(&mut socket).await;
    assert!(
        channel == 3 && status.contains("container not found"),
        "{status}"
    );
}
