//! The seam through which the server reaches the agents of nodes: `exec`, `attach`, `port-forward`, `proxy` and what
//! pods use. The server has no nodes of its own; a cluster gives it one of these.

pub(crate) mod discovery;

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use serde_json::Value;
use tokio::io::DuplexStream;
use tokio::sync::mpsc;

/// How many chunks may wait in a stream before its writer has to.
const WAITING: usize = 16;
/// Largest body of a request to a port that is a function.
const MOST_BODY: usize = 16 << 20;

/// Answers for the nodes of a cluster, as kubelets do on their port 10250.
///
/// Every call is one future. Dropping it ends the command, the attachment or the forwarded connection.
pub trait NodeAgents: Send + Sync + 'static {
    /// Runs a command in a container and returns its exit code.
    fn exec(
        &self,
        target: ContainerTarget,
        command: Vec<String>,
        streams: Streams,
    ) -> BoxFuture<'static, Result<i32, AgentError>>;

    /// Connects to the process that a container runs, until that ends or the streams are closed. Returns its exit code
    /// if it has ended.
    fn attach(
        &self,
        target: ContainerTarget,
        streams: Streams,
    ) -> BoxFuture<'static, Result<Option<i32>, AgentError>>;

    /// Connects a stream of bytes with a port of a pod until either side closes it.
    fn port_forward(
        &self,
        pod: PodTarget,
        port: u16,
        stream: DuplexStream,
    ) -> BoxFuture<'static, Result<(), AgentError>>;

    /// Sends an HTTP request to a port of a pod.
    fn pod_http(
        &self,
        pod: PodTarget,
        port: u16,
        request: Request<Bytes>,
    ) -> BoxFuture<'static, Result<Response<Bytes>, AgentError>>;

    /// Sends an HTTP request to the agent of a node.
    fn node_http(
        &self,
        node: String,
        request: Request<Bytes>,
    ) -> BoxFuture<'static, Result<Response<Bytes>, AgentError>>;

    /// What the containers of a pod use now; nothing when that is not known, as before a metrics server has seen a pod.
    fn pod_usage(&self, pod: &Value) -> Option<PodUsage>;

    /// What a node uses now, given the pods that are on it.
    fn node_usage(&self, node: &Value, pods: &[Value]) -> Option<Usage>;
}

/// A pod on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PodTarget {
    /// The namespace of the pod.
    pub namespace: String,
    /// The name of the pod.
    pub pod: String,
    /// The pod's uid, which tells it from another pod of the same name.
    pub uid: String,
    /// The node that the pod is on.
    pub node: String,
}

impl PodTarget {
    /// Names a pod by its metadata and node.
    pub fn new(namespace: &str, pod: &str, uid: &str, node: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            pod: pod.to_owned(),
            uid: uid.to_owned(),
            node: node.to_owned(),
        }
    }
}

/// A container of a pod on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContainerTarget {
    /// The pod that the container is in.
    pub pod: PodTarget,
    /// The name of the container.
    pub container: String,
}

impl ContainerTarget {
    /// Names a container of a pod.
    pub fn new(pod: PodTarget, container: &str) -> Self {
        Self {
            pod,
            container: container.to_owned(),
        }
    }
}

/// Why an agent could not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The node cannot be reached.
    #[error("the agent of node {0:?} cannot be reached")]
    Unreachable(String),
    /// The container does not run.
    #[error("container not found (\"{0}\")")]
    NotRunning(String),
    /// The pod is not on the node.
    #[error("pod does not exist")]
    NoPod,
    /// Nothing listens on the port.
    #[error("failed to connect to localhost:{0} inside the pod: connection refused")]
    Refused(u16),
    /// The command could not be started.
    #[error("{0}")]
    Failed(String),
}

/// The size of a terminal in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalSize {
    /// The number of columns.
    pub width: u16,
    /// The number of rows.
    pub height: u16,
}

/// Which streams a caller asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Wanted {
    /// Bytes go to the process.
    pub stdin: bool,
    /// Its output comes back.
    pub stdout: bool,
    /// Its errors come back; never with a terminal, which has one stream for both.
    pub stderr: bool,
    /// It has a terminal.
    pub tty: bool,
}

impl Wanted {
    /// Output and errors, and nothing to read.
    pub fn output() -> Self {
        Self {
            stdout: true,
            stderr: true,
            ..Self::default()
        }
    }

    /// All of input, output and errors.
    pub fn everything() -> Self {
        Self {
            stdin: true,
            ..Self::output()
        }
    }
}

/// The streams of a process, at the end of whoever runs it. All of them are bounded: a process that writes faster than
/// its reader reads waits.
#[derive(Debug)]
pub struct Streams {
    stdin: Option<mpsc::Receiver<Bytes>>,
    stdout: Option<mpsc::Sender<Bytes>>,
    stderr: Option<mpsc::Sender<Bytes>>,
    sizes: mpsc::Receiver<TerminalSize>,
    tty: bool,
}

/// The streams of a process, at the end of whoever watches it.
#[derive(Debug)]
#[non_exhaustive]
pub struct StreamEnds {
    /// What the process reads; dropping it is the end of its input.
    pub stdin: Option<mpsc::Sender<Bytes>>,
    /// What the process writes.
    pub stdout: Option<mpsc::Receiver<Bytes>>,
    /// What the process writes of errors.
    pub stderr: Option<mpsc::Receiver<Bytes>>,
    /// The size of the terminal whenever it changes.
    pub sizes: mpsc::Sender<TerminalSize>,
}

