//! Terminals: what is typed reaches the process, what it writes reaches the page, and strangers reach nothing.

use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use http::Request;
use http::header::SEC_WEBSOCKET_PROTOCOL;
use kubewright_cluster::Cluster;
use kubewright_console::{Console, Mode};
use kubewright_testing::until;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::support::{self, LIMIT, Page, create, read_object};

/// Opens a terminal as a page does, with a token and an origin.
async fn terminal(
    page: &Page,
    bearer: &str,
    origin: &str,
) -> Result<WebSocketStream<TcpStream>, u16> {
    let address = page.base.strip_prefix("http://").expect("it is HTTP");
    let request = Request::get(format!(
        "ws://{address}/api/exec?ns=default&name=web&container=web&command=sh"
    ))
    .header("host", address)
    .header("origin", origin)
    .header("connection", "Upgrade")
    .header("upgrade", "websocket")
    .header("sec-websocket-version", "13")
    .header("sec-websocket-key", generate_key())
    .header(
        SEC_WEBSOCKET_PROTOCOL,
        format!("v5.channel.k8s.io, bearer.{bearer}"),
    )
    .body(())
    .expect("it is a request");
    let stream = TcpStream::connect(address).await.expect("it listens");
    match client_async(request, stream).await {
        Ok((socket, _)) => Ok(socket),
        Err(Error::Http(response)) => Err(response.status().as_u16()),
        Err(error) => panic!("{error}"),
    }
}

/// Reads until the output has a text.
async fn expect(socket: &mut WebSocketStream<TcpStream>, wanted: &str) -> String {
    let mut seen = String::new();
    let found = timeout(LIMIT, async {
        while !seen.contains(wanted) {
            match socket.next().await {
                Some(Ok(Message::Binary(bytes))) => {
                    seen.push_str(&String::from_utf8_lossy(&bytes[1..]))
                }
                Some(Ok(_)) => {}
                ended => panic!("ended before {wanted:?}: {ended:?}; seen: {seen:?}"),
            }
        }
    });
    found.await.unwrap_or_else(|_| panic!("never {wanted:?}"));
    seen
}

async fn cluster() -> (Cluster, kubewright_server::Endpoint, kube::Client) {
    let cluster = Cluster::builder().start().await.expect("it starts");
    cluster.ready().await.expect("it is ready");
    let endpoint = cluster
        .listen(([127, 0, 0, 1], 0).into())
        .await
        .expect("it listens");
    let kubeconfig = kube::config::Kubeconfig::from_yaml(endpoint.kubeconfig().as_str())
        .expect("it is a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default())
        .await
        .expect("it is usable");
    let network = kube::Client::try_from(config).expect("it is usable");
    let client = cluster.client();
    create(&client, "/api/v1/namespaces/default/pods", json!({"metadata": {"name": "web"}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}})).await;
    until("a running pod", async || {
        let pod = read_object(&client, "/api/v1/namespaces/default/pods/web").await;
        (pod["status"]["phase"] == "Running").then_some(())
    })
    .await;
    (cluster, endpoint, network)
}

#[tokio::test(flavor = "multi_thread")]
async fn terminal_carries_keys_output_and_sizes_for_the_page_alone() {
    let (cluster, endpoint, network) = cluster().await;
    let console = Console::new(cluster.client()).terminals(network);
    let (running, page) = support::open(console).await;
    let strangers = [
        ("a forged token", "AAAA", page.base.as_str(), 401),
        (
            "another origin",
            page.bearer.as_str(),
            "http://attacker.example",
            403,
        ),
    ];
    for (who, bearer, origin, status) in strangers {
        let refused = terminal(&page, bearer, origin).await.err();
        assert_eq!(refused, Some(status), "{who}");
    }
    let mut socket = terminal(&page, &page.bearer, &page.base)
        .await
        .expect("it opens");
    let size = [&[4][..], br#"{"Width":100,"Height":30}"#].concat();
    socket
        .send(Message::binary(size))
        .await
        .expect("it is sent");
    expect(&mut socket, "# ").await;
    socket
        .send(Message::binary(&b"\0echo hel''lo\r"[..]))
        .await
        .expect("it is sent");
    expect(&mut socket, "hello").await;
    socket
        .send(Message::binary(&b"\0exit\r"[..]))
        .await
        .expect("it is sent");
    expect(&mut socket, "Success").await;
    let end = timeout(Duration::from_secs(30), async {
        while let Some(Ok(_)) = socket.next().await {}
    });
    end.await.expect("the connection ends with the process");
    running.stop().await;
    endpoint.close().await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn terminal_is_refused_where_nothing_may_change_and_where_no_pod_runs() {
    let (cluster, endpoint, network) = cluster().await;
    let read_only = Console::new(cluster.client())
        .terminals(network.clone())
        .mode(Mode::ReadOnly);
    let (_read_only, page) = support::open(read_only).await;
    assert_eq!(
        terminal(&page, &page.bearer, &page.base).await.err(),
        Some(403)
    );
    let (_running, page) = support::open(Console::new(cluster.client()).terminals(network)).await;
    let (status, answer) = page.get("/api/exec?ns=default&name=web").await;
    assert!(
        status == 400 && answer["message"].to_string().contains("WebSocket"),
        "{status} {answer}"
    );
    let delete = json!({"kind": "v1/pods", "ns": "default", "name": "web", "uid": read_object(&cluster.client(), "/api/v1/namespaces/default/pods/web").await["metadata"]["uid"]});
    assert_eq!(page.post("/api/delete", &delete).await.0, 200);
    until("the pod is gone", async || {
        let (status, _) = page
            .get("/api/object?kind=v1/pods&ns=default&name=web")
            .await;
        (status == 404).then_some(())
    })
    .await;
    assert_eq!(
        terminal(&page, &page.bearer, &page.base).await.err(),
        Some(404)
    );
    endpoint.close().await;
    cluster.stop().await;
}
