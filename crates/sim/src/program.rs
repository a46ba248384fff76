//! An operator that is a program of any language: it finds the API server by its kubeconfig, and everything that it sends
//! passes the same gates as the calls of an operator in this process.
//!
//! The address in the kubeconfig has a secret in its path: nobody else on the machine gets in. Clients are answered in JSON
//! whatever they ask for, so that events can be distinguished, and what they send as protobuf is read as JSON.

use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use kubewright_schema::Table;
use kubewright_schema::protobuf::{self, Envelope};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use tower::{BoxError, Service as _};

use crate::wire::{Wire, full};

/// The media type of protobuf.
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// The largest body that is read.
const MAX_BODY: usize = 4 << 20;
/// How much of what a program said is shown.
const SAID: usize = 600;
/// Connections of one process at most.
const CONNECTIONS: usize = 256;

/// A program that is an operator: in any language, by the kubeconfig that `KUBECONFIG` names.
#[derive(Debug, Clone)]
pub struct Program {
    command: String,
}

impl Program {
    /// The program that a command line of the shell starts. It runs in the current directory, once for every process of a
    /// run, several at once: it must not bind ports of its own, such as those of metrics and probes.
    pub fn new(command: &str) -> Self {
        let command = command.to_owned();
        Self { command }
    }

    /// Starts it on an API server that is behind a wire, and says how it ended.
    pub(crate) async fn run(&self, wire: Wire) -> String {
        match self.try_run(wire).await {
            Ok(ended) => ended,
            Err(error) => format!("{} cannot be run: {error}", self.command),
        }
    }

    async fn try_run(&self, wire: Wire) -> io::Result<String> {
        let folder = tempfile::Builder::new().prefix("kubewright-").tempdir()?;
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let secret = format!("{:032x}", StdRng::from_os_rng().random::<u128>());
        let address = format!("http://{}/{secret}", listener.local_addr()?);
        let kubeconfig = folder.path().join("kubeconfig");
        write_private(&kubeconfig, &kubeconfig_of(&address))?;
        let said = folder.path().join("said");
        let mut child = self.spawn(&kubeconfig, &said)?;
        let serving = serve(listener, wire, Arc::from(format!("/{secret}")));
        let status = tokio::select! {
            biased; // A program that ended is not served any more.
            status = child.wait() => status?,
            () = serving => return Ok("its API server ended".to_owned()),
        };
        Ok(format!(
            "the program ended with {status}: {}",
            last_words(&said)
        ))
    }

    fn spawn(&self, kubeconfig: &Path, said: &Path) -> io::Result<Child> {
        let out = fs::File::create(said)?;
        Command::new("sh")
            .args(["-c", &format!("exec {}", self.command)])
            .env("KUBECONFIG", kubeconfig)
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out)
            // A process that is dropped is killed: it has no time to clean up, as in production.
            .kill_on_drop(true)
            .spawn()
    }
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    io::Write::write_all(&mut file, text.as_bytes())
}

fn kubeconfig_of(address: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: simulation\n\
         clusters:\n- name: simulation\n  cluster: {{server: {address}}}\n\
         users:\n- name: simulation\n  user: {{}}\n\
         contexts:\n- name: simulation\n  context: {{cluster: simulation, user: simulation, namespace: default}}\n"
    )
}

/// The end of what a program wrote.
fn last_words(path: &Path) -> String {
    let text = fs::read(path).unwrap_or_default();
    let from = text.len().saturating_sub(SAID);
    String::from_utf8_lossy(&text[from..]).trim().to_owned()
}

/// Answers until it is dropped, and with it all connections.
async fn serve(listener: TcpListener, wire: Wire, secret: Arc<str>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased; // Finished connections first, or new ones would let them pile up.
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept(), if connections.len() < CONNECTIONS => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(speak(stream, wire.clone(), secret.clone()));
                }
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
            },
        }
    }
}

async fn speak(stream: TcpStream, wire: Wire, secret: Arc<str>) {
    // Without it answers are slower, not wrong.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request: Request<Incoming>| {
        let (wire, secret) = (wire.clone(), secret.clone());
        async move { answer(request, wire, &secret).await }
    });
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // A connection that broke is one that the plan broke, or the program.
    let _ = connection.await;
}

/// What breaks a connection.
fn broken(error: BoxError) -> io::Error {
    io::Error::other(error.to_string())
}