impl Streams {
    /// Both ends of the streams that are wanted.
    pub fn pair(wanted: Wanted) -> (Self, StreamEnds) {
        fn pipe(wanted: bool) -> (Option<mpsc::Sender<Bytes>>, Option<mpsc::Receiver<Bytes>>) {
            if !wanted {
                return (None, None);
            }
            let (sender, receiver) = mpsc::channel(WAITING);
            (Some(sender), Some(receiver))
        }
        let (to_process, stdin) = pipe(wanted.stdin);
        let (stdout, from_stdout) = pipe(wanted.stdout);
        let (stderr, from_stderr) = pipe(wanted.stderr && !wanted.tty);
        let (resize, sizes) = mpsc::channel(WAITING);
        let own = Self {
            stdin,
            stdout,
            stderr,
            sizes,
            tty: wanted.tty,
        };
        let ends = StreamEnds {
            stdin: to_process,
            stdout: from_stdout,
            stderr: from_stderr,
            sizes: resize,
        };
        (own, ends)
    }

    /// Whether the process has a terminal.
    pub fn tty(&self) -> bool {
        self.tty
    }

    /// Whether anybody can write to the process.
    pub fn has_stdin(&self) -> bool {
        self.stdin.is_some()
    }

    /// Separates what comes in from the streams that go out, for whoever serves both at once.
    pub fn split(mut self) -> (StreamInput, Self) {
        let (_, closed) = mpsc::channel(1);
        let input = StreamInput {
            stdin: self.stdin.take(),
            sizes: Some(std::mem::replace(&mut self.sizes, closed)),
        };
        (input, self)
    }

    /// The next bytes of input; nothing at their end, or when there is no input.
    pub async fn read(&mut self) -> Option<Bytes> {
        self.stdin.as_mut()?.recv().await
    }

    /// The next size of the terminal; nothing when nobody sets it any more.
    pub async fn resized(&mut self) -> Option<TerminalSize> {
        self.sizes.recv().await
    }

    /// Writes output. What nobody reads is dropped.
    pub async fn write(&self, bytes: impl Into<Bytes>) {
        if let Some(stdout) = &self.stdout {
            // An error means that the reader has gone, who then drops the whole call.
            let _ = stdout.send(bytes.into()).await;
        }
    }

    /// Writes errors: to the output when there is a terminal, which has one stream for both.
    pub async fn write_error(&self, bytes: impl Into<Bytes>) {
        if self.tty {
            return self.write(bytes).await;
        }
        if let Some(stderr) = &self.stderr {
            // An error means that the reader has gone, who then drops the whole call.
            let _ = stderr.send(bytes.into()).await;
        }
    }
}

/// What comes to a process from whoever watches it: bytes for its input, and sizes of its terminal.
#[derive(Debug)]
pub struct StreamInput {
    stdin: Option<mpsc::Receiver<Bytes>>,
    sizes: Option<mpsc::Receiver<TerminalSize>>,
}

/// Something that comes to a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamEvent {
    /// Bytes for its input.
    Bytes(Bytes),
    /// Its input has ended.
    End,
    /// Its terminal has this size from now on.
    Resized(TerminalSize),
}

impl StreamInput {
    /// The next thing that comes; nothing when no more can. May be dropped and called again.
    pub async fn next(&mut self) -> Option<StreamEvent> {
        loop {
            if self.stdin.is_none() && self.sizes.is_none() {
                return None;
            }
            tokio::select! {
                // A size before the bytes that were typed after it.
                biased;
                size = receive(&mut self.sizes) => match size {
                    Some(size) => return Some(StreamEvent::Resized(size)),
                    None => self.sizes = None,
                },
                bytes = receive(&mut self.stdin) => match bytes {
                    Some(bytes) => return Some(StreamEvent::Bytes(bytes)),
                    None => {
                        self.stdin = None;
                        return Some(StreamEvent::End);
                    }
                },
            }
        }
    }
}

/// The next value of a channel that is there; never, when it is not.
async fn receive<T>(channel: &mut Option<mpsc::Receiver<T>>) -> Option<T> {
    match channel {
        Some(channel) => channel.recv().await,
        None => std::future::pending().await,
    }
}

/// Amounts that are used: cpu in thousandths of a core, memory in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Thousandths of a core.
    pub cpu: i64,
    /// The working set in bytes.
    pub memory: i64,
}

/// What a pod uses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PodUsage {
    /// When it was measured.
    pub at: Timestamp,
    /// By the name of the container.
    pub containers: BTreeMap<String, Usage>,
}

/// Answers HTTP/1.1 requests that come over a stream, one after the other, until it is closed. For agents whose ports
/// are functions rather than sockets.
pub async fn serve_http<F>(stream: DuplexStream, answer: F)
where
    F: Fn(Request<Bytes>) -> BoxFuture<'static, Response<Bytes>> + Clone + Send + 'static,
{
    let service = hyper::service::service_fn(move |request: Request<hyper::body::Incoming>| {
        let answer = answer.clone();
        async move {
            let (parts, body) = request.into_parts();
            let body = Limited::new(body, MOST_BODY).collect().await;
            let answer = match body {
                Ok(body) => answer(Request::from_parts(parts, body.to_bytes())).await,
                Err(_) => {
                    let mut refused = Response::new(Bytes::new());
                    *refused.status_mut() = http::StatusCode::PAYLOAD_TOO_LARGE;
                    refused
                }
            };
            Ok::<_, std::convert::Infallible>(answer.map(Full::new))
        }
    });
    let connection =
        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a forwarded connection ended");
    }
}
