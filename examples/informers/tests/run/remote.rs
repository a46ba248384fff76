//! A server behind TLS and a line that can be cut, as a kubeconfig says.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kubewright_server::{Endpoint, Server};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

pub(crate) struct Remote {
    pub(crate) server: Server,
    _endpoint: Endpoint,
    directory: TempDir,
    line: Arc<Line>,
    maps: Api<ConfigMap>,
    _tasks: JoinSet<()>,
}

/// The connections between programs and the server.
struct Line {
    connections: Mutex<JoinSet<()>>,
    /// While it is down, connections are taken and nothing passes.
    up: watch::Sender<bool>,
}

impl Remote {
    pub(crate) async fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let audit = directory.path().join("audit");
        let server = Server::builder().audit_log(audit).start().await;
        let server = server.expect("the server starts");
        let address = "127.0.0.1:0".parse().expect("an address");
        let endpoint = server.listen(address).await.expect("it listens");
        let line = Arc::new(Line {
            connections: Mutex::default(),
            up: watch::Sender::new(true),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("https://{}", listener.local_addr().expect("an address"));
        let config = endpoint.kubeconfig().as_str().replace(endpoint.url(), &url);
        std::fs::write(directory.path().join("kubeconfig"), config).expect("it is written");
        let mut tasks = JoinSet::new();
        tasks.spawn(line.clone().serve(listener, endpoint.address()));
        let client = kube::Client::new(server.service(), "default");
        Self {
            maps: Api::namespaced(client, "default"),
            server,
            _endpoint: endpoint,
            directory,
            line,
            _tasks: tasks,
        }
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("kubeconfig")
    }

    pub(crate) async fn create(&self, name: &str, team: &str) {
        let map = serde_json::from_value(json!({
            "metadata": {"name": name, "labels": {"team": team}}, "data": {"made-by": "test"},
        }));
        let map = map.expect("it is a ConfigMap");
        let created = self.maps.create(&PostParams::default(), &map).await;
        created.expect("it is created");
    }

    pub(crate) async fn move_to(&self, name: &str, team: &str) {
        let patch = json!({"metadata": {"labels": {"team": team}}});
        let (how, patch) = (PatchParams::default(), Patch::Merge(patch));
        let patched = self.maps.patch(name, &how, &patch).await;
        patched.expect("it is patched");
    }

    pub(crate) async fn delete(&self, name: &str) {
        let deleted = self.maps.delete(name, &DeleteParams::default()).await;
        deleted.expect("it is deleted");
    }

    /// Forgets all history: whoever is not connected now is too late.
    pub(crate) fn forget(&self) {
        let compacted = self.server.compact(self.server.revision());
        compacted.expect("the current revision is known");
    }

    /// Cuts all connections.
    pub(crate) fn cut(&self) {
        self.line.connections.lock().expect("no panic").abort_all();
    }

    /// Cuts all connections, and lets nothing pass until it is up again.
    pub(crate) fn down(&self) {
        self.line.up.send_replace(false);
        self.cut();
    }

    pub(crate) fn up(&self) {
        self.line.up.send_replace(true);
    }

    /// What was asked of a resource over the line, by verb. The log is written behind the server's back: it is asked
    /// for when the programs have ended and at least one such line is there.
    pub(crate) async fn asked(&self, resource: &str) -> Vec<String> {
        loop {
            let asked = asked(&self.directory.path().join("audit"), resource);
            if !asked.is_empty() {
                return asked;
            }
            tokio::task::yield_now().await;
        }
    }
}

fn asked(audit: &Path, resource: &str) -> Vec<String> {
    let text = std::fs::read_to_string(audit).unwrap_or_default();
    let events = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let is_reading = |event: &Value| {
        let verb = event["verb"].as_str().unwrap_or_default();
        event["objectRef"]["resource"] == resource && matches!(verb, "list" | "watch")
    };
    let verb = |event: Value| event["verb"].as_str().map(str::to_owned);
    events.filter(is_reading).filter_map(verb).collect()
}

impl Line {
    async fn serve(self: Arc<Self>, listener: TcpListener, server: SocketAddr) {
        while let Ok((near, _)) = listener.accept().await {
            let up = self.up.subscribe();
            let mut connections = self.connections.lock().expect("no panic");
            connections.spawn(pass(near, server, up));
        }
    }
}

async fn pass(mut near: TcpStream, server: SocketAddr, mut up: watch::Receiver<bool>) {
    if up.wait_for(|up| *up).await.is_err() {
        return;
    }
    if let Ok(mut far) = TcpStream::connect(server).await {
        // However it ends, it is over.
        let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
    }
}
