//! Snapshots: taken, named, compared with the present, forked.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use kubewright_console::{Console, Fork, SnapshotError, Snapshots};
use kubewright_server::Server;
use kubewright_testing::Wire;
use parking_lot::Mutex;
use serde_json::json;

use crate::support::{self, create};

/// Snapshots of a server; what was forked is noted.
struct OfServer {
    server: Arc<Server>,
    copies: Arc<Mutex<Vec<Server>>>,
    forked: Arc<Mutex<Vec<String>>>,
}

impl Snapshots for OfServer {
    fn take(&self, _: String) -> BoxFuture<'static, Result<kube::Client, SnapshotError>> {
        let (server, copies) = (self.server.clone(), self.copies.clone());
        async move {
            let copy = server.fork(kubewright_server::Environment::system()).await;
            let client = Wire::new(copy.service()).client();
            copies.lock().push(copy);
            Ok(client)
        }
        .boxed()
    }

    fn fork(&self, name: String) -> BoxFuture<'static, Result<Fork, SnapshotError>> {
        self.forked.lock().push(name.clone());
        let fork = Fork {
            link: format!("http://127.0.0.1:1/#{name}"),
            kubeconfig: format!("{name}.kubeconfig"),
        };
        async { Ok(fork) }.boxed()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshot_is_named_compared_and_forked() {
    let server = Arc::new(Server::builder().start().await.expect("it starts"));
    let client = Wire::new(server.service()).client();
    let forked = Arc::new(Mutex::new(Vec::new()));
    let snapshots = OfServer {
        server: server.clone(),
        copies: Arc::default(),
        forked: forked.clone(),
    };
    let console = Console::new(client.clone()).snapshots(Arc::new(snapshots));
    let (_running, page) = support::open(console).await;
    create(
        &client,
        "/api/v1/namespaces/default/configmaps",
        json!({"metadata": {"name": "before"}}),
    )
    .await;
    for wrong in ["", "Has Space", "../x"] {
        assert_eq!(
            page.post("/api/snapshots", &json!({"name": wrong})).await.0,
            400,
            "{wrong:?}"
        );
    }
    let (status, answer) = page.post("/api/snapshots", &json!({"name": "quiet"})).await;
    assert_eq!(
        (status, &answer["snapshots"][0]["name"]),
        (200, &json!("quiet")),
        "{answer}"
    );
    assert_eq!(
        page.post("/api/snapshots", &json!({"name": "quiet"}))
            .await
            .0,
        400,
        "the name is taken"
    );
    create(
        &client,
        "/api/v1/namespaces/default/configmaps",
        json!({"metadata": {"name": "after"}}),
    )
    .await;
    let found = page.get("/api/snapshots/compare?name=quiet").await.1;
    assert_eq!(
        (&found["added"], &found["deleted"]),
        (&json!(1), &json!(0)),
        "{found}"
    );
    assert!(found["objects"].to_string().contains("after"), "{found}");
    for _ in 0..2 {
        let (status, answer) = page
            .post("/api/snapshots/fork", &json!({"name": "quiet"}))
            .await;
        assert!(
            status == 200 && answer["snapshots"][0]["fork"]["link"].is_string(),
            "{answer}"
        );
    }
    assert_eq!(*forked.lock(), ["quiet"], "it is forked once");
}

#[tokio::test(flavor = "multi_thread")]
async fn console_of_another_cluster_offers_no_snapshots() {
    let server = Server::builder().start().await.expect("it starts");
    let (_running, page) = support::open(Console::new(Wire::new(server.service()).client())).await;
    assert_eq!(page.get("/api/snapshots").await.1["available"], false);
    assert_eq!(
        page.post("/api/snapshots", &json!({"name": "x"})).await.0,
        400
    );
}