/// Passes a request on, without what only this connection is about. An error breaks the connection.
async fn answer(
    request: Request<Incoming>,
    mut wire: Wire,
    secret: &str,
) -> io::Result<Response<UnsyncBoxBody<Bytes, io::Error>>> {
    let (mut head, body) = request.into_parts();
    let target = head.uri.path_and_query().map_or("", |it| it.as_str());
    let Some(target) = target.strip_prefix(secret).filter(|it| it.starts_with('/')) else {
        let mut response = Response::new(full(Bytes::from_static(b"not found\n")));
        *response.status_mut() = StatusCode::NOT_FOUND;
        return Ok(response.map(|body| body.map_err(broken).boxed_unsync()));
    };
    head.uri = target.parse().map_err(io::Error::other)?;
    head.headers.remove(ACCEPT_ENCODING);
    let accept = head.headers.get(ACCEPT).and_then(|it| it.to_str().ok());
    let accept = in_json(accept.unwrap_or_default());
    head.headers.insert(
        ACCEPT,
        HeaderValue::from_str(&accept).map_err(io::Error::other)?,
    );
    let mut body = Limited::new(body, MAX_BODY)
        .collect()
        .await
        .map_err(|error| io::Error::other(error.to_string()))?
        .to_bytes();
    let content = head.headers.get(CONTENT_TYPE);
    let is_protobuf = content.is_some_and(|it| it.as_bytes().starts_with(PROTOBUF.as_bytes()));
    if is_protobuf && let Some(json) = transcoded(&body) {
        body = json;
        let json = HeaderValue::from_static("application/json");
        head.headers.insert(CONTENT_TYPE, json);
        head.headers.remove(CONTENT_LENGTH);
    }
    let request = Request::from_parts(head, Body::from(body.to_vec()));
    let response = wire
        .call(request)
        .await
        .map_err(|error| io::Error::other(error.to_string()))?;
    Ok(response.map(|body| body.map_err(broken).boxed_unsync()))
}

/// What a client accepts, with JSON in place of protobuf: `as=Table` and the like stay.
fn in_json(accept: &str) -> String {
    let parts = accept.split(',').map(str::trim).filter(|it| !it.is_empty());
    let parts: Vec<String> = parts
        .filter(|part| !part.starts_with("application/cbor"))
        .map(|part| part.replace(PROTOBUF, "application/json"))
        .collect();
    if parts.is_empty() {
        "application/json".to_owned()
    } else {
        parts.join(", ")
    }
}

/// An object of a built-in kind as JSON.
fn transcoded(bytes: &[u8]) -> Option<Bytes> {
    let envelope = Envelope::parse(bytes).ok()?;
    let (group, version) = match envelope.api_version.split_once('/') {
        Some((group, version)) => (group, version),
        None => ("", &*envelope.api_version),
    };
    let name = match (group, &*envelope.kind) {
        (_, "DeleteOptions") => "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions".to_owned(),
        ("", kind) => format!("io.k8s.api.core.{version}.{kind}"),
        (group, kind) => {
            let short = group.split('.').next().unwrap_or_default();
            format!("io.k8s.api.{short}.{version}.{kind}")
        }
    };
    let table = Table::builtin();
    let object = protobuf::decode(table, table.named(&name)?, bytes).ok()?;
    Some(Bytes::from(object.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_answered_in_json_and_tables_stay_tables() {
        let both = "application/vnd.kubernetes.protobuf,application/json";
        assert_eq!(in_json(both), "application/json, application/json");
        assert_eq!(in_json(""), "application/json");
        let table = "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1";
        assert_eq!(
            in_json(table),
            "application/json;as=Table;g=meta.k8s.io;v=v1"
        );
    }

    #[test]
    fn objects_in_protobuf_are_read_as_json() {
        let table = Table::builtin();
        let ty = table
            .named("io.k8s.api.core.v1.ConfigMap")
            .expect("a built-in kind");
        let map = serde_json::json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"b": "c"},
        });
        let bytes = protobuf::encode(table, ty, &map);
        let json = transcoded(&bytes).expect("it is a ConfigMap");
        let found: serde_json::Value = serde_json::from_slice(&json).expect("it is JSON");
        assert_eq!(
            (&found["metadata"]["name"], &found["data"]["b"]),
            (&"a".into(), &"c".into())
        );
        assert_eq!(transcoded(b"no protobuf"), None);
    }
}
